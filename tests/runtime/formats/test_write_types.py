"""Every type with its extreme values through sink and source, and what each format refuses, with path and reason."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal as Exact
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats import write_checks as c
from headgate.runtime.formats.protobuf_writer import NOT_A_VALUE
from headgate.runtime.formats.writers import RecordWriter, row_of
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record, Type
from tests.runtime.formats.decoding import Bad
from tests.runtime.formats.writing import FORMATS, SchemaWord, expected, read, schema_of, side, written
from tests.schema.round_trip import Lost, lost

pytestmark = pytest.mark.spark

UTC = dt.UTC
# Each type of DESIGN §5 with its least, its greatest and further values.
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, True],
    "integer": [-(2**31), 2**31 - 1, 0],
    "bigint": [-(2**63), 2**63 - 1, 2**53 + 1],
    "real": [-3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612],
    "double": [-1.7976931348623157e308, 5e-324, 0.1],
    "decimal(10,2)": [Exact("-99999999.99"), Exact("99999999.99"), Exact("0.00")],
    "decimal(38,0)": [Exact("-" + "9" * 38), Exact("9" * 38), Exact(0)],
    "decimal(38,38)": [Exact("-0." + "9" * 38), Exact("0." + "0" * 37 + "1"), Exact("0." + "0" * 38)],
    "text": ["", "\u0000\u001f\u007f \"\\/", "Zürich 注文 😀"],
    "bytes": [b"", bytes(range(256)), b"\x00"],
    "bytes(3)": [b"\x00\x00\x00", b"\xff\xff\xff", b"abc"],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10)],
    "time": [dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(12, 30, 0, 500_000)],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23, 59, 59, 500_000)],
    "timestamptz": [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 500_001, UTC)],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9")],
    "json": ['{"b": [1, 2.5, null, "x"], "a": {"é": true}}', '"text"', "[]"],
    "enum('on', 'off')": ["on", "off", "on"],
    "array<text>": [[], ["", "b"], ["x"] * 3],
    "array<array<integer not null> not null>": [[], [[]], [[1, 2], [], [3]]],
    "array<record(a date, b array<text>)>": [[], [{"a": None, "b": ["x"]}], [{"a": dt.date(2026, 11, 15), "b": []}]],
    "array<map<text, timestamptz>>": [[], [{}], [{"k": dt.datetime(2026, 1, 2, tzinfo=UTC)}]],
    "map<text, integer>": [{}, {"": 1}, {"é": -1, "b": 2}],
    "map<text, record(x decimal(4,1))>": [{}, {"k": {"x": None}}, {"k": {"x": Exact("-999.9")}}],
    "map<text, array<time>>": [{}, {"k": []}, {"k": [dt.time(1, 2, 3)]}],
    "map<text, json>": [{}, {"k": "1"}, {"k": '{"a": 1}', "l": "[null]"}],
    "record(a integer, b record(c text not null))": [{"a": None, "b": None}, {"a": 1, "b": {"c": ""}}, {"a": 2, "b": None}],
    "record(j json, k array<json>)": [{"j": None, "k": []}, {"j": "1", "k": ["2"]}, {"j": "[1]", "k": ['"x"', "{}"]}],
}  # fmt: skip
# What comes back as another type, as docs/types.md declares it.
DECLARED: dict[str, Lost] = {
    "AVRO": {("name of a type", "nothing")},
    "JSON SCHEMA": {("bytes(n)", "bytes")},
    "PROTOBUF": {
        ("bytes(n)", "bytes"), ("decimal", "text"), ("uuid", "text"), ("timestamp", "text"), ("array", "record"),
        ("map", "record"), ("name of a type", "nothing"),
    },
}  # fmt: skip


def every_type() -> Record:
    fields = [Field(f"c{number}", parse_type(text)) for number, text in enumerate(VALUES)]
    odd = Field("naïve name-1", Record((Field("a b", parse_type("date")), Field("a-b", parse_type("text")))))
    return Record((*fields, odd))


def every_value(record: Record) -> list[Any]:
    odd = [{"a b": dt.date(2026, 11, 15), "a-b": "x"}, {"a b": None, "a-b": "y"}, None]
    columns = [*VALUES.values(), odd]
    rows = [{f.name: values[n] for f, values in zip(record.fields, columns, strict=True)} for n in range(3)]
    return [*rows, {f.name: None for f in record.fields}]


@pytest.mark.parametrize("word", FORMATS)
def test_every_type_comes_back_with_its_extreme_values(session: SparkSession, word: SchemaWord) -> None:
    record = every_type()
    made, rows = side(word, record), every_value(record)
    data = written(session, made, rows)
    assert [one for one in data if isinstance(one, Bad)] == []
    found = read(session, made, [one for one in data if isinstance(one, bytes)])
    for row, one in zip(rows, found, strict=True):
        wanted = expected(row, record, word)
        assert {name: one[name] for name in wanted} == wanted


@pytest.mark.parametrize("word", FORMATS)
def test_every_type_comes_back_as_itself_or_as_docs_types_declares(word: SchemaWord) -> None:
    record = every_type()
    schema = schema_of(side(word, record))
    back = decoded_type(SchemaEncoding(schema.format, (schema,))).type
    assert isinstance(back, Record)
    for before, after in zip(record.fields, back.fields, strict=True):
        if before.name != "naïve name-1" or word != "AVRO":
            assert lost(_nullable(before.type), _nullable(after.type)) <= DECLARED[word], before


def _nullable(type_: Type) -> Type:
    """The type with nulls everywhere: a list of Protobuf holds none, and its messages may always be missing."""
    return parse_type(print_type(type_).replace(" not null", ""))


REFUSED = [
    ("AVRO", "integer not null", "CAST(NULL AS INT)", "$.v", c.MISSING),
    ("AVRO", "enum('a')", "'b'", "$.v", c.NO_SYMBOL),
    ("AVRO", "bytes(2)", "X'00'", "$.v", c.OTHER_LENGTH),
    ("AVRO", "decimal(3,1)", "123.4BD", "$.v", c.TOO_MANY_DIGITS),
    ("AVRO", "uuid", "'x'", "$.v", c.NOT_UUID),
    ("AVRO", "text", "CAST(X'ff' AS STRING)", "$.v", c.NOT_UTF8),
    ("AVRO", "map<text, text>", "map(CAST(X'ff' AS STRING), 'a')", "$.v", c.NOT_UTF8),
    ("JSON", "double", "double('NaN')", "$.v", c.NOT_FINITE),
    ("JSON", "array<real>", "array(float('-Infinity'))", "$.v[]", c.NOT_FINITE),
    ("JSON", "json", "'{'", "$.v", c.NOT_JSON),
    ("JSON SCHEMA", "record(a text not null)", "named_struct('a', CAST(NULL AS STRING))", "$.v.a", c.MISSING),
    ("JSON SCHEMA", "double", "double('Infinity')", "$.v", c.NOT_FINITE),
    ("JSON SCHEMA", "json not null", "' null '", "$.v", c.JSON_NULL),
    ("JSON SCHEMA", "map<text, enum('a')>", "map('k', 'b')", "$.v{}", c.NO_SYMBOL),
    ("JSON SCHEMA", "date", "date'+10000-01-01'", "$.v", c.OUT_OF_YEARS),
    ("JSON SCHEMA", "timestamptz", "timestamp'-0001-01-01 00:00:00'", "$.v", c.OUT_OF_YEARS),
    ("JSON SCHEMA", "timestamp", "timestamp_ntz'0000-12-31 00:00:00'", "$.v", c.OUT_OF_YEARS),
    ("JSON SCHEMA", "uuid", "'00000000-0000-0000-0000-00000000000g'", "$.v", c.NOT_UUID),
    ("PROTOBUF", "text not null", "CAST(NULL AS STRING)", "$.v", c.MISSING),
    ("PROTOBUF", "array<text>", "array('a', NULL)", "$.v[]", c.NULL_ELEMENT),
    ("PROTOBUF", "map<text, integer>", "map('a', CAST(NULL AS INT))", "$.v{}", c.NULL_ELEMENT),
    ("PROTOBUF", "map<text, date>", "map('a', CAST(NULL AS DATE))", "$.v{}", c.NULL_ELEMENT),
    ("PROTOBUF", "array<array<text>>", "array(array('a'), NULL)", "$.v[]", c.NULL_ELEMENT),
    ("PROTOBUF", "enum('a')", "'b'", "$.v", c.NO_SYMBOL),
    ("PROTOBUF", "date", "date'+10000-01-01'", "$.v", c.OUT_OF_YEARS),
    ("PROTOBUF", "json", "'['", "$.v", c.NOT_JSON),
    ("PROTOBUF", "array<json>", "array('1', '12345678901234567890')", "$.v[]", NOT_A_VALUE),
    ("PROTOBUF", "record(m map<text, json>)", "named_struct('m', map('k', '1e400'))", "$.v.m{}", NOT_A_VALUE),
    ("TEXT", "text not null", "CAST(NULL AS STRING)", "$.v", c.MISSING),
    ("TEXT", "bytes", "X'ff'", "$.v", c.NOT_UTF8),
    ("BYTES", "bytes not null", "CAST(NULL AS BINARY)", "$.v", c.MISSING),
]


@pytest.mark.parametrize(("word", "type_", "sql", "path", "reason"), REFUSED)
def test_a_value_that_the_format_cannot_hold_has_a_path_and_a_reason(
    session: SparkSession, word: Any, type_: str, sql: str, path: str, reason: str
) -> None:
    record = Record((Field("v", parse_type(type_.removesuffix(" not null")), not type_.endswith(" not null")),))
    made = side(word, record) if word in FORMATS else RecordEncoding(word, ("v",), record)
    frame = session.sql(f"SELECT {sql} AS v")
    writer, row = RecordWriter(made), row_of(made)
    found = frame.select(writer.accepts(row).alias("ok"), writer.error(row).alias("error")).first()
    assert found is not None
    assert found["ok"] is False
    assert (found["error"]["path"], found["error"]["reason"]) == (path, reason)


@pytest.mark.parametrize(
    ("word", "type_", "sql", "data"),
    [
        ("JSON", "json", "'{\"n\": 1.10, \"big\": 12345678901234567890123}'", b'{"v":{"n": 1.10, "big": 12345678901234567890123}}'),
        ("JSON", "array<json>", "array('1.0', NULL)", b'{"v":[1.0,null]}'),
        ("JSON", "record(a integer, b json, c text)", "named_struct('a', 1, 'b', '[]', 'c', '\"')", b'{"v":{"a":1,"b":[],"c":"\\""}}'),
        ("JSON", "map<text, json>", "map('a\"b', 'true')", b'{"v":{"a\\"b":true}}'),
        ("JSON", "record(b json)", "CAST(NULL AS STRUCT<b: STRING>)", b'{"v":null}'),
        ("TEXT", "decimal(5,2)", "1.50BD", b"1.50"),
        ("TEXT", "array<date>", "array(date'2026-11-15')", b'["2026-11-15"]'),
        ("TEXT", "json", "'{\"a\": 1.0}'", b'{"a": 1.0}'),
        ("BYTES", "bytes", "X'00ff'", b"\x00\xff"),
        ("BYTES", "text", "'é'", "é".encode()),
    ],
)  # fmt: skip
def test_the_formats_without_a_schema_write_every_digit(
    session: SparkSession, word: Any, type_: str, sql: str, data: bytes
) -> None:
    made = RecordEncoding(word, ("v",), Record((Field("v", parse_type(type_)),)))
    writer, row = RecordWriter(made), row_of(made)
    found = (
        session.sql(f"SELECT {sql} AS v").select(writer.accepts(row).alias("ok"), writer.encode(row).alias("d")).first()
    )
    assert found is not None
    assert (found["ok"], bytes(found["d"])) == (True, data)
