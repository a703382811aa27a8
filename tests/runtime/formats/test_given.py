"""Rows written with a schema that somebody else wrote: random schemas and data, read by the vendors' own deserialisers, and the
rules for nulls, defaults, enums and unions."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import RegisteredSchema, Schema as ConfluentSchema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.given.writer import row_writer
from headgate.runtime.formats.protobuf_writer import is_no_value
from headgate.schema.encodings import SchemaEncoding, type_of_schema
from headgate.schema.errors import SchemaError, UnsupportedType
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.formats.protobuf import print_proto, read_files, to_protobuf
from headgate.schema.types import Array, Bytes, Enum, Field, Json, Map, Record, Type, Uuid
from headgate.schema.values import from_json
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.laws import examples
from tests.runtime.formats.decoding import one
from tests.schema import strategies as s
from tests.schema.proto_messages import class_of, fill

pytestmark = pytest.mark.unit

REGISTERED = {"auto.register.schemas": False}
VALUE_OF_T = SerializationContext("t", MessageField.VALUE)
RECORDS = s.records(s.types(max_leaves=4), min_fields=2, max_fields=6)
ID = 7


def schema_of(record: Record, format_: SchemaFormat) -> WrittenSchema:
    match format_:
        case SchemaFormat.AVRO:
            text = json.dumps(to_avro(record, name="given.Envelope").json)
        case SchemaFormat.JSON:
            text = json.dumps(to_json_schema(record))
        case SchemaFormat.PROTOBUF:
            text = print_proto(to_protobuf(record, name="Envelope", package="given"))
    return WrittenSchema(text, id=ID, format=format_)


def part_of(draw: st.DrawFn, type_: Type) -> Type:
    """A type that lacks some of the fields of another: those that need no value."""
    match type_:
        case Record(fields):
            kept = [f for f in fields if not f.nullable or draw(st.booleans())] or list(fields[:1])
            return replace(type_, fields=tuple(replace(f, type=part_of(draw, f.type)) for f in kept))
        case Array():
            return replace(type_, element=part_of(draw, type_.element))
        case Map():
            return replace(type_, value=part_of(draw, type_.value))
        case _:
            return type_


@st.composite
def written(draw: st.DrawFn, format_: SchemaFormat) -> tuple[WrittenSchema, Record, Record, Any]:
    """A schema, its type, the type of rows that are a part of it, and a row."""
    try:
        schema = schema_of(draw(RECORDS), format_)
        whole = type_of_schema(format_, schema).type
    except (UnsupportedType, SchemaError):
        assume(False)
        raise
    assert isinstance(whole, Record)
    part = part_of(draw, whole)
    assert isinstance(part, Record)
    return schema, whole, part, draw(s.values_of(part))


def side(schema: WrittenSchema, record: Record, **more: Any) -> RecordEncoding:
    names = tuple(field.name for field in record.fields)
    return RecordEncoding(schema.format.words, names, record, schema.text, ID, given=True, **more)  # type: ignore[arg-type]


def completed(value: Any, part: Type, whole: Type) -> Any:
    """A row of a part as a row of the whole, with null where the part has nothing."""
    if value is None:
        return None
    match part, whole:
        case Record(), Record():
            known = {f.name: f.type for f in part.fields}
            return {f.name: completed(value.get(f.name), known.get(f.name, f.type), f.type) for f in whole.fields}
        case Array(), Array():
            return [completed(one, part.element, whole.element) for one in value]
        case Map(), Map():
            return {key: completed(one, part.value, whole.value) for key, one in value.items()}
        case _:
            return value


class OneSchema:
    """A registry that knows one schema."""

    def __init__(self, schema: WrittenSchema) -> None:
        named = [SchemaReference(name, name, 1) for name, _ in schema.references]
        self.schema = ConfluentSchema(schema.text, schema.format.value, named)
        self.referred = {
            name: ConfluentSchema(text, schema.format.value, named[:number])
            for number, (name, text) in enumerate(schema.references)
        }

    def get_schema(self, *_: object, **__: object) -> ConfluentSchema:
        return self.schema

    def get_version(self, subject: str, *_: object, **__: object) -> RegisteredSchema:
        return RegisteredSchema(subject, 1, 1, "", self.referred[subject])

    def lookup_schema(self, subject: str, *_: object, **__: object) -> RegisteredSchema:
        return RegisteredSchema(subject, 1, ID, str(uuid.UUID(int=ID)), self.schema)

    def get_associations_by_resource_name(self, *_: object, **__: object) -> list[object]:
        return []


LAW = settings(examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@given(written(SchemaFormat.AVRO))
@LAW
def test_the_vendor_reads_avro_rows_of_a_part_of_a_schema(drawn: tuple[WrittenSchema, Record, Record, Any]) -> None:
    schema, whole, part, value = drawn
    client: Any = OneSchema(schema)
    data, row = row_writer(side(schema, part))(value), completed(value, part, whole)
    assert comparable(AvroDeserializer(client)(data, VALUE_OF_T), whole) == comparable(row, whole)
    assert AvroSerializer(client, schema.text, conf=REGISTERED)(row, VALUE_OF_T) == data


def are_whole_numbers_small(document: object) -> bool:
    """Whether the vendor's serialiser can write a document: it uses orjson, which takes no whole numbers beyond 64 bits."""
    match document:
        case int():
            return -(2**63) <= document < 2**64
        case dict() | list():
            return all(map(are_whole_numbers_small, document.values() if isinstance(document, dict) else document))
        case _:
            return True


@given(written(SchemaFormat.JSON))
@LAW
def test_the_vendor_reads_json_rows_of_a_part_of_a_schema(drawn: tuple[WrittenSchema, Record, Record, Any]) -> None:
    schema, whole, part, value = drawn
    client: Any = OneSchema(schema)
    data = row_writer(side(schema, part))(value)
    assert JSONDeserializer(schema.text, schema_registry_client=client)(data, VALUE_OF_T) is not None
    document = json.loads(data[5:])
    if are_whole_numbers_small(document):
        check = JSONSerializer(schema.text, client, conf=REGISTERED)
        assert json.loads(check(document, VALUE_OF_T)[5:]) == document
    found = json.loads(data[5:], parse_float=Decimal)
    assert comparable(from_json(found, whole), whole) == comparable(completed(value, part, whole), whole)


@given(written(SchemaFormat.PROTOBUF))
@LAW
def test_the_vendor_reads_protobuf_rows_of_a_part_of_a_schema(drawn: tuple[WrittenSchema, Record, Record, Any]) -> None:
    schema, whole, part, value = drawn
    assume(holds(value, part))
    data = row_writer(side(schema, part))(value)
    message = class_of(read_files(schema.text)[0])
    wanted = message()
    fill(wanted, whole, completed(value, part, whole))
    assert ProtobufDeserializer(message, {"use.deprecated.format": False})(data, VALUE_OF_T) == wanted


@given(st.sampled_from([SchemaFormat.JSON, SchemaFormat.PROTOBUF]).flatmap(written))
@settings(LAW, max_examples=examples(30).max_examples)
def test_our_reader_reads_rows_of_a_part_of_a_schema(drawn: tuple[WrittenSchema, Record, Record, Any]) -> None:
    """Avro is read on Spark alone: `test_given_on_spark`."""
    schema, whole, part, value = drawn
    assume(schema.format is SchemaFormat.JSON or holds(value, part))
    found = one(SchemaEncoding(schema.format, (schema,), fills=True), row_writer(side(schema, part))(value))
    assert read_back(found, whole) == read_back(completed(value, part, whole), whole)


def read_back(value: Any, type_: Type) -> Any:
    """A value in the form that our readers and our writers share: uuids as text, numbers inside json by value, and an empty array or
    map where Protobuf has no null."""
    if value is None:
        return None
    match type_:
        case Record(fields):
            empty: dict[type, Any] = {Array: [], Map: {}}
            given = {f.name: value[f.name] for f in fields}
            filled = {f.name: empty.get(type(f.type)) for f in fields if not f.nullable and given[f.name] is None}
            return {f.name: read_back({**given, **filled}[f.name], f.type) for f in fields}
        case Array(element):
            return [read_back(each, element) for each in value]
        case Map(inner):
            return {key: read_back(each, inner) for key, each in value.items()}
        case Json():
            return json.loads(value, parse_float=Decimal, parse_int=Decimal)
        case Uuid():
            return str(value)
        case _:
            return value


def holds(value: Any, type_: Type) -> bool:
    """Whether Protobuf can hold the json in the value: its numbers are doubles."""
    if value is None:
        return True
    match type_:
        case Record(fields):
            return all(holds(value[f.name], f.type) for f in fields)
        case Array(element):
            return all(holds(one, element) for one in value)
        case Map(inner):
            return all(holds(one, inner) for one in value.values())
        case Json():
            return not is_no_value(value)
        case _:
            return True


def comparable(value: Any, type_: Type) -> Any:
    """A value with json parsed and enums as text."""
    if value is None:
        return None
    match type_:
        case Record(fields):
            return {f.name: comparable(value[f.name], f.type) for f in fields}
        case Array(element):
            return [comparable(one, element) for one in value]
        case Map(inner):
            return {key: comparable(one, inner) for key, one in value.items()}
        case Json():
            return json.loads(value) if isinstance(value, str) else value
        case Enum():
            return str(value)
        case _:
            return value


# unions, defaults and references, in random order and number: fields by the kind of schema, each with the names of its columns

ENUM = {"type": "enum", "name": "e", "namespace": "lib", "symbols": ["A", "B"]}
INNER = {"type": "record", "name": "inner", "namespace": "lib", "fields": [
    {"name": "x", "type": ["null", "int"]}, {"name": "e", "type": "lib.e"}]}  # fmt: skip
REFERENCES = (("lib.e", json.dumps(ENUM)), ("lib.inner", json.dumps(INNER)))
UNIONS: list[Any] = [
    ["null", "long", "string"],
    ["int", "lib.inner"],
    ["null", "boolean", {"type": "array", "items": "string"}],
]
DEFAULTS: list[tuple[Any, Any]] = [
    ("int", 5), ("string", "ä"), ("lib.e", "B"), (["string", "null"], "x"), (["null", "lib.inner"], None),
    ("lib.inner", {"x": None, "e": "A"}), ({"type": "array", "items": "int"}, [1]), ({"type": "map", "values": "long"}, {"k": 2}),
    ({"type": "int", "logicalType": "date"}, 3),
]  # fmt: skip
OTHERS: list[Any] = [
    "lib.inner", {"type": "array", "items": "lib.inner"}, {"type": "map", "values": ["null", "lib.inner"]},
    {"type": "long", "logicalType": "timestamp-micros"}, {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
]  # fmt: skip


@st.composite
def avro_rows(draw: st.DrawFn) -> tuple[WrittenSchema, Record, dict[str, Any]]:
    """A schema that refers to another one, the columns of rows, and a row. At most one branch of a union has a value."""
    fields: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 6))):
        name = f"f{number}_"
        match draw(st.sampled_from(("union", "default", "other"))):
            case "union":
                fields.append({"name": name, "type": draw(st.sampled_from(UNIONS))})
            case "default":
                type_, default = draw(st.sampled_from(DEFAULTS))
                fields.append({"name": name, "type": type_, "default": default})
            case _:
                fields.append({"name": name, "type": draw(st.sampled_from(OTHERS))})
    text = json.dumps({"type": "record", "name": "outer", "fields": fields})
    schema = WrittenSchema(text, REFERENCES, ID)
    whole = type_of_schema(schema.format, schema).type
    assert isinstance(whole, Record)
    row = dict(draw(s.values_of(whole)))  # type: ignore[call-overload]
    for field in fields:
        branches = [column.name for column in whole.fields if column.name.startswith(field["name"])]
        if len(branches) > 1:
            kept = draw(st.sampled_from(branches))
            row.update({name: None for name in branches if name != kept})
            if "null" not in field["type"]:
                assume(row[kept] is not None)
        elif "default" in field and draw(st.booleans()):
            row[branches[0]] = None
    return schema, whole, row


@given(avro_rows())
@LAW
def test_the_vendor_reads_unions_defaults_and_references(drawn: tuple[WrittenSchema, Record, dict[str, Any]]) -> None:
    schema, whole, row = drawn
    client: Any = OneSchema(schema)
    found = AvroDeserializer(client)(row_writer(side(schema, whole, references=schema.references))(row), VALUE_OF_T)
    for field in json.loads(schema.text)["fields"]:
        columns = [column for column in whole.fields if column.name.startswith(field["name"])]
        wanted = [comparable(row[c.name], c.type) for c in columns if row[c.name] is not None]
        instead = None if isinstance(field["type"], list) and "null" in field["type"] else field.get("default")
        read = found[field["name"]]
        assert json_like(read) == json_like(wanted[0] if wanted else instead)


def json_like(value: Any) -> Any:
    """A date is its number where it comes from a default."""
    return (value - dt.date(1970, 1, 1)).days if type(value) is dt.date else value


# rules


def avro(*fields: dict[str, Any]) -> WrittenSchema:
    return WrittenSchema(json.dumps({"type": "record", "name": "r", "fields": list(fields)}), id=ID)


def read_avro(schema: WrittenSchema, data: bytes) -> Any:
    client: Any = OneSchema(schema)
    return AvroDeserializer(client)(data, VALUE_OF_T)


def part(schema: WrittenSchema, *names: str) -> Record:
    whole = type_of_schema(schema.format, schema).type
    assert isinstance(whole, Record)
    return Record(tuple(Field(f.name, f.type) for f in whole.fields if f.name in names))


def test_a_null_is_written_as_the_default_and_an_extra_field_gets_its_own() -> None:
    schema = avro(
        {"name": "a", "type": "int", "default": 5},
        {"name": "b", "type": ["string", "null"], "default": "x"},
        {"name": "c", "type": {"type": "array", "items": "int"}, "default": [1]},
        {"name": "d", "type": ["null", "int"]},
    )
    data = row_writer(side(schema, part(schema, "a")))({"a": None})
    assert read_avro(schema, data) == {"a": 5, "b": "x", "c": [1], "d": None}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("int", None, "it is null"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "B", "it is none of the symbols"),
        ({"type": "fixed", "name": "f", "size": 2}, b"abc", "it has another length"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            dt.datetime(2026, 1, 1, 0, 0, 0, 1, dt.UTC),
            "it is finer",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            Decimal("123.4"),
            "it has more digits",
        ),
    ],
)
def test_a_value_that_the_schema_cannot_hold_is_refused_with_its_path(field: Any, value: Any, reason: str) -> None:
    schema = avro({"name": "a", "type": {"type": "record", "name": "i", "fields": [{"name": "b", "type": field}]}})
    with pytest.raises(Unwritable) as caught:
        row_writer(side(schema, part(schema, "a")))({"a": {"b": value}})
    assert caught.value.path == "$.a.b"
    assert caught.value.reason.startswith(reason)


def test_bytes_and_symbols_of_wider_types_are_checked_row_by_row() -> None:
    enum = {"type": "enum", "name": "e", "symbols": ["B", "A"]}
    schema = avro({"name": "f", "type": {"type": "fixed", "name": "f", "size": 2}}, {"name": "e", "type": enum})
    write = row_writer(side(schema, Record((Field("f", Bytes()), Field("e", Enum(("A", "C")))))))
    assert read_avro(schema, write({"f": b"ab", "e": "A"})) == {"f": b"ab", "e": "A"}
    for row, path in (({"f": b"abc", "e": "A"}, "$.f"), ({"f": b"ab", "e": "C"}, "$.e")):
        with pytest.raises(Unwritable) as caught:
            write(row)
        assert caught.value.path == path


def test_a_required_field_without_a_column_refuses_every_row() -> None:
    schema = avro({"name": "a", "type": "int"}, {"name": "needed", "type": "int"})
    with pytest.raises(Unwritable) as caught:
        row_writer(side(schema, part(schema, "a")))({"a": 1})
    assert caught.value.path == "$.needed"


def test_a_union_is_written_as_the_branch_that_has_a_value() -> None:
    schema = avro({"name": "u", "type": ["null", "int", "string"]})
    write = row_writer(side(schema, part(schema, "u1", "u2")))
    assert [read_avro(schema, write(row))["u"] for row in (
        {"u1": 1, "u2": None}, {"u1": None, "u2": "x"}, {"u1": None, "u2": None},
    )] == [1, "x", None]  # fmt: skip
    with pytest.raises(Unwritable):
        write({"u1": 1, "u2": "x"})


def test_references_are_part_of_a_schema() -> None:
    inner = '{"type": "record", "name": "inner", "namespace": "a", "fields": [{"name": "x", "type": "int"}]}'
    outer = '{"type": "record", "name": "outer", "fields": [{"name": "i", "type": "a.inner"}]}'
    schema = WrittenSchema(outer, (("a.inner", inner),), ID)
    data = row_writer(side(schema, part(schema, "i"), references=schema.references))({"i": {"x": 3}})
    assert data == b"\x00\x00\x00\x00\x07\x06"


def test_one_column_is_the_whole_value_of_a_schema_without_fields() -> None:
    schema = WrittenSchema('"long"', id=ID)
    made = RecordEncoding("AVRO", ("k",), Record((Field("k", type_of_schema(schema.format, schema).type),)), '"long"', ID, given=True, whole=True)  # fmt: skip
    assert row_writer(made)({"k": 1}) == b"\x00\x00\x00\x00\x07\x02"


PROTO = """syntax = "proto3"; package p; import "google/protobuf/wrappers.proto"; import "google/protobuf/timestamp.proto";
message First { int32 a = 1; }
message Second { uint64 u = 1; google.protobuf.StringValue w = 2; google.protobuf.Timestamp t = 3; E e = 4;
  oneof one { int32 x = 5; string y = 6; } map<int32, string> m = 7; enum E { ZERO = 0; ONE = 1; } }
"""


def test_a_message_is_chosen_by_its_name_and_takes_wrappers_unsigned_numbers_and_oneofs() -> None:
    schema = WrittenSchema(PROTO, id=ID, format=SchemaFormat.PROTOBUF)
    whole = type_of_schema(schema.format, schema, "p.Second").type
    assert isinstance(whole, Record)
    made = side(schema, whole, message="p.Second")
    row = {"u": Decimal(2**64 - 1), "w": "w", "t": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "e": "ONE", "x": 1, "y": None, "m": {"3": "v"}}  # fmt: skip
    write = row_writer(made)
    data = write(row)
    assert data[:7] == b"\x00\x00\x00\x00\x07\x02\x02"  # one index, which is 1
    for wrong in ({"u": Decimal(-1)}, {"e": "TWO"}, {"y": "both"}, {"m": {"x": "v"}}):
        with pytest.raises(Unwritable):
            write({**row, **wrong})


@pytest.mark.parametrize(
    ("keys", "good", "bad"),
    [
        ("bool", {"true": 1, "false": 2}, ("maybe", "True", "1")),
        ("int32", {"-2147483648": 1}, ("2147483648", "x", "", "1_0", " 1")),
        ("uint32", {"4294967295": 1}, ("-1", "4294967296")),
        ("sint64", {"9223372036854775807": 1}, ("9223372036854775808",)),
        ("fixed64", {"18446744073709551615": 1}, ("-1", "1.5")),
    ],
)
def test_keys_of_maps_that_are_no_text_are_checked(keys: str, good: dict[str, int], bad: tuple[str, ...]) -> None:
    text = f'syntax = "proto3"; message M {{ map<{keys}, int32> m = 1; }}'
    schema = WrittenSchema(text, id=ID, format=SchemaFormat.PROTOBUF)
    write = row_writer(side(schema, part(schema, "m")))
    message = class_of(read_files(text)[0])
    read: Any = ProtobufDeserializer(message, {"use.deprecated.format": False})(write({"m": good}), VALUE_OF_T)
    assert {str(key).lower(): value for key, value in read.m.items()} == good
    for wrong in bad:
        with pytest.raises(Unwritable, match="range"):
            write({"m": {wrong: 1}})


def test_a_number_in_json_that_protobuf_would_round_is_refused() -> None:
    text = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Value j = 1; }'
    schema = WrittenSchema(text, id=ID, format=SchemaFormat.PROTOBUF)
    write = row_writer(side(schema, part(schema, "j")))
    assert write({"j": '{"n": 9007199254740992, "x": 0.1}'})
    for wrong in ('{"n": 9007199254740993}', "[0.12345678901234567890]"):
        with pytest.raises(Unwritable, match="digits"):
            write({"j": wrong})


def test_a_decimal_is_a_number_where_the_json_schema_says_number() -> None:
    price = {
        "type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "20"},
    }  # fmt: skip
    text = json.dumps({"type": "object", "properties": {"price": price, "all": {"type": "integer", "maximum": 2**70}}})
    schema = WrittenSchema(text, id=ID, format=SchemaFormat.JSON)
    write = row_writer(side(schema, part(schema, "price", "all")))
    data = write({"price": Decimal("123456789012345678.90"), "all": Decimal(2**69)})
    assert data[5:] == b'{"price":123456789012345678.90,"all":590295810358705651712}'
    with pytest.raises(Unwritable) as caught:
        write({"price": Decimal("1.00"), "all": Decimal(2**71)})
    assert caught.value.path == "$.all"


JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "an order",
    "properties": {
        "id": {"type": "integer", "description": "its number"},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "left": {"type": "string"},
        "colour": {"enum": ["red", "green"]},
        "size": {"type": "integer", "minimum": 1, "default": 3},
        "inner": {"$ref": "#/definitions/inner"},
    },
    "definitions": {
        "inner": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": False}
    },
    "required": ["id", "size"],
    "additionalProperties": False,
}


def test_json_properties_without_a_value_are_null_left_out_or_their_default() -> None:
    schema = WrittenSchema(json.dumps(JSON_SCHEMA), id=ID, format=SchemaFormat.JSON)
    names = ("id", "note", "left", "colour", "size", "inner")
    write = row_writer(side(schema, part(schema, *names)))
    row = {"id": 1, "note": None, "left": None, "colour": "red", "size": None, "inner": {"x": 1.5}}
    assert json.loads(write(row)[5:]) == {"id": 1, "note": None, "colour": "red", "size": 3, "inner": {"x": 1.5}}
    for wrong, path in (({"id": None}, "$.id"), ({"size": 0}, "$.size"), ({"colour": "blue"}, "$.colour")):
        with pytest.raises(Unwritable) as caught:
            write({**row, **wrong})
        assert caught.value.path == path
        assert "blue" not in str(caught.value)


def test_a_json_schema_that_is_not_valid_itself_refuses_every_row() -> None:
    schema = WrittenSchema('{"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}', id=ID, format=SchemaFormat.JSON)  # fmt: skip
    with pytest.raises(Unwritable, match="not a valid JSON Schema"):
        row_writer(side(schema, part(schema, "a")))({"a": "x"})
