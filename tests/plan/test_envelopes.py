"""Envelopes of a source: Debezium's change events, and errors of values as a column."""

from __future__ import annotations

import pytest

from headgate.catalog.objects import Growth
from headgate.plan.definitions import Origin
from headgate.plan.errors import (
    ColumnCollision,
    InlineErrorsWithoutKey,
    InvalidDebeziumKey,
    KeyFormatMissing,
    KeyNotAllowed,
    NoChangeEvents,
)
from headgate.schema.written import SchemaFormat
from tests.plan.planning import REGISTRY, Planning, record, shown, with_orders

pytestmark = pytest.mark.unit

AT = "FROM KAFKA CONNECTION kafka (TOPIC 'orders')"
AVRO = f"AVRO {REGISTRY}"
ROW = record("Value", ("id", "long"), ("item", "string"), ("price", ["null", "double"]), doc="an order")
KEY = record("Key", ("id", "long"))
CHANGE = record("Envelope", ("before", ["null", ROW]), ("after", ["null", "Value"]), ("op", "string"))
VALUE = record("order", ("item", "string"), ("price", ["null", "double"]))


# Debezium


def test_the_columns_of_debezium_are_the_fields_of_after_keyed_by_those_of_the_key() -> None:
    plan = with_orders(CHANGE, KEY).source(f"{AT} FORMAT {AVRO} INCLUDE OFFSET ENVELOPE DEBEZIUM")
    assert shown(plan.columns) == [
        "id bigint not null key",
        "item text not null",
        "price double",
        "offset bigint not null",
    ]
    assert plan.columns[0].origin == Origin("after", "id")
    assert plan.envelope == "DEBEZIUM"
    assert plan.key is not None
    assert plan.doc == "an order"


def test_a_source_of_change_events_is_keyed() -> None:
    world = with_orders(CHANGE, KEY)
    world.do(f"CREATE SOURCE s {AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert world.named("s").growth is Growth.KEYED


def test_a_key_of_several_fields_may_be_in_another_order_than_the_row() -> None:
    row = record("Value", ("a", "int"), ("b", "string"), ("c", "int"))
    world = with_orders(record("e", ("after", ["null", row])), record("k", ("c", "int"), ("a", "int")))
    plan = world.source(f"{AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert shown(plan.columns) == ["a integer not null key", "b text not null", "c integer not null key"]


def test_a_list_renames_the_fields_of_after_the_key_among_them() -> None:
    plan = with_orders(CHANGE, KEY).source(f"(number) {AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert shown(plan.columns)[0] == "number bigint not null key"
    assert plan.columns[0].origin == Origin("after", "id")


def test_neither_before_nor_op_is_needed() -> None:
    world = with_orders(record("e", ("after", ["null", ROW])), KEY)
    assert len(world.source(f"{AT} FORMAT {AVRO} ENVELOPE DEBEZIUM").columns) == 3


PROTO = """syntax = "proto3";
message Envelope { Value before = 1; Value after = 2; string op = 4; }
message Value { int64 id = 1; optional string item = 2; }"""
JSON = {
    "type": "object",
    "properties": {
        "after": {
            "oneOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
                    "required": ["id"],
                },
            ]
        },
        "op": {"type": "string"},
    },
    "required": ["op"],
}


@pytest.mark.parametrize(
    ("kind", "type_", "key", "value"),
    [
        ("PROTOBUF", SchemaFormat.PROTOBUF, 'syntax = "proto3"; message Key { int64 id = 1; }', PROTO),
        (
            "JSON SCHEMA",
            SchemaFormat.JSON,
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            JSON,
        ),
    ],
)
def test_change_events_come_in_every_format_of_a_registry(
    kind: str, type_: SchemaFormat, key: object, value: object
) -> None:
    world = Planning()
    world.outside.topics["orders"] = 1
    world.outside.add_subject("orders-key", key, type_)
    world.outside.add_subject("orders-value", value, type_)
    plan = world.source(f"{AT} FORMAT {kind} {REGISTRY} ENVELOPE DEBEZIUM")
    assert shown(plan.columns) == ["id bigint not null key", "item text"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (VALUE, 'fields "before" and "after" are missing'),
        (record("e", ("before", ["null", ROW]), ("op", "string")), 'field "after" is missing'),
        (record("e", ("after", ["null", "string"])), 'field "after" is no record'),
        (record("e", ("after", ["null", ROW]), ("op", "int")), 'field "op" is no text'),
        ("string", 'fields "before" and "after" are missing'),
    ],
)
def test_values_that_are_no_change_events_are_refused(value: object, said: str) -> None:
    with pytest.raises(NoChangeEvents) as caught:
        with_orders(value, KEY).source(f"{AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert caught.value.message() == f'the values of source "s" are not change events of Debezium: {said}'


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("long", "it has no fields"),
        (record("k", ("number", "long")), 'field "number" of it is no field of "after"'),
        (record("k", ("id", "string")), 'field "id" is text in the key and bigint in the row'),
    ],
)
def test_a_key_that_is_none_of_the_row_is_refused(key: object, said: str) -> None:
    with pytest.raises(InvalidDebeziumKey) as caught:
        with_orders(CHANGE, key).source(f"{AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert caught.value.message() == f'the key of source "s" is not a key of its rows: {said}'


def test_debezium_needs_a_key_and_refuses_to_include_it() -> None:
    with pytest.raises(KeyFormatMissing) as caught:
        with_orders(CHANGE).source(f"{AT} FORMAT {AVRO} ENVELOPE DEBEZIUM")
    assert caught.value.asked_by == "ENVELOPE DEBEZIUM"
    with pytest.raises(KeyNotAllowed):
        with_orders(CHANGE, KEY).source(f"{AT} FORMAT {AVRO} INCLUDE KEY ENVELOPE DEBEZIUM")


def test_a_field_of_after_that_collides_says_where_it_lies() -> None:
    with pytest.raises(ColumnCollision) as caught:
        with_orders(CHANGE, KEY).source(f"{AT} FORMAT {AVRO} INCLUDE OFFSET AS id ENVELOPE DEBEZIUM")
    assert 'field "id" of after and metadata offset' in caught.value.message()
    assert "INCLUDE KEY" not in str(caught.value.hint())


# inline errors


def test_inline_errors_stand_between_key_and_value_and_make_values_nullable() -> None:
    world = with_orders(VALUE, KEY)
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE OFFSET ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE)")
    assert shown(plan.columns) == [
        "id bigint not null key",
        "error record(description text)",
        "item text",
        "price double",
        "offset bigint not null",
    ]


def test_inline_errors_have_the_name_that_is_given() -> None:
    world = with_orders(VALUE, KEY)
    upsert = "ENVELOPE UPSERT (VALUE DECODING ERRORS = (INLINE AS wrong))"
    plan = world.source(f"{AT} KEY FORMAT TEXT VALUE FORMAT JSON {upsert}")
    assert shown(plan.columns) == ["key text not null key", "wrong record(description text)", "data json"]
    renamed = world.source(f"(k, e) {AT} FORMAT TEXT {upsert}")
    assert [c.name for c in renamed.columns] == ["k", "e", "text"]


@pytest.mark.parametrize("key", ["INCLUDE KEY AS error", "INCLUDE KEY, OFFSET AS error"])
def test_inline_errors_collide_like_any_column(key: str) -> None:
    with pytest.raises(ColumnCollision) as caught:
        with_orders(VALUE, KEY).source(f"{AT} FORMAT {AVRO} {key} ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE)")
    assert "VALUE DECODING ERRORS" in caught.value.message()
    assert "INLINE AS <name>" in str(caught.value.hint())


def test_a_value_that_holds_the_key_cannot_have_inline_errors() -> None:
    with pytest.raises(InlineErrorsWithoutKey):
        with_orders(VALUE, KEY).source(
            f"{AT} FORMAT {AVRO} ENVELOPE UPSERT (KEY (item), VALUE DECODING ERRORS = INLINE)"
        )
