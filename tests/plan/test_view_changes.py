"""A schema change below a materialized view: what its stored rows become, and when it halts alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.control.view_tasks import view_task_definition
from headgate.plan.definitions import ELEMENT, FieldDefault
from headgate.plan.impact import FollowPlan, plan_follow
from headgate.plan.plans import Outcome
from headgate.schema.render import print_type
from headgate.schema.written import WrittenSchema
from tests.plan.planning import Planning
from tests.plan.test_impact import FIRST, SOURCE, no_asking, schema

pytestmark = pytest.mark.unit

WIDER = schema(("id", "long"), ("item", "string"), ("weight", ["null", "double"]))
DOUBLE = schema(("id", "double"), ("item", "string"))
COLOUR = WrittenSchema(
    '{"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"},'
    ' {"name": "colour", "type": "string", "default": "red"}]}',
    (),
    8,
)


@pytest.fixture
def world() -> Planning:
    made = Planning()
    made.outside.topics["orders"] = 1
    made.outside.add_subject("orders-value", FIRST)
    made.do(SOURCE.format(names=""))
    return made


def followed(world: Planning, new: WrittenSchema) -> tuple[FollowPlan, Catalog]:
    plan = plan_follow(world.catalog, world.named("orders"), [("VALUE", new)], no_asking)
    return plan, apply(world.catalog, *plan.changes)


def columns(catalog: Catalog, world: Planning, name: str) -> dict[str, str]:
    return {column.name: print_type(column.type) for column in catalog.get(world.named(name).id).columns}


def outcomes(plan: FollowPlan, world: Planning, name: str) -> set[Outcome]:
    return {one.outcome for one in plan.consequences if one.object == world.named(name).id}


def test_a_view_with_a_star_gains_columns_and_one_that_names_its_columns_does_not(world: Planning) -> None:
    world.do(
        "CREATE MATERIALIZED VIEW every AS SELECT * FROM orders; CREATE MATERIALIZED VIEW over AS SELECT * FROM every"
    )
    world.do("CREATE MATERIALIZED VIEW named AS SELECT item FROM every")
    plan, after = followed(world, WIDER)
    for name in ("every", "over"):
        assert columns(after, world, name) == {"id": "bigint", "item": "text", "offset": "bigint", "weight": "double"}
        assert outcomes(plan, world, name) == {Outcome.GAINS, Outcome.WIDENS}
    assert columns(after, world, "named") == {"item": "text"}
    assert outcomes(plan, world, "named") == {Outcome.UNCHANGED}


def test_a_new_column_has_its_default_in_old_rows(world: Planning) -> None:
    world.do(
        "CREATE MATERIALIZED VIEW every AS SELECT * FROM orders; CREATE MATERIALIZED VIEW over AS SELECT * FROM every"
    )
    _, after = followed(world, COLOUR)
    for name in ("every", "over"):
        stored = view_task_definition(after, after.get(world.named(name).id)).view.stored
        assert {column.name: column.default for column in stored}["colour"] == '"red"'


def test_a_stored_copy_stays_one(world: Planning) -> None:
    world.do("CREATE MATERIALIZED VIEW pairs AS SELECT a.item FROM orders AS a JOIN orders AS b ON a.item = b.item")
    _, after = followed(world, WIDER)
    task = view_task_definition(after, after.get(world.named("pairs").id))
    assert task.copies == {world.named("orders").id: world.named("orders_rows").id}
    assert "weight" in columns(after, world, "orders_rows")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id AS number, item FROM orders",
        "SELECT id FROM orders WHERE id > 3 AND item = 'x'",
        "SELECT item, count(*) AS n FROM orders GROUP BY item",
        "SELECT a.item, b.id * 2 AS twice FROM orders AS a LEFT JOIN orders AS b ON a.id = b.id",
    ],
)
def test_a_view_follows_a_wider_input_if_its_old_rows_stay_true(world: Planning, query: str) -> None:
    world.do(f"CREATE MATERIALIZED VIEW m AS {query}")
    plan, after = followed(world, DOUBLE)
    assert Outcome.HALTS not in outcomes(plan, world, "m")
    view_task_definition(after, after.get(world.named("m").id))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id::text || 'x' AS text FROM orders",
        "SELECT item, sum(id) AS total FROM orders GROUP BY item",
        "SELECT item FROM orders WHERE concat(id, '') = '1'",
    ],
)
def test_a_view_whose_old_rows_would_differ_halts_alone(world: Planning, query: str) -> None:
    world.do(f"CREATE MATERIALIZED VIEW m AS {query}; CREATE MATERIALIZED VIEW other AS SELECT * FROM orders")
    plan, after = followed(world, DOUBLE)
    assert outcomes(plan, world, "m") == {Outcome.HALTS}
    assert Outcome.HALTS not in outcomes(plan, world, "other")
    assert after.get(world.named("m").id).columns == world.named("m").columns


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT * FROM orders",
        "SELECT DISTINCT *, id + 1 AS next FROM orders",
        "SELECT DISTINCT a.*, b.item AS other FROM orders AS a JOIN orders AS b ON a.id = b.id",
        "SELECT * FROM orders WHERE id > 3 UNION SELECT * FROM orders WHERE id < 3",
        "SELECT * FROM orders UNION ALL SELECT * FROM orders",
        "SELECT * FROM orders INTERSECT SELECT * FROM orders",
        "SELECT * FROM orders EXCEPT SELECT * FROM orders WHERE id > 3",
    ],
)
def test_a_view_whose_whole_rows_are_compared_gains_columns_with_their_defaults(world: Planning, query: str) -> None:
    world.do(f"CREATE MATERIALIZED VIEW below AS {query}; CREATE MATERIALIZED VIEW m AS SELECT * FROM below")
    plan, after = followed(world, COLOUR)
    for name in ("below", "m"):
        assert outcomes(plan, world, name) == {Outcome.GAINS}
        new = view_task_definition(after, after.get(world.named(name).id))
        assert {column.name: column.default for column in new.view.stored}["colour"] == '"red"'
        old = view_task_definition(world.catalog, world.named(name))
        assert new.definition == old.definition, "its stored rows would be refused"


@pytest.mark.parametrize(("default", "outcome"), [("red", Outcome.GAINS), ("blue", Outcome.HALTS)])
@pytest.mark.parametrize("words", ["UNION", "UNION ALL"])
def test_a_union_of_two_sources_follows_when_both_have_gained_a_column_with_the_same_default(
    world: Planning, words: str, default: str, outcome: Outcome
) -> None:
    world.outside.topics["others"] = 1
    world.outside.add_subject("others-value", FIRST)
    world.do(SOURCE.format(names="").replace("orders", "others"))
    world.do(f"CREATE MATERIALIZED VIEW m AS SELECT * FROM orders {words} SELECT * FROM others")
    plan, halted = followed(world, COLOUR)
    assert outcomes(plan, world, "m") == {Outcome.HALTS}
    colour = replace(COLOUR, text=COLOUR.text.replace("red", default))
    plan = plan_follow(halted, halted.get(world.named("others").id), [("VALUE", colour)], no_asking)
    assert outcomes(plan, world, "m") == {outcome}
    assert ("colour" in columns(apply(halted, *plan.changes), world, "m")) is (outcome is Outcome.GAINS)


def test_a_field_that_comes_inside_of_a_record_has_its_default_in_old_rows(world: Planning) -> None:
    def place(*new: dict[str, object]) -> WrittenSchema:
        inner = {"type": "record", "name": "place", "fields": [{"name": "street", "type": "string"}, *new]}
        fields = [
            {"name": "id", "type": "int"},
            {"name": "item", "type": "string"},
            {"name": "at", "type": {"type": "array", "items": inner}},
        ]
        return WrittenSchema(json.dumps({"type": "record", "name": "order", "fields": fields}), (), 20 + len(new))

    _, world.catalog = followed(world, place())
    world.do(
        "CREATE MATERIALIZED VIEW below AS SELECT at AS places FROM orders; CREATE MATERIALIZED VIEW m AS SELECT * FROM below"
    )
    _, after = followed(world, place({"name": "floor", "type": "int", "default": 3}))
    (stored,) = view_task_definition(after, after.get(world.named("m").id)).view.stored
    assert stored.inner == (FieldDefault((ELEMENT, "floor"), "3"),)


@pytest.mark.parametrize(("query", "halts"), [("at.floor + 1 AS above", False), ("to_json(at) AS text", True)])
def test_a_view_that_computes_with_one_field_of_a_record_does_not_halt_for_another_one(
    world: Planning, query: str, halts: bool
) -> None:
    def place(*new: dict[str, object]) -> WrittenSchema:
        inner = {"type": "record", "name": "place", "fields": [{"name": "floor", "type": "int"}, *new]}
        fields = [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}, {"name": "at", "type": inner}]
        return WrittenSchema(json.dumps({"type": "record", "name": "order", "fields": fields}), (), 20 + len(new))

    _, world.catalog = followed(world, place())
    world.do(f"CREATE MATERIALIZED VIEW m AS SELECT {query} FROM orders")
    plan, _ = followed(world, place({"name": "street", "type": ["null", "string"], "default": None}))
    assert (Outcome.HALTS in outcomes(plan, world, "m")) is halts
