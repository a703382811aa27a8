"""How tasks do: read from an engine, drawn for people, and judged for `headgate run --once`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from rich.table import Table
from rich.text import Text

from headgate.cli.answers import harmless
from headgate.cli.main import exit_status_of
from headgate.serve.client import EngineClient
from headgate.serve.errors import EngineUnreachable
from headgate.serve.protocol import Columns, Failed, Rows

LOOK_TIMEOUT = 60.0
ENOUGH = 2  # looks in a row that see no lag
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
    for event in client.run("SHOW TASKS;", LOOK_TIMEOUT):
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


class Rates:
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


class Settling:
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
        return looks >= ENOUGH


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
        error = harmless((task.error or "").partition("\n")[0])
        table.add_row(harmless(task.name), task.kind, state, rate, f"{task.rows:,}", lag, Text(error))
    return table


def changed_lines(before: Sequence[Task], now: Sequence[Task]) -> Iterator[str]:
    """What is new since the last look, where nothing can be redrawn."""
    known = {task.name: task for task in before}
    for task in now:
        old = known.get(task.name)
        if old is None or (old.state, old.error, old.rows) != (task.state, task.error, task.rows):
            lag = "" if task.lag is None else f", lag {task.lag}"
            yield harmless(f"{task.kind} {task.name}: {task.state}, {task.rows} rows{lag}")


def halted_status(tasks: Sequence[Task]) -> int:
    """The exit status of the first task that halted; 0 if none did."""
    for task in tasks:
        if task.state == "halted":
            found = _CODE.match(task.error or "")
            return exit_status_of(found[1]) if found else 1
    return 0
