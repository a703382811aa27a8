"""Given schemas on Spark: the JVM, the workers and plain Python write the same bytes, and refuse the same rows."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import StructType

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.arrow_reader import arrow_type, stored
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.given.writer import row_writer
from headgate.runtime.formats.given_avro import FilledRowWriter, in_jvm
from headgate.runtime.formats.given_writer import GivenWriter
from headgate.runtime.formats.writers import row_of
from headgate.schema.encodings import type_of_schema
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Field, Map, Record, Type, map_inner
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.laws import TIMES, examples
from tests.runtime.formats.test_given import completed, read_avro, side as given_side, written
from tests.runtime.formats.writing import expected as canonical_row, read

pytestmark = pytest.mark.spark

AVRO = {
    "type": "record", "name": "R", "namespace": "given", "doc": "a row", "fields": [
        {"name": "extra", "type": "string", "default": "x"},
        {"name": "i", "type": "int"},
        {"name": "d", "type": "long", "default": 7},
        {"name": "n", "type": ["double", "null"], "default": 1.5},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "when", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "rows", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
            {"name": "more", "type": ["null", "string"]}, {"name": "x", "type": "int", "default": 3}]}}},
        {"name": "m", "type": {"type": "map", "values": ["null", "string"]}},
    ],
}  # fmt: skip
PROTO = """syntax = "proto3"; package given; import "google/protobuf/timestamp.proto";
message First { int32 a = 1; }
message Second { int32 i = 1; optional int64 d = 2; uint64 u = 3; google.protobuf.Timestamp when = 4; repeated Inner rows = 5;
  map<string, string> m = 6; message Inner { optional int32 x = 1; string more = 2; } }
"""
JSON = {
    "type": "object", "required": ["i"], "properties": {
        "i": {"type": "integer", "maximum": 10}, "d": {"type": ["integer", "null"]}, "left": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    },
}  # fmt: skip


def side(
    text: str,
    format_: SchemaFormat,
    leave_out: set[str],
    message: str | None = None,
    references: tuple[tuple[str, str], ...] = (),
) -> RecordEncoding:
    """The side whose rows are a part of the schema."""
    schema = WrittenSchema(text, references, 7, format_)
    whole = type_of_schema(format_, schema, message).type
    assert isinstance(whole, Record)
    record = without(whole, leave_out)
    assert isinstance(record, Record)
    names = tuple(field.name for field in record.fields)
    return RecordEncoding(format_.words, names, record, text, 7, given=True, message=message, references=references)  # type: ignore[arg-type]


def without(type_: Type, names: set[str]) -> Type:
    """The type without some fields, and with nulls everywhere."""
    if isinstance(type_, Record):
        kept = (f for f in type_.fields if f.name not in names)
        return replace(type_, fields=tuple(Field(f.name, without(f.type, names)) for f in kept))
    if isinstance(type_, Array):
        type_ = replace(type_, element_nullable=True)
    elif isinstance(type_, Map):
        type_ = replace(type_, value_nullable=True)
    return map_inner(type_, lambda inner: without(inner, names))


def on_spark(session: SparkSession, made: RecordEncoding, writer: Any, rows: list[Any]) -> list[Any]:
    whole = Field("row", made.record, False)
    table = pa.Table.from_struct_array(pa.array([stored(row, made.record) for row in rows], arrow_type(whole)))
    schema = to_spark(made.record)
    assert isinstance(schema, StructType)
    row = row_of(made)
    accepted = writer.accepts(row)
    frame = session.createDataFrame(table, schema).coalesce(1)
    shown = frame.select(
        accepted.alias("ok"), writer.error(row).alias("error"), F.when(accepted, writer.encode(row)).alias("data")
    )
    return [bytes(one["data"]) if one["ok"] else one["error"]["path"] for one in shown.collect()]


def in_python(made: RecordEncoding, rows: list[Any]) -> list[Any]:
    write, found = row_writer(made), list[Any]()
    for row in rows:
        try:
            found.append(write(row))
        except Unwritable as wrong:
            found.append(wrong.path)
    return found


WHEN = dt.datetime(2026, 11, 15, 12, 30, 0, 123456, tzinfo=dt.UTC)


def test_the_jvm_the_workers_and_python_write_the_same_avro(session: SparkSession) -> None:
    made = side(json.dumps(AVRO), SchemaFormat.AVRO, {"extra", "more"})
    good: dict[str, Any] = {"i": 1, "d": None, "n": None, "e": "A", "when": WHEN, "price": Decimal("12.50"), "rows": [{"x": None}, {"x": 1}], "m": {"k": None}}  # fmt: skip
    bad: list[dict[str, Any]] = [{"i": None}, {"e": "C"}, {"e": None}, {"price": None}, {"rows": None}]
    rows = [good, {**good, "d": 1, "n": 2.0, "when": None, "rows": [], "m": {}}, *({**good, **wrong} for wrong in bad)]
    expected = in_python(made, rows)
    assert [isinstance(one, str) for one in expected] == [False, False, *[True] * len(bad)]
    jvm = in_jvm(made)
    assert isinstance(jvm, FilledRowWriter)
    assert on_spark(session, made, jvm, rows) == expected
    assert on_spark(session, made, GivenWriter(made), rows) == expected


def test_workers_write_messages_and_documents_as_python_does(session: SparkSession) -> None:
    proto = side(PROTO, SchemaFormat.PROTOBUF, {"more"}, "given.Second")
    row = {"i": 1, "d": None, "u": Decimal(5), "when": WHEN, "rows": [{"x": None}, {"x": 2}], "m": {"a": "b"}}
    rows = [row, {**row, "u": Decimal(-1)}, {**row, "rows": None, "m": None}, {**row, "m": {"a": None}}]
    expected = in_python(proto, rows)
    assert [isinstance(one, str) for one in expected] == [False, True, False, True]
    assert on_spark(session, proto, GivenWriter(proto), rows) == expected
    document = side(json.dumps(JSON), SchemaFormat.JSON, {"left"})
    rows = [{"i": 1, "d": None, "rows": [{"x": 1}]}, {"i": 11, "d": 1, "rows": None}, {"i": None, "d": 1, "rows": []}]
    expected = in_python(document, rows)
    assert [isinstance(one, str) for one in expected] == [False, True, True]
    assert on_spark(session, document, GivenWriter(document), rows) == expected


# Every try is two jobs of Spark's, so there are few of them, and nothing is made smaller.
FEW = settings(examples(10), max_examples=4 * TIMES, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@pytest.mark.parametrize("format_", [SchemaFormat.AVRO, SchemaFormat.PROTOBUF])
def test_random_rows_are_written_on_spark_as_by_python(session: SparkSession, format_: SchemaFormat) -> None:
    """What Python writes is compared with the vendors' own serialisers in `test_given`."""

    @given(written(format_))
    @FEW
    def law(drawn: tuple[WrittenSchema, Record, Record, Any]) -> None:
        schema, whole, part, value = drawn
        made = given_side(schema, part)
        expected = in_python(made, [value])
        assert on_spark(session, made, GivenWriter(made), [value]) == expected
        if isinstance(expected[0], bytes) and format_ is SchemaFormat.AVRO:  # the others are read in `test_given`
            (found,) = read(session, replace(made, record=whole), expected)
            assert found == canonical_row(completed(value, part, whole), whole, "AVRO")
        jvm = in_jvm(made)
        if jvm is not None:  # the JVM writes the entries of a map in an order of its own
            (ours,), (theirs,) = on_spark(session, made, jvm, [value]), expected
            assert read_avro(schema, ours) == read_avro(schema, theirs)

    law()


@pytest.mark.parametrize(
    "field",
    [
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "int", "logicalType": "time-millis"},
        {"type": "string", "logicalType": "uuid"},
        ["null", "int", "string"],
        {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
    ],
)
def test_what_spark_would_write_otherwise_is_left_to_the_workers(field: object) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": field}]})
    assert in_jvm(side(text, SchemaFormat.AVRO, set())) is None
