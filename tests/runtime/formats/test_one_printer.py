"""INSERT and tasks write the same bytes for the same values: otherwise rows with one key would be in two partitions."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import struct
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import StructType

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.arrow_reader import arrow_type, stored
from headgate.runtime.formats.given.spark_text import double_text, real_text
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.given.writer import row_writer
from headgate.runtime.formats.writers import row_of
from headgate.runtime.sink_records import key_writer, side_writer
from headgate.schema import types as t
from headgate.schema.encodings import type_of_schema
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.formats.spark import to_spark
from headgate.schema.values import single
from headgate.schema.written import SchemaFormat, WrittenSchema

pytestmark = pytest.mark.spark

MOMENTS = [dt.datetime(2026, 11, 15, 12, 30), dt.datetime(2026, 11, 15, 12, 30, 0, 500_000), dt.datetime(1, 1, 1),
           dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23, 59, 59, 1)]  # fmt: skip
DOUBLES = [0.0, -0.0, 1.0, 1.5, 0.1, 1e21, 1e-7, 1e7, 9999999.0, 1e-3, 1e-4, 123456789.125, -2e23, 5e-324, 1.7976931348623157e308,
           2.0**-44, 1e23, 2e-3, 100.0, 1 / 3]  # fmt: skip
TEXTS = ["", "a", 'q"q', "b\\b", "\n\t\r\b\f", "\x00\x01\x1f\x7f", "é\u2028\U0001f600", "/", " ", ","]
INNER = t.Record((t.Field("x", t.Integer()), t.Field("At", t.Timestamp()), t.Field("d", t.Decimal(4, 2))))
VALUES: dict[str, tuple[t.Type, list[Any]]] = {
    "boolean": (t.Boolean(), [True, False]),
    "integer": (t.Integer(), [0, -1, 2**31 - 1]),
    "bigint": (t.Bigint(), [0, 2**63 - 1, -(2**63)]),
    "real": (t.Real(), [single(value) for value in DOUBLES if math.isfinite(single(value))] + [math.nan, math.inf]),
    "double": (t.Double(), [*DOUBLES, math.nan, math.inf, -math.inf]),
    "decimal": (t.Decimal(20, 10), [Decimal(text).quantize(Decimal("1e-10")) for text in ("0", "1", "-1.5", "1E-10", "1E+9")]),
    "whole decimal": (t.Decimal(38, 0), [Decimal("1" * 38), Decimal(0)]),
    "text": (t.Text(), TEXTS),
    "bytes": (t.Bytes(), [b"", b"\x00\xff", bytes(range(256))]),
    "date": (t.Date(), [moment.date() for moment in MOMENTS]),
    "time": (t.Time(), [dt.time(12, 30), dt.time(12, 30, 0, 500_000), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)]),
    "timestamp": (t.Timestamp(), MOMENTS),
    "timestamptz": (t.TimestampTz(), [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "uuid": (t.Uuid(), [uuid.UUID("0F8FAD5B-D9CB-469F-A165-70867728950E")]),
    "json": (t.Json(), ['{"b": 1.50,"a":[1E+2, null]}', '"x"', "12345678901234567890.1234567890"]),
    "enum": (t.Enum(("red", "blue")), ["red", "blue"]),
    "array": (t.Array(t.Timestamp()), [[MOMENTS[0], None], []]),
    "array of doubles": (t.Array(t.Double()), [[1e21, None, 1e7]]),
    "map": (t.Map(t.Time()), [{"k": dt.time(1, 2, 3), "n": None}]),
    "record": (INNER, [{"x": 1, "At": MOMENTS[1], "d": Decimal("1.50")}, {"x": None, "At": None, "d": None}]),
    "records": (t.Array(INNER), [[{"x": 1, "At": MOMENTS[1], "d": Decimal("1.50")}, None]]),
    "record with doubles": (t.Record((t.Field("y", t.Double()),)), [{"y": 1e21}, {"y": None}]),
}  # fmt: skip
DELIMITED = {"boolean", "integer", "bigint", "real", "double", "decimal", "whole decimal", "text", "bytes", "date", "timestamp", "timestamptz", "uuid"}  # fmt: skip


def on_spark(session: SparkSession, side: RecordEncoding, rows: list[Any], *, key: bool) -> list[Any]:
    """The bytes of each row, and None for one that is refused."""
    writer, row = (key_writer if key else side_writer)(side), row_of(side)
    types = pa.schema([pa.field(f.name, arrow_type(f)) for f in side.record.fields])
    given = [{f.name: stored(one[f.name], f.type) for f in side.record.fields} for one in rows]
    spark = to_spark(side.record)
    assert isinstance(spark, StructType)
    frame = session.createDataFrame(pa.Table.from_pylist(given, types), spark).coalesce(1)
    accepted = writer.accepts(row)
    shown = frame.select(accepted.alias("ok"), F.when(accepted, writer.encode(row)).alias("data"))
    return [bytes(data) if ok else None for ok, data in shown.collect()]


def by_insert(side: RecordEncoding, rows: list[Any]) -> list[Any]:
    write, found = row_writer(side), list[Any]()
    for row in rows:
        try:
            found.append(write(row))
        except Unwritable:
            found.append(None)
    return found


def plain(encoding: Any, type_: t.Type, *, whole: bool = False, more: t.Type | None = None) -> RecordEncoding:
    fields = (t.Field("c", type_), *([] if more is None else [t.Field("more", more)]))
    return RecordEncoding(encoding, tuple(f.name for f in fields), t.Record(fields), whole=whole)


def with_schema(type_: t.Type) -> RecordEncoding:
    """JSON_SR with a schema that is generated."""
    record = t.Record((t.Field("c", type_), t.Field("n", t.Bigint())))
    return RecordEncoding("JSON SCHEMA", ("c", "n"), record, json.dumps(to_json_schema(record)), 7)


def rows_of(values: list[Any], *, nulls: bool = True) -> list[Any]:
    return [{"c": value, "n": 1, "more": "m"} for value in [*values, *([None] if nulls else [])]]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("form", ["object", "whole", "json_sr", "json_sr by id"])
def test_a_json_key_is_the_same_from_insert_and_from_a_task(session: SparkSession, name: str, form: str) -> None:
    type_, values = VALUES[name]
    rows = rows_of(values)
    if form.startswith("json_sr"):
        of_task = with_schema(type_)
        of_insert = replace(of_task, given=True)
        of_task = of_insert if form == "json_sr by id" else of_task
    else:
        of_task = of_insert = plain("JSON", type_, whole=form == "whole", more=None if form == "whole" else t.Text())
    expected = by_insert(of_insert, rows)
    assert on_spark(session, of_task, rows, key=True) == expected
    assert any(one is not None for one in expected)


@pytest.mark.parametrize("name", sorted(DELIMITED))
def test_a_delimited_key_is_the_same_from_insert_and_from_a_task(session: SparkSession, name: str) -> None:
    type_, values = VALUES[name]
    side = plain("DELIMITED", type_, more=t.Text())
    assert on_spark(session, side, rows_of(values), key=True) == by_insert(side, rows_of(values))


@pytest.mark.parametrize(
    ("encoding", "name"), [("PRIMITIVE", "integer"), ("PRIMITIVE", "bigint"), ("PRIMITIVE", "double"), ("TEXT", "text"), ("BYTES", "bytes")],
)  # fmt: skip
def test_a_kafka_key_is_the_same_from_insert_and_from_a_task(session: SparkSession, encoding: str, name: str) -> None:
    type_, values = VALUES[name]
    side = plain(encoding, type_)
    rows = [{"c": value} for value in values]
    assert on_spark(session, side, rows, key=True) == by_insert(side, rows)


@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"double", "real", "array of doubles", "record with doubles"}))
def test_a_json_value_is_the_same_too(session: SparkSession, name: str) -> None:
    type_, values = VALUES[name]
    side = plain("JSON", type_, more=t.Text())
    assert on_spark(session, side, rows_of(values), key=False) == by_insert(side, rows_of(values))


def test_properties_that_may_be_left_out_stay_in_their_order(session: SparkSession) -> None:
    document = {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "integer"}, "d": {"type": "boolean"}},
        "required": ["d"]}  # fmt: skip
    text = json.dumps(document)
    record = type_of_schema(SchemaFormat.JSON, WrittenSchema(text, format=SchemaFormat.JSON)).type
    assert isinstance(record, t.Record)
    side = RecordEncoding("JSON SCHEMA", tuple(f.name for f in record.fields), record, text, 7, given=True)
    rows = [{"a": "x", "b": None, "c": 1, "d": True}, {"a": None, "b": "y", "c": None, "d": False}]
    assert on_spark(session, side, rows, key=True) == by_insert(side, rows)


def test_uuids_of_a_topic_are_written_in_lower_case(session: SparkSession) -> None:
    """Those of INSERT have no case."""
    side = plain("JSON", t.Uuid())
    frame = session.createDataFrame([("0F8FAD5B-D9CB-469F-A165-70867728950E",)], "c string")
    (row,) = frame.select(key_writer(side).encode(row_of(side)).alias("key")).collect()
    assert row["key"] == b'{"c":"0f8fad5b-d9cb-469f-a165-70867728950e"}'


def test_numbers_are_written_with_the_fewest_digits_and_in_the_form_of_java(session: SparkSession) -> None:
    """Java before 19 may write one more digit: then only the value is compared."""
    chosen = random.Random(7)
    doubles = [*DOUBLES, *(struct.unpack(">d", chosen.randbytes(8))[0] for _ in range(3000))]
    finite = [value for value in doubles if math.isfinite(value)]
    frame = session.createDataFrame([(value,) for value in finite], "d double").selectExpr("CAST(d AS string)")
    for value, (java,) in zip(finite, frame.collect(), strict=True):
        ours = double_text(value)
        assert float(ours) == value
        assert ours == java or len(ours) <= len(java)
        assert ("E" in ours) == ("E" in java)
    reals = [single(value) for value in finite if math.isfinite(single(value))]
    frame = session.createDataFrame([(value,) for value in reals], "d float").selectExpr("CAST(d AS string)")
    for value, (java,) in zip(reals, frame.collect(), strict=True):
        ours = real_text(value)
        assert single(float(ours)) == value
        assert ours == java or len(ours) <= len(java)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e21, "1.0E21"), (1.0, "1.0"), (1e-7, "1.0E-7"), (1e7, "1.0E7"), (9999999.0, "9999999.0"), (0.001, "0.001"),
     (0.0001, "1.0E-4"), (5e-324, "4.9E-324"), (2e-323, "2.0E-323"), (-0.0, "-0.0"), (2e23, "2.0E23"), (123.25, "123.25")],
)  # fmt: skip
def test_a_number_is_written_as_java_19_does(value: float, text: str) -> None:
    assert double_text(value) == text
