"""After a schema change, every view below has the columns, the key and the growth that creating it now would give it.

HEADGATE_FUZZ sets how many worlds are tried; the seed is part of what is printed when one fails.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import ObjectCreated, apply
from headgate.catalog.objects import Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.impact import FollowPlan, plan_follow
from headgate.plan.plans import Consequence, Outcome
from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.schema.written import WrittenSchema
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Kind
from headgate.sql.views import CreateView
from tests.plan.planning import AVRO, Planning, record

pytestmark = pytest.mark.unit

COUNT = max(4, int(os.environ.get("HEADGATE_FUZZ", "200")) // 8)
CHANGES = 3

Fields = dict[str, object]

# {r} and {s} are relations, {x} and {y} columns that all of them have at first.
QUERIES = (
    "SELECT * FROM {r}",
    "SELECT {x}, {y} FROM {r}",
    "SELECT DISTINCT * FROM {r}",
    "SELECT * FROM {r} UNION SELECT * FROM {s}",
    "SELECT * FROM {r} EXCEPT SELECT * FROM {s}",
    "SELECT * FROM {r} WHERE {x} = 1",
    "SELECT {r}.* FROM {r} LEFT JOIN {s} ON {r}.{x} = {s}.{x}",
    "SELECT {r}.{x}, {s}.{y} FROM {r} FULL JOIN {s} ON {r}.{x} = {s}.{x}",
    "SELECT a.*, b.{x} AS other FROM {r} a, {s} b",
    "SELECT {x}, {y}, count(*) AS n FROM {r} GROUP BY GROUPING SETS (({x}), ({x}, {y}))",
    "SELECT *, row_number() OVER (PARTITION BY {x} ORDER BY {y}) AS place FROM {r}",
    "SELECT a.*, p.pos FROM {r} a LATERAL VIEW posexplode(array(a.{x}, a.{y})) p AS pos, item",
)


def no_types(_: Catalog, analysed: AnalysedQuery) -> Sequence[Type]:
    raise AssertionError(f"every type is known: {analysed}")


def value_schema(fields: Fields, id_: int) -> WrittenSchema:
    return WrittenSchema(json.dumps(record("r", *fields.items())), (), id_)


def world_of(random: Random) -> tuple[Planning, dict[str, Fields]]:
    """Two sources with keys and one without, and views over them and over each other."""
    world = Planning()
    fields: dict[str, Fields] = {}
    for name in ("k", "l", "a"):
        fields[name] = {x: "int" if random.random() < 0.6 else ["null", "int"] for x in ("x", "y", "z")}
        key = record("key", ("k", "int")) if name != "a" else None
        world.topic(name, key=key, value=record("r", *fields[name].items()))
        envelope = "ENVELOPE UPSERT" if name != "a" else ""
        world.do(f"CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}') {AVRO} {envelope}")
    relations = list(fields)
    for number in range(8):
        r, s = random.choice(relations), random.choice(relations)
        x, y = random.sample(("k", "x", "y", "z"), 2)
        query = random.choice(QUERIES).format(r=r, s=s, x=x, y=y)
        try:
            world.do(f"CREATE VIEW v{number} AS {query}")
        except HeadgateError:  # it has a column twice, or lacks one
            continue
        relations.append(f"v{number}")
    return world, fields


def changed(fields: Fields, random: Random) -> Fields:
    """One field becomes nullable or wider, is added, or goes."""
    new = dict(fields)
    name = random.choice(sorted(new))
    match random.randrange(4):
        case 0:
            new[name] = ["null", "int"]
        case 1:
            new[name] = "long" if new[name] == "int" else ["null", "long"]
        case 2:
            new[f"n{len(new)}"] = ["null", random.choice(("int", "string"))]
        case _:
            del new[name]
    return new


def follow(world: Planning, source: str, schema: WrittenSchema) -> FollowPlan:
    plan = plan_follow(world.catalog, world.named(source), [("VALUE", schema)], no_types)
    world.catalog = apply(world.catalog, *plan.changes)
    return plan


def made_now(world: Planning, view: Object) -> Object:
    query = definition_of(view, CreateView).query.text
    (change,) = world.change(f"CREATE VIEW again AS {query}").changes
    assert isinstance(change, ObjectCreated)
    return change.object


def shown(relation: Object) -> object:
    columns = [(c.name, print_type(c.type), c.nullable, c.key, c.origin) for c in relation.columns]
    return relation.growth, columns


def check(seed: int) -> Counter[str]:
    random = Random(seed)
    world, fields = world_of(random)
    halted: set[int] = set()
    seen: Counter[str] = Counter()
    for number in range(CHANGES):
        source = random.choice(sorted(fields))
        fields[source] = changed(fields[source], random)
        before = world.catalog
        plan = follow(world, source, value_schema(fields[source], 100 + number))
        halted |= {one.object for one in plan.consequences if one.outcome is Outcome.HALTS}
        for view in world.catalog.of_kind(Kind.VIEW):
            if view.id not in halted:
                assert shown(view) == shown(made_now(world, view)), f"seed {seed}: {view.statement}"
                seen["growth"] += view.growth is not before.get(view.id).growth
                seen["columns"] += len(view.columns) != len(before.get(view.id).columns)
    return seen


def test_a_followed_view_is_what_creating_it_now_would_give() -> None:
    start = Random().randrange(1 << 30)
    seen = sum((check(start + number) for number in range(COUNT)), Counter[str]())
    assert seen["columns"], f"no change reached a view: {seen}"


@pytest.fixture
def full_join() -> Planning:
    """A view whose key is only known because a column of it is never NULL."""
    world = Planning()
    for name in ("k", "l"):
        world.topic(name, value=record("r", ("x", "int"), ("y", "int")))
        keyed = "ENVELOPE UPSERT (KEY (x))"
        world.do(f"CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}') {AVRO} {keyed}")
    world.do("CREATE VIEW joined AS SELECT k.x, l.x AS other FROM k FULL JOIN l ON k.x = l.x")
    return world


def test_a_view_that_loses_its_key_by_a_change_is_changing_from_then_on(full_join: Planning) -> None:
    assert full_join.named("joined").growth is Growth.KEYED
    wider: Fields = {"x": ["null", "int"], "y": "int"}
    assert follow(full_join, "k", value_schema(wider, 100)).consequences
    assert full_join.named("joined").growth is Growth.KEYED  # the other side still tells rows apart
    plan = follow(full_join, "l", value_schema(wider, 101))
    joined = full_join.named("joined")
    assert joined.growth is Growth.CHANGING
    assert not any(column.key for column in joined.columns)
    sources = full_join.named("l").id
    expected = Consequence(joined.id, Outcome.OTHER_GROWTH, "changing", because_of=sources)
    assert expected in plan.consequences
