"""The difference between what a keyed topic holds and what a replaced query gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Positions
from headgate.runtime.ports import Batch, Limit, Upsert
from headgate.runtime.step import Part, TargetStep, TopicParts, TopicRows, difference
from headgate.runtime.targets.kafka import last_of_keys

pytestmark = pytest.mark.spark


def test_only_what_differs_is_written_and_only_known_keys_are_deleted(session: SparkSession) -> None:
    record = "topic string, key binary, value binary"
    wanted = session.createDataFrame(
        [
            ("t", b"same", b"1"),
            ("t", b"other", b"2"),
            ("t", b"new", b"3"),
            ("t", b"gone", None),
            ("t", b"never", None),
        ],
        record,
    )
    held = session.createDataFrame(
        [(b"same", b"1"), (b"other", b"0"), (b"gone", b"4"), (b"not in the input any more", b"5")],
        "key binary, value binary",
    )
    found = {bytes(row["key"]): row["value"] for row in difference(wanted, held).collect()}
    assert found == {b"other": b"2", b"new": b"3", b"gone": None}


def test_a_record_with_other_headers_differs(session: SparkSession) -> None:
    headers = "headers array<struct<key: string, value: binary>>"
    old, new = [("h", b"1")], [("h", b"2")]
    wanted = session.createDataFrame(
        [("t", b"same", b"1", old), ("t", b"other", b"1", new), ("t", b"none", b"1", []), ("t", b"never", None, None)],
        f"topic string, key binary, value binary, {headers}",
    )
    held = session.createDataFrame(
        [(b"same", 0, b"1", old), (b"other", 0, b"1", old), (b"none", 0, b"1", None)],
        f"key binary, partition int, value binary, {headers}",
    )
    assert {bytes(row["key"]) for row in difference(wanted, held).collect()} == {b"other"}


def test_the_last_record_of_a_key_is_that_of_the_last_offset_though_a_clock_went_back(session: SparkSession) -> None:
    records = [
        (b"a", b"1", 0, 5, "2026-01-01 00:00:02"),
        (b"a", b"2", 0, 6, "2026-01-01 00:00:01"),
        (b"deleted", b"1", 0, 7, "2026-01-01 00:00:02"),
        (b"deleted", None, 0, 8, "2026-01-01 00:00:01"),
        (b"moved", b"1", 0, 9, "2026-01-01 00:00:01"),
        (b"moved", b"2", 1, 0, "2026-01-01 00:00:02"),
        (None, b"1", 1, 1, "2026-01-01 00:00:03"),
    ]
    columns = "key binary, value binary, partition int, offset bigint, time string"
    topic = session.createDataFrame(records, columns).withColumn("timestamp", F.col("time").cast("timestamp"))
    found = last_of_keys(topic, ["value"]).collect()
    assert {bytes(row["key"]): (bytes(row["value"]), row["partition"]) for row in found} == {
        b"a": (b"2", 0),
        b"moved": (b"2", 1),
    }


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_every_key_is_in_one_part(session: SparkSession, parts: int) -> None:
    keys = session.range(100).selectExpr("CAST(CAST(id AS string) AS binary) AS key")
    found = [
        bytes(row["key"]) for part in range(parts) for row in Part(part, parts, False, 0).rows(keys, ("key",)).collect()
    ]
    assert sorted(found) == sorted(str(number).encode() for number in range(100))


class Topics:
    """Stands for the input and the target of a step: what the query gives, and what the target holds."""

    def __init__(self, session: SparkSession, wanted: dict[str, str | None], held: dict[str, str]) -> None:
        self.session = session
        self.reader = SimpleNamespace(id=7, refresh=lambda: None)
        self.wanted = wanted
        self.held = held
        self.sent: list[int] = []
        self.definition = "keys/new"
        self.sink = SimpleNamespace(topic="t")

    def begin(self) -> KafkaPosition:
        return KafkaPosition("t", "id", (0,))

    def read(self, *_: object) -> Upsert:
        return Upsert(self._frame(self.wanted), ("key",))

    def compute(self, _: object, changes: dict[int, Upsert], __: object) -> Upsert:
        return changes[7]

    def records(self, changes: Upsert, _: int) -> DataFrame:
        return changes.rows

    def contents(self, _: object) -> Upsert:
        return Upsert(self._frame(self.held), ("key",))

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def fitting_rows(self, start: KafkaPosition, end: KafkaPosition, most_bytes: int) -> int:
        return 40

    def write_records(self, records: DataFrame, *_: object) -> None:
        rows = [(bytes(row["key"]).decode(), row["value"]) for row in records.collect()]
        self.sent.append(len(rows))
        for key, value in rows:
            self.held.pop(key, None)
            if value is not None:
                self.held[key] = bytes(value).decode()

    def _frame(self, rows: Mapping[str, str | None]) -> DataFrame:
        records = [("t", key.encode(), None if value is None else value.encode()) for key, value in rows.items()]
        frame = self.session.createDataFrame(records, "topic string, key binary, value binary")
        return frame.withColumn("partition", F.lit(0))


def step_of(topics: Topics, on_notice: Callable[[str], None], part_rows: int = 15) -> TargetStep:
    both = cast(Any, topics)
    return TargetStep(TopicRows(both), both, TopicParts(both), on_notice, part_rows)


def test_all_parts_together_bring_the_target_in_step(session: SparkSession) -> None:
    wanted = {f"k{number}": None if number % 5 == 0 else f"{number % 7}" for number in range(40)}
    held = {f"k{number}": f"{number % 3}" for number in range(0, 40, 2)} | {"foreign": "1", "other": "2"}
    topics, notices = Topics(session, wanted, held), list[str]()
    step = step_of(topics, notices.append)
    end: Positions = {7: KafkaPosition("t", "id", (40,))}
    batch = Batch(9, 1, 2, 1, end, end, "new", datetime(2026, 1, 1, tzinfo=UTC))
    last: list[bool] = []
    while not (last and last[-1]):
        last.append(step.is_last(end))
        step.write(session, batch, "keys/old")
    assert last == [False, False, True]
    assert topics.held == {k: v for k, v in wanted.items() if v is not None} | {"foreign": "1", "other": "2"}
    assert all(topics.sent)
    assert notices == [
        "The query was replaced. 2 keys of the target are no longer in its input and were left as they are."
    ]


def test_other_keys_are_written_anew_and_those_of_before_deleted(session: SparkSession) -> None:
    wanted = {f"n{number}": f"{number}" for number in range(30)} | {"same": "1", "gone": None}
    held = {f"o{number}": "old" for number in range(20)} | {"same": "1", "gone": "2"}
    topics, notices = Topics(session, wanted, held), list[str]()
    topics.definition = "other keys/new"
    step = step_of(topics, notices.append)
    end: Positions = {7: KafkaPosition("t", "id", (40,))}
    batch = Batch(9, 1, 2, 1, end, end, "other keys/new", datetime(2026, 1, 1, tzinfo=UTC))
    while True:
        last = step.is_last(end)
        step.write(session, batch, "keys/old")
        if last:
            break
    assert topics.held == {k: v for k, v in wanted.items() if v is not None}
    assert notices == [
        "The keys were written anew. 20 keys of the target that its relation does not have were deleted."
    ]


def test_a_snapshot_that_was_not_wanted_stays_unwanted_unless_all_keys_are_other_ones(session: SparkSession) -> None:
    end: Positions = {7: KafkaPosition("t", "id", (10,))}
    for written, expected in (("keys/old", {"a": "2"}), ("other/old", {"a": "2", "b": "2"})):
        topics = Topics(session, {"a": "2", "b": "2", "c": None}, {"a": "1", "c": "1"})
        both = cast(Any, topics)
        parts = TopicParts(both, known_only=True)
        step = TargetStep(TopicRows(both), both, parts, lambda _: None)
        assert step.is_last(end)
        step.write(session, Batch(9, 1, 2, 1, end, end, "", datetime(2026, 1, 1, tzinfo=UTC)), written)
        assert topics.held == expected


def test_a_source_without_records_empties_a_target_that_is_written_anew(session: SparkSession) -> None:
    topics = Topics(session, {}, {"a": "1", "b": "2"})
    topics.definition = "other keys/new"
    step = step_of(topics, lambda _: None)
    end: Positions = {7: KafkaPosition("t", "id", (0,))}
    assert step.is_last(end)
    step.write(session, Batch(9, 1, 2, 1, end, end, "", datetime(2026, 1, 1, tzinfo=UTC)), "keys/old")
    assert topics.held == {}
