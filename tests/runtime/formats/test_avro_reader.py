"""Avro bodies and schemas that Spark's own reader takes for something else than they are, or dies of."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.formats.avro_plan import varint
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat
from tests.plan.planning import record
from tests.runtime.formats.decoding import Bad, framed, written
from tests.runtime.formats.test_readers import read

pytestmark = pytest.mark.spark

MALFORMED = Bad("the bytes are not a record of their schema")
NOT_UTF8 = "is not valid UTF-8"
MILLIS = {"type": "int", "logicalType": "time-millis"}
MICROS = {"type": "long", "logicalType": "time-micros"}


def avro(session: SparkSession, schema: object, *bodies: bytes) -> list[Any]:
    one = written(json.dumps(schema), 1)
    return read(
        session,
        SchemaEncoding(SchemaFormat.AVRO, (one,)),
        [framed(1, body) for body in bodies],
        WriterSchemas({1: one}),
    )


def number(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def test_the_branches_of_a_union_of_records_are_columns(session: SparkSession) -> None:
    union = ["null", record("ev.Made", ("id", "int"), ("at", MILLIS)), record("ev.Gone", ("id", "int"))]
    assert avro(session, union, b"\x02\x02" + number(1000), b"\x04\x04", b"\x00") == [
        {"Made": {"id": 1, "at": dt.time(0, 0, 1)}, "Gone": None},
        {"Made": None, "Gone": {"id": 2}},
        None,
    ]


def test_two_sizes_of_a_number_are_two_columns(session: SparkSession) -> None:
    schema = record("r", ("u", ["int", "long"]), ("v", ["null", "float", "double"]), ("w", ["long", "int"]))
    assert avro(session, schema, b"\x00\x02\x00\x00\x04", b"\x02\x04\x04" + bytes(8) + b"\x02\x06") == [
        {"u1": 1, "u2": None, "v1": None, "v2": None, "w1": 2, "w2": None},
        {"u1": None, "u2": 2, "v1": None, "v2": 0.0, "w1": None, "w2": 3},
    ]


def test_null_may_be_written_as_an_object(session: SparkSession) -> None:
    schema = record("r", ("n", [{"type": "null"}, "int"]), ("u", [{"type": "null"}, "int", "string"]))
    assert avro(session, schema, b"\x00\x00", b"\x02\x02\x04\x02a") == [
        {"n": None, "u1": None, "u2": None},
        {"n": 1, "u1": None, "u2": "a"},
    ]


def test_a_type_is_found_by_its_full_name_beside_one_of_the_same_last_name(session: SparkSession) -> None:
    inner, other = record("In", ("t", MILLIS)), record("other.In", ("u", ["int", "string"]))
    schema = {
        **record("R", ("a", inner), ("b", "n.In"), ("c", other), ("d", {"type": "array", "items": "other.In"})),
        "namespace": "n",
    }
    body = number(1000) + number(2000) + b"\x00\x02" + b"\x02\x02\x02a\x00"
    assert avro(session, schema, body) == [
        {"a": {"t": dt.time(0, 0, 1)}, "b": {"t": dt.time(0, 0, 2)}, "c": {"u1": 1, "u2": None}, "d": [{"u1": None, "u2": "a"}]}
    ]  # fmt: skip


def test_a_record_without_fields_is_one(session: SparkSession) -> None:
    assert avro(session, record("r"), b"", b"\x00") == [{}, MALFORMED]


def test_a_uuid_of_sixteen_bytes_is_one(session: SparkSession) -> None:
    schema = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
    assert avro(session, schema, bytes(range(16))) == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]


def test_decimals_are_those_of_the_type(session: SparkSession) -> None:
    connect = {
        "type": "bytes", "connect.name": "org.apache.kafka.connect.data.Decimal",
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "5"},
    }  # fmt: skip
    small = {"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 3, "scale": 0}
    assert avro(session, record("r", ("d", connect), ("f", small)), b"\x02\x07\x07") == [
        {"d": decimal.Decimal("0.07"), "f": b"\x07"}
    ]


def test_texts_that_are_not_utf8_are_told(session: SparkSession) -> None:
    text = {"type": "string", "avro.java.string": "String"}
    by_name = {"type": "map", "values": "string", "avro.java.string": "String"}
    schema = record("r", ("a", text), ("m", by_name), ("l", {"type": "array", "items": ["null", "string"]}))
    assert avro(
        session, schema,
        b"\x02a\x00\x00", b"\x02\xff\x00\x00", b"\x02a\x02\x02\xff\x02b\x00\x00", b"\x02a\x02\x02a\x02\xc3\x00\x00",
        b"\x02a\x00\x04\x00\x02\x02\xff\x00",
    ) == [
        {"a": "a", "m": {}, "l": []}, Bad(f"what is at $.a {NOT_UTF8}"), Bad(f"a key of what is at $.m {NOT_UTF8}"),
        Bad(f"what is at $.m{{}} {NOT_UTF8}"), Bad(f"what is at $.l[] {NOT_UTF8}"),
    ]  # fmt: skip


def test_texts_are_looked_at_wherever_they_lie(session: SparkSession) -> None:
    lists = {"type": "array", "items": ["null", {"type": "array", "items": "string"}]}
    maps = {"type": "array", "items": {"type": "map", "values": record("in", ("s", ["null", "string"]))}}
    schema = record("r", ("l", lists), ("m", maps))
    good, nothing = b"\x04\x00\x02\x02\x02a\x00\x00", b"\x00"
    named = b"\x02\x02\x02%s\x02\x02%s\x00\x00"
    found = avro(
        session, schema, good + nothing, good.replace(b"a", b"\xff") + nothing,
        nothing + named % (b"k", b"v"), nothing + named % (b"\xff", b"v"), nothing + named % (b"k", b"\xff"),
    )  # fmt: skip
    assert found[0] == {"l": [None, ["a"]], "m": []}
    assert found[2] == {"l": [], "m": [{"k": {"s": "v"}}]}
    assert [one.reason for one in (found[1], found[3], found[4])] == [
        f"what is at $.l[][] {NOT_UTF8}",
        f"a key of what is at $.m[] {NOT_UTF8}",
        f"what is at $.m[]{{}}.s {NOT_UTF8}",
    ]


def test_numbers_that_are_no_time_are_told(session: SparkSession) -> None:
    day = 86_400_000
    schema = record("r", ("a", MILLIS), ("b", ["null", {"type": "array", "items": MICROS}]))
    assert avro(
        session, schema, number(day - 1) + b"\x02\x02" + number(day * 1000 - 1) + b"\x00", number(day) + b"\x00",
        number(-1) + b"\x00", b"\x00\x02\x02" + number(day * 1000) + b"\x00", b"\x00\x02\x02" + number(-1) + b"\x00",
    ) == [
        {"a": dt.time(23, 59, 59, 999000), "b": [dt.time(23, 59, 59, 999999)]}, Bad("what is at $.a is no time"),
        Bad("what is at $.a is no time"), Bad("what is at $.b[] is no time"), Bad("what is at $.b[] is no time"),
    ]  # fmt: skip


def test_times_of_debezium_that_are_none_are_told(session: SparkSession) -> None:
    zoned = {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}
    counted = {"type": "long", "connect.name": "io.debezium.time.Timestamp"}
    schema = record("r", ("z", zoned), ("t", counted))
    moment = b"\x282026-11-16T12:00:00Z"
    assert avro(session, schema, moment + b"\x02", b"\x02x\x02", moment + number(2**62)) == [
        {"z": dt.datetime(2026, 11, 16, 12), "t": dt.datetime(1970, 1, 1, 0, 0, 0, 1000)},
        Bad("what is at $.z is no timestamptz"),
        Bad("what is at $.t is no timestamp"),
    ]


@pytest.mark.parametrize(
    "type_", ["bytes", "string", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]
)
def test_a_length_of_a_gigabyte_takes_no_memory(session: SparkSession, type_: object) -> None:
    assert avro(session, record("r", ("b", type_)), number(1_000_000_000) + b"x") == [MALFORMED]


def test_an_older_schema_that_contains_itself_is_read_as_far_as_the_reader_goes(
    session: SparkSession,
) -> None:
    itself = written(json.dumps(record("r", ("a", "int"), ("next", ["null", "r"]))), 1)
    frozen = written(json.dumps(record("r", ("a", "int"))), 2)
    bodies = [
        framed(1, b"\x02\x02\x04\x00"),
        framed(1, b"\x02\x00"),
        framed(1, b"\x02\x02\x04"),
        framed(2, b"\x02"),
    ]
    found = read(session, SchemaEncoding(SchemaFormat.AVRO, (frozen,)), bodies, WriterSchemas({1: itself, 2: frozen}))
    assert found == [{"a": 1}, {"a": 1}, MALFORMED, {"a": 1}]
