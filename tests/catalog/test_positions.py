"""Positions: JSON both ways, distances, marks and the end of a bounded batch."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, strategies as st

from headgate.catalog import positions as p
from headgate.errors import InternalError
from tests.laws import examples

pytestmark = pytest.mark.unit

NUMBERS = st.integers(0, 10**12)
POSITIONS: st.SearchStrategy[p.Position] = st.one_of(
    st.builds(p.KafkaPosition, st.text(), st.text(), st.lists(NUMBERS).map(tuple)),
    st.builds(p.LogPosition, NUMBERS, NUMBERS, NUMBERS),
    st.builds(p.LsnPosition, st.text(), NUMBERS, st.none() | st.tuples(st.text(), st.text())),
    st.builds(p.SequencePosition, st.text(), NUMBERS),
    st.builds(p.ClockPosition, NUMBERS),
)
RECORDS: st.SearchStrategy[p.RecordPosition] = st.one_of(
    st.builds(p.KafkaRecord, st.text(), NUMBERS, NUMBERS, st.none() | st.text()),
    st.builds(p.SequenceRecord, st.text(), NUMBERS, NUMBERS),
)


def topic(*offsets: int, id_: str = "x") -> p.KafkaPosition:
    return p.KafkaPosition("orders", id_, offsets)


@given(st.dictionaries(NUMBERS, POSITIONS, max_size=4))
@examples(100)
def test_positions_come_back_from_json(positions: dict[int, p.Position]) -> None:
    assert p.load_positions(p.dump_positions(positions)) == positions


@given(RECORDS)
@examples(50)
def test_the_position_of_a_record_comes_back_from_json(record: p.RecordPosition) -> None:
    assert p.load_record(p.dump_record(record)) == record


def test_json_names_the_kind() -> None:
    assert orjson.loads(p.dump_positions({7: topic(3, 4)})) == {
        "7": {"kind": "kafka", "topic": "orders", "topic_id": "x", "offsets": [3, 4]}
    }


@pytest.mark.parametrize(
    ("start", "end", "distance"),
    [
        (topic(3, 4), topic(5, 4), 2),
        (topic(3), topic(3, 6), 6),
        (topic(9), topic(3), 0),
        (p.LogPosition(1, 1, 4), p.LogPosition(1, 1, 6), 2),
        (p.LsnPosition("s", 10), p.LsnPosition("s", 15), 5),
        (p.SequencePosition("m", 1), p.SequencePosition("m", 3), 2),
        (p.ClockPosition(1), p.ClockPosition(3), 0),
    ],
)
def test_the_lag_counts_what_lies_between(start: p.Position, end: p.Position, distance: int) -> None:
    assert p.lag({1: start}, {1: end, 2: end}) == distance


def test_positions_of_two_kinds_are_not_compared() -> None:
    with pytest.raises(InternalError):
        p.distance(topic(1), p.SequencePosition("m", 1))


@pytest.mark.parametrize(
    ("end", "mark", "reached"),
    [
        (topic(3, 4), topic(3, 4), True),
        (topic(3, 4), topic(3), True),
        (topic(3), topic(3, 1), False),
        (topic(3, 4), topic(3, 5), False),
        (topic(9, id_="new"), topic(3), False),
        (topic(9), p.SequencePosition("m", 1), False),
        (p.LogPosition(1, 1, 4), p.LogPosition(1, 2, 3), False),
        (p.LogPosition(1, 1, 4), p.LogPosition(1, 1, 4), True),
        (p.LsnPosition("s", 10), p.LsnPosition("s", 11), False),
        (p.SequencePosition("m", 2), p.SequencePosition("m", 1), True),
        (p.ClockPosition(2), p.ClockPosition(1), True),
    ],
)
def test_a_mark_is_reached_where_no_input_ends_before_it(end: p.Position, mark: p.Position, reached: bool) -> None:
    assert p.reaches({1: end}, {1: mark}) is reached
    assert not p.reaches({}, {1: mark})


OFFSETS = st.lists(st.integers(0, 1000), min_size=3, max_size=3)


@given(OFFSETS, OFFSETS, st.integers(1, 2000))
@examples(200)
def test_a_bounded_batch_moves_every_partition_that_has_records(first: list[int], more: list[int], rows: int) -> None:
    start, end = topic(*first), topic(*(a + b for a, b in zip(first, more, strict=True)))
    chosen = p.limited(start, end, rows)
    assert p.distance(start, chosen) <= rows + len(first)
    for began, reached, last in zip(start.offsets, chosen.offsets, end.offsets, strict=True):
        assert began <= reached <= last
        assert (reached > began) == (last > began)


def test_a_start_beyond_the_end_of_its_partition_is_kept() -> None:
    assert p.limited(topic(9, 1), topic(3, 5), 100) == topic(9, 5)


def test_the_later_offset_of_both_counts() -> None:
    assert p.furthest(topic(1, 5), topic(3, 2, 4)) == topic(3, 5, 4)
