"""A schema that is followed: the source, the views over it and the sinks behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import statement_of
from headgate.catalog.names import DEFAULT_PATH
from headgate.plan.chain import source_of
from headgate.plan.errors import ColumnNameTaken, ViewNoLongerValid
from headgate.plan.follow import FollowPlan, SinkChange, definition, plan_follow, unwritable
from headgate.plan.planned import RegisterSchema
from headgate.plan.sink import plan_sink
from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type
from headgate.schema.evolve.arriving import adds_to, breaking_fields, describe_changes
from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import with_frozen_schemas
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import FrozenSchema
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, print_statement
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

FIRST = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
SOURCE = """
CREATE SOURCE orders {names} FROM KAFKA CONNECTION kafka (TOPIC 'orders')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry INCLUDE OFFSET;
"""


def schema(*fields: tuple[str, object], id_: int = 7) -> WrittenSchema:
    made = [{"name": name, "type": type_} for name, type_ in fields]
    return WrittenSchema(json.dumps({"type": "record", "name": "order", "fields": made}), (), id_)


SINK = """
CREATE SINK sent FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'sent')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""
WIDER = schema(("id", "long"), ("item", "string"), ("weight", ["null", "double"]))


def no_asking(_: Catalog, analysed: AnalysedQuery) -> Sequence[Type]:
    raise AssertionError(f"every type is known: {analysed}")


@pytest.fixture
def world() -> Planning:
    made = Planning()
    made.outside.topics["orders"] = 1
    made.outside.add_subject("orders-value", FIRST)
    return made


def followed(world: Planning, *schemas: WrittenSchema) -> tuple[FollowPlan, Catalog]:
    source = next(o for o in world.catalog.objects.values() if o.kind is Kind.SOURCE)
    plan = plan_follow(world.catalog, source, schemas, no_asking)
    return plan, apply(world.catalog, *plan.changes)


def publish(world: Planning) -> None:
    """The sink, with its schema frozen as if a registry had given it an id."""
    (planned,) = world.do(SINK)
    (schema_,) = (effect for effect in planned.effects if isinstance(effect, RegisterSchema))
    sink = world.named("sent")
    change = SinkChange(sink, statement_of(sink, CreateSink), (("VALUE", schema_),)).change([5])
    world.catalog = apply(world.catalog, change)


def columns(catalog: Catalog, name: str) -> list[str]:
    found = next(o for o in catalog.objects.values() if o.name == name)
    return [f"{c.name} {print_type(c.parsed)}{'' if c.nullable else ' not null'}" for c in found.columns]


def test_new_fields_stand_behind_the_value_columns_and_numbers_widen(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    _, after = followed(world, WIDER)
    assert columns(after, "orders") == [
        "id bigint not null",
        "item text not null",
        "weight double",
        "offset bigint not null",
    ]


def test_a_list_of_names_goes_on_speaking_of_the_columns_that_there_were(world: Planning) -> None:
    world.do(SOURCE.format(names="(a, b, place)"))
    _, after = followed(world, WIDER)
    assert columns(after, "orders") == [
        "a bigint not null",
        "b text not null",
        "weight double",
        "place bigint not null",
    ]


def test_a_star_follows_through_views_and_named_columns_do_not(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(
        "CREATE VIEW a AS SELECT * FROM orders; CREATE VIEW b AS SELECT * FROM a; CREATE VIEW c AS SELECT item FROM b;"
    )
    plan, after = followed(world, WIDER)
    assert columns(after, "b") == columns(after, "orders")
    assert columns(after, "c") == ["item text not null"]
    assert len(plan.changes) == 3  # the source and two views


def test_old_columns_keep_their_ids_and_new_ones_get_new_ids(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    before = {
        c.name: c.id for c in next(o for o in world.catalog.objects.values() if o.name == "orders").columns
    }
    _, after = followed(world, WIDER)
    now = {c.name: c.id for c in next(o for o in after.objects.values() if o.name == "orders").columns}
    assert {name: now[name] for name in before} == before
    assert now["weight"] not in before.values()


def test_a_new_field_with_the_name_of_a_column_stops_only_those_who_take_all_columns(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW all_of_it AS SELECT * FROM orders;")
    world.do('CREATE VIEW named AS SELECT id, "offset" FROM orders;')
    world.do('CREATE VIEW rest AS SELECT * EXCEPT ("offset") FROM orders;')
    world.do(SINK)
    new = schema(("id", "int"), ("item", "string"), ("offset", "long"), ("weight", ["null", "double"]))
    _, world.catalog = followed(world, new)
    assert columns(world.catalog, "orders") == [
        "id integer not null",
        "item text not null",
        "weight double",
        "offset bigint not null",
    ]
    assert columns(world.catalog, "rest") == ["id integer not null", "item text not null", "weight double"]
    made = {o.name: o for o in world.catalog.objects.values()}
    assert source_of(world.catalog, made["named"].id) == made["orders"]
    with pytest.raises(ViewNoLongerValid) as outgrown:
        source_of(world.catalog, made["all_of_it"].id)
    assert 'value field "offset" has the name of column "offset", which holds metadata offset' in str(
        outgrown.value
    )
    assert "INCLUDE OFFSET AS <name>" in (outgrown.value.hint() or "")
    with pytest.raises(ColumnNameTaken):
        plan_sink(world.catalog, DEFAULT_PATH, statement_of(made["sent"], CreateSink))


def test_a_source_that_is_made_again_by_its_own_statement_withholds_the_same_fields(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    _, world.catalog = followed(world, schema(("id", "int"), ("item", "string"), ("offset", "long")))
    again = print_statement(statement_of(world.named("orders"), CreateSource))
    world.do("DROP SOURCE orders")
    world.do(again)
    with pytest.raises(ColumnNameTaken):
        world.do("CREATE VIEW all_of_it AS SELECT * FROM orders")


def test_a_views_list_of_names_goes_on_speaking_of_the_columns_that_there_were(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW a (x, y, place) AS SELECT * FROM orders; CREATE VIEW b (z) AS SELECT * FROM a;")
    _, world.catalog = followed(world, WIDER)
    _, after = followed(world, schema(("id", "long"), ("more", "int"), id_=8))
    assert columns(after, "a") == [
        "x bigint not null",
        "y text",
        "weight double",
        "more integer",
        "place bigint not null",
    ]
    assert columns(after, "b") == ["z bigint not null", *columns(after, "a")[1:]]


def test_a_view_that_cannot_have_a_new_field_stays_as_it_is_and_cannot_be_read(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(
        "CREATE VIEW a AS SELECT *, id * 2 AS weight FROM orders; CREATE VIEW b AS SELECT * FROM a;"
        "CREATE VIEW c AS SELECT * FROM orders;"
    )
    _, after = followed(world, WIDER)
    assert columns(after, "a") == columns(world.catalog, "a")
    assert columns(after, "c") == columns(after, "orders")
    with pytest.raises(ViewNoLongerValid, match=r'view "a" .* column "weight"'):
        source_of(after, world.named("b").id)


def test_accepting_what_a_view_cannot_have_names_the_view(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW a AS SELECT id FROM orders UNION ALL SELECT 1;")
    source = world.named("orders")
    with pytest.raises(ViewNoLongerValid, match='view "a"'):
        plan_follow(world.catalog, source, [schema(("id", "string"))], no_asking, all_fit=True)


def test_a_list_of_names_within_a_query_does_not_come_to_mean_other_columns(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW a AS SELECT place FROM (SELECT * FROM orders) AS t (x, y, place);")
    _, after = followed(world, WIDER)
    with pytest.raises(ViewNoLongerValid, match='view "a"'):
        source_of(after, world.named("a").id)


def test_a_view_over_two_sources_fits_again_when_both_have_followed(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(SOURCE.format(names="").replace("SOURCE orders", "SOURCE others"))
    world.do("CREATE VIEW a (x) AS SELECT * FROM orders UNION ALL SELECT * FROM others;")
    for name in ("orders", "others"):
        plan = plan_follow(world.catalog, world.named(name), [WIDER], no_asking)
        world.catalog = apply(world.catalog, *plan.changes)
    assert columns(world.catalog, "a")[0] == "x bigint not null"
    assert len(columns(world.catalog, "a")) == 4


def test_a_sink_that_was_refused_its_schema_cannot_write_what_came_or_changed(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(
        "CREATE SINK s FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'out') "
        "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;"
    )
    sink = next(o for o in world.catalog.objects.values() if o.kind is Kind.SINK)
    statement = statement_of(sink, CreateSink)
    value = plan_sink(world.catalog, DEFAULT_PATH, statement).value
    assert value.schema is not None
    formats = with_frozen_schemas(statement.formats, "VALUE", (FrozenSchema("VALUE", 1, value.schema),))
    seeded = replace(statement, formats=formats)
    world.catalog = apply(world.catalog, definition(sink, seeded, sink.columns))
    assert unwritable(world.catalog, world.catalog.get(sink.id)) == ()
    plan, after = followed(world, WIDER)
    assert unwritable(after, after.get(sink.id)) == ("id", "weight")
    [change] = plan.sinks
    after = apply(after, change.change([2]))
    assert unwritable(after, after.get(sink.id)) == ()


@pytest.mark.parametrize(
    ("arriving", "reads", "broken"),
    [
        (schema(("id", "long"), ("item", "string")), "record(id bigint not null, item text not null)", ()),
        (schema(("id", "int")), "record(id integer not null, item text)", ()),
        (schema(("id", ["null", "int"]), ("item", "string")), "record(id integer, item text not null)", ()),
        (schema(("id", "string"), ("item", "string")), "record(id text not null, item text not null)", (("id",),)),
        (schema(("id", "int"), ("item", {"type": "array", "items": "string"})), "record(id integer not null, item json not null)", (("item",),)),
    ],
)  # fmt: skip
def test_what_a_schema_makes_of_a_side(
    arriving: WrittenSchema, reads: str, broken: tuple[FieldPath, ...]
) -> None:
    side = SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(FIRST), (), 1),))
    assert breaking_fields(side, arriving) == broken
    assert broken or adds_to(side, arriving)
    taken = SchemaEncoding(SchemaFormat.AVRO, (*side.schemas, arriving))
    assert print_type(decoded_type(taken).type) == reads
    assert describe_changes(side, arriving)
    assert breaking_fields(taken, arriving) == ()
    assert not adds_to(taken, arriving)


def nested(*fields: tuple[str, object]) -> object:
    return {"type": "record", "name": "row", "fields": [{"name": n, "type": t} for n, t in fields]}


def test_of_a_record_within_only_the_field_that_changed_cannot_be_read() -> None:
    old = schema(("id", "int"), ("after", nested(("x", "string"), ("y", "int"))))
    new = schema(("id", "int"), ("after", nested(("x", "long"), ("y", "int"))))
    assert breaking_fields(SchemaEncoding(SchemaFormat.AVRO, (old,)), new) == (("after", "x"),)


def test_of_a_schema_that_cannot_be_followed_nothing_is_read_that_there_is_no_room_for() -> None:
    """What would be followed if it came alone: or it would be NULL without a word."""
    old = schema(
        ("id", "int"), ("n", "int"), ("gone", "int"), ("same", "int"), ("after", nested(("y", "int")))
    )
    new = schema(
        ("id", "string"), ("n", ["null", "int"]), ("same", "int"), ("after", nested(("y", "long"), ("z", "int"))), ("new", "int")
    )  # fmt: skip
    side = SchemaEncoding(SchemaFormat.AVRO, (old,))
    assert breaking_fields(side, new) == (
        ("id",),
        ("n",),
        ("gone",),
        ("after", "y"),
        ("after", "z"),
        ("new",),
    )
    accepted = SchemaEncoding(SchemaFormat.AVRO, (old, new))
    again = schema(("id", "int"), ("n", "int"), ("same", "int"), ("after", nested(("y", "string"))))
    assert breaking_fields(accepted, again) == (("after", "y"),)


def test_a_schema_with_other_docs_changes_nothing() -> None:
    side = SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(FIRST), (), 1),))
    again = WrittenSchema(json.dumps({**FIRST, "doc": "an order"}), (), 2)
    assert not adds_to(side, again)
    assert describe_changes(side, again) == ()


COMMENTS = """
COMMENT ON SOURCE orders IS 'all of them';
COMMENT ON COLUMN orders.id IS 'a number';
COMMENT ON COLUMN orders.item IS NULL;
"""


def test_only_new_fields_bring_new_docs_to_a_sink(world: Planning) -> None:
    world.do(SOURCE.format(names="") + "COMMENT ON COLUMN orders.item IS 'what is ordered';")
    publish(world)
    world.do(COMMENTS)
    weight = {"name": "weight", "type": ["null", "double"], "doc": "in kg"}
    wider = WrittenSchema(json.dumps({**FIRST, "fields": [*FIRST["fields"], weight]}), (), 8)
    plan, _ = followed(world, wider)
    ((_, registered),) = plan.sinks[0].register
    made = json.loads(registered.schema.text)
    assert "doc" not in made
    assert {field["name"]: field.get("doc") for field in made["fields"]} == {
        "id": None,
        "item": "what is ordered",
        "weight": "in kg",
        "offset": None,
    }


def test_comments_alone_are_not_published(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    publish(world)
    world.do(COMMENTS)
    plan, _ = followed(world, WrittenSchema(json.dumps({**FIRST, "doc": "an order"}), (), 8))
    assert plan.sinks == ()
