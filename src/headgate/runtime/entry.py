"""A task in the scheduler: how it stands, when it can work, and how large its next batch is."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

from headgate.catalog.positions import KafkaPosition, LogPosition, Positions, lag as distance_to
from headgate.runtime.ports import BatchResult, Input, Limit, Watched

LOOK_EVERY = 1.0  # seconds between two looks at an input whose end no poller knows
CANCEL_EVERY = 0.5  # seconds between two attempts to cancel a batch

AIM = 1.5  # seconds of work in a batch
SHORTEST_AIM = 0.3  # seconds of work in a batch while many others wait
FIRST_ROWS = 50_000  # size of a task's first batch
# Bounds of a batch. The larger one bounds what is read again after a crash.
FEWEST_ROWS, MOST_ROWS = 1_000, 500_000
SMALL_ROWS = 10_000  # rows up to which a batch is planned as a small one


class ScheduledTask(Protocol):
    """What the scheduler needs of a `Task`. One thread uses it at a time."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Mapping[int, Input]: ...

    @property
    def due(self) -> float | None:
        """The time (``time.time``) at which a batch is wanted even if there is nothing new to read; None for no timer."""

    @property
    def positions(self) -> Positions: ...

    def begin(self) -> None: ...

    def has_work(self, available: Positions) -> bool: ...

    def lag(self, available: Positions) -> int | None: ...

    def run_batch(
        self, session: SparkSession, limit: Limit | None = None, available: Positions | None = None
    ) -> BatchResult | None: ...

    @property
    def can_go_live(self) -> bool:
        """Whether it ever runs by itself."""

    @property
    def is_live(self) -> bool:
        """Whether it runs by itself between two calls. Then `finish` is called before `close`."""

    def finish(self, session: SparkSession, *, settle: bool = True) -> None:
        """End what runs by itself; with ``settle`` so that nothing of it is repeated."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Request:
    """Work to be done with a task between two of its batches."""

    work: Callable[[Any, SparkSession], Any]
    answer: Future[Any] = field(default_factory=Future)


@dataclass(slots=True)
class BatchSize:
    """How large the next batch of a task is, learned from those before it."""

    rows: int = FIRST_ROWS  # of a batch that takes AIM seconds
    fixed: float = 0.0  # seconds that a batch takes whatever its size, as far as that is known
    measured: BatchResult | None = None  # the last batch

    def limit(self, aim: float) -> Limit:
        """The size of a batch that takes about ``aim`` seconds."""
        return Limit(max(FEWEST_ROWS, int(self.rows * aim / AIM)))

    def measure(self, result: BatchResult, limit: Limit, aim: float) -> None:
        """Make the next batch larger or smaller, by at most a factor of four. A batch that was not full never makes it
        larger.

        What a batch costs whatever its size is left out. On a busy machine it may be more than ``aim``; batches would
        otherwise shrink to the smallest size, and a task that is behind would never catch up. Then a batch may spend as
        long on its rows as on the rest.
        """
        self.fixed = self._fixed_cost(result)
        is_full = result.rows >= limit.rows / 2
        if is_full or result.seconds > aim:
            wanted, took = max(aim - self.fixed, self.fixed), max(result.seconds - self.fixed, 0.001)
            factor = min(4.0 if is_full else 1.0, max(0.25, wanted / took))
            self.rows = min(MOST_ROWS, max(FEWEST_ROWS, int(self.rows * factor)))

    def _fixed_cost(self, result: BatchResult) -> float:
        """Two batches of clearly different sizes tell it, by the line through them. Other pairs bound it."""
        before, self.measured = self.measured, result
        if before is None or max(before.rows, result.rows) <= 1.5 * min(before.rows, result.rows):
            return min(self.fixed, result.seconds)
        per_row = (result.seconds - before.seconds) / (result.rows - before.rows)
        return max(0.0, min(result.seconds - per_row * result.rows, result.seconds, before.seconds))


@dataclass(slots=True, eq=False)
class Entry:
    """A task and how it stands in the scheduler. All fields are guarded by the scheduler's lock."""

    task: ScheduledTask
    begun: bool = False
    busy: bool = False  # a thread uses the task
    resting: bool = False  # it failed or must be planned anew, and goes on when it is added again
    failed: bool = False  # its last attempt failed, also if that was before it was added again
    woken: bool = False
    has_work: bool = False  # as far as the pollers know
    lag: int | None = None
    positions: Positions = field(default_factory=dict)  # where the task stood when it last knew
    looked_at: float = 0.0  # when its inputs were last asked by a batch
    worked_at: float = 0.0
    size: BatchSize = field(default_factory=BatchSize)
    tag: str | None = None  # of the batch that runs
    leaving: bool = False
    successor: ScheduledTask | None = None
    settles: bool = True  # it may settle before it leaves
    cancel_at: float | None = None
    cancelled_at: float | None = None  # when its jobs were cancelled last
    ends_query: bool = False  # it leaves, and may run by itself until it has left
    requests: deque[Request] = field(default_factory=deque)

    @property
    def is_at_work(self) -> bool:
        """Whether a thread uses the task, or it runs by itself: it cannot leave at once."""
        return self.busy or self.task.is_live

    @property
    def is_ready(self) -> bool:
        """Whether a worker can take it now."""
        if self.busy:
            return False
        if self.leaving:
            return self.task.is_live
        if self.resting or not self.begun:
            return False
        return bool(self.requests) or self.woken or self.has_work or self.timer <= 0

    @property
    def next_cancel(self) -> float | None:
        """When its jobs are to be cancelled, again if they were before: the batch may have been between two jobs."""
        if not self.busy or self.cancel_at is None:
            return None
        return self.cancel_at if self.cancelled_at is None else self.cancelled_at + CANCEL_EVERY

    @property
    def timer(self) -> float:
        """Seconds until it wants a batch whatever the pollers say; infinite for none."""
        due = self.task.due
        timer = due - time.time() if due is not None else math.inf
        if any(input_.watched is None for input_ in self.task.inputs.values()):
            timer = min(timer, self.looked_at + LOOK_EVERY - time.monotonic())
        return timer

    def is_small(self, available: Positions) -> bool:
        """Whether its next batch is planned as a small one."""
        waiting = self.task.lag(available)
        few = waiting is not None and waiting <= SMALL_ROWS
        return few and not _reads_a_whole_view(self.task.positions, available)

    def look(self, available: Positions) -> None:
        """Compare where the task stands with where its inputs end. In the midst of a commit and after a failure it does not
        know; the position that it had before is then a safe answer."""
        if self.begun:
            self.positions = self.task.positions or self.positions
            self.lag = distance_to(self.positions, available)
            self.has_work = self.task.has_work(available)
            self.woken = self.woken or _is_another_topic(self.task.positions, available)


def watched_by(task: ScheduledTask) -> set[Watched]:
    """The topics whose ends say whether the task has something to do."""
    return {input_.watched for input_ in task.inputs.values() if input_.watched is not None}


def _reads_a_whole_view(positions: Positions, ends: Positions) -> bool:
    """Whether a materialized view is read as it is, which may have any number of rows. The lag of its log counts batches."""
    pairs = [(positions[id_], end) for id_, end in ends.items() if id_ in positions]
    logs = [(at, end) for at, end in pairs if isinstance(at, LogPosition) and isinstance(end, LogPosition)]
    return any(end.number > 0 and (at.number == 0 or at.generation != end.generation) for at, end in logs)


def _is_another_topic(positions: Positions, ends: Positions) -> bool:
    """Whether a topic was deleted and created again. Its task must notice, even if it has nothing new to read."""
    return any(
        isinstance(known := positions.get(id_), KafkaPosition)
        and isinstance(end, KafkaPosition)
        and known.topic_id != end.topic_id
        for id_, end in ends.items()
    )
