"""A schema that is followed: the source, the views over it and the sinks behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.catalog.objects import Object, definition_of
from headgate.plan.chain import chain_of
from headgate.plan.errors import ColumnInUse, ColumnNameTaken, ColumnTwice, ViewNoLongerValid
from headgate.plan.impact import FollowPlan, SinkChange, check_sink_schemas, definition, needed_sink, plan_follow
from headgate.plan.plans import Consequence, Outcome, RegisterSchema
from headgate.plan.sink import plan_sink, with_own_schemas
from headgate.plan.sink_errors import SinkKeyChanges
from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type
from headgate.schema.evolve.verdicts import arriving as judge
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

FIRST: dict[str, Any] = {
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
    plan = plan_follow(world.catalog, source, [("VALUE", one) for one in schemas], no_asking)
    return plan, apply(world.catalog, *plan.changes)


def publish(world: Planning) -> None:
    """The sink, with its schema frozen as if a registry had given it an id."""
    (planned,) = world.do(SINK)
    (schema_,) = (effect for effect in planned.effects if isinstance(effect, RegisterSchema))
    sink = world.named("sent")
    statement, needed = definition_of(sink, CreateSink), needed_sink(world.catalog, sink)
    change = SinkChange(sink, statement, needed, (("VALUE", schema_),)).change([5])
    world.catalog = apply(world.catalog, change)


def columns(catalog: Catalog, name: str) -> list[str]:
    found = next(o for o in catalog.objects.values() if o.name == name)
    return [f"{c.name} {print_type(c.type)}{'' if c.nullable else ' not null'}" for c in found.columns]


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
    before = {c.name: c.id for c in next(o for o in world.catalog.objects.values() if o.name == "orders").columns}
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
    assert chain_of(world.catalog, made["named"].id).source == made["orders"]
    with pytest.raises(ViewNoLongerValid) as outgrown:
        chain_of(world.catalog, made["all_of_it"].id)
    assert 'value field "offset" has the name of column "offset", which holds metadata offset' in str(outgrown.value)
    assert "INCLUDE OFFSET AS <name>" in (outgrown.value.hint() or "")
    with pytest.raises(ColumnNameTaken):
        plan_sink(world.catalog, definition_of(made["sent"], CreateSink))


def test_a_source_that_is_made_again_by_its_own_statement_withholds_the_same_fields(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    _, world.catalog = followed(world, schema(("id", "int"), ("item", "string"), ("offset", "long")))
    again = print_statement(definition_of(world.named("orders"), CreateSource))
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
        chain_of(after, world.named("b").id)


def test_accepting_what_a_view_cannot_have_names_the_view(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW a AS SELECT id FROM orders UNION ALL SELECT 1;")
    source = world.named("orders")
    with pytest.raises(ViewNoLongerValid, match='view "a"'):
        plan_follow(world.catalog, source, [("VALUE", schema(("id", "string")))], no_asking, all_fit=True)


def test_a_list_of_names_within_a_query_does_not_come_to_mean_other_columns(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do("CREATE VIEW a AS SELECT place FROM (SELECT * FROM orders) AS t (x, y, place);")
    _, after = followed(world, WIDER)
    with pytest.raises(ViewNoLongerValid, match='view "a"'):
        chain_of(after, world.named("a").id)


def test_a_view_over_two_sources_fits_again_when_both_have_followed(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(SOURCE.format(names="").replace("SOURCE orders", "SOURCE others"))
    world.do("CREATE VIEW a (x) AS SELECT * FROM orders UNION ALL SELECT * FROM others;")
    for name in ("orders", "others"):
        plan = plan_follow(world.catalog, world.named(name), [("VALUE", WIDER)], no_asking)
        world.catalog = apply(world.catalog, *plan.changes)
    assert columns(world.catalog, "a")[0] == "x bigint not null"
    assert len(columns(world.catalog, "a")) == 4


def not_written(catalog: Catalog, sink: Object) -> tuple[str, ...]:
    now = catalog.get(sink.id)
    needed = needed_sink(catalog, now)
    return check_sink_schemas(now, needed, with_own_schemas(needed, definition_of(now, CreateSink)))


def test_a_sink_that_was_refused_its_schema_cannot_write_what_came_or_changed(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(
        "CREATE SINK s FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'out') "
        "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;"
    )
    sink = next(o for o in world.catalog.objects.values() if o.kind is Kind.SINK)
    statement = definition_of(sink, CreateSink)
    value = plan_sink(world.catalog, statement).value
    assert value.schema is not None
    formats = with_frozen_schemas(statement.formats, "VALUE", (FrozenSchema("VALUE", 1, value.schema),))
    seeded = replace(statement, formats=formats)
    world.catalog = apply(world.catalog, definition(sink, seeded, sink.columns))
    assert not_written(world.catalog, sink) == ()
    plan, after = followed(world, WIDER)
    assert not_written(after, sink) == ("id", "weight")
    [change] = plan.sinks
    after = apply(after, change.change([2]))
    assert not_written(after, sink) == ()


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
def test_what_a_schema_makes_of_a_side(arriving: WrittenSchema, reads: str, broken: tuple[FieldPath, ...]) -> None:
    side = SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(FIRST), (), 1),))
    assert judge(side, arriving).breaking_fields() == broken
    assert broken or judge(side, arriving).grows
    taken = SchemaEncoding(SchemaFormat.AVRO, (*side.schemas, arriving))
    assert print_type(decoded_type(taken).type) == reads
    assert judge(side, arriving).describe()
    assert judge(taken, arriving).breaking_fields() == ()
    assert not judge(taken, arriving).grows


def nested(*fields: tuple[str, object]) -> object:
    return {"type": "record", "name": "row", "fields": [{"name": n, "type": t} for n, t in fields]}


def test_of_a_record_within_only_the_field_that_changed_cannot_be_read() -> None:
    old = schema(("id", "int"), ("after", nested(("x", "string"), ("y", "int"))))
    new = schema(("id", "int"), ("after", nested(("x", "long"), ("y", "int"))))
    assert judge(SchemaEncoding(SchemaFormat.AVRO, (old,)), new).breaking_fields() == (("after", "x"),)


def test_of_a_schema_that_cannot_be_followed_nothing_is_read_that_there_is_no_room_for() -> None:
    """What would be followed if it came alone: or it would be NULL without a word."""
    old = schema(("id", "int"), ("n", "int"), ("gone", "int"), ("same", "int"), ("after", nested(("y", "int"))))
    new = schema(
        ("id", "string"), ("n", ["null", "int"]), ("same", "int"), ("after", nested(("y", "long"), ("z", "int"))), ("new", "int")
    )  # fmt: skip
    side = SchemaEncoding(SchemaFormat.AVRO, (old,))
    assert judge(side, new).breaking_fields() == (
        ("gone",),
        ("id",),
        ("n",),
        ("after", "y"),
        ("after", "z"),
        ("new",),
    )
    accepted = SchemaEncoding(SchemaFormat.AVRO, (old, new))
    again = schema(("id", "int"), ("n", "int"), ("same", "int"), ("after", nested(("y", "string"))))
    assert judge(accepted, again).breaking_fields() == (("after", "y"),)


def test_a_schema_with_other_docs_changes_nothing() -> None:
    side = SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema(json.dumps(FIRST), (), 1),))
    again = WrittenSchema(json.dumps({**FIRST, "doc": "an order"}), (), 2)
    assert not judge(side, again).grows
    assert judge(side, again).describe() == ()


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


def told(plan: FollowPlan, catalog: Catalog) -> list[tuple[str, Outcome, str]]:
    return [(catalog.get(one.object).name, one.outcome, one.detail) for one in plan.consequences]


def test_every_dependent_has_a_consequence(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    world.do(
        "CREATE VIEW a AS SELECT * FROM orders; CREATE VIEW b AS SELECT item FROM a;"
        "CREATE VIEW c AS SELECT *, id * 2 AS weight FROM orders;"
    )
    publish(world)
    plan, _ = followed(world, WIDER)
    assert sorted(told(plan, world.catalog)) == [
        ("a", Outcome.GAINS, "weight"),
        ("a", Outcome.WIDENS, "id from integer to bigint"),
        ("b", Outcome.UNCHANGED, ""),
        (
            "c",
            Outcome.HALTS,
            'view "c" does not fit the changed columns of its relations: column "weight" of "c" is given more than once',
        ),
        ("orders", Outcome.FOLLOWS, "$.id widened from integer to bigint"),
        ("orders", Outcome.FOLLOWS, "$.weight added as double"),
        ("sent", Outcome.REGISTERS, "sent-value"),
    ]
    source = world.named("orders").id
    assert {one.because_of for one in plan.consequences if one.outcome is Outcome.GAINS} == {source}
    assert all(one.change is not None for one in plan.consequences if one.object == source)


KEYED = """
CREATE SOURCE prices FROM KAFKA CONNECTION kafka (TOPIC 'prices')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE SINK avro_out FROM prices INTO KAFKA CONNECTION kafka (TOPIC 'a') KEY (k)
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE SINK json_out FROM prices INTO KAFKA CONNECTION kafka (TOPIC 'j') KEY (k) FORMAT JSON ENVELOPE UPSERT;
CREATE SINK unkeyed FROM prices INTO KAFKA CONNECTION kafka (TOPIC 'u')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE NONE;
"""


@pytest.fixture
def keyed() -> Planning:
    world = Planning()
    world.outside.topics["prices"] = 1
    world.outside.add_subject("prices-key", {"type": "record", "name": "k", "fields": [{"name": "k", "type": "int"}]})
    world.outside.add_subject("prices-value", FIRST)
    world.do(KEYED)
    return world


def key_schema(type_: object) -> WrittenSchema:
    fields = [{"name": "k", "type": type_}]
    return WrittenSchema(json.dumps({"type": "record", "name": "k", "fields": fields}), (), 20)


def key_followed(world: Planning, type_: object) -> tuple[FollowPlan, Catalog]:
    plan = plan_follow(world.catalog, world.named("prices"), [("KEY", key_schema(type_))], no_asking)
    return plan, apply(world.catalog, *plan.changes)


def test_a_key_whose_number_widens_is_followed_unless_the_bytes_of_a_sinks_key_would_change(
    keyed: Planning,
) -> None:
    plan, after = key_followed(keyed, "long")
    assert columns(after, "prices")[0] == "k bigint not null"
    outcomes = {name: outcome for name, outcome, _ in told(plan, after)}
    assert outcomes == {
        "prices": Outcome.FOLLOWS,
        "avro_out": Outcome.HALTS,
        "json_out": Outcome.UNCHANGED,
        "unkeyed": Outcome.REGISTERS,
    }
    with pytest.raises(SinkKeyChanges, match='key of sink "avro_out"') as halted:
        not_written(after, keyed.named("avro_out"))
    assert "$.k widened from integer to bigint" in (halted.value.detail() or "")
    assert not_written(after, keyed.named("json_out")) == ()


def test_a_json_key_with_another_text_halts_its_sink_as_long_as_the_sink_is_there(keyed: Planning) -> None:
    plan, after = key_followed(keyed, "double")
    sink = after.get(keyed.named("json_out").id)
    assert Consequence(sink.id, Outcome.HALTS, 'the key of sink "json_out" would have other bytes in its topic') in (
        plan.consequences
    )
    with pytest.raises(SinkKeyChanges):
        not_written(after, sink)
    again = plan_follow(
        after, after.get(keyed.named("prices").id), [("KEY", key_schema(["null", "double"]))], no_asking
    )
    later = apply(after, *again.changes)
    with pytest.raises(SinkKeyChanges):
        not_written(later, sink)


def test_a_column_gets_another_name_unless_something_uses_it(world: Planning) -> None:
    world.do(SOURCE.format(names="(number)"))
    _, world.catalog = followed(world, WIDER)
    world.do("CREATE VIEW items AS SELECT item FROM orders WHERE number > 1;")
    with pytest.raises(ColumnInUse, match='column "number"') as used:
        world.do("ALTER SOURCE orders RENAME COLUMN number TO id")
    assert used.value.users == ('view "items"',)
    with pytest.raises(ColumnTwice):
        world.do("ALTER SOURCE orders RENAME COLUMN weight TO ITEM")
    before = {c.id for c in world.named("orders").columns}
    world.do("ALTER SOURCE orders RENAME COLUMN weight TO mass")
    world.do('ALTER SOURCE orders RENAME COLUMN "offset" TO place')
    assert {c.id for c in world.named("orders").columns} == before
    assert columns(world.catalog, "orders") == [
        "number bigint not null",
        "item text not null",
        "mass double",
        "place bigint not null",
    ]
    again = schema(("id", "long"), ("item", "string"), ("weight", ["null", "double"]), ("more", "int"), id_=9)
    _, after = followed(world, again)
    assert columns(after, "orders")[2:] == ["mass double", "more integer", "place bigint not null"]
    sql = print_statement(definition_of(world.named("orders"), CreateSource))
    assert sql.startswith('CREATE SOURCE orders ("number", "item", "place", "mass")')


def test_the_key_of_an_upsert_source_goes_by_the_new_name(world: Planning) -> None:
    world.do(SOURCE.format(names="").replace(";", " ENVELOPE UPSERT (KEY (id));"))
    world.do("ALTER SOURCE orders RENAME COLUMN id TO number")
    assert [c.name for c in world.named("orders").columns if c.key] == ["number"]
    _, after = followed(world, WIDER)
    assert columns(after, "orders")[0] == "number bigint not null"


def test_a_sinks_schema_takes_the_defaults_of_fields_that_are_added_in_flight(world: Planning) -> None:
    world.do(SOURCE.format(names=""))
    publish(world)
    row = {"type": "record", "name": "row", "fields": [{"name": "x", "type": "int"}]}
    grown = {**row, "fields": [*row["fields"], {"name": "y", "type": "long", "default": 4}]}
    added = [
        {"name": "region", "type": "string", "default": "eu"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "day", "type": [{"type": "int", "logicalType": "date"}, "null"], "default": 1},
        {"name": "inner", "type": row, "default": {"x": 3}},
    ]
    first = WrittenSchema(json.dumps({**FIRST, "fields": [*FIRST["fields"], *added]}), (), 8)
    plan, world.catalog = followed(world, first)
    world.catalog = apply(world.catalog, plan.sinks[0].change([9]))
    fields = {f["name"]: f for f in json.loads(plan.sinks[0].register[0][1].schema.text)["fields"]}
    assert fields["region"] == {"name": "region", "type": "string", "default": "eu"}
    assert fields["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert fields["day"]["type"][1] == "null"
    assert fields["day"]["default"] == 1
    assert fields["inner"]["default"] == {"x": 3}
    added[3] = {"name": "inner", "type": grown, "default": {"x": 3}}
    second = WrittenSchema(json.dumps({**FIRST, "fields": [*FIRST["fields"], *added]}), (), 9)
    plan, _ = followed(world, second)
    fields = {f["name"]: f for f in json.loads(plan.sinks[0].register[0][1].schema.text)["fields"]}
    assert fields["day"]["default"] == 1
    assert fields["day"]["type"][1] == "null"
    assert fields["inner"]["type"]["fields"][1] == {"name": "y", "type": "long", "default": 4}
