"""The time as an input of a materialized view whose conditions read it. It has no rows; its position is the `now()` of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from headgate.catalog.positions import ClockPosition, Position, Positions
from headgate.plan.view_definitions import Clock
from headgate.runtime.ports import NOTHING_REJECTED, Append, Changes, Limit, Rejected

CLOCK_INPUT = 0  # no relation has this id
SHORTEST, LONGEST = 1.0, 30.0  # seconds before a batch that only the time brings
SHARE = 0.1  # of the time that such batches may take, as far as LONGEST allows it; every one computes the whole view


def next_batch(clock: Clock, seconds: float) -> float:
    """When a view wants its next batch, after one that took so many seconds (seconds since 1970)."""
    now = time.time()
    if clock == "day":
        return float((int(now) // 86_400 + 1) * 86_400)
    return now + min(LONGEST, max(SHORTEST, seconds / SHARE))


def only_time_passed(start: Positions, end: Positions) -> bool:
    """Whether a batch reads nothing new except the time."""
    return all(id_ == CLOCK_INPUT or end.get(id_) == position for id_, position in start.items())


def _micros() -> int:
    return time.time_ns() // 1000


class ClockInput:
    """The time. It never goes back, so that rows that have come do not go because a clock was set. ``micros`` tells it, in
    microseconds since 1970."""

    watched = None
    known_end = None

    def __init__(self, micros: Callable[[], int] = _micros) -> None:
        self._micros = micros

    def begin(self) -> ClockPosition:
        return ClockPosition(0)

    def check(self, position: Position) -> None:
        """Every position can be read on from."""

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> ClockPosition:
        assert isinstance(start, ClockPosition)
        return ClockPosition(max(start.micros, self._micros()))

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        return Append(session.range(0).toDF("nothing"))

    def rejected(self) -> Rejected:
        return NOTHING_REJECTED

    def learn(self, error: BaseException) -> bool:
        return False

    def explain(self, error: BaseException, position: Position) -> BaseException:
        return error

    def release(self, position: Position) -> None:
        """There is nothing to give back."""
