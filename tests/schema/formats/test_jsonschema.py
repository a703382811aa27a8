"""JSON Schema: every row of the type tables, references and alternatives, and that a real validator agrees."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from headgate.errors import HeadgateError
from headgate.schema.errors import (
    DecimalTooWide,
    ImpossibleSchema,
    MalformedJsonSchema,
    RecursiveSchema,
    SchemaError,
    SchemaTooDeep,
    SchemaTooLarge,
    UnknownReference,
    UnresolvedType,
)
from headgate.schema.formats.jsonschema import from_json_schema, to_json_schema
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Record,
    Text,
    Type,
    plain,
)
from headgate.schema.values import to_json
from tests.laws import examples
from tests.schema.strategies import records, scalars, types, values_of
from tools.type_losses import ROUND_TRIP_LOSSES, Loss

pytestmark = pytest.mark.unit

CONNECT = "org.apache.kafka.connect.data."


def an_object(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}

READ: list[tuple[object, str]] = [
    ({"type": "boolean"}, "boolean"),
    ({"type": "integer"}, "bigint"),
    ({"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, "integer"),
    ({"type": "integer", "minimum": 0, "maximum": 100.0}, "integer"),
    ({"type": "integer", "minimum": 0}, "bigint"),
    ({"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31}, "integer"),
    ({"type": "integer", "minimum": 0, "maximum": 2**31}, "bigint"),
    ({"type": "integer", "minimum": 0, "maximum": 2**31, "exclusiveMaximum": True}, "integer"),
    ({"type": "integer", "minimum": 0, "maximum": 2**63}, "decimal(38,0)"),
    ({"type": "integer", "minimum": -1e20}, "decimal(38,0)"),
    ({"type": "integer", "format": "int32"}, "integer"),
    ({"type": "integer", "format": "int64"}, "bigint"),
    ({"type": "number"}, "double"),
    ({"type": "number", "format": "float"}, "real"),
    ({"type": "number", "format": "double"}, "double"),
    ({"type": "string"}, "text"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "format": "time"}, "time"),
    ({"type": "string", "format": "date-time"}, "timestamptz"),
    ({"type": "string", "format": "date-time-local"}, "timestamp"),
    ({"type": "string", "format": "uuid"}, "uuid"),
    ({"type": "string", "format": "number"}, "decimal(38,18)"),
    ({"type": "string", "format": "number", "x-precision": 9, "x-scale": 2}, "decimal(9,2)"),
    ({"type": "string", "format": "integer"}, "decimal(38,0)"),
    ({"type": "string", "format": "email"}, "text"),
    ({"type": "string", "contentEncoding": "base64"}, "bytes"),
    ({"type": "string", "format": "byte"}, "bytes"),
    ({"type": "string", "enum": ["a", "b"]}, "enum('a', 'b')"),
    ({"enum": ["a", "b"]}, "enum('a', 'b')"),
    ({"type": "string", "enum": ["a", 1, None]}, "enum('a')"),
    ({"const": "a"}, "enum('a')"),
    ({"const": 7}, "integer"),
    ({"enum": [1, 2**40]}, "bigint"),
    ({"enum": [1, 2.5]}, "double"),
    ({"enum": [True]}, "boolean"),
    ({"enum": ["a", 1]}, "json"),
    # Kafka Connect's converter
    ({"type": "integer", "connect.type": "int8"}, "integer"),
    ({"type": "integer", "connect.type": "int32"}, "integer"),
    ({"type": "integer", "connect.type": "int64"}, "bigint"),
    ({"type": "number", "connect.type": "float32"}, "real"),
    ({"type": "number", "connect.type": "float64"}, "double"),
    ({"type": "string", "connect.type": "bytes"}, "bytes"),
    ({"type": "integer", "title": CONNECT + "Date", "connect.type": "int32"}, "date"),
    ({"type": "integer", "title": CONNECT + "Time", "connect.type": "int32"}, "time"),
    ({"type": "integer", "title": CONNECT + "Timestamp", "connect.type": "int64"}, "timestamptz"),
    (
        {
            "type": "number",
            "title": CONNECT + "Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
        },
        "decimal(9,2)",
    ),
    ({"type": "number", "title": CONNECT + "Decimal", "connect.parameters": {"scale": "2"}}, "decimal(38,2)"),
    ({"type": "object", "connect.type": "map", "additionalProperties": WHOLE}, "map<text, bigint not null>"),
    (
        {"type": "array", "connect.type": "map", "items": an_object("key", "value", key=TEXT, value=WHOLE)},
        "array<record(key text not null, value bigint not null) not null>",
    ),
    (
        an_object(
            a={"connect.index": 1, "oneOf": [NULL, {"type": "integer", "connect.type": "int32"}]},
            b={"connect.index": 0, "oneOf": [NULL, {"type": "integer", "title": CONNECT + "Timestamp"}]},
        ),
        "record(b timestamptz, a integer)",
    ),
    # arrays, maps, objects
    ({"type": "array", "items": TEXT}, "array<text not null>"),
    ({"type": "array", "items": {"type": ["string", "null"]}}, "array<text>"),
    ({"type": "array", "items": {}}, "array<json>"),
    ({"items": TEXT}, "array<text not null>"),
    ({"type": "array"}, "json"),
    ({"type": "array", "items": True}, "json"),
    ({"type": "array", "items": [TEXT, WHOLE]}, "json"),
    ({"type": "array", "prefixItems": [TEXT], "items": False}, "json"),
    ({"type": "object", "additionalProperties": TEXT}, "map<text, text not null>"),
    ({"type": "object", "additionalProperties": {}}, "map<text, json>"),
    ({"type": "object", "patternProperties": {"^x": TEXT}}, "map<text, text not null>"),
    ({"type": "object", "patternProperties": {"^x": TEXT, "^y": WHOLE}}, "json"),
    ({"type": "object"}, "json"),
    ({"type": "object", "additionalProperties": True}, "json"),
    ({"type": "object", "properties": {}, "additionalProperties": False}, "record()"),
    (an_object("b", a=TEXT, b=TEXT), "record(a text, b text not null)"),
    (an_object("b", "a", b=TEXT, a={"type": ["integer", "null"]}), "record(b text not null, a bigint)"),
    ({"properties": {"a": TEXT}}, "record(a text)"),
    (an_object(a=False, b=True), "record(b json)"),
    (an_object(a=NULL), "record(a json)"),
    (an_object("a", a={"type": "string", "nullable": True}), "record(a text)"),
    (
        an_object(a={"type": "string", "connect.index": 1}, b={"type": "string", "connect.index": 0}),
        "record(b text, a text)",
    ),
    # several types
    (True, "json"),
    ({}, "json"),
    ({"type": ["null", "string"]}, "text"),
    ({"type": ["integer", "number"]}, "double"),
    ({"type": ["integer", "string"]}, "json"),
    ({"oneOf": [NULL, TEXT]}, "text"),
    ({"anyOf": [TEXT, NULL]}, "text"),
    ({"oneOf": [False, TEXT]}, "text"),
    ({"oneOf": [TEXT, WHOLE]}, "json"),
    ({"oneOf": [WHOLE, {"type": "number"}]}, "double"),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "enum('a', 'b')"),
    ({"anyOf": [{"const": "a"}, TEXT]}, "text"),
    ({"type": "string", "anyOf": [{"format": "date"}, NULL]}, "date"),
    ({"oneOf": [an_object("a", a=TEXT), an_object("a", "b", a=TEXT, b=WHOLE)]}, "record(a text not null, b bigint)"),
    ({"oneOf": [an_object(a=TEXT), an_object(a=WHOLE)]}, "record(a json)"),
    (
        {**an_object(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b", "a"]}]},
        "record(a text not null, b text)",
    ),
    (
        {**an_object("k", k=TEXT), "if": {}, "then": an_object("x", x=WHOLE), "else": an_object(y=WHOLE)},
        "record(k text not null, x bigint, y bigint)",
    ),
    # allOf
    ({"allOf": [an_object("a", a=TEXT), {"required": ["b"], **an_object(b=WHOLE)}]}, "record(a text not null, b bigint not null)"),
    ({"allOf": [{"type": ["string", "null"]}, TEXT, {"format": "date"}]}, "date"),
    ({"allOf": [{"type": "number"}, WHOLE, {"minimum": 0}, {"maximum": 9}]}, "integer"),
    ({"allOf": [an_object(a={"type": ["string", "integer"]}), an_object(a=TEXT)]}, "record(a text)"),
    ({"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, "enum('b')"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), READ, ids=lambda x: x if isinstance(x, str) else json.dumps(x)[:60])
def test_a_json_schema_has_this_type(schema: object, expected: str) -> None:
    assert plain(from_json_schema(schema)) == parse_type(expected)
    assert from_json_schema(json.dumps(schema)) == from_json_schema(schema)


REFERRED: list[tuple[object, dict[str, object], str]] = [
    ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, {}, "text"),
    ({"$ref": "#/definitions/a", "definitions": {"a": TEXT}}, {}, "text"),
    ({"$ref": "#/$defs/a~1b~0c%20d", "$defs": {"a/b~c d": TEXT}}, {}, "text"),
    ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}, {}, "text"),
    ({"$ref": "#here", "definitions": {"a": {"$id": "#here", "type": "string"}}}, {}, "text"),
    ({"$ref": "#/x/1", "x": [WHOLE, TEXT]}, {}, "text"),
    ({"$id": "urn:a:b", "$ref": "#/$defs/a", "$defs": {"a": TEXT}}, {}, "text"),
    ({"$id": "http://x/s.json", "$ref": "t.json", "$defs": {"a": {"$id": "t.json", "type": "string"}}}, {}, "text"),
    (an_object(a={"$ref": "text.json"}), {"text.json": TEXT}, "record(a text)"),
    ({"$id": "http://x/s.json", **an_object(a={"$ref": "text.json"})}, {"text.json": json.dumps(TEXT)}, "record(a text)"),
    ({"$ref": "a.json"}, {"a.json": {"$ref": "#/$defs/b", "$defs": {"b": WHOLE}}, "": {}}, "bigint"),
    ({"$ref": "a.json#/$defs/b"}, {"a.json": {"$defs": {"b": {"$ref": "b.json"}}}, "b.json": WHOLE}, "bigint"),
    (
        {"$defs": {"p": an_object("x", x=WHOLE)}, **an_object(a={"$ref": "#/$defs/p"}, b={"$ref": "#/$defs/p"})},
        {},
        "record(a record(x bigint not null), b record(x bigint not null))",
    ),
    (an_object("a", a={"oneOf": [NULL, {"$ref": "#/$defs/t"}]}) | {"$defs": {"t": TEXT}}, {}, "record(a text)"),
    ({"$ref": "#/$defs/t", "$defs": {"t": TEXT}, "format": "date"}, {}, "date"),
    ({"enum": [{"$ref": "nowhere"}]}, {}, "json"),
    (
        {"allOf": [{"$ref": "flow://relaxed-write-schema"}, {"$ref": "flow://inferred-schema"}]},
        {"flow://relaxed-write-schema": {"properties": {"a": {"description": "d"}}}, "flow://inferred-schema": an_object("a", a=WHOLE)},
        "record(a bigint not null)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "documents", "expected"), REFERRED)
def test_a_reference_is_followed(schema: object, documents: dict[str, object], expected: str) -> None:
    documents = {address: document for address, document in documents.items() if address}
    assert print_type(from_json_schema(schema, documents)) == expected


def test_docs_at_a_property_are_the_fields_and_behind_a_reference_the_types() -> None:
    schema = {
        "title": "shop.Order",
        "description": "an order",
        "$defs": {"a": {"title": "Address", "description": "an address", **an_object(street=TEXT)}},
        **an_object(
            plain={"type": "string", "description": "a text"},
            titled={"type": "string", "title": "Only a title"},
            inline={"type": "object", "description": "a field", "properties": {"x": WHOLE}},
            by={"$ref": "#/$defs/a", "description": "where to"},
            maybe={"oneOf": [NULL, {"$ref": "#/$defs/a"}]},
            all={"type": "array", "items": {"$ref": "#/$defs/a"}},
            colour={"enum": ["red"], "title": "A nice colour"},
        ),
    }
    address = Record((Field("street", Text()),), "Address", "an address")
    assert from_json_schema(schema) == Record(
        (
            Field("plain", Text(), doc="a text"),
            Field("titled", Text(), doc="Only a title"),
            Field("inline", Record((Field("x", parse_type("bigint")),)), doc="a field"),
            Field("by", address, doc="where to"),
            Field("maybe", address),
            Field("all", Array(address, False)),
            Field("colour", Enum(("red",)), doc="A nice colour"),
        ),
        "shop.Order",
        "an order",
    )


REFUSED: list[tuple[object, type[HeadgateError], str]] = [
    (False, ImpossibleSchema, "$"),
    ({"allOf": [{"const": 42}, {"const": 52}]}, ImpossibleSchema, "$"),
    (an_object(a={"allOf": [TEXT, WHOLE]}), ImpossibleSchema, "$.a"),
    ({"oneOf": [False]}, ImpossibleSchema, "$"),
    ({"$ref": "#"}, RecursiveSchema, "$"),
    (an_object(next={"$ref": "#"}), RecursiveSchema, "$.next"),
    (an_object(next={"oneOf": [NULL, {"$ref": "#"}]}), RecursiveSchema, "$.next"),
    (an_object(all={"type": "array", "items": {"$ref": "#"}}), RecursiveSchema, "$.all[]"),
    ({"type": "object", "additionalProperties": {"$ref": "#"}}, RecursiveSchema, "${}"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, RecursiveSchema, "$"),
    ({"$recursiveRef": "#"}, RecursiveSchema, "$"),
    (an_object(a={"$ref": "#/properties/a/properties/b", **an_object(b={"$ref": "#/properties/a"})}), RecursiveSchema, "$.a"),
    (an_object(a={"$ref": "#/$defs/no"}), UnknownReference, "$.a"),
    (an_object(a={"$ref": "#no"}), UnknownReference, "$.a"),
    (an_object(a={"$ref": "other.json"}), UnknownReference, "$.a"),
    ({"type": "string", "format": "number", "x-precision": 39}, DecimalTooWide, "$"),
    (an_object(a={"type": "integer", "maximum": 10**38}), DecimalTooWide, "$.a"),
    (an_object(a={"type": "integer", "maximum": 10**400}), DecimalTooWide, "$.a"),
    (None, MalformedJsonSchema, "$"),
    ([], MalformedJsonSchema, "$"),
    ({"type": "strin"}, MalformedJsonSchema, "$"),
    ({"type": []}, MalformedJsonSchema, "$"),
    ({"type": 3}, MalformedJsonSchema, "$"),
    (an_object(a=3), MalformedJsonSchema, "$.a"),
    ({"properties": []}, MalformedJsonSchema, "$"),
    ({"required": "a"}, MalformedJsonSchema, "$"),
    ({"enum": []}, MalformedJsonSchema, "$"),
    ({"enum": "a"}, MalformedJsonSchema, "$"),
    ({"oneOf": {}}, MalformedJsonSchema, "$"),
    ({"allOf": {}}, MalformedJsonSchema, "$"),
    ({"anyOf": []}, MalformedJsonSchema, "$"),
    ({"$ref": 3}, MalformedJsonSchema, "$"),
    ({"$id": "http://x", "$ref": "http://[x"}, MalformedJsonSchema, "$"),
    ({"type": "array", "items": 3}, MalformedJsonSchema, "$"),
    ({"type": "integer", "minimum": "3"}, MalformedJsonSchema, "$"),
    ({"type": "integer", "minimum": True}, MalformedJsonSchema, "$"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "error", "path"), REFUSED)
def test_what_has_no_type_is_refused_with_its_path(schema: object, error: type[SchemaError], path: str) -> None:
    with pytest.raises(error) as caught:
        from_json_schema(schema)
    assert getattr(caught.value, "path") == path  # noqa: B009
    assert path in caught.value.message()


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"minimum": NaN}', '"string"', "9" * 5000])
def test_text_that_is_not_a_schema_is_malformed(text: str) -> None:
    with pytest.raises(MalformedJsonSchema):
        from_json_schema(text)


def test_a_node_that_a_program_uses_twice_is_not_a_recursion() -> None:
    shared: dict[str, object] = {}
    assert print_type(from_json_schema({**an_object(a=shared), "oneOf": [shared]})) == "record(a json)"


@pytest.mark.parametrize("document", [{"minimum": float("nan")}, {"type": b"string"}, {"enum": [10**6000]}])
def test_an_object_that_is_not_json_is_malformed(document: object) -> None:
    with pytest.raises(MalformedJsonSchema):
        from_json_schema(document)


def test_an_object_that_holds_itself_is_refused() -> None:
    schema: dict[str, object] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(SchemaError):
        from_json_schema(schema)


def test_an_unknown_reference_shows_the_near_ones() -> None:
    with pytest.raises(UnknownReference) as caught:
        from_json_schema({"$ref": "#/$defs/adress", "$defs": {"address": TEXT}})
    assert caught.value.similar == ("address",)


@pytest.mark.parametrize("levels", [101, 600, 5000])
@pytest.mark.parametrize("kind", ["items", "additionalProperties", "properties", "allOf", "anyOf"])
def test_deep_nesting_is_refused_without_a_stack_overflow(levels: int, kind: str) -> None:
    schema: object = TEXT
    for _ in range(levels):
        inner = {"a": schema} if kind == "properties" else [schema] if kind.endswith("Of") else schema
        schema = {kind: inner}
    with pytest.raises(SchemaTooDeep):
        from_json_schema(schema)


def test_deep_text_is_refused_without_a_stack_overflow() -> None:
    with pytest.raises(SchemaTooDeep):
        from_json_schema('{"items":' * 100_000)


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    definitions: dict[str, object] = {"t0": TEXT}
    for n in range(1, 40):
        definitions[f"t{n}"] = an_object(a={"$ref": f"#/$defs/t{n - 1}"}, b={"$ref": f"#/$defs/t{n - 1}"})
    with pytest.raises(SchemaTooLarge):
        from_json_schema({"$ref": "#/$defs/t39", "$defs": definitions})


# type -> JSON Schema

WRITTEN: list[tuple[str, dict[str, object]]] = [
    ("boolean", {"type": "boolean"}),
    ("integer", {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}),
    ("bigint", {"type": "integer"}),
    ("real", {"type": "number", "format": "float"}),
    ("double", {"type": "number"}),
    ("decimal(9,2)", {"type": "string", "format": "number", "x-precision": 9, "x-scale": 2}),
    ("text", {"type": "string"}),
    ("bytes", {"type": "string", "contentEncoding": "base64"}),
    ("bytes(4)", {"type": "string", "contentEncoding": "base64"}),
    ("date", {"type": "string", "format": "date"}),
    ("time", {"type": "string", "format": "time"}),
    ("timestamp", {"type": "string", "format": "date-time-local"}),
    ("timestamptz", {"type": "string", "format": "date-time"}),
    ("uuid", {"type": "string", "format": "uuid"}),
    ("json", {"type": ["object", "array", "string", "number", "boolean"]}),
    ("enum('a', 'b')", {"type": "string", "enum": ["a", "b"]}),
    ("array<text>", {"type": "array", "items": {"type": ["string", "null"]}}),
    ("array<json>", {"type": "array", "items": {}}),
    (
        "map<text, date not null>",
        {"type": "object", "additionalProperties": {"type": "string", "format": "date"}},
    ),
    (
        "record comment 'R' (a text not null comment 'A', b enum('x'), c record comment 'C' () not null comment 'D')",
        {
            "description": "R",
            "type": "object",
            "properties": {
                "a": {"description": "A", "type": "string"},
                "b": {"oneOf": [{"type": "null"}, {"type": "string", "enum": ["x"]}]},
                "c": {
                    "description": "D",
                    "allOf": [
                        {
                            "description": "C",
                            "type": "object",
                            "properties": {},
                            "additionalProperties": False,
                        }
                    ],
                },
            },
            "required": ["a", "c"],
            "additionalProperties": False,
        },
    ),
]


@pytest.mark.parametrize(("type_", "expected"), WRITTEN, ids=[t for t, _ in WRITTEN])
def test_a_type_has_this_json_schema(type_: str, expected: dict[str, object]) -> None:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert json.dumps(to_json_schema(parse_type(type_))) == json.dumps({**head, **expected})


def test_a_type_of_the_catalog_stands_once_under_its_name() -> None:
    catalog: dict[Named, Type] = {
        Named(("a", "point")): parse_type("record comment 'a point' (x integer)"),
        Named(("b", "point")): Integer(),
        Named(("a", "odd /~%")): Array(Named(("a", "point"))),
    }
    type_ = Record(
        (
            Field("p", Named(("a", "point")), doc="from"),
            Field("q", Named(("a", "point")), False),
            Field("r", Named(("b", "point"))),
            Field("s", Named(("a", "odd /~%"))),
        )
    )
    schema = to_json_schema(type_, title="Trip", resolve=catalog.__getitem__)
    assert schema["title"] == "Trip"
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert list(definitions) == ["point", "point1", "odd /~%"]
    point = catalog[Named(("a", "point"))]
    expected = (
        Field("p", point, doc="from"),
        Field("q", point, False),
        Field("r", Integer()),
        Field("s", Array(point)),
    )
    assert from_json_schema(schema) == Record(expected, "Trip")
    jsonschema_rs.validator_for(schema)


def test_a_type_that_cannot_be_resolved_is_refused() -> None:
    with pytest.raises(UnresolvedType):
        to_json_schema(Array(Named(("x",))))


# laws


def as_read_back(type_: Type) -> Type:
    """The type with the losses that `ROUND_TRIP_LOSSES` declares: lengths of bytes, defaults of enums."""
    match type_:
        case Record():
            return replace(type_, fields=tuple(replace(f, type=as_read_back(f.type)) for f in type_.fields))
        case Enum():
            return replace(type_, default=None)
        case Bytes():
            return Bytes()
        case Array():
            return replace(type_, element=as_read_back(type_.element))
        case Map():
            return replace(type_, value=as_read_back(type_.value))
        case _:
            return type_


LOST: dict[str, tuple[Type, Type]] = {
    "bytes": (Bytes(4), Bytes()),
    "enum": (Enum(("a",), default="a"), Enum(("a",))),
    "named type": (Array(Named(("s", "t"))), Array(Text())),
    "name of a record or enum": (Record((), "two words"), Record((), doc="two words")),
}


@pytest.mark.parametrize("loss", ROUND_TRIP_LOSSES["json schema"], ids=lambda loss: loss.type)
def test_a_declared_loss_happens(loss: Loss) -> None:
    written, read = LOST[loss.type]
    assert from_json_schema(to_json_schema(written, resolve=lambda _: Text())) == read


@given(types())
@examples(40)
def test_a_type_comes_back_from_json_schema(type_: Type) -> None:
    assert from_json_schema(to_json_schema(type_)) == as_read_back(type_)


@given(st.data())
@examples(20)
def test_a_value_is_valid_under_the_schema_of_its_type(data: st.DataObject) -> None:
    # A json value that is the text `null` is null, which a place that is not nullable refuses: left out here.
    type_ = data.draw(types(leaves=scalars().filter(lambda t: t != Json()), max_leaves=5))
    document = to_json(data.draw(values_of(type_)), type_)
    jsonschema_rs.validator_for(to_json_schema(type_)).validate(document)


@given(records(st.just(Json()), max_fields=3), st.data())
@examples(15)
def test_a_json_value_is_valid_unless_it_is_null_where_null_is_not_allowed(type_: Record, data: st.DataObject) -> None:
    document = to_json(data.draw(values_of(type_)), type_)
    assert isinstance(document, dict)
    refused = any(document[f.name] is None and not f.nullable for f in type_.fields)
    assert jsonschema_rs.validator_for(to_json_schema(type_)).is_valid(document) is not refused


def schemas() -> st.SearchStrategy[object]:
    """Schemas of every combination of keywords that decides a type, over the names a and b."""
    bound = st.none() | st.integers(-3, 3)
    leaves: st.SearchStrategy[object] = (
        st.sampled_from([True, {}, TEXT, WHOLE, NULL, {"type": ["string", "null"]}, {"type": ["number", "integer"]}])
        | st.lists(st.sampled_from(["x", "y", 1, 2.5, None, True]), min_size=1, max_size=3).map(lambda e: {"enum": e})
        | st.sampled_from([{"const": "x"}, {"const": 1}, {"type": "string", "enum": ["x", 1]}, {"required": ["a"]}])
        | st.builds(lambda low: {"type": "integer", "minimum": low} if low is not None else WHOLE, bound)
    )
    return st.recursive(leaves, _larger, max_leaves=6)


def _larger(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    several = st.lists(inner, min_size=1, max_size=3)
    properties = st.dictionaries(st.sampled_from("ab"), inner | st.just(False), min_size=1)
    required = st.lists(st.sampled_from("ab"), unique=True)
    obj = st.builds(lambda p, r: {"type": "object", "properties": p, "required": r}, properties, required)
    return (
        obj
        | st.builds(lambda s: {"type": "array", "items": s}, inner)
        | st.builds(lambda s: {"type": "object", "additionalProperties": s}, inner)
        | st.builds(lambda key, s: {key: s}, st.sampled_from(["oneOf", "anyOf", "allOf"]), several)
        | st.builds(lambda o, key, s: {**o, key: s}, obj, st.sampled_from(["oneOf", "anyOf", "allOf"]), several)
        | st.builds(lambda o, a, b, c: {**o, "if": a, "then": b, "else": c}, obj, inner, obj, obj)
    )


def documents() -> st.SearchStrategy[object]:
    leaves = st.sampled_from([None, True, 1, 2, -5, 2.5, "x", "y", "z"])
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
        max_leaves=5,
    )


def fits(type_: Type, nullable: bool, document: object) -> bool:
    """Whether a document has a place in a type, what a record does not name left out."""
    if document is None:
        return nullable
    match type_:
        case Json():
            return True
        case Record(fields):
            return isinstance(document, dict) and all(fits(f.type, f.nullable, document.get(f.name)) for f in fields)
        case Array(element, inside):
            return isinstance(document, list) and all(fits(element, inside, item) for item in document)
        case Map(value, inside):
            return isinstance(document, dict) and all(fits(value, inside, item) for item in document.values())
        case Text():
            return isinstance(document, str)
        case Enum(symbols):
            return document in symbols
        case Boolean():
            return isinstance(document, bool)
        case Double():
            return isinstance(document, int | float)
        case Integer() | Bigint():
            return isinstance(document, int) and not isinstance(document, bool)
        case _:
            return False


@given(schemas(), st.lists(documents(), min_size=1, max_size=8))
@examples(40)
def test_every_valid_document_fits_the_type(schema: object, candidates: list[object]) -> None:
    validator = jsonschema_rs.validator_for(schema if isinstance(schema, dict) else {})
    valid = [document for document in candidates if document is not None and validator.is_valid(document)]
    try:
        type_ = from_json_schema(schema)
    except ImpossibleSchema:
        # A property that no value can satisfy refuses the whole schema, though documents without it are valid.
        return
    assert [document for document in valid if not fits(type_, False, document)] == []


_WORDS = ["string", "object", "integer", "null", "#", "#/a", "a"]
_KEYS = "type properties required items enum const anyOf oneOf allOf $ref $id minimum maximum format title a".split()  # noqa: SIM905


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
        max_leaves=20,
    )
)
@examples(40)
def test_no_document_makes_another_error_than_ours(document: object) -> None:
    with contextlib.suppress(SchemaError):
        assert print_type(from_json_schema(document))


def test_two_thousand_fields_take_less_than_the_budget() -> None:
    properties = {f"f{n}": {"type": ["integer", "null"], "description": "d", "maximum": 5} for n in range(2000)}
    text = json.dumps(an_object("f1", **properties))
    assert min(seconds(lambda: to_json_schema(from_json_schema(text))) for _ in range(5)) < 0.2


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
