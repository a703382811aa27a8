"""CREATE SOURCE: which columns it has, from where, and what is refused before any dataflow exists."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.changes import ObjectCreated
from headgate.plan.definitions import Origin
from headgate.plan.errors import ColumnCollision, KeyFormatMissing, SchemaCannotChange, TooManyNames, UpsertKeyUnknown
from headgate.resolve.errors import InvalidTimestamp, PasswordInAddress, StartTwice
from headgate.schema.encodings import JsonEncoding, SchemaEncoding, TextEncoding
from headgate.schema.errors import MalformedAvro
from headgate.schema.types import Record
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.errors import InvalidOptionValue, RepeatedOption
from headgate.sql.script import parse_statement
from headgate.sql.statement import print_statement
from tests.plan.planning import REGISTRY, Planning, record, shown, with_orders

pytestmark = pytest.mark.unit

AT = "FROM KAFKA CONNECTION kafka (TOPIC 'orders')"
AVRO = f"AVRO {REGISTRY}"
VALUE = record("order", ("item", "string"), ("price", ["null", "double"]))
KEY = record("order_key", ("id", "long"), ("region", ["null", "string"]))


@pytest.fixture
def world() -> Planning:
    """A topic with a schema for its keys and one for its values."""
    return with_orders(VALUE, KEY)


# order, key and envelope


def test_columns_are_key_then_value_then_metadata_as_written(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE OFFSET, KEY, PARTITION")
    assert shown(plan.columns) == [
        "id bigint",
        "region text",
        "item text not null",
        "price double",
        "offset bigint not null",
        "partition integer not null",
    ]


def test_without_include_key_the_key_is_dropped(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO}")
    assert shown(plan.columns) == ["item text not null", "price double"]
    assert plan.key is None
    assert plan.envelope == "NONE"


def test_none_makes_key_columns_nullable_and_claims_no_key(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY ENVELOPE NONE")
    assert shown(plan.columns)[:2] == ["id bigint", "region text"]


def test_upsert_implies_the_key_and_keeps_its_nullability(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} ENVELOPE UPSERT")
    assert shown(plan.columns) == [
        "id bigint not null key",
        "region text key",
        "item text not null",
        "price double",
    ]
    assert plan.envelope == "UPSERT"


def test_include_key_as_makes_one_record_column_of_a_key_with_fields(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY AS k")
    assert shown(plan.columns)[0] == "k record(id bigint not null, region text)"
    assert plan.columns[0].origin == Origin("key")


def test_a_key_of_one_field_becomes_a_record_too_and_keeps_its_avro_name() -> None:
    world = with_orders(VALUE, record("only", ("id", "int")))
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY AS k")
    assert shown(plan.columns)[0] == "k record(id integer not null)"
    type_ = plan.columns[0].type
    assert isinstance(type_, Record)
    assert type_.name == "only"


def test_a_key_of_one_field_without_alias_gives_the_field() -> None:
    world = with_orders(VALUE, record("only", ("id", "int")))
    assert shown(world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY").columns)[0] == "id integer"


def test_an_avro_key_without_fields_is_the_column_key() -> None:
    world = with_orders(VALUE, "long")
    assert shown(world.source(f"{AT} FORMAT {AVRO} ENVELOPE UPSERT").columns)[0] == "key bigint not null key"
    assert shown(world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY AS id").columns)[0] == "id bigint"


def test_an_avro_value_without_fields_is_the_column_value() -> None:
    plan = with_orders(["null", "string"]).source(f"{AT} FORMAT {AVRO}")
    assert shown(plan.columns) == ["value text"]
    assert plan.columns[0].origin == Origin("value")


@pytest.mark.parametrize(
    ("format_", "key", "value"),
    [
        ("TEXT", "key text", "text text not null"),
        ("BYTES", "key bytes", "data bytes not null"),
        ("JSON", "key json", "data json not null"),
    ],
)
def test_a_bare_format_without_schema_holds_for_the_key_too(
    world: Planning, format_: str, key: str, value: str
) -> None:
    assert shown(world.source(f"{AT} FORMAT {format_}").columns) == [value]
    assert shown(world.source(f"{AT} FORMAT {format_} INCLUDE KEY").columns) == [key, value]
    upsert = world.source(f"{AT} FORMAT {format_} ENVELOPE UPSERT")
    assert shown(upsert.columns) == [f"{key} not null key", value]


def test_key_and_value_may_have_formats_of_their_own(world: Planning) -> None:
    plan = world.source(f"{AT} KEY FORMAT TEXT VALUE FORMAT {AVRO} INCLUDE KEY AS k")
    assert shown(plan.columns)[0] == "k text"
    assert isinstance(plan.key, TextEncoding)
    assert isinstance(plan.value, SchemaEncoding)


def test_the_reader_schemas_are_those_of_each_side_with_their_ids(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    assert plan.key == SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(KEY), id=1),))
    assert plan.value == SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(VALUE), id=2),), fills=True)


def test_inline_avro_is_framed_unless_told_otherwise(world: Planning) -> None:
    framed = world.source(f"{AT} FORMAT AVRO USING SCHEMA '\"long\"'")
    assert framed.value == SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema('"long"'),), framed=True)
    bare = world.source(f"{AT} FORMAT AVRO USING SCHEMA '\"long\"' (CONFLUENT WIRE FORMAT = false)")
    assert bare.value == SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema('"long"'),), framed=False)


def test_a_malformed_schema_is_refused(world: Planning) -> None:
    with pytest.raises(MalformedAvro):
        world.source(f"{AT} FORMAT AVRO USING SCHEMA '{{'")


# keys that are missing or chosen


def test_include_key_needs_a_key_subject() -> None:
    with pytest.raises(KeyFormatMissing) as caught:
        with_orders(VALUE).source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    assert caught.value.asked_by == "INCLUDE KEY"
    assert caught.value.hint() == "Write KEY FORMAT … VALUE FORMAT … instead of FORMAT …"


def test_upsert_needs_a_key_subject() -> None:
    with pytest.raises(KeyFormatMissing) as caught:
        with_orders(VALUE).source(f"{AT} FORMAT {AVRO} ENVELOPE UPSERT")
    assert caught.value.asked_by == "ENVELOPE UPSERT"


def test_a_bare_inline_schema_says_nothing_about_the_key(world: Planning) -> None:
    with pytest.raises(KeyFormatMissing):
        world.source(f"{AT} FORMAT AVRO USING SCHEMA '\"long\"' INCLUDE KEY")


def test_columns_of_the_value_can_be_the_key_of_an_upsert_source() -> None:
    plan = with_orders(VALUE).source(f"{AT} FORMAT {AVRO} ENVELOPE UPSERT (KEY (ITEM))")
    assert shown(plan.columns) == ["item text not null key", "price double"]
    assert plan.key is None


def test_a_chosen_key_leaves_the_records_own_key_a_nullable_column(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY ENVELOPE UPSERT (KEY (item))")
    assert shown(plan.columns)[:3] == ["id bigint", "region text", "item text not null key"]


def test_a_chosen_key_must_be_a_column_of_the_value(world: Planning) -> None:
    with pytest.raises(UpsertKeyUnknown) as caught:
        world.source(f"{AT} FORMAT {AVRO} ENVELOPE UPSERT (KEY (itme))")
    assert caught.value.hint() == 'Did you mean "item"?'
    with pytest.raises(UpsertKeyUnknown):
        world.source(f'{AT} FORMAT {AVRO} ENVELOPE UPSERT (KEY ("ITEM"))')


def test_a_chosen_key_goes_by_the_names_that_the_list_gives(world: Planning) -> None:
    plan = world.source(f"(what) {AT} FORMAT {AVRO} ENVELOPE UPSERT (KEY (what))")
    assert shown(plan.columns) == ["what text not null key", "price double"]


# names


def test_a_list_renames_by_position_and_leaves_the_rest(world: Planning) -> None:
    plan = world.source(f"(a, b, c) {AT} FORMAT {AVRO} INCLUDE KEY, OFFSET")
    assert [c.name for c in plan.columns] == ["a", "b", "c", "price", "offset"]
    assert [c.origin for c in plan.columns][:3] == [
        Origin("key", "id"),
        Origin("key", "region"),
        Origin("value", "item"),
    ]


def test_too_many_names_are_refused(world: Planning) -> None:
    with pytest.raises(TooManyNames) as caught:
        world.source(f"(a, b, c) {AT} FORMAT {AVRO}")
    assert caught.value.message() == '"s" has 2 columns, but 3 names are given'


def test_a_collision_names_both_origins_and_says_include_key_as() -> None:
    world = with_orders(record("v", ("id", "string")), record("k", ("id", "long")))
    with pytest.raises(ColumnCollision) as caught:
        world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    assert caught.value.message() == (
        'column "id" of source "s" comes from two places: key field "id" and value field "id"'
    )
    assert "INCLUDE KEY AS <name>" in str(caught.value.hint())


def test_renaming_or_an_alias_cures_a_collision() -> None:
    world = with_orders(record("v", ("id", "string")), record("k", ("id", "long")))
    renamed = world.source(f"(key_id) {AT} FORMAT {AVRO} INCLUDE KEY")
    assert shown(renamed.columns) == ["key_id bigint", "id text not null"]
    aliased = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY AS k")
    assert shown(aliased.columns) == ["k record(id bigint not null)", "id text not null"]


def test_a_collision_with_metadata_is_told_apart_from_one_with_the_key() -> None:
    world = with_orders(record("v", ("keyword", "string")))
    with pytest.raises(ColumnCollision) as caught:
        world.source(f"{AT} FORMAT {AVRO} INCLUDE OFFSET AS keyword")
    assert caught.value.first == 'value field "keyword"'
    assert caught.value.second == "metadata offset"
    assert str(caught.value.hint()).startswith("Give the metadata column another name with AS")


def test_names_that_differ_in_case_only_do_not_collide() -> None:
    world = with_orders(record("v", ("Id", "string")), record("k", ("id", "long")))
    plan = world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    assert [c.name for c in plan.columns] == ["id", "Id"]


def test_the_text_value_and_a_key_called_text_collide(world: Planning) -> None:
    with pytest.raises(ColumnCollision) as caught:
        world.source(f"{AT} FORMAT TEXT INCLUDE KEY AS text")
    assert (caught.value.first, caught.value.second) == ("key", "value")


# metadata


def test_metadata_columns_have_their_types_and_names(world: Planning) -> None:
    include = "PARTITION, OFFSET, TIMESTAMP, TOPIC, HEADERS"
    plan = world.source(f"{AT} FORMAT TEXT INCLUDE {include}")
    assert shown(plan.columns)[1:] == [
        "partition integer not null",
        "offset bigint not null",
        "timestamp timestamptz not null",
        "topic text not null",
        "headers array<record(key text not null, value bytes) not null> not null",
    ]


def test_metadata_columns_take_aliases(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT TEXT INCLUDE TIMESTAMP AS at, PARTITION AS p")
    assert shown(plan.columns)[1:] == ["at timestamptz not null", "p integer not null"]


def test_one_header_is_text_or_bytes_and_may_be_missing(world: Planning) -> None:
    plan = world.source(f"{AT} FORMAT TEXT INCLUDE HEADER 'trace' AS t, HEADER 'sig' AS g BYTES")
    assert shown(plan.columns)[1:] == ["t text", "g bytes"]
    assert [c.origin for c in plan.columns][1:] == [
        Origin("header", "trace"),
        Origin("header", "sig", as_bytes=True),
    ]


# policies and docs


@pytest.mark.parametrize(
    ("strategy", "with_", "on_error", "following"),
    [
        ("", "", "HALT", "FOLLOW"),
        ("(VALUE STRATEGY = LATEST)", "", "HALT", "FOLLOW"),
        ("(VALUE STRATEGY = ID 2)", "", "HALT", "PIN"),
        ("(VALUE STRATEGY = INLINE '\"long\"')", "", "HALT", "PIN"),
        ("", "WITH (ON ERROR = QUARANTINE, ON SCHEMA CHANGE = HALT)", "QUARANTINE", "HALT"),
        ("", "WITH (ON INVALID = SKIP, ON SCHEMA CHANGE = PIN)", "SKIP", "PIN"),
        ("(VALUE STRATEGY = ID 2)", "WITH (ON SCHEMA CHANGE = FOLLOW)", "HALT", "FOLLOW"),
    ],
)
def test_policies_are_as_written_or_by_the_strategy(
    world: Planning, strategy: str, with_: str, on_error: str, following: str
) -> None:
    plan = world.source(f"{AT} FORMAT {AVRO} {strategy} {with_}")
    assert (plan.on_error, plan.on_schema_change) == (on_error, following)


def test_formats_without_a_registry_are_pinned(world: Planning) -> None:
    assert world.source(f"{AT} FORMAT JSON").on_schema_change == "PIN"
    assert isinstance(world.source(f"{AT} FORMAT JSON").value, JsonEncoding)


def test_docs_of_the_schema_become_docs_of_source_and_columns() -> None:
    value = {
        **record("order", doc="an order"),
        "fields": [{"name": "item", "type": "string", "doc": "what was bought"}],
    }
    key = {**record("k"), "fields": [{"name": "id", "type": "long", "doc": "its number"}]}
    plan = with_orders(value, key).source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    assert plan.doc == "an order"
    assert [c.doc for c in plan.columns] == ["its number", "what was bought"]


# addresses


def test_addresses_stand_for_connections(world: Planning) -> None:
    text = "FROM KAFKA BROKER 'b:9092' TOPIC 'orders' (START OFFSET 3)"
    url = "USING CONFLUENT SCHEMA REGISTRY 'http://r:8081'"
    plan = world.source(f"{text} FORMAT AVRO {url} INCLUDE KEY")
    assert plan == world.source(f"{AT} FORMAT {AVRO} INCLUDE KEY")
    made = world.do(f"CREATE SOURCE s {text} FORMAT AVRO {url}")[0].changes[0]
    assert isinstance(made, ObjectCreated)
    assert made.object.dependencies == ()


@pytest.mark.parametrize(
    ("start", "seed"),
    [
        ("START OFFSET = LATEST", "SEED OFFSET = (10, 10)"),
        ("START OFFSET = 3", "SEED OFFSET = (3, 3)"),
        ("START OFFSET = (3)", None),
        ("START OFFSET = EARLIEST", None),
        ("START TIMESTAMP = 0", "SEED OFFSET = (0, 0)"),
        ("START TIMESTAMP = -99999999999999999", "SEED OFFSET = (0, 0)"),
        ("START TIMESTAMP = '2026-11-15'", "SEED OFFSET = (10, 10)"),
        ("START TIMESTAMP = '1970-01-01T00:00:00.009'", "SEED OFFSET = (9, 9)"),
        ("START TIMESTAMP = '1970-01-01T02:00:00.001001+02:00'", "SEED OFFSET = (2, 2)"),
        ("START OFFSET = LATEST, SEED OFFSET = (7)", None),
    ],
)
def test_a_start_is_frozen_as_offsets(world: Planning, start: str, seed: str | None) -> None:
    world.outside.topics["orders"] = 2
    text = f"CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC = 'orders', {start}) FORMAT TEXT"
    pure = world.pure(parse_statement(text))
    frozen = f"{start}, {seed}" if seed else start
    on_one_line = " ".join(print_statement(pure).split()).replace("( ", "(").replace(" )", ")")
    assert f"(TOPIC = 'orders', {frozen})" in on_one_line


def test_a_start_is_one(world: Planning) -> None:
    with pytest.raises(StartTwice):
        world.source("FROM KAFKA CONNECTION kafka (TOPIC 'orders', START OFFSET 0, START TIMESTAMP 0) FORMAT TEXT")


@pytest.mark.parametrize("time", ["99999999999999999999", "'1969-12-31'", "''"])
def test_a_start_is_a_time_that_a_record_can_have(world: Planning, time: str) -> None:
    with pytest.raises(InvalidTimestamp):
        world.source(f"FROM KAFKA CONNECTION kafka (TOPIC 'orders', START TIMESTAMP {time}) FORMAT TEXT")


@pytest.mark.parametrize("offset", ["-1", "(0, -2)", "9223372036854775808"])
def test_an_offset_that_cannot_be_is_refused(world: Planning, offset: str) -> None:
    with pytest.raises(InvalidOptionValue):
        world.source(f"FROM KAFKA CONNECTION kafka (TOPIC 'orders', START OFFSET {offset}) FORMAT TEXT")


def test_a_start_is_checked_with_an_address_too(world: Planning) -> None:
    with pytest.raises(InvalidTimestamp):
        world.source("FROM KAFKA BROKER 'b:9092' TOPIC 'orders' (START TIMESTAMP 'noon') FORMAT TEXT")


def test_a_topic_is_named_once(world: Planning) -> None:
    with pytest.raises(RepeatedOption):
        world.source("FROM KAFKA BROKER 'b:9092' TOPIC 'orders' (TOPIC 'others') FORMAT TEXT")


@pytest.mark.parametrize("side", ["FORMAT AVRO", "KEY FORMAT TEXT VALUE FORMAT AVRO"])
def test_an_address_with_a_password_is_refused(world: Planning, side: str) -> None:
    with pytest.raises(PasswordInAddress) as caught:
        world.source(f"{AT} {side} USING CONFLUENT SCHEMA REGISTRY 'http://me:hunter2@r:8081'")
    assert "hunter2" not in str(caught.value)


# formats of a registry


PROTO = 'syntax = "proto3"; message First { int32 n = 1; } message Second { string s = 1; }'


@pytest.mark.parametrize(
    ("kind", "type_", "schema", "column"),
    [
        ("PROTOBUF", SchemaFormat.PROTOBUF, PROTO, "n integer not null"),
        ("PROTOBUF MESSAGE 'Second'", SchemaFormat.PROTOBUF, PROTO, "s text not null"),
        ("JSON SCHEMA", SchemaFormat.JSON, '{"properties": {"n": {"type": "integer"}}}', "n bigint"),
        ("JSON SCHEMA", SchemaFormat.JSON, '{"type": ["integer", "null"]}', "value bigint"),
    ],
)
def test_every_kind_of_schema_gives_columns(kind: str, type_: SchemaFormat, schema: str, column: str) -> None:
    world = Planning()
    world.outside.topics["orders"] = 1
    world.outside.add_subject("orders-value", schema, type_)
    assert shown(world.source(f"{AT} FORMAT {kind} {REGISTRY}").columns) == [column]


def test_a_message_that_is_named_is_the_values_and_not_the_keys() -> None:
    world = Planning()
    world.outside.topics["orders"] = 1
    world.outside.add_subject("orders-value", PROTO, SchemaFormat.PROTOBUF)
    world.outside.add_subject("orders-key", 'syntax = "proto3"; message Key { int64 id = 1; }', SchemaFormat.PROTOBUF)
    plan = world.source(f"{AT} FORMAT PROTOBUF MESSAGE 'Second' {REGISTRY} INCLUDE KEY")
    assert shown(plan.columns) == ["id bigint", "s text not null"]


# schema changes


@pytest.mark.parametrize("policy", ["PIN", "FOLLOW", "HALT"])
@pytest.mark.parametrize("format_", ["TEXT", "BYTES", "JSON", "CSV WITH 2 COLUMNS", "REGEX '(?<a>.*)'"])
def test_a_format_without_a_schema_takes_no_policy_for_its_changes(world: Planning, format_: str, policy: str) -> None:
    with pytest.raises(SchemaCannotChange) as refused:
        world.do(f"CREATE SOURCE s {AT} FORMAT {format_} WITH (ON SCHEMA CHANGE = {policy});")
    assert "has no schema that could change" in str(refused.value.detail())


def test_a_schema_in_the_statement_can_only_be_pinned(world: Planning) -> None:
    inline = f"{AT} FORMAT AVRO USING SCHEMA '{json.dumps(VALUE)}' WITH (ON SCHEMA CHANGE ="
    for policy in ("FOLLOW", "HALT"):
        with pytest.raises(SchemaCannotChange) as refused:
            world.do(f"CREATE SOURCE s {inline} {policy});")
        assert "stands in the statement" in str(refused.value.detail())
    world.do(f"CREATE SOURCE s {inline} PIN);")
