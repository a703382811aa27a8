"""`headgate run FILE`: apply, then run in the foreground."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.commands import apply_script
from headgate.cli.engine import check_script, connect_engine, read_script, url_option
from headgate.cli.errors import NothingToRun
from headgate.cli.main import exit_status_of
from headgate.cli.output import Output, escape_control, output_option, print_answer
from headgate.cli.settings import project_option
from headgate.serve.client import EngineClient
from headgate.serve.errors import EngineUnreachable
from headgate.serve.protocol import Columns, Failed, Rows

POLL_INTERVAL = 1.0  # seconds between looks


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
    with connect_engine(project, url) as connected:
        status = apply_script(connected, text, output, runs_on=True)
        if status == 0:
            settling = IdleDetector(began if connected.started else None) if once else None
            status = _watch(connected.client, settling, output)
    sys.exit(status)


def _watch(client: EngineClient, settling: IdleDetector | None, output: Output) -> int:
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
                time.sleep(POLL_INTERVAL)
    except KeyboardInterrupt:
        click.echo("stopping", err=True)
        return 0
    if output == "json":
        print_answer(client.run("SHOW TASKS;"), output)
    for task in tasks:
        if task.state == "halted":
            click.echo(f"{task.kind} {task.name} halted", err=True)
            click.echo("\n".join(map(escape_control, (task.error or "").split("\n"))), err=True)
    return halted_status(tasks)


class Display(Protocol):
    def show(self, tasks: tuple[Task, ...]) -> None: ...


@contextmanager
def _display() -> Iterator[Display]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LogLines()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield LiveTable(live)


class LiveTable:
    """One table that is drawn anew at each look."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rates = RowRates()

    def show(self, tasks: tuple[Task, ...]) -> None:
        self._live.update(task_table(tasks, self._rates.look(tasks, time.monotonic())), refresh=True)


class LogLines:
    """A line for each task that changed, for logs."""

    def __init__(self) -> None:
        self._last: tuple[Task, ...] = ()

    def show(self, tasks: tuple[Task, ...]) -> None:
        for line in changed_lines(self._last, tasks):
            click.echo(line, err=True)
        self._last = tasks


STATUS_TIMEOUT = 60.0
IDLE_LOOKS = 2  # looks in a row that see no lag
COLOURS = {
    "running": "green",
    "starting": "yellow",
    "halted": "bold red",
    "disabled": "dim",
    "stopped": "dim",
}
_CODE = re.compile(r"error ([A-Z]+-\d+):")


@dataclass(frozen=True, slots=True)
class Task:
    """One row of SHOW TASKS. ``error`` is a whole diagnostic; ``lag`` and ``batch`` are None until one is known."""

    name: str
    kind: str
    state: str
    error: str | None
    batch: int | None
    rows: int
    lag: int | None
    since: datetime


def read_tasks(client: EngineClient) -> tuple[Task, ...]:
    """All tasks of the engine's catalog, in the order in which they were made."""
    names: list[str] = []
    tasks: list[Task] = []
    for event in client.run("SHOW TASKS;", STATUS_TIMEOUT):
        match event:
            case Columns(columns):
                names = [column.name for column in columns]
            case Rows(rows):
                tasks += [_task(dict(zip(names, row, strict=True))) for row in rows]
            case Failed(diagnostic):
                raise EngineUnreachable(client.url, diagnostic.message)
            case _:
                pass
    return tuple(tasks)


def _task(row: dict[str, object]) -> Task:
    return Task(
        str(row["name"]),
        str(row["kind"]),
        str(row["state"]),
        cast("str | None", row["error"]),
        cast("int | None", row["batch"]),
        cast("int", row["rows"]),
        cast("int | None", row["lag"]),
        datetime.fromisoformat(str(row["since"]).removesuffix("Z")).replace(tzinfo=UTC),
    )


class RowRates:
    """Rows per second of each task, between one look and the next."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def look(self, tasks: Sequence[Task], now: float) -> dict[str, float]:
        """``now`` in seconds. A task that counts anew has no rate until the next look."""
        found: dict[str, float] = {}
        for task in tasks:
            before, rows = self._seen.get(task.name, (now, task.rows))
            if now > before and task.rows >= rows:
                found[task.name] = (task.rows - rows) / (now - before)
            self._seen[task.name] = (now, task.rows)
        return found


class IdleDetector:
    """Whether all that was there has been processed. What was reported before ``after`` is of an earlier engine."""

    def __init__(self, after: datetime | None = None) -> None:
        self._after = after
        self._without_lag: dict[str, int] = {}

    def look(self, tasks: Sequence[Task]) -> bool:
        done = [self._is_done(task) for task in tasks]  # every task is counted at every look
        return all(done)

    def _is_done(self, task: Task) -> bool:
        if self._after is not None and task.since < self._after:
            return False
        if task.state in ("halted", "disabled"):
            return True
        no_lag = task.state == "running" and task.lag == 0
        looks = self._without_lag[task.name] = self._without_lag.get(task.name, 0) + 1 if no_lag else 0
        return looks >= IDLE_LOOKS


def task_table(tasks: Sequence[Task], rates: dict[str, float]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("task", "kind", "state", "rows/s", "rows", "lag", "last error"):
        table.add_column(
            name,
            justify="right" if name in ("rows/s", "rows", "lag") else "left",
            no_wrap=name != "last error",
        )
    for task in tasks:
        state = Text(task.state, COLOURS.get(task.state, ""))
        rate = f"{rates[task.name]:,.0f}" if task.name in rates else ""
        lag = "" if task.lag is None else f"{task.lag:,}"
        error = escape_control((task.error or "").partition("\n")[0])
        table.add_row(escape_control(task.name), task.kind, state, rate, f"{task.rows:,}", lag, Text(error))
    return table


def changed_lines(before: Sequence[Task], now: Sequence[Task]) -> Iterator[str]:
    """What is new since the last look, where nothing can be redrawn."""
    known = {task.name: task for task in before}
    for task in now:
        old = known.get(task.name)
        if old is None or (old.state, old.error, old.rows) != (task.state, task.error, task.rows):
            lag = "" if task.lag is None else f", lag {task.lag}"
            yield escape_control(f"{task.kind} {task.name}: {task.state}, {task.rows} rows{lag}")


def halted_status(tasks: Sequence[Task]) -> int:
    """The exit status of the first task that halted; 0 if none did."""
    for task in tasks:
        if task.state == "halted":
            found = _CODE.match(task.error or "")
            return exit_status_of(found[1]) if found else 1
    return 0
