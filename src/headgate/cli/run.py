"""`headgate run FILE`: apply a script, then watch its tasks in the foreground.

The state of tasks is read with SHOW TASKS once per second and drawn as a table, or as lines without a terminal. With
--once an ``IdleDetector`` decides when everything is processed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, cast

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.commands import apply_script, connect_engine, read_checked_script, script_argument, url_option
from headgate.cli.errors import NothingToRun
from headgate.cli.main import exit_status_of
from headgate.cli.output import Output, escape_control, output_option, print_answer
from headgate.cli.settings import project_option
from headgate.serve.client import EngineClient

POLL_INTERVAL = 1.0  # seconds between two reads of the tasks
STATUS_TIMEOUT = 60.0  # seconds for SHOW TASKS
IDLE_LOOKS = 2  # a task is idle if it has no lag so many times in a row
COLOURS = {"running": "green", "starting": "yellow", "halted": "bold red", "disabled": "dim", "stopped": "dim"}
_CODE = re.compile(r"error ([A-Z]+-\d+):")


@click.command()
@script_argument
@click.option("--once", is_flag=True, help="Process the records that exist, then end.")
@project_option
@url_option
@output_option
def run(file: Path, once: bool, project: Path, url: str | None, output: Output) -> None:
    """Apply the script FILE, and show rows per second, lag and last error of each task.

    Ctrl-C ends the command: tasks finish their batch. An engine that ran before goes on. With --once the command ends
    when the existing records are processed; the exit status is not 0 if a task halted.
    """
    text = read_checked_script(file, url, output)
    began = datetime.now(UTC)
    with connect_engine(project, url) as connected:
        status = apply_script(connected, text, output, runs_on=True)
        if status == 0:
            # An engine that ran before has true states. One that was just started begins with those of an earlier one.
            idle = IdleDetector(began if connected.started else None) if once else None
            status = _watch(connected.client, idle, output)
    sys.exit(status)


def _watch(client: EngineClient, idle: IdleDetector | None, output: Output) -> int:
    """Show the tasks until ``idle`` finds all of them idle, or until Ctrl-C. Returns the exit status."""
    tasks: tuple[Task, ...] = ()
    try:
        with _display() as display:
            while True:
                tasks = read_tasks(client)
                if not tasks:
                    raise NothingToRun
                display.show(tasks)
                if idle is not None and idle.observe(tasks):
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
    """Shows the tasks each time they are read."""

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
    """A table that is drawn again in place, for a terminal."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rates = RowRates()

    def show(self, tasks: tuple[Task, ...]) -> None:
        self._live.update(task_table(tasks, self._rates.observe(tasks, time.monotonic())), refresh=True)


class LogLines:
    """One line for each task that changed, for logs."""

    def __init__(self) -> None:
        self._last: tuple[Task, ...] = ()

    def show(self, tasks: tuple[Task, ...]) -> None:
        for line in changed_lines(self._last, tasks):
            click.echo(line, err=True)
        self._last = tasks


@dataclass(frozen=True, slots=True)
class Task:
    """One row of SHOW TASKS. ``error`` is a whole diagnostic. ``lag`` and ``batch`` are None until they are known."""

    name: str
    kind: str
    state: str
    error: str | None
    batch: int | None
    rows: int
    lag: int | None
    since: datetime


def read_tasks(client: EngineClient) -> tuple[Task, ...]:
    """All tasks of the catalog, in the order of their creation. Raises EngineUnreachable."""
    return tuple(map(_task, client.rows("SHOW TASKS;", STATUS_TIMEOUT)))


def _task(row: Mapping[str, object]) -> Task:
    """A task from a row of SHOW TASKS."""
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
    """Computes the rows per second of each task between two reads."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def observe(self, tasks: Sequence[Task], now: float) -> dict[str, float]:
        """The rates since the last call. ``now`` is in seconds. A task whose count started again has no rate."""
        found: dict[str, float] = {}
        for task in tasks:
            before, rows = self._seen.get(task.name, (now, task.rows))
            if now > before and task.rows >= rows:
                found[task.name] = (task.rows - rows) / (now - before)
            self._seen[task.name] = (now, task.rows)
        return found


class IdleDetector:
    """Finds out when all existing records have been processed.

    A state from before ``after`` is one that an earlier engine left in the catalog, and does not count.
    """

    def __init__(self, after: datetime | None = None) -> None:
        self._after = after
        self._without_lag: dict[str, int] = {}

    def observe(self, tasks: Sequence[Task]) -> bool:
        """Whether every task is idle, halted or disabled. Call it at each read of the tasks."""
        done = [self._is_done(task) for task in tasks]  # a list, because every task must be counted at every call
        return all(done)

    def _is_done(self, task: Task) -> bool:
        """Whether one task has nothing left to do. A halted task does nothing more either."""
        if self._after is not None and task.since < self._after:
            return False
        if task.state in ("halted", "disabled"):
            return True
        no_lag = task.state == "running" and task.lag == 0
        looks = self._without_lag[task.name] = self._without_lag.get(task.name, 0) + 1 if no_lag else 0
        return looks >= IDLE_LOOKS


def task_table(tasks: Sequence[Task], rates: dict[str, float]) -> Table:
    """The table for a terminal. Of an error it shows the first line."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("task", "kind", "state", "rows/s", "rows", "lag", "last error"):
        justify: Literal["left", "right"] = "right" if name in ("rows/s", "rows", "lag") else "left"
        table.add_column(name, justify=justify, no_wrap=name != "last error")
    for task in tasks:
        state = Text(task.state, COLOURS.get(task.state, ""))
        rate = f"{rates[task.name]:,.0f}" if task.name in rates else ""
        lag = "" if task.lag is None else f"{task.lag:,}"
        error = escape_control((task.error or "").partition("\n")[0])
        table.add_row(escape_control(task.name), task.kind, state, rate, f"{task.rows:,}", lag, Text(error))
    return table


def changed_lines(before: Sequence[Task], now: Sequence[Task]) -> Iterator[str]:
    """A line for each task whose state, error or row count changed."""
    known = {task.name: task for task in before}
    for task in now:
        old = known.get(task.name)
        if old is None or (old.state, old.error, old.rows) != (task.state, task.error, task.rows):
            lag = "" if task.lag is None else f", lag {task.lag}"
            yield escape_control(f"{task.kind} {task.name}: {task.state}, {task.rows} rows{lag}")


def halted_status(tasks: Sequence[Task]) -> int:
    """The exit status for the error of the first halted task, or 0."""
    for task in tasks:
        if task.state == "halted":
            found = _CODE.match(task.error or "")
            return exit_status_of(found[1]) if found else 1
    return 0
