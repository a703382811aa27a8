"""The time of a record: the same milliseconds for a task as for INSERT, and the same reasons against a value."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.plan.definitions import PRESENT, RecordEncoding, RecordTime, SinkDefinition
from headgate.runtime.errors import SparkGone
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.ports import Append, Upsert
from headgate.runtime.record_times import NO_TIME, NULL, TOO_EARLY, SparkTimes, times_of
from headgate.runtime.sink_records import SinkRecords
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.schema import types as t
from headgate.schema.render import spark_ddl

ISO = "yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX"
MOMENT = dt.datetime(2026, 11, 15, 12, 30, 0, 123456)
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
FIRST = dt.datetime(1970, 1, 1, 0, 0, 0, 999)  # not a millisecond after 1970 began

CASES: list[tuple[RecordTime, Any, int | str]] = [
    (RecordTime("c", t.Bigint()), 1, 1),
    (RecordTime("c", t.Bigint()), 2**63 - 1, 2**63 - 1),
    (RecordTime("c", t.Bigint()), 0, TOO_EARLY),
    (RecordTime("c", t.Bigint()), -(2**63), TOO_EARLY),
    (RecordTime("c", t.Bigint()), None, NULL),
    (RecordTime("c", t.Timestamp()), MOMENT, 1794745800123),
    (RecordTime("c", t.Timestamp()), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), 253402300799999),
    (RecordTime("c", t.Timestamp()), BEFORE, TOO_EARLY),
    (RecordTime("c", t.Timestamp()), FIRST, TOO_EARLY),
    (RecordTime("c", t.Timestamp()), None, NULL),
    (RecordTime("c", t.TimestampTz()), MOMENT.replace(tzinfo=dt.UTC), 1794745800123),
    (RecordTime("c", t.TimestampTz()), BEFORE.replace(tzinfo=dt.UTC), TOO_EARLY),
    (RecordTime("c", t.Text(), ISO), "2026-11-15T12:30:00+01:00", 1794742200000),
    (RecordTime("c", t.Text(), ISO), "2026-11-15T12:30:00.123Z", 1794745800123),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "15.11.2026", 1794700800000),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "30.02.2026", NO_TIME),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "15.11.26", NO_TIME),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "15.11.2026 ", NO_TIME),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "01.01.1970", TOO_EARLY),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), "", NO_TIME),
    (RecordTime("c", t.Text(), "dd.MM.yyyy"), None, NULL),
]


def records(time: RecordTime) -> SinkRecords:
    record = t.Record((t.Field("c", time.type),))
    value = RecordEncoding("JSON", ("c",), record)
    return SinkRecords(SinkDefinition("s", 1, "t", 1, value, None, "NONE", time=time))


@pytest.mark.spark
@pytest.mark.parametrize(("time", "value", "expected"), CASES)
def test_a_task_and_insert_take_the_same_time_and_refuse_for_the_same_reason(
    session: SparkSession, time: RecordTime, value: object, expected: int | str
) -> None:
    made = records(time)
    assert made.time is not None
    frame = session.createDataFrame([(value,)], f"c {spark_ddl(time.type)}")
    (row,) = frame.select(made.time.column().alias("ms"), made.problem.alias("problem"), made.accepts_value).collect()
    by_task = row["ms"] if row["problem"] is None else row["problem"]["reason"]
    assert (by_task, row[2]) == (expected, isinstance(expected, int))
    if isinstance(expected, str):
        assert row["problem"]["path"] == "$.c"
    assert by_insert(value, time, SparkTimes(lambda: session)) == expected


def by_insert(value: object, time: RecordTime, read: SparkTimes) -> int | str:
    try:
        (found,) = times_of([value], time, read)
    except Unwritable as wrong:
        return wrong.reason if wrong.path == "$.c" else wrong.path
    return found


@pytest.mark.spark
def test_texts_are_read_in_the_order_of_the_rows(session: SparkSession) -> None:
    texts = [f"{1971 + number % 3000:04}" for number in range(2500)]
    found = SparkTimes(lambda: session)(texts, "yyyy")
    assert [None if one is None else dt.datetime.fromtimestamp(one / 1000, dt.UTC).year for one in found] == [
        int(text) for text in texts
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("pattern", "is_one"),
    [("yyyy-MM-dd HH:mm:ss", True), (ISO, True), ("HH", True), ("yyyy-MM-dd hello", False), ("'", False), ("e", False),
     ("YYYY", False)],
)  # fmt: skip
def test_a_pattern_that_spark_does_not_take_is_none(session: SparkSession, pattern: str, is_one: bool) -> None:
    assert SparkTimes(lambda: session).is_pattern(pattern) == is_one


class Atomic(KafkaTarget):
    atomic = True


def keyed(time: RecordTime, session: SparkSession) -> tuple[Atomic, Any]:
    key = RecordEncoding("JSON", ("k",), t.Record((t.Field("k", t.Bigint()),)))
    value = RecordEncoding("JSON", ("v",), t.Record((t.Field("v", t.Bigint()),)))
    sink = SinkDefinition("s", 1, "t", 1, value, key, "UPSERT", on_error="SKIP", time=time)
    return Atomic(sink, None), session.createDataFrame([(1, 10), (2, 0)], "k bigint, v bigint")  # type: ignore[arg-type]


@pytest.mark.spark
def test_rows_without_a_time_are_left_out_and_their_keys_are_not_deleted(session: SparkSession) -> None:
    target, rows = keyed(RecordTime("v", t.Bigint()), session)
    changed = session.createDataFrame([(1,), (2,), (3,)], "k bigint")
    made = target.records(Upsert(rows, ("k",), changed), 3).orderBy("key").collect()
    assert [(row["key"], row["value"], row["timestamp"]) for row in made] == [
        (b'{"k":1}', b'{"v":10}', 10), (b'{"k":3}', None, None),
    ]  # fmt: skip
    marked = rows.selectExpr("*", f"k = 1 AS `{PRESENT}`")
    made = target.records(Upsert(marked, ("k",), marked=True), 2).orderBy("key").collect()
    assert [(row["value"], row["timestamp"]) for row in made] == [(b'{"v":10}', 10), (None, None)]


@pytest.mark.spark
def test_a_deletion_has_the_time_of_its_key(session: SparkSession) -> None:
    target, rows = keyed(RecordTime("k", t.Bigint()), session)
    changed = session.createDataFrame([(1,), (3,), (0,)], "k bigint")
    made = target.records(Upsert(rows, ("k",), changed), 3).orderBy("key").collect()
    assert [(row["value"], row["timestamp"]) for row in made] == [(b'{"v":10}', 1), (None, 3)]


@pytest.mark.spark
def test_rows_that_only_come_have_their_times(session: SparkSession) -> None:
    made = Atomic(records(RecordTime("c", t.Bigint())).sink, None).records(  # type: ignore[arg-type]
        Append(session.createDataFrame([(5,)], "c bigint")), 1
    )
    assert [row["timestamp"] for row in made.collect()] == [5]


@pytest.mark.unit
def test_whoever_asks_for_times_waits_for_spark_first() -> None:
    """Columns cannot be made before Spark runs, as when the first statement of an engine asks."""

    def starting() -> SparkSession:
        raise SparkGone("it starts")

    with pytest.raises(SparkGone):
        SparkTimes(starting).is_pattern("yyyy")
    with pytest.raises(SparkGone):
        SparkTimes(starting)(["2026"], "yyyy")
