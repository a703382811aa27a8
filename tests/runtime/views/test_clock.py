"""The time as an input of a task: when the next batch is wanted, and that it never goes back."""

from __future__ import annotations

import time
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.positions import ClockPosition, LogPosition, Position
from headgate.runtime.ports import Limit
from headgate.runtime.views.clock import CLOCK_INPUT, LONGEST, SHARE, ClockInput, next_batch, only_time_passed

pytestmark = pytest.mark.unit

DAY = 86_400


def test_batches_that_only_the_time_brings_take_a_bounded_share_of_it() -> None:
    before = time.time()
    assert before + 1 <= next_batch("second", 0.001)
    assert before + 2 / SHARE <= next_batch("second", 2)
    assert next_batch("second", 200) <= time.time() + LONGEST


def test_a_view_that_reads_the_date_wants_a_batch_when_a_day_begins() -> None:
    before = time.time()
    due = next_batch("day", 20)
    assert due % DAY == 0
    assert before < due <= time.time() + DAY


def test_the_time_never_goes_back() -> None:
    clock = iter([5, 3, 7])
    input_ = ClockInput(lambda: next(clock))
    at = input_.begin()
    seen = []
    for _ in range(3):
        at = input_.choose_end(cast(SparkSession, None), at, Limit(), None, None)
        seen.append(at.micros)
    assert seen == [5, 5, 7]


def test_a_batch_with_nothing_new_except_the_time_is_known() -> None:
    start: dict[int, Position] = {CLOCK_INPUT: ClockPosition(1), 7: LogPosition(7, 1, 4)}
    assert only_time_passed(start, {**start, CLOCK_INPUT: ClockPosition(2)})
    assert not only_time_passed(start, {**start, 7: LogPosition(7, 1, 5)})
