"""`headgate run FILE`: apply, then run in the foreground."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.live import Live

from headgate.cli.answers import Output, harmless, print_answer
from headgate.cli.apply import apply_script
from headgate.cli.engines import engine_of, url_option
from headgate.cli.errors import NothingToRun
from headgate.cli.scripts import check_script, read_script
from headgate.cli.settings import project_option
from headgate.cli.tables import output_option
from headgate.cli.task_watch import (
    Rates,
    Settling,
    Task,
    changed_lines,
    halted_status,
    read_tasks,
    task_table,
)
from headgate.serve.client import EngineClient

EVERY = 1.0  # seconds between looks


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--once", is_flag=True, help="Process what is there, and end.")
@project_option
@url_option
@output_option
def run(file: Path, once: bool, project: Path, url: str | None, output: Output) -> None:
    """Apply the script FILE, and run in the foreground with rows per second, lag and last error of each task.

    Ctrl-C stops in order; if an engine ran already, it goes on. With --once the command ends when all that was there
    has been processed; its exit status is not 0 if a task halted.
    """
    text = read_script(file)
    if url is None:
        check_script(text, output)
    began = datetime.now(UTC)
    with engine_of(project, url) as connected:
        status = apply_script(connected, text, output, runs_on=True)
        if status == 0:
            settling = Settling(began if connected.started else None) if once else None
            status = _watch(connected.client, settling, output)
    sys.exit(status)


def _watch(client: EngineClient, settling: Settling | None, output: Output) -> int:
    """Look until all is processed, if there is an end to it, or until Ctrl-C."""
    tasks: tuple[Task, ...] = ()
    try:
        with _display() as display:
            while True:
                tasks = read_tasks(client)
                if not tasks:
                    raise NothingToRun
                display.show(tasks)
                if settling is not None and settling.look(tasks):
                    break
                time.sleep(EVERY)
    except KeyboardInterrupt:
        click.echo("stopping", err=True)
        return 0
    if output == "json":
        print_answer(client.run("SHOW TASKS;"), output)
    for task in tasks:
        if task.state == "halted":
            click.echo(f"{task.kind} {task.name} halted", err=True)
            click.echo("\n".join(map(harmless, (task.error or "").split("\n"))), err=True)
    return halted_status(tasks)


class Display(Protocol):
    def show(self, tasks: tuple[Task, ...]) -> None: ...


@contextmanager
def _display() -> Iterator[Display]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield Redrawn(live)


class Redrawn:
    """One table that is drawn anew at each look."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rates = Rates()

    def show(self, tasks: tuple[Task, ...]) -> None:
        self._live.update(task_table(tasks, self._rates.look(tasks, time.monotonic())), refresh=True)


class Lines:
    """A line for each task that changed, for logs."""

    def __init__(self) -> None:
        self._last: tuple[Task, ...] = ()

    def show(self, tasks: tuple[Task, ...]) -> None:
        for line in changed_lines(self._last, tasks):
            click.echo(line, err=True)
        self._last = tasks
