"""The schemas of JSON Schema and Protobuf sinks, the options of their formats, and the next versions of their schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from headgate.catalog.changes import apply
from headgate.catalog.objects import definition_of
from headgate.plan.definitions import RecordEncoding
from headgate.plan.impact import plan_follow
from headgate.plan.plans import ChangeCatalog, RegisterSchema
from headgate.plan.publish.schemas import missing_fields
from headgate.plan.sink import plan_sink, subjects
from headgate.plan.sink_errors import (
    InvalidMessageName,
    OptionOfOtherFormat,
    OptionOfOtherSide,
    SinkFormatNeedsOneColumn,
    TypeNotBytes,
)
from headgate.schema.types import Named, Record, Type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import frozen_schemas
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from tests.plan.planning import REGISTRY, TO, Planning, record, sink

pytestmark = pytest.mark.unit

ORDER: dict[str, Any] = {
    **record("order", doc="an order"),
    "fields": [
        {"name": "item", "type": "string", "doc": "what was bought"},
        {"name": "price", "type": ["null", "int"]},
    ],
}


@pytest.fixture
def world() -> Planning:
    """`orders`, keyed by id; its price may be missing and its item has a doc."""
    world = Planning()
    world.topic("orders", key=record("k", ("id", "long")), value=ORDER)
    world.do(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') FORMAT AVRO {REGISTRY} ENVELOPE UPSERT;"
        f"CREATE SOURCE sold FROM KAFKA CONNECTION kafka (TOPIC 'orders') FORMAT AVRO {REGISTRY}"
    )
    return world


def text(side: RecordEncoding | None) -> str:
    assert side is not None
    assert side.schema is not None
    return side.schema


def test_json_schema_has_docs_nullability_and_the_format_of_its_subject(world: Planning) -> None:
    plan = sink(world, f"s FROM orders {TO} KEY (id) FORMAT JSON SCHEMA {REGISTRY}")
    assert json.loads(text(plan.value)) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "an order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "item": {"description": "what was bought", "type": "string"},
            "price": {"type": ["integer", "null"], "minimum": -(2**31), "maximum": 2**31 - 1},
        },
        "required": ["id", "item"],
        "additionalProperties": False,
    }
    assert list(json.loads(text(plan.key))["properties"]) == ["id"]
    assert [(side, subject, schema.format) for side, subject, schema in subjects(plan)] == [
        ("KEY", "out-key", SchemaFormat.JSON),
        ("VALUE", "out-value", SchemaFormat.JSON),
    ]


def test_protobuf_has_docs_as_comments_and_presence_for_what_may_be_null(world: Planning) -> None:
    plan = sink(world, f"s FROM orders {TO} KEY (id) FORMAT PROTOBUF {REGISTRY}")
    assert text(plan.value) == (
        'syntax = "proto3";\n\n// an order\nmessage envelope {\n  int64 id = 1;\n  // what was bought\n'
        "  string item = 2;\n  optional int32 price = 3;\n}\n"
    )
    assert text(plan.key) == 'syntax = "proto3";\n\n// an order\nmessage row {\n  int64 id = 1;\n}\n'
    assert [schema.format for _, _, schema in subjects(plan)] == [SchemaFormat.PROTOBUF] * 2


def test_full_names_are_package_and_message_or_title(world: Planning) -> None:
    options = "(VALUE FULLNAME 'com.shop.Order', KEY FULLNAME 'Id')"
    plan = sink(world, f"s FROM orders {TO} KEY (id) FORMAT PROTOBUF {REGISTRY} {options}")
    assert "package com.shop;" in text(plan.value)
    assert "message Order {" in text(plan.value)
    assert "package" not in text(plan.key)
    titled = sink(world, f"s FROM orders {TO} KEY (id) FORMAT JSON SCHEMA {REGISTRY} {options}")
    assert json.loads(text(titled.value))["title"] == "com.shop.Order"


def test_a_type_of_the_catalog_is_a_definition_or_a_message_and_the_runtime_sees_its_fields(world: Planning) -> None:
    world.do(
        "CREATE TYPE point AS (x integer, y decimal(4,1)); CREATE VIEW v AS SELECT ROW(1, 2)::point AS p FROM sold"
    )
    as_json = sink(world, f"s FROM v {TO} FORMAT JSON SCHEMA {REGISTRY}")
    assert list(json.loads(text(as_json.value))["$defs"]) == ["point"]
    as_message = sink(world, f"s FROM v {TO} FORMAT PROTOBUF {REGISTRY}")
    assert "message P {" in text(as_message.value)
    for plan in (as_json, as_message, sink(world, f"s FROM v {TO} FORMAT AVRO {REGISTRY}")):
        assert not _named(plan.value.record)
        assert isinstance(plan.value.record.fields[0].type, Record)


def _named(type_: Type) -> bool:
    match type_:
        case Named():
            return True
        case Record(fields):
            return any(_named(field.type) for field in fields)
        case _:
            return False


@pytest.mark.parametrize(
    ("clause", "error"),
    [
        (f"FORMAT PROTOBUF {REGISTRY} (VALUE FULLNAME 'a.b-c')", InvalidMessageName),
        (f"FORMAT PROTOBUF {REGISTRY} (VALUE FULLNAME '')", InvalidMessageName),
        (f"FORMAT PROTOBUF {REGISTRY} (NULL DEFAULTS)", OptionOfOtherFormat),
        ("FORMAT BYTES", SinkFormatNeedsOneColumn),
    ],
)
def test_options_and_columns_that_a_format_does_not_have_are_refused(
    world: Planning, clause: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        sink(world, f"s FROM sold {TO} {clause}")


def test_an_option_of_the_other_side_is_refused(world: Planning) -> None:
    for option in ("VALUE FULLNAME 'a.b'", "VALUE COMPATIBILITY LEVEL 'NONE'"):
        with pytest.raises(OptionOfOtherSide) as refused:
            sink(world, f"s FROM orders {TO} KEY (id) KEY FORMAT AVRO {REGISTRY} ({option}) VALUE FORMAT JSON")
        assert refused.value.other == "VALUE"


def test_bytes_takes_only_what_has_bytes_and_a_value_of_text_is_never_null(world: Planning) -> None:
    world.do("CREATE VIEW prices AS SELECT price FROM sold; CREATE VIEW items AS SELECT item FROM sold")
    with pytest.raises(TypeNotBytes):
        sink(world, f"s FROM prices {TO} FORMAT BYTES")
    assert sink(world, f"s FROM items {TO} FORMAT BYTES").value.encoding == "BYTES"
    assert not sink(world, f"s FROM prices {TO} FORMAT TEXT").value.record.fields[0].nullable


# the next version


def next_texts(world: Planning, format_: str, fields: list[Any]) -> list[str]:
    """What a sink of a format registers when its source gets these fields."""
    world.do(f"CREATE SINK s FROM sold {TO} FORMAT {format_} {REGISTRY}")
    source = next(o for o in world.catalog.objects.values() if o.name == "sold")
    planned = plan_follow(world.catalog, source, [("VALUE", order(fields))], lambda _, __: ())
    apply(world.catalog, *planned.changes)
    found: list[RegisterSchema] = [effect for change in planned.sinks for _, effect in change.register]
    return [effect.schema.text for effect in found]


def order(fields: list[Any]) -> WrittenSchema:
    return WrittenSchema(json.dumps({**ORDER, "fields": fields}), id=90)


A_B = {"name": "a_b", "type": ["null", "string"], "default": None}
ADDED = [
    {"name": "weight", "type": "double", "default": 1.5, "doc": "in kg"},
    {"name": "item", "type": "string", "doc": "another doc"},
    {"name": "price", "type": ["null", "int"]},
]


def test_a_new_field_is_a_property_that_is_not_required(world: Planning) -> None:
    (made,) = map(json.loads, next_texts(world, "JSON SCHEMA", ADDED))
    assert made["properties"]["weight"] == {"description": "in kg", "type": "number", "default": 1.5}
    assert made["properties"]["item"]["description"] == "what was bought"
    assert made["required"] == ["item"]


def test_a_new_field_has_the_next_number(world: Planning) -> None:
    (made,) = next_texts(world, "PROTOBUF", ADDED)
    assert "string item = 1;" in made
    assert "optional int32 price = 2;" in made
    assert "  // in kg\n  double weight = 3;" in made
    assert "another doc" not in made


def test_a_type_that_changes_on_the_wire_keeps_its_number_so_that_the_registry_can_refuse_it(world: Planning) -> None:
    (made,) = next_texts(world, "PROTOBUF", [ADDED[1], {"name": "price", "type": ["null", "double"]}])
    assert "optional double price = 2;" in made
    assert "reserved" not in made


@pytest.mark.parametrize(
    ("format_", "names"),
    [
        ("AVRO", {"a-b": "a_b", "a_b": "a_b1", "p.a-b": "p.a_b"}),
        ("JSON SCHEMA", {}),
        ("PROTOBUF", {}),
    ],
)
def test_a_field_keeps_its_name_when_a_column_of_that_name_comes_later(
    world: Planning, format_: str, names: Mapping[str, str]
) -> None:
    world.do('CREATE TYPE part AS ("a-b" text, n integer)')
    world.do('CREATE VIEW v AS SELECT item AS "a-b", *, ROW(item, 1)::part AS p FROM sold')
    world.do(f"CREATE SINK s FROM v {TO} FORMAT {format_} {REGISTRY}")
    for added in ([A_B], [A_B, {"name": "c", "type": ["null", "int"], "default": None}]):
        planned = plan_follow(
            world.catalog, world.named("sold"), [("VALUE", order([*ORDER["fields"], *added]))], lambda _, __: ()
        )
        (change,) = planned.sinks
        world.catalog = apply(world.catalog, *planned.changes, change.change([91 + len(added)]))
    statement = definition_of(world.named("s"), CreateSink)
    again = parse_statement(statement.sql())
    assert isinstance(again, CreateSink)
    assert frozen_schemas(again.formats.value, "VALUE") == frozen_schemas(statement.formats.value, "VALUE")
    value = plan_sink(world.catalog, statement).value
    assert {".".join(path): ".".join((*path[:-1], name)) for path, name in value.renames} == names
    match format_:
        case "AVRO":
            written = [field["name"] for field in json.loads(text(value))["fields"]]
            assert written == ["a_b", "item", "price", "a_b1", "c", "p"]
        case "PROTOBUF":
            assert 'string a_b = 1 [json_name = "a-b"];' in text(value)
            assert 'string a_b2 = 5 [json_name = "a_b"];' in text(value)
            assert value.written is not None
            assert missing_fields(value, value.written, ()) == ()
        case _:
            assert [*json.loads(text(value))["properties"]] == ["a-b", "item", "price", "a_b", "c", "p"]


@pytest.mark.parametrize("format_", ["AVRO", "JSON SCHEMA", "PROTOBUF"])
def test_a_change_of_docs_alone_registers_nothing(world: Planning, format_: str) -> None:
    assert next_texts(world, format_, ADDED[1:]) == []


@pytest.mark.parametrize("format_", ["AVRO", "JSON SCHEMA", "PROTOBUF"])
def test_another_relation_brings_its_docs_and_keeps_numbers(world: Planning, format_: str) -> None:
    world.do(f"CREATE SINK s FROM sold {TO} FORMAT {format_} {REGISTRY}")
    world.do("CREATE VIEW v AS SELECT price, item, 1.5::double AS weight FROM sold")
    world.do("COMMENT ON COLUMN v.item IS 'the goods'")
    planned = world.plan("ALTER SINK s SET FROM v")
    assert isinstance(planned, ChangeCatalog)
    (made,) = [effect.schema.text for effect in planned.effects if isinstance(effect, RegisterSchema)]
    assert "the goods" in made
    assert "what was bought" not in made
    if format_ == "PROTOBUF":
        assert "string item = 1;" in made
        assert "optional int32 price = 2;" in made
        assert "weight = 3;" in made
