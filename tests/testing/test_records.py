"""Records in the notation of specs. fastavro and protobuf's own classes say whether the bytes are right."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given, strategies as st

from headgate.registry.schemas import Reference, Schema, parse
from headgate.schema.written import SchemaFormat
from headgate.testing import notation
from headgate.testing.avro_records import AvroCodec
from headgate.testing.errors import InvalidRecord, MalformedSpec
from headgate.testing.notation import (
    Branch,
    Json,
    equal,
    is_part,
    read_json,
    read_values,
    without_nulls,
    write_json,
)
from headgate.testing.protobuf_records import ProtobufCodec

pytestmark = pytest.mark.unit


def _avro(schema: object) -> AvroCodec:
    return AvroCodec(schema)


def _field(type_: object) -> object:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": type_}]}


def _proto(text: str, **others: str) -> ProtobufCodec:
    references = tuple(Reference(f"{name}.proto", name, 1) for name in others)
    known = {name: Schema(text, SchemaFormat.PROTOBUF) for name, text in others.items()}
    return ProtobufCodec(parse(Schema(text, SchemaFormat.PROTOBUF, references), lambda one: known[one.subject]))


SUIT = {"type": "enum", "name": "n.suit", "symbols": ["A", "B"]}
FOUR = {"type": "fixed", "name": "four", "size": 4}


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("long", "9223372036854775807"),
        ("float", "2.1"),
        ("double", "0.1"),
        ("double", '"NaN"'),
        ("bytes", '"00ff"'),
        (FOUR, '"deadbeef"'),
        (SUIT, '"B"'),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2},
            '"-12345678901234567890.50"',
        ),
        (
            {"type": "fixed", "name": "d", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 3},
            '"0.001"',
        ),
        ({"type": "int", "logicalType": "date"}, '"2026-11-15"'),
        ({"type": "int", "logicalType": "time-millis"}, '"12:30:00.5"'),
        ({"type": "long", "logicalType": "time-micros"}, '"23:59:59.999999"'),
        ({"type": "long", "logicalType": "timestamp-millis"}, '"1969-12-31T23:59:59.999Z"'),
        ({"type": "long", "logicalType": "timestamp-micros"}, '"2026-11-15T12:30:00Z"'),
        ({"type": "long", "logicalType": "timestamp-nanos"}, '"2026-11-15T12:30:00.000000001Z"'),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, '"2026-11-15T12:30:00.25"'),
        ({"type": "string", "logicalType": "uuid"}, '"01234567-89ab-cdef-0123-456789abcdef"'),
        ({"type": "array", "items": ["null", "string"]}, '["x", null]'),
        ({"type": "map", "values": "int"}, '{"k": 1}'),
        (["null", {"type": "int", "logicalType": "date"}], '"2026-11-15"'),
        (["null", "long", "string"], "5"),
        (["null", SUIT, FOUR], '"A"'),
        (["null", {"type": "map", "values": "long"}], '{"long": 5}'),
    ],
)
def test_an_avro_value_is_the_same_after_both_ways(type_: object, written: str) -> None:
    for schema, text in ((type_, written), (_field(type_), f'{{"a": {written}}}')):
        codec = _avro(schema)
        value = read_json(text)
        found = codec.decode(codec.encode(value))
        assert equal(value, found)
        assert write_json(found) == write_json(value)


def test_fastavro_reads_what_was_meant() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "m", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "u", "type": ["null", SUIT, {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}]},
            {"name": "b", "type": "bytes", "default": "\u00ff"},
            {"name": "w", "type": ["int", "null"], "default": 7},
        ],
    }  # fmt: skip
    text = '{"d": "2026-11-15", "t": "2026-11-15T12:30:00Z", "m": "1.5", "u": {"inner": {"x": 3}}}'
    data = _avro(schema).encode(read_json(text))
    found = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)
    assert found == {
        "d": date(2026, 11, 15),
        "t": datetime(2026, 11, 15, 12, 30, tzinfo=UTC),
        "m": Decimal("1.50"),
        "u": {"x": 3},
        "b": b"\xff",
        "w": 7,
    }


def test_a_record_that_contains_itself() -> None:
    node = {
        "type": "record",
        "name": "node",
        "fields": [{"name": "next", "type": ["null", "node"]}, {"name": "s", "type": SUIT}],
    }
    codec = _avro(node)
    value = read_json('{"next": {"next": null, "s": "B"}, "s": "A"}')
    assert equal(value, codec.decode(codec.encode(value)))


def test_a_branch_can_be_named_where_several_fit_and_either_notation_equals_it() -> None:
    codec = _avro(["null", "long", "double", "string", SUIT])
    for text, plain in (
        ('{"double": 5}', "5"),
        ('{"long": 5}', "5"),
        ('{"n.suit": "A"}', '"A"'),
        ('{"suit": "A"}', '"A"'),
    ):
        found = codec.decode(codec.encode(read_json(text)))
        assert isinstance(found, Branch)
        assert equal(read_json(text), found)
        assert equal(read_json(plain), found)
        assert codec.encode(found) == codec.encode(read_json(text))
    assert not equal(read_json('{"long": 5}'), codec.decode(codec.encode(read_json('{"double": 5}'))))


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("int", "2147483648"),
        ("int", "1.5"),
        ("int", "true"),
        ("string", "1"),
        ("bytes", '"xyz"'),
        (FOUR, '"00"'),
        (SUIT, '"C"'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, '"1.555"'),
        ({"type": "int", "logicalType": "date"}, '"2026-13-01"'),
        ({"type": "long", "logicalType": "timestamp-micros"}, '"2026-11-15T12:30:00"'),
        ({"type": "long", "logicalType": "timestamp-millis"}, '"2026-11-15T12:30:00.0001Z"'),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, '"2026-11-15T12:30:00Z"'),
        (["null", "long"], '"x"'),
        (_field("int"), "{}"),
        (_field("int"), '{"a": 1, "b": 2}'),
    ],
)
def test_an_avro_value_that_does_not_fit_is_refused_with_its_path(type_: object, written: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        _avro(type_).encode(read_json(written))
    assert caught.value.path.startswith("$")


def test_bytes_that_are_no_avro_record_are_refused() -> None:
    for data in (b"", b"\x04\x00", b"\x00\x00"):
        with pytest.raises(InvalidRecord):
            _avro(_field("string")).decode(data)


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
message Order {
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  google.protobuf.Timestamp at = 5;
  google.type.Date day = 6;
  google.type.TimeOfDay hour = 7;
  bytes raw = 8;
  float weight = 9;
  Suit suit = 10;
  oneof how { string card = 11; uint64 cash = 12; }
  google.protobuf.Int64Value big = 13;
  google.protobuf.Value any = 14;
  message Line { string sku = 1; double price = 2; }
  map<string, int64> counts = 4;
  enum Suit { NONE = 0; HEARTS = 1; }
}
message Other { bool yes = 1; }
"""

ORDER = (
    '{"id": 9007199254740993, "note": "n", "lines": [{"sku": "x", "price": 1.5}], "counts": {"a": 9007199254740993}, '
    '"at": "2026-11-15T12:30:00.5Z", "day": "2026-11-15", "hour": "12:30:00", "raw": "00ff", "weight": 2.1, '
    '"suit": "HEARTS", "card": null, "cash": 18446744073709551615, "big": 5, "any": {"k": [1, "x", null]}}'
)


def test_a_protobuf_message_is_the_same_after_both_ways() -> None:
    codec = _proto(PROTO)
    value = read_json(ORDER)
    found = codec.decode(codec.encode(value))
    assert equal(value, found)


def test_protobuf_shows_all_fields_and_null_for_what_is_not_set() -> None:
    codec = _proto(PROTO)
    assert codec.decode(codec.encode(read_json("{}"))) == {
        "id": 0, "note": None, "lines": [], "at": None, "day": None, "hour": None, "raw": "", "weight": 0.0,
        "suit": "NONE", "card": None, "cash": None, "big": None, "any": None, "counts": {},
    }  # fmt: skip


def test_a_message_is_chosen_by_name_and_framed_by_its_place() -> None:
    codec = _proto(PROTO)
    assert codec.encode(read_json('{"yes": true}'), "Other") == b"\x02\x02\x08\x01"
    assert codec.encode(read_json('{"yes": true}'), "shop.Other") == b"\x02\x02\x08\x01"
    nested = codec.encode(read_json('{"sku": "x"}'), "Order.Line")
    assert nested[:3] == b"\x04\x00\x00"
    assert codec.decode(nested) == {"sku": "x", "price": 0.0}
    assert codec.encode(read_json("{}"))[:1] == b"\x00"
    with pytest.raises(InvalidRecord, match=r"shop\.Other"):
        codec.encode(read_json("{}"), "shop.Othr")


def test_protobuf_with_references() -> None:
    codec = _proto(
        'syntax = "proto3"; import "other.proto"; message A { lib.B b = 1; }',
        other='syntax = "proto3"; package lib; message B { int32 x = 1; }',
    )
    assert codec.decode(codec.encode(read_json('{"b": {"x": 3}}'))) == {"b": {"x": 3}}


@pytest.mark.parametrize(
    "written", ['{"nope": 1}', '{"id": "1"}', '{"id": 1.5}', '{"suit": "X"}', '{"raw": "zz"}', '{"lines": {}}', '{"at": "noon"}', "5"]
)  # fmt: skip
def test_a_protobuf_value_that_does_not_fit_is_refused(written: str) -> None:
    with pytest.raises(InvalidRecord):
        _proto(PROTO).encode(read_json(written))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.sampled_from([10**3, 10**6, 10**9]))
def test_a_moment_is_the_same_after_both_ways(moment: datetime, unit: int) -> None:
    text = moment.replace(microsecond=moment.microsecond // 1000 * 1000).isoformat()
    units = notation.read_moment(text, unit)
    assert notation.read_moment(notation.write_moment(units, unit, "Z"), unit) == units
    assert units == (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(milliseconds=1) * (unit // 1000)


@given(st.integers(0, 86_400_000_000 - 1))
def test_a_time_is_the_same_after_both_ways(micros: int) -> None:
    assert notation.read_time(notation.write_time(micros, 10**6), 10**6) == micros


@given(st.integers(-700_000, 2_900_000))
def test_a_date_is_the_same_after_both_ways(days: int) -> None:
    assert notation.read_date(notation.write_date(days)) == days


plain: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(plain, min_size=1, max_size=3))
def test_json_that_was_written_is_read_as_the_same(values: list[Json]) -> None:
    line = " ".join(map(write_json, values))
    found = read_values(line)
    assert all(map(equal, values, found))
    assert len(found) == len(values)


@given(plain)
def test_a_value_is_a_part_of_itself_and_nulls_go_once(value: Json) -> None:
    assert is_part(value, value)
    assert equal(without_nulls(value), without_nulls(without_nulls(value)))
    assert not equal(value, [value])


@pytest.mark.parametrize("text", ["{a: 1}", "1,2", '"x', "NaN", "nul", '{"a":1}x'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(MalformedSpec):
        read_values(text)
