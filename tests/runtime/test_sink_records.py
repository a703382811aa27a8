"""Rows as records: events, nested names, partitions, headers, and which rows cannot be written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.plan.definitions import PRESENT, HeadersColumn, PartitionBy, RecordEncoding, SinkDefinition
from headgate.runtime.decode import REJECTED
from headgate.runtime.ports import Append, Changes, Upsert
from headgate.runtime.sink_records import SinkRecords
from headgate.runtime.targets.kafka import BAD_ROW, KafkaTarget
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.types import Array, Bigint, Bytes, Double, Enum, Field, Integer, Map, Record, Text

pytestmark = pytest.mark.spark

INNER = Record((Field("x in m", Integer(), nullable=False), Field("c", Enum(("red", "blue")))))
ROW = Record((Field("k", Text(), nullable=False), Field("p", INNER), Field("ps", Array(INNER)), Field("m", Map(INNER))))
SPARK = (
    "k string, p struct<`x in m`: int, c: string>, ps array<struct<`x in m`: int, c: string>>,"
    " m map<string, struct<`x in m`: int, c: string>>"
)


def avro(record: Record, *columns: str) -> RecordEncoding:
    chosen = Record(tuple(field for field in record.fields if field.name in columns))
    made = to_avro(chosen, name="envelope")
    return RecordEncoding("AVRO", columns, chosen, json.dumps(made.json), 7, tuple(made.renames.items()))


def sink(value: RecordEncoding, key: RecordEncoding | None = None, **more: Any) -> SinkDefinition:
    return SinkDefinition("s", 1, "t", 1, value, key, "UPSERT" if key is not None else "NONE", **more)


ALL = sink(avro(ROW, "k", "p", "ps", "m"))
GOOD = ("a", (1, "red"), [(1, None), None], {"z": (2, "blue")})


def problems(session: SparkSession, definition: SinkDefinition, *rows: tuple[object, ...]) -> list[Any]:
    frame = session.createDataFrame(list(rows), SPARK)
    found = frame.select(SinkRecords(definition).problem.alias("problem")).collect()
    return [None if row["problem"] is None else tuple(row["problem"]) for row in found]


def test_the_place_and_the_expected_type_of_what_cannot_be_written_are_told(session: SparkSession) -> None:
    missing, symbol = "it is null, and its schema has no null there", "it is none of the symbols of its schema"
    rows = (
        GOOD,
        (None, None, None, None),
        ("a", (None, "red"), None, None),
        ("a", (1, "green"), None, None),
        ("a", None, [(1, "red"), (None, None)], None),
        ("a", None, None, {"y": (1, "red"), "z": (None, None)}),
    )
    assert problems(session, ALL, *rows) == [
        None,
        (7, "$.value.k", "text not null", missing),
        (7, '$.value.p."x in m"', "integer not null", missing),
        (7, "$.value.p.c", "enum('red', 'blue')", symbol),
        (7, '$.value.ps[]."x in m"', "integer not null", missing),
        (7, '$.value.m{}."x in m"', "integer not null", missing),
    ]


def test_the_key_is_looked_at_first(session: SparkSession) -> None:
    definition = sink(avro(ROW, "p"), avro(ROW, "k"))
    ((_, path, _, _),) = problems(session, definition, (None, (None, None), None, None))
    assert path == "$.key.k"


def test_only_what_a_format_cannot_hold_is_looked_for() -> None:
    assert SinkRecords(ALL).can_reject
    nullable = Record((Field("k", Bigint()),))
    assert not SinkRecords(sink(avro(nullable, "k"))).can_reject
    assert not SinkRecords(sink(RecordEncoding("JSON", ("k",), nullable))).can_reject
    assert SinkRecords(sink(RecordEncoding("JSON", ("k",), Record((Field("k", Double()),))))).can_reject


def target(definition: SinkDefinition) -> KafkaTarget:
    made = KafkaTarget(definition, None)  # type: ignore[arg-type]
    made._partitions = 3
    return made


def written(definition: SinkDefinition, changes: Changes) -> tuple[list[Any], int | None]:
    """Key and value of the records, and how many rows were left out."""
    made = target(definition)
    found = made.records(changes, 10).select("key", "value").collect()
    left_out = None if made.observed is None else int(made.observed.get[REJECTED])
    return [(row["key"] and bytes(row["key"]), row["value"] is not None) for row in found], left_out


def keyed(session: SparkSession, *rows: tuple[object, ...]) -> DataFrame:
    return session.createDataFrame([(k, p, None, None, here) for k, p, here in rows], f"{SPARK}, `{PRESENT}` boolean")


KEYED = sink(avro(ROW, "p"), RecordEncoding("TEXT", ("k",), Record(ROW.fields[:1])), on_error="SKIP")
ROWS = (
    ("good", (1, None), True),
    ("bad", (None, None), True),
    ("gone", None, False),
    ("bad and gone", (None, None), False),
)


def test_a_key_whose_row_cannot_be_written_is_not_deleted(session: SparkSession) -> None:
    marked = Upsert(keyed(session, *ROWS), ("k",), marked=True)
    wanted = [(b"bad and gone", False), (b"gone", False), (b"good", True)]
    assert (sorted(written(KEYED, marked)[0]), written(KEYED, marked)[1]) == (wanted, 1)
    joined = marked.unmarked()
    assert (sorted(written(KEYED, joined)[0]), written(KEYED, joined)[1]) == (wanted, 1)


def test_rows_that_cannot_be_written_are_left_out_or_fail_the_job(session: SparkSession) -> None:
    rows = session.createDataFrame([GOOD, ("b", (None, None), None, None)], SPARK)
    records, left_out = written(replace(ALL, on_error="QUARANTINE"), Append(rows))
    assert ([value for _, value in records], left_out) == ([True], 1)
    with pytest.raises(Exception, match=BAD_ROW):
        written(ALL, Append(rows))


def test_a_change_event_holds_the_row_behind_before(session: SparkSession) -> None:
    value = replace(RecordEncoding("JSON", ("k", "p"), Record(ROW.fields[:2])), as_event=True)
    rows = session.createDataFrame([GOOD], SPARK)
    (row,) = target(replace(sink(value), envelope="DEBEZIUM")).records(Append(rows), 1).collect()
    assert json.loads(bytes(row["value"])) == {"before": None, "after": {"k": "a", "p": {"x in m": 1, "c": "red"}}}


def test_numbers_choose_the_partition_and_all_others_go_to_the_first(session: SparkSession) -> None:
    value = RecordEncoding("JSON", ("n",), Record((Field("n", Bigint()),)))
    definition = sink(value, partition_by=PartitionBy("`n#1` + 0", (("n#1", "n"),)))
    rows = session.createDataFrame([(0,), (4,), (5,), (-1,), (None,)], "n bigint")
    found = target(definition).records(Append(rows), 1).collect()
    assert [row["partition"] for row in found] == [0, 1, 2, 0, 0]


def test_headers_come_from_maps_and_lists(session: SparkSession) -> None:
    entries = [[("a", b"1"), ("a", None)], [(None, b"2")], None]
    rows = session.createDataFrame([(e,) for e in entries], "h array<struct<key: string, value: binary>>")
    header = Record((Field("key", Text()), Field("value", Bytes())))
    value = RecordEncoding("JSON", ("h",), Record((Field("h", Array(header)),)))
    listed = sink(value, headers=HeadersColumn("h", is_map=False), on_error="SKIP")
    found = target(listed).records(Append(rows), 1).collect()
    assert [row["headers"] and [tuple(h) for h in row["headers"]] for row in found] == [
        [("a", b"1"), ("a", None)],
        None,
    ]
    problem = rows.select(SinkRecords(listed).problem.alias("p")).where("p IS NOT NULL").collect()
    assert [tuple(row["p"])[1:] for row in problem] == [("$.headers[].key", "text not null", "a header has no key")]
    mapped = session.range(1).select(F.expr("map('x', 'y')").alias("h"))
    value = RecordEncoding("JSON", ("h",), Record((Field("h", Map(Text())),)))
    (row,) = target(sink(value, headers=HeadersColumn("h", is_map=True))).records(Append(mapped), 1).collect()
    assert [tuple(h) for h in row["headers"]] == [("x", bytearray(b"y"))]
