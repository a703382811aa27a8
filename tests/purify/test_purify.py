"""Purifying: every outside answer is written into the statement, once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import SearchPath
from headgate.catalog.store.codec import from_json, to_json
from headgate.connectors.errors import TopicNotFound
from headgate.plan.source import plan_source
from headgate.purify.lookups import PlannedLookups
from headgate.registry.errors import SchemaIdNotFound
from headgate.resolve.errors import ConnectionOfOtherKind, NoSchemaForTopic, SchemaOfOtherType, TopicMissing
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.registry_formats import FrozenSchema, RegistryFormat
from headgate.sql.script import parse_statement
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Statement, print_statement
from tests.plan.planning import MemoryOutside, Planning, record, with_orders

pytestmark = pytest.mark.unit

AT = "CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'orders')"
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
VALUE = record("order", ("item", "string"))
KEY = record("order_key", ("id", "long"))


@pytest.fixture
def world() -> Planning:
    return with_orders(VALUE, KEY)


def pure(world: Planning, text: str) -> Statement:
    return world.pure(parse_statement(text))


def seeds(statement: Statement) -> list[FrozenSchema]:
    assert isinstance(statement, CreateSource)
    formats = [f for f in (statement.formats.key, statement.formats.value) if isinstance(f, RegistryFormat)]
    return [schema for f in formats for schema in f.frozen]


# seeds


def test_a_bare_registry_format_is_seeded_for_both_sides(world: Planning) -> None:
    found = seeds(pure(world, f"{AT} {AVRO}"))
    assert found == [FrozenSchema("VALUE", 2, json.dumps(VALUE)), FrozenSchema("KEY", 1, json.dumps(KEY))]


def test_earlier_versions_are_kept_if_records_are_read_in_another_way_because_of_them(
    world: Planning,
) -> None:
    lacking = WrittenSchema(json.dumps(record("order")), id=8)
    again = WrittenSchema(json.dumps({**VALUE, "doc": "all the same"}), id=9)
    world.outside.past["orders-value"] = (lacking, again)
    values = [schema for schema in seeds(pure(world, f"{AT} {AVRO}")) if schema.side == "VALUE"]
    assert [(schema.id, schema.past) for schema in values] == [(8, True), (2, False)]
    assert nullable(pure(world, f"{AT} {AVRO}")) == [True]
    assert nullable(pure(world, f"{AT} {AVRO} WITH (ON SCHEMA CHANGE = PIN)")) == [False]
    assert nullable(pure(world, f"{AT} {AVRO} (VALUE STRATEGY = ID 2)")) == [False]


def nullable(statement: Statement) -> list[bool]:
    assert isinstance(statement, CreateSource)
    return [column.nullable for column in plan_source(statement).columns]


def test_a_bare_format_without_key_subject_is_seeded_for_values_only() -> None:
    world = Planning()
    world.topic("orders", value=VALUE)
    assert [s.side for s in seeds(pure(world, f"{AT} {AVRO}"))] == ["VALUE"]


def test_each_side_is_seeded_in_its_own_format(world: Planning) -> None:
    text = f"{AT} KEY {AVRO} VALUE {AVRO} INCLUDE KEY"
    assert [s.side for s in seeds(pure(world, text))] == ["KEY", "VALUE"]


def test_the_strategy_says_which_schema_is_the_readers(world: Planning) -> None:
    old = world.outside.add_subject("elsewhere", record("old", ("item", "string")))
    by_id = seeds(pure(world, f"{AT} {AVRO} (VALUE STRATEGY = ID {old})"))
    assert by_id[0].id == old
    latest = seeds(pure(world, f"{AT} {AVRO} (VALUE STRATEGY = LATEST)"))
    assert latest[0].id == 2
    inline = seeds(pure(world, f"{AT} {AVRO} (VALUE STRATEGY = INLINE '\"long\"')"))
    assert (inline[0].id, inline[0].schema) == (0, '"long"')


def test_an_id_that_the_registry_does_not_know_is_refused(world: Planning) -> None:
    with pytest.raises(SchemaIdNotFound):
        pure(world, f"{AT} {AVRO} (VALUE STRATEGY = ID 99)")


def test_references_are_frozen_with_the_schema(world: Planning) -> None:
    text = json.dumps(record("order", ("at", "shop.place")))
    references = (("shop.place", json.dumps({**record("place"), "namespace": "shop"})),)
    world.outside.subjects["orders-value"] = WrittenSchema(text, references, 7)
    assert seeds(pure(world, f"{AT} {AVRO}"))[0] == FrozenSchema("VALUE", 7, text, references)


# the law


def statements() -> Iterator[str]:
    for include in ("", "INCLUDE KEY", "INCLUDE KEY AS k, OFFSET"):
        for strategy in (
            "",
            "(VALUE STRATEGY = ID 2)",
            "(VALUE STRATEGY = INLINE '\"long\"', KEY STRATEGY = LATEST)",
        ):
            yield f"{AT} {AVRO} {strategy} {include}"
            yield f"{AT} KEY {AVRO} VALUE {AVRO} {strategy} {include}"
    yield f"{AT} FORMAT JSON ENVELOPE UPSERT"
    yield "CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL PASSWORD SECRET s)"
    yield f"CREATE SINK FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'o') {AVRO}"
    yield "DROP VIEW v"


@pytest.mark.parametrize("path", [SearchPath(), SearchPath((("headgate", "sales"), ("headgate", "public")))])
@pytest.mark.parametrize("text", list(statements()))
def test_purifying_what_is_pure_changes_nothing(world: Planning, text: str, path: SearchPath) -> None:
    world.do(
        "CREATE SCHEMA sales; CREATE SECRET sales.s AS 'x'; CREATE SECRET s AS 'y';"
        "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'orders') FORMAT TEXT;"
        "CREATE VIEW v AS SELECT text FROM lines"
    )
    world.path = path
    once = pure(world, text)
    assert pure(world, print_statement(once)) == once
    assert world.pure(from_json(to_json(once))) == once


def test_a_pure_statement_asks_the_registry_no_more(world: Planning) -> None:
    once = pure(world, f"{AT} {AVRO} INCLUDE KEY")
    world.outside.subjects.clear()
    assert world.pure(once) == once


# what is missing


def test_a_missing_topic_names_what_is_near(world: Planning) -> None:
    with pytest.raises(TopicNotFound) as caught:
        pure(world, "CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'order') FORMAT TEXT")
    assert caught.value.hint() == 'Did you mean "orders"?'


def test_values_must_have_a_schema(world: Planning) -> None:
    del world.outside.subjects["orders-value"]
    with pytest.raises(NoSchemaForTopic) as caught:
        pure(world, f"{AT} {AVRO}")
    assert caught.value.message() == 'the registry has no schema for the value of topic "orders"'
    assert caught.value.detail() == 'There is no subject "orders-value".'


def test_a_key_format_of_its_own_must_have_a_schema(world: Planning) -> None:
    del world.outside.subjects["orders-key"]
    with pytest.raises(NoSchemaForTopic) as caught:
        pure(world, f"{AT} KEY {AVRO} VALUE {AVRO}")
    assert caught.value.subject == "orders-key"


def test_a_schema_of_another_type_says_what_to_write(world: Planning) -> None:
    world.outside.add_subject("orders-value", "{}", SchemaFormat.JSON)
    with pytest.raises(SchemaOfOtherType) as caught:
        pure(world, f"{AT} {AVRO}")
    assert caught.value.message() == 'the schema of subject "orders-value" is JSON SCHEMA, not AVRO'
    assert caught.value.hint() == "Write FORMAT JSON SCHEMA USING CONFLUENT SCHEMA REGISTRY …"


def test_a_key_of_another_type_matters_only_to_those_who_want_it(world: Planning) -> None:
    world.outside.add_subject("orders-key", "{}", SchemaFormat.JSON)
    assert [s.side for s in seeds(pure(world, f"{AT} {AVRO}"))] == ["VALUE"]
    for wanting in ("INCLUDE KEY", "ENVELOPE UPSERT"):
        with pytest.raises(SchemaOfOtherType):
            pure(world, f"{AT} {AVRO} {wanting}")
    assert seeds(pure(world, f"{AT} {AVRO} ENVELOPE UPSERT (KEY (item))"))[0].side == "VALUE"


def test_a_topic_must_be_given(world: Planning) -> None:
    with pytest.raises(TopicMissing) as caught:
        pure(world, "CREATE SOURCE s FROM KAFKA CONNECTION kafka (START OFFSET 5) FORMAT TEXT")
    assert caught.value.hint() == "Write KAFKA CONNECTION kafka (TOPIC '…')."


def test_a_connection_must_lead_to_the_right_kind_of_system(world: Planning) -> None:
    with pytest.raises(ConnectionOfOtherKind):
        pure(world, "CREATE SOURCE s FROM KAFKA CONNECTION registry (TOPIC 'orders') FORMAT TEXT")
    with pytest.raises(ConnectionOfOtherKind):
        pure(world, f"{AT} FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION kafka")
    with pytest.raises(UnknownObject):
        pure(world, "CREATE SOURCE s FROM KAFKA CONNECTION kafak (TOPIC 'orders') FORMAT TEXT")


# connections


def test_a_connection_is_checked_unless_told_otherwise(world: Planning) -> None:
    pure(world, "CREATE CONNECTION a TO KAFKA (BROKER 'b')")
    pure(world, "CREATE CONNECTION b TO KAFKA (BROKER 'b') WITH (VALIDATE = true)")
    pure(world, "CREATE CONNECTION c TO KAFKA (BROKER 'b') WITH (VALIDATE = false)")
    assert world.outside.checked == ["a", "b"]


# the world as it will be


def test_what_a_script_will_make_is_there_for_its_later_statements(world: Planning) -> None:
    made = planned_world(world.outside)
    made.topics[3, "later"] = 2
    made.schemas[4, "later-value"] = WrittenSchema('"long"')
    assert made.topic(world.catalog, 3, "later").partitions == 2
    assert made.latest(world.catalog, 4, "later-value") == WrittenSchema('"long"')


def test_another_connection_does_not_have_what_one_will_make(world: Planning) -> None:
    made = planned_world(world.outside)
    made.topics[3, "later"] = 2
    with pytest.raises(TopicNotFound):
        made.topic(world.catalog, 9, "later")


def test_what_is_not_planned_is_asked_of_the_real_world(world: Planning) -> None:
    made = planned_world(world.outside)
    assert made.topic(world.catalog, 3, "orders").id == "id of orders"
    assert made.latest(world.catalog, 4, "orders-value") == world.outside.subjects["orders-value"]
    assert made.by_id(world.catalog, 4, 1) == world.outside.subjects["orders-key"]
    assert made.latest(world.catalog, 4, "nosuch") is None


def planned_world(real: MemoryOutside) -> PlannedLookups:
    return PlannedLookups(real)
