"""Avro: every row of the type tables, the names of generated schemas, and that real Avro libraries agree."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace

import avro.schema
import fastavro
import pytest
from hypothesis import given, strategies as st

from headgate.errors import HeadgateError
from headgate.schema.errors import (
    DecimalTooWide,
    InvalidAvroName,
    MalformedAvro,
    NullTypeOnly,
    RecursiveSchema,
    SchemaError,
    SchemaTooDeep,
    SchemaTooLarge,
    UnionColumnClash,
    UnknownReference,
    UnresolvedType,
    UnsupportedUnion,
)
from headgate.schema.formats.avro import from_avro, to_avro
from headgate.schema.formats.avro.read import read_schema
from headgate.schema.names import avro_names
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Array, Enum, Field, Integer, Map, Named, Record, Text, Type, plain
from tests.laws import examples
from tests.schema.strategies import records, types, values_of
from tools.type_losses import ROUND_TRIP_LOSSES, Loss

pytestmark = pytest.mark.unit


def a_record(*fields: object, name: str = "r", **more: object) -> dict[str, object]:
    return {"type": "record", "name": name, **more, "fields": list(fields)}


def a_field(name: str, type_: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": type_, **more}


# Avro -> type

READ = [
    ("boolean", "boolean"),
    ("int", "integer"),
    ("long", "bigint"),
    ("float", "real"),
    ("double", "double"),
    ("bytes", "bytes"),
    ("string", "text"),
    ({"type": "string"}, "text"),
    ({"type": "string", "avro.java.string": "String"}, "text"),
    ({"type": "fixed", "name": "f", "size": 5}, "bytes(5)"),
    ({"type": "enum", "name": "e", "symbols": ["a", "b"]}, "enum('a', 'b')"),
    ({"type": "int", "logicalType": "date"}, "date"),
    ({"type": "int", "logicalType": "time-millis"}, "time"),
    ({"type": "long", "logicalType": "time-micros"}, "time"),
    ({"type": "long", "logicalType": "timestamp-millis"}, "timestamptz"),
    ({"type": "long", "logicalType": "timestamp-micros"}, "timestamptz"),
    ({"type": "long", "logicalType": "timestamp-nanos"}, "bigint"),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp"),
    ({"type": "long", "logicalType": "local-timestamp-nanos"}, "bigint"),
    ({"type": "string", "logicalType": "uuid"}, "uuid"),
    ({"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}, "uuid"),
    ({"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"}, "bytes(12)"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10,2)"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 10}, "decimal(10,0)"),
    ({"type": "fixed", "name": "f", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 2}, "decimal(38,2)"),
    # annotations that the specification asks to ignore
    ({"type": "string", "logicalType": "no-such-type"}, "text"),
    ({"type": "string", "logicalType": "date"}, "text"),
    ({"type": "string", "logicalType": 7}, "text"),
    ({"type": "bytes", "logicalType": "decimal"}, "bytes"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, "bytes"),
    ({"type": "bytes", "logicalType": "decimal", "precision": True}, "bytes"),
    ({"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 0}, "bytes(4)"),
    ({"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 3}, "bytes(1)"),
    ({"type": "fixed", "name": "f", "size": 15, "logicalType": "uuid"}, "bytes(15)"),
    # Kafka Connect and Debezium
    ({"type": "string", "connect.name": "io.debezium.data.Json"}, "json"),
    ({"type": "string", "connect.name": "io.debezium.data.Uuid"}, "uuid"),
    ({"type": "int", "connect.name": "io.debezium.time.Date"}, "date"),
    ({"type": "int", "connect.name": "io.debezium.time.Time"}, "time"),
    ({"type": "long", "connect.name": "io.debezium.time.MicroTime"}, "time"),
    ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, "timestamp"),
    ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, "timestamp"),
    ({"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"}, "bigint"),
    ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, "timestamptz"),
    ({"type": "int", "connect.name": "org.apache.kafka.connect.data.Date"}, "date"),
    ({"type": "int", "connect.name": "org.apache.kafka.connect.data.Time"}, "time"),
    ({"type": "long", "connect.name": "org.apache.kafka.connect.data.Timestamp"}, "timestamptz"),
    ({"type": "int", "connect.type": "int16"}, "integer"),
    (
        {
            "type": "bytes",
            "connect.name": "org.apache.kafka.connect.data.Decimal",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
        },
        "decimal(9,2)",
    ),
    ({"type": "string", "connect.name": "io.debezium.data.Enum", "connect.parameters": {"allowed": "a,b"}}, "text"),
    (
        {
            "type": "array",
            "items": a_record(a_field("key", "int"), a_field("value", "long"), name="io.confluent.connect.avro.MapEntry"),
        },
        "array<record(key integer not null, value bigint not null) not null>",
    ),
    # composites
    ({"type": "array", "items": "int"}, "array<integer not null>"),
    ({"type": "array", "items": ["null", "int"]}, "array<integer>"),
    ({"type": "map", "values": "string"}, "map<text, text not null>"),
    ({"type": "map", "values": ["string", "null"]}, "map<text, text>"),
    (["null", "int"], "integer"),
    (["int"], "integer"),
    (a_record(), "record()"),
    (
        a_record(
            a_field("a", ["long"]),
            a_field("b", ["long", "null"]),
            a_field("c", ["long", "null", "string"]),
            a_field("d", ["long", "string"]),
        ),
        "record(a bigint not null, b bigint, c1 bigint, c2 text, d1 bigint, d2 text)",
    ),
    (
        a_record(a_field("f", [a_record(a_field("x", "int"), name="x"), {"type": "enum", "name": "y", "symbols": ["q"]}])),
        "record(f1 record(x integer not null), f2 enum('q'))",
    ),
    (a_record(a_field("f", {"type": {"type": "array", "items": "int"}})), "record(f array<integer not null> not null)"),
    (
        ["null", a_record(a_field("i", "int"), name="n.a"), a_record(name="b")],
        "record(a record(i integer not null), b record())",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), READ, ids=lambda x: x if isinstance(x, str) else json.dumps(x)[:60])
def test_an_avro_schema_has_this_type(schema: object, expected: str) -> None:
    assert plain(from_avro(schema)) == parse_type(expected)
    assert from_avro(json.dumps(schema)) == from_avro(schema)


def test_docs_names_and_defaults_of_enums_are_kept() -> None:
    schema = a_record(
        a_field("e", {"type": "enum", "name": "E", "symbols": ["a", "b"], "default": "b", "doc": "an enum"}, doc="a field"),
        a_field("u", ["int", "string"], doc="a union"),
        name="shop.R",
        doc="a record",
    )  # fmt: skip
    assert from_avro(schema) == Record(
        (
            Field("e", Enum(("a", "b"), "shop.E", "b", "an enum"), False, "a field"),
            Field("u1", Integer(), True, "a union"),
            Field("u2", Text(), True, "a union"),
        ),
        "shop.R",
        "a record",
    )


def test_a_type_is_used_again_by_its_short_or_full_name() -> None:
    point = a_record(a_field("x", "int"), name="point", namespace="geo")
    schema = a_record(
        a_field("a", point),
        a_field("b", "geo.point"),
        a_field("c", {"type": "array", "items": "geo.point"}),
        a_field("d", a_record(a_field("e", "point"), name="geo.inner")),
        namespace="shop",
    )
    made = from_avro(schema)
    assert isinstance(made, Record)
    expected = Record((Field("x", Integer(), False),), "geo.point")
    assert made.name == "shop.r"
    assert [f.type for f in made.fields[:3]] == [expected, expected, Array(expected, False)]
    assert made.fields[3].type == Record((Field("e", expected, False),), "geo.inner")


def test_a_name_without_namespace_is_found_from_inside_one() -> None:
    schema = a_record(a_field("a", a_record(name="p")), a_field("b", a_record(a_field("c", "p"), name="n.q")))
    assert print_type(from_avro(schema)) == "record(a record() not null, b record(c record() not null) not null)"


def test_references_give_the_names_that_a_schema_uses() -> None:
    colour = json.dumps({"type": "enum", "name": "colour", "namespace": "n", "symbols": ["red"]})
    car = a_record(a_field("c", "n.colour"), name="n.car")
    schema = a_record(a_field("car", "n.car"), a_field("c", ["null", "n.colour"]))
    made = from_avro(schema, [colour, car])
    assert print_type(made) == "record(car record(c enum('red') not null) not null, c enum('red'))"


@pytest.mark.parametrize(
    ("schema", "type_", "nullable"),
    [
        ("string", "text", False),
        (["null", "string"], "text", True),
        (["null", a_record(a_field("a", "int", doc="kept"))], "record \"r\" (a integer not null comment 'kept')", True),
    ],
)
def test_a_whole_value_may_be_null(schema: object, type_: str, nullable: bool) -> None:
    assert read_schema(schema) == (parse_type(type_), nullable)


REFUSED: list[tuple[object, type[HeadgateError], str]] = [
    ("null", NullTypeOnly, "$"),
    (["null"], NullTypeOnly, "$"),
    (a_record(a_field("a", "null")), NullTypeOnly, "$.a"),
    ([], MalformedAvro, "$"),
    (a_record(a_field("a", {"type": "array", "items": ["int", "string"]})), UnsupportedUnion, "$.a[]"),
    (a_record(a_field("a", {"type": "map", "values": ["int", "null", "string"]})), UnsupportedUnion, "$.a{}"),
    (["int", "string"], UnsupportedUnion, "$"),
    (a_record(a_field("f", ["int", "string"]), a_field("f2", "int")), UnionColumnClash, "$.f"),
    ([a_record(name="a.x"), a_record(name="b.x")], UnionColumnClash, "$"),
    (a_record(a_field("next", ["null", "r"])), RecursiveSchema, "$.next"),
    (a_record(a_field("a", {"type": "array", "items": "r"})), RecursiveSchema, "$.a[]"),
    (a_record(a_field("a", {"type": "map", "values": "n.r"}), namespace="n"), RecursiveSchema, "$.a{}"),
    (a_record(a_field("a", a_record(a_field("b", "r"), name="s"))), RecursiveSchema, "$.a.b"),
    (a_record(a_field("a", "strng")), UnknownReference, "$.a"),
    (
        a_record(a_field("a", {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2})),
        DecimalTooWide,
        "$.a",
    ),
    (7, MalformedAvro, "$"),
    (None, MalformedAvro, "$"),
    ({}, MalformedAvro, "$"),
    ({"type": ["null", "int"]}, MalformedAvro, "$"),
    ({"type": "array"}, MalformedAvro, "$"),
    ({"type": "map", "value": "int"}, MalformedAvro, "$"),
    ({"type": "record", "name": "r"}, MalformedAvro, "$"),
    ({"type": "record", "fields": []}, MalformedAvro, "$"),
    (a_record(name=""), MalformedAvro, "$"),
    (a_record(name="string"), MalformedAvro, "$"),
    (a_record(namespace=3), MalformedAvro, "$"),
    (a_record("a"), MalformedAvro, "$"),
    (a_record({"type": "int"}), MalformedAvro, "$"),
    (a_record({"name": "a"}), MalformedAvro, "$.a"),
    (a_record(a_field("a", "int"), a_field("a", "int")), MalformedAvro, "$"),
    (a_record(a_field("a", a_record(name="r"))), MalformedAvro, "$.a"),
    (a_record(a_field("a", ["int", ["null"]])), MalformedAvro, "$.a"),
    (a_record(a_field("a", ["int", {"type": "int", "logicalType": "date"}])), MalformedAvro, "$.a"),
    (a_record(a_field("a", ["int", 3])), MalformedAvro, "$.a"),
    ({"type": "enum", "name": "e", "symbols": []}, MalformedAvro, "$"),
    ({"type": "enum", "name": "e", "symbols": ["a", "a"]}, MalformedAvro, "$"),
    ({"type": "enum", "name": "e", "symbols": ["a"], "default": "b"}, MalformedAvro, "$"),
    ({"type": "fixed", "name": "f"}, MalformedAvro, "$"),
    ({"type": "fixed", "name": "f", "size": 0}, MalformedAvro, "$"),
]


@pytest.mark.parametrize(
    ("schema", "error", "path"),
    REFUSED,
    ids=lambda x: json.dumps(x)[:60] if not isinstance(x, type) else x.__name__,
)
def test_what_has_no_type_is_refused_with_its_path(schema: object, error: type[HeadgateError], path: str) -> None:
    with pytest.raises(error) as caught:
        from_avro(schema)
    assert getattr(caught.value, "path") == path  # noqa: B009
    assert path in caught.value.message()


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[NaN]", '{"type": "int"} x', "[" * 100, "9" * 5000])
def test_text_that_is_not_a_schema_is_malformed(text: str) -> None:
    with pytest.raises(MalformedAvro):
        from_avro(text)


def test_an_unknown_name_shows_the_near_ones() -> None:
    schema = a_record(a_field("a", a_record(name="Customer")), a_field("b", "Custmer"))
    with pytest.raises(UnknownReference) as caught:
        from_avro(schema)
    assert caught.value.similar == ("Customer",)


def nested(levels: int, wrap: Callable[[object], object]) -> object:
    schema: object = "int"
    for _ in range(levels):
        schema = wrap(schema)
    return schema


def wrapped_in_a_record(inner: object, counter: list[int]) -> object:
    counter[0] += 1
    return a_record(a_field("a", inner), name=f"r{counter[0]}")


@pytest.mark.parametrize("levels", [101, 600, 5000])
@pytest.mark.parametrize("kind", ["array", "map", "record", "type"])
def test_deep_nesting_is_refused_without_a_stack_overflow(levels: int, kind: str) -> None:
    counter = [0]
    wraps: dict[str, Callable[[object], object]] = {
        "array": lambda inner: {"type": "array", "items": inner},
        "map": lambda inner: {"type": "map", "values": ["null", inner]},
        "record": lambda inner: wrapped_in_a_record(inner, counter),
        "type": lambda inner: {"type": inner} if inner != "int" else {"type": "int"},
    }
    with pytest.raises(SchemaTooDeep):
        from_avro(nested(levels + 1, wraps[kind]))


def test_deep_text_is_refused_without_a_stack_overflow() -> None:
    with pytest.raises(SchemaTooDeep):
        from_avro('{"type":"array","items":' * 100_000)


def test_a_hundred_levels_are_not_too_deep() -> None:
    counter = [0]
    schema = nested(100, lambda inner: wrapped_in_a_record(inner, counter))
    type_ = from_avro(schema)
    assert from_avro(to_avro(type_, name=f"r{counter[0]}").json) == type_


def test_named_types_cannot_be_put_together_too_deep() -> None:
    half = a_record(a_field("a", nested(60, lambda inner: {"type": "array", "items": inner})), name="half")
    whole = a_record(a_field("b", nested(60, lambda i: {"type": "array", "items": "half" if i == "int" else i})))
    with pytest.raises(SchemaTooDeep):
        from_avro(whole, [half])


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    references = [a_record(name="t0")]
    references += (a_record(a_field("a", f"t{n - 1}"), a_field("b", f"t{n - 1}"), name=f"t{n}") for n in range(1, 40))
    with pytest.raises(SchemaTooLarge):
        from_avro(a_record(a_field("a", "t39")), references)


# type -> Avro

WRITTEN = [
    ("boolean", "boolean"),
    ("integer", "int"),
    ("bigint", "long"),
    ("real", "float"),
    ("double", "double"),
    ("decimal(10,2)", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("decimal", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18}),
    ("text", "string"),
    ("bytes", "bytes"),
    ("bytes(5)", {"type": "fixed", "name": "fixed5", "namespace": "com.headgate.sink", "size": 5}),
    ("date", {"type": "int", "logicalType": "date"}),
    ("time", {"type": "long", "logicalType": "time-micros"}),
    ("timestamp", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("timestamptz", {"type": "long", "logicalType": "timestamp-micros"}),
    ("uuid", {"type": "string", "logicalType": "uuid"}),
    ("json", {"type": "string", "connect.name": "io.debezium.data.Json"}),
    ("enum('a', 'b')", {"type": "enum", "name": "envelope", "symbols": ["a", "b"]}),
    ("enum('a b')", "string"),
    ("array<text>", {"type": "array", "items": ["null", "string"]}),
    ("array<text not null>", {"type": "array", "items": "string"}),
    ("map<text, integer>", {"type": "map", "values": ["null", "int"]}),
    ("map<text, integer not null>", {"type": "map", "values": "int"}),
    ("record()", {"type": "record", "name": "envelope", "fields": []}),
    (
        "record(a integer, b text not null)",
        {
            "type": "record",
            "name": "envelope",
            "fields": [{"name": "a", "type": ["null", "int"]}, {"name": "b", "type": "string"}],
        },
    ),
]


@pytest.mark.parametrize(("type_", "expected"), WRITTEN, ids=[t for t, _ in WRITTEN])
def test_a_type_has_this_avro_schema(type_: str, expected: object) -> None:
    schema = to_avro(parse_type(type_), name="envelope").json
    assert json.dumps(schema) == json.dumps(expected)


def test_attributes_are_printed_in_their_order() -> None:
    type_ = parse_type("record comment 'R' (a integer comment 'A', e enum default 'x' comment 'E' ('x') not null)")
    assert json.dumps(to_avro(type_, name="abc.def.ghi", null_defaults=True).json) == (
        '{"type": "record", "name": "ghi", "namespace": "abc.def", "doc": "R", "fields": ['
        '{"name": "a", "type": ["null", "int"], "default": null, "doc": "A"}, '
        '{"name": "e", "type": {"type": "enum", "name": "enum0", "namespace": "com.headgate.sink", "doc": "E", '
        '"symbols": ["x"], "default": "x"}}]}'
    )


POINT = parse_type("record comment 'a point' (x integer comment 'x', y integer)")
CATALOG: dict[Named, Type] = {
    Named(("headgate", "public", "point")): POINT,
    Named(("headgate", "other", "point")): Record((Field("z", Integer()),)),
    Named(("headgate", "public", "points")): Array(Named(("headgate", "public", "point"))),
    Named(("headgate", "public", "string")): Record(()),
    Named(("headgate", "public", "loop")): Named(("headgate", "public", "loop")),
}


def relation(**columns: Type) -> Record:
    return Record(tuple(Field(name, type_, False) for name, type_ in columns.items()))


def names_in(schema: object) -> list[str]:
    """Full names of definitions and references, in the order in which they are printed."""
    found: list[str] = []

    def walk(node: object, enclosing: str) -> None:
        if isinstance(node, dict):
            if "name" in node and "type" in node and node["type"] in ("record", "enum", "fixed"):
                enclosing = node.get("namespace", enclosing)
                found.append(f"{enclosing}.{node['name']}".lstrip("."))
            for value in node.values():
                walk(value, enclosing)
        elif isinstance(node, list):
            for value in node:
                walk(value, enclosing)

    walk(schema, "")
    return found


def test_nested_records_are_named_by_type_or_numbered_outer_first() -> None:
    point = Named(("headgate", "public", "point"))
    type_ = relation(
        a=point,
        b=Record((Field("c", Record(())),)),
        d=Array(point),
        e=Map(Record(())),
        f=Named(("headgate", "public", "points")),
    )
    made = to_avro(type_, name="envelope", resolve=CATALOG.__getitem__)
    assert names_in(made.json) == [
        "envelope",
        *(f"com.headgate.sink.{n}" for n in ("point", "record0", "record1", "record2")),
    ]
    assert isinstance(made.json, dict)
    assert made.json["fields"][0]["type"]["doc"] == "a point"
    assert made.json["fields"][2]["type"] == {"type": "array", "items": ["null", "com.headgate.sink.point"]}
    assert made.json["fields"][4]["type"] == {"type": "array", "items": ["null", "com.headgate.sink.point"]}
    assert made.names == {("headgate", "public", "point"): "com.headgate.sink.point"}


def test_two_types_of_one_name_and_a_type_named_like_avros_own_are_numbered() -> None:
    type_ = relation(
        a=Named(("headgate", "public", "point")),
        b=Named(("headgate", "other", "point")),
        c=Named(("headgate", "public", "string")),
        d=Record((), "com.headgate.sink.record0"),
        e=Record(()),
    )
    made = to_avro(type_, name="envelope", resolve=CATALOG.__getitem__)
    given = [name.removeprefix("com.headgate.sink.") for name in names_in(made.json)]
    assert given == ["envelope", "point", "point1", "string1", "record0", "record1"]
    fastavro.parse_schema(json.loads(json.dumps(made.json)))


def test_a_frozen_name_outlives_the_renaming_of_its_type() -> None:
    point = Named(("headgate", "public", "point"))
    before = to_avro(relation(a=point), name="envelope", resolve=CATALOG.__getitem__)
    spot = Named(("headgate", "public", "spot"))
    after = to_avro(
        relation(a=spot),
        name="envelope",
        names={spot.parts: before.names[point.parts]},
        resolve={spot: POINT}.__getitem__,
    )
    assert after.json == before.json


def test_an_imported_record_keeps_its_full_name_and_is_defined_once() -> None:
    order = Record((Field("id", Integer(), False),), "shop.Order")
    made = to_avro(relation(before=order, after=order), name="envelope").json
    assert isinstance(made, dict)
    assert made["fields"][0]["type"]["namespace"] == "shop"
    assert made["fields"][1]["type"] == "shop.Order"
    changed = replace(order, fields=())
    assert names_in(to_avro(relation(a=order, b=changed, c=order), name="envelope").json) == [
        "envelope",
        "shop.Order",
        "shop.Order1",
    ]


def test_an_inner_record_without_namespace_takes_that_around_it() -> None:
    row = Record((Field("id", Integer(), False),), "row")
    made = to_avro(relation(before=row, after=row), name="abc.def.ghi").json
    assert json.dumps(made) == (
        '{"type": "record", "name": "ghi", "namespace": "abc.def", "fields": [{"name": "before", "type": '
        '{"type": "record", "name": "row", "fields": [{"name": "id", "type": "int"}]}}, {"name": "after", "type": "row"}]}'
    )


def test_a_fixed_is_defined_once_per_length() -> None:
    made = to_avro(parse_type("record(a bytes(4) not null, b bytes(4), c bytes(8))"), name="envelope").json
    assert names_in(made) == ["envelope", "com.headgate.sink.fixed4", "com.headgate.sink.fixed8"]
    assert isinstance(made, dict)
    assert made["fields"][1]["type"] == ["null", "com.headgate.sink.fixed4"]


def test_names_that_avro_does_not_allow_are_changed_and_told() -> None:
    tricky = ["tricky-name", "tricky!name", "tricky@name", "666", "plain"]
    inner = Record(tuple(Field(name, Integer(), doc=name) for name in tricky), "n.Inner")
    made = to_avro(relation(a=inner, b=Array(inner)), name="envelope")
    assert isinstance(made.json, dict)
    fields = made.json["fields"][0]["type"]["fields"]
    assert [f["name"] for f in fields] == ["tricky_name", "tricky_name1", "tricky_name2", "_666", "plain"]
    assert [f["doc"] for f in fields] == tricky
    changed = {
        "tricky-name": "tricky_name",
        "tricky!name": "tricky_name1",
        "tricky@name": "tricky_name2",
        "666": "_666",
    }
    assert made.renames == {(place, sql): name for place in "ab" for sql, name in changed.items()}


def test_null_is_the_default_where_asked() -> None:
    type_ = parse_type("record(a integer, b record(c integer, d integer) not null, e integer not null)")

    def defaults(**options: object) -> list[str]:
        made = to_avro(type_, name="envelope", **options).json  # type: ignore[arg-type]
        assert isinstance(made, dict)
        fields = made["fields"] + made["fields"][1]["type"]["fields"]
        return [f["name"] for f in fields if "default" in f]

    assert defaults() == []
    assert defaults(null_defaults=True) == ["a", "c", "d"]


@pytest.mark.parametrize("name", ["", "a-b", "1st", "a..b", "é"])
def test_a_full_name_is_checked_and_not_changed(name: str) -> None:
    with pytest.raises(InvalidAvroName):
        to_avro(Record(()), name=name)


def test_a_type_that_cannot_be_resolved_is_refused() -> None:
    with pytest.raises(UnresolvedType):
        to_avro(relation(a=Named(("x",))), name="envelope")
    with pytest.raises(SchemaTooDeep):
        to_avro(relation(a=Named(("headgate", "public", "loop"))), name="envelope", resolve=CATALOG.__getitem__)


# laws


def as_read_back(type_: Type) -> Type:
    """The type with the losses that `ROUND_TRIP_LOSSES` declares: names of types, names of fields, enums that are text."""
    match type_:
        case Record():
            names = avro_names([f.name for f in type_.fields])
            fields = (replace(f, name=n, type=as_read_back(f.type)) for f, n in zip(type_.fields, names, strict=True))
            return Record(tuple(fields), None, type_.doc)
        case Enum():
            return replace(type_, name=None)
        case Array():
            return replace(type_, element=as_read_back(type_.element))
        case Map():
            return replace(type_, value=as_read_back(type_.value))
        case _:
            return type_


SINK = "com.headgate.sink"
ONE = Record((Field("a", Text()),), "n.R")
LOST: dict[str, tuple[Type, Type]] = {
    "enum": (Array(Enum(("a b",))), Array(Text())),
    "named type": (Array(Named(("s", "t"))), Array(Record((), f"{SINK}.t"))),
    "record without a name": (Array(Record(())), Array(Record((), f"{SINK}.record0"))),
    "enum without a name": (Array(Enum(("a",))), Array(Enum(("a",), f"{SINK}.enum0"))),
    "name without namespace": (
        Array(Record((Field("r", Record((), "R")),), "n.Q")),
        Array(Record((Field("r", Record((), "n.R")),), "n.Q")),
    ),
    "name of two different types": (
        Record((Field("a", ONE), Field("b", replace(ONE, fields=())))),
        Record((Field("a", ONE), Field("b", Record((), "n.R1"))), "envelope"),
    ),
    "name of the outermost record": (Record((), "n.R"), Record((), "envelope")),
    "name that is not valid in Avro": (
        Array(Record((Field("a b", Text(), doc="d"),), "n-m.R")),
        Array(Record((Field("a_b", Text(), doc="d"),), "n_m.R")),
    ),
}


@pytest.mark.parametrize("loss", ROUND_TRIP_LOSSES["avro"], ids=lambda loss: loss.type)
def test_a_declared_loss_happens(loss: Loss) -> None:
    written, read = LOST[loss.type]
    assert from_avro(to_avro(written, name="envelope", resolve=lambda _: Record(())).json) == read


@given(types())
@examples(40)
def test_a_type_comes_back_from_avro(type_: Type) -> None:
    assert as_read_back(from_avro(to_avro(type_, name="envelope").json)) == as_read_back(type_)


# The reference library of Python does not know local-timestamp-micros and reads it as a long, as the standard asks.
@pytest.mark.filterwarnings("ignore::avro.errors.IgnoredLogicalType")
@given(records(max_fields=5), st.booleans(), st.sampled_from(["envelope", "n.s.envelope"]))
@examples(25)
def test_both_avro_libraries_accept_a_generated_schema(type_: Type, null_defaults: bool, name: str) -> None:
    schema = to_avro(type_, name=name, null_defaults=null_defaults).json
    fastavro.parse_schema(json.loads(json.dumps(schema)))
    avro.schema.parse(json.dumps(schema))


def on_the_wire(type_: Type, value: object) -> object:
    """A value as an Avro library takes it: under the changed names of fields."""
    match type_, value:
        case Record(fields), dict():
            names = avro_names([f.name for f in fields])
            return {n: on_the_wire(f.type, value[f.name]) for f, n in zip(fields, names, strict=True)}
        case Array(element, _), list():
            return [on_the_wire(element, item) for item in value]
        case Map(inner, _), dict():
            return {key: on_the_wire(inner, item) for key, item in value.items()}
        case _:
            return value


@given(st.data())
@examples(20)
def test_values_travel_through_a_generated_schema(data: st.DataObject) -> None:
    type_ = data.draw(types(max_leaves=5))
    value = on_the_wire(type_, data.draw(values_of(type_)))
    schema = fastavro.parse_schema(json.loads(json.dumps(to_avro(type_, name="envelope").json)))
    wire = io.BytesIO()
    fastavro.schemaless_writer(wire, schema, value)
    assert fastavro.schemaless_reader(io.BytesIO(wire.getvalue()), schema, schema) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.sampled_from(["int", "null", "string", "array", "r", ""]), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "name", "fields", "items", "values", "symbols", "size", "logicalType"]), inner | st.sampled_from(["record", "enum", "fixed", "array", "map"]), max_size=5), max_leaves=20))  # fmt: skip
@examples(40)
def test_no_document_makes_another_error_than_ours(document: object) -> None:
    with contextlib.suppress(SchemaError):
        assert parse_type(print_type(from_avro(document))) is not None


def test_two_thousand_fields_are_mapped_there_and_back() -> None:
    schema = a_record(
        *(a_field(f"f{n}", ["null", {"type": "long", "logicalType": "date"}], doc="d") for n in range(2000))
    )
    type_ = from_avro(json.dumps(schema))
    assert isinstance(type_, Record)
    assert len(type_.fields) == 2000
    assert from_avro(json.dumps(to_avro(type_, name="r").json)) == type_
