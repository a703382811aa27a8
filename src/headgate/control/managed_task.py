"""A task that should run, as the controller knows it, and what SHOW TASKS says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from headgate.catalog.tasks import State, TaskStatus
from headgate.errors import HeadgateError
from headgate.runtime.ports import Progress
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.task import Task

LONGEST_WAIT = 30.0  # seconds between two attempts to start a task


@dataclass(slots=True)
class ManagedTask:
    """A task that should run: for which definition, and what came of it."""

    signature: tuple[object, ...]
    task: Task | RealTimeTask | None = None  # None while it is halted or waits for another attempt
    error: HeadgateError | None = None
    notice: str | None = None  # which way it runs, and why
    said: str | None = None  # what the engine before this one said last of a task that was to start again
    tries: int = 0
    retry_at: float = 0.0
    halted_at: int | None = None  # catalog version when it halted
    state: State | None = None
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    progress: Progress = field(default_factory=Progress)  # a task made anew goes on counting from it
    failures: int = 0
    lag: int | None = None
    changed: bool = False  # its state is not in the catalog yet
    progressed: bool = False  # its counters are not in the catalog yet


def status_of(id_: int, managed: ManagedTask) -> TaskStatus:
    progress, state = managed.progress, managed.state or State.STARTING
    error = managed.error.diagnostic().render() if managed.error is not None else managed.said
    lag = managed.lag if state in (State.STARTING, State.RUNNING) else None
    return TaskStatus(
        id_, state, managed.since, error, progress.batch, progress.rows, progress.skipped, lag, progress.batches,
        progress.batch_seconds, progress.last_commit, managed.failures, managed.notice or progress.told,
        progress.stored_bytes,
    )  # fmt: skip


def pause_before(attempt: int) -> float:
    """Seconds."""
    return min(LONGEST_WAIT, 2.0**attempt / 2)
