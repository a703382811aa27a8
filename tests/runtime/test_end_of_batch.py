"""Where a batch ends for a task, by what it has read, what the batch was given, and what the topic has by now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.runtime.sink_task import FURTHER, end_of_batch
from tests.laws import examples

pytestmark = pytest.mark.unit

OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 3 * FURTHER))


def test_what_came_meanwhile_is_taken_along_unless_the_task_is_far_behind() -> None:
    assert end_of_batch({0: 5}, {0: 7}, {0: 9}) == {0: 9}
    assert end_of_batch({0: 5}, {0: 7}, {0: 8 + FURTHER}) == {0: 7}


def test_a_partition_that_spark_has_not_seen_yet_keeps_its_place() -> None:
    assert end_of_batch({0: 5, 1: 3}, {0: 7}, {0: 7, 1: 4}) == {0: 7, 1: 4}
    assert end_of_batch({0: 5, 1: 3}, {0: 7}, {}) == {0: 7, 1: 3}


@examples(200)
@given(OFFSETS, OFFSETS, OFFSETS)
def test_a_batch_never_goes_back_and_never_beyond_the_topic(
    reached: dict[int, int], fixed: dict[int, int], latest: dict[int, int]
) -> None:
    end = end_of_batch(reached, fixed, latest)
    assert end.keys() == {*reached, *fixed, *latest}
    for partition, offset in end.items():
        known = max(reached.get(partition, 0), fixed.get(partition, 0))
        assert known <= offset <= max(known, latest.get(partition, 0))
        assert offset - known <= FURTHER
