"""CREATE VIEW and CREATE TYPE: columns, docs, keys, and what they need."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import column_comment
from headgate.catalog.changes import ColumnsChanged, apply
from headgate.catalog.errors import DependencyCycle, UnknownColumn as UnknownColumnOfObject, UnknownObject, WrongKind
from headgate.catalog.objects import Dependency, DependencyKind, Growth, Object
from headgate.plan.errors import ColumnOfUnknownType, ColumnTwice, ReplacementBreaks, TooManyNames
from headgate.plan.plans import Outcome
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.sql.errors import UnknownColumn
from tests.plan.planning import AVRO, Planning, record

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    world = Planning()
    value = {
        **record("v"),
        "fields": [
            {"name": "item", "type": "string", "doc": "what was bought"},
            {"name": "price", "type": ["null", "double"]},
        ],
    }
    world.topic("t", key=record("k", ("id", "long")), value=value)
    world.do(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE clicks FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO} INCLUDE KEY;"
        f"CREATE SOURCE bare FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO}"
    )
    return world


def columns(made: Object) -> list[str]:
    return [
        f"{c.name} {print_type(c.type)}{'' if c.nullable else ' not null'}{' key' if c.key else ''}"
        for c in made.columns
    ]


def view(world: Planning, text: str) -> Object:
    world.do(f"CREATE VIEW v {text}")
    return world.named("v")


# columns


def test_columns_have_the_names_types_and_nullability_of_the_query(world: Planning) -> None:
    made = view(world, "AS SELECT id, price * 2 AS twice, 1 AS one, item || '!' AS loud FROM clicks")
    assert columns(made) == ["id bigint", "twice double", "one integer not null", "loud text not null"]


def test_a_relation_can_be_called_by_its_own_name_in_the_query(world: Planning) -> None:
    made = view(world, "AS SELECT clicks.item, o.price FROM Clicks JOIN orders AS o ON clicks.id = o.id")
    assert [c.name for c in made.columns] == ["item", "price"]


def test_a_list_renames_by_position_and_leaves_the_rest(world: Planning) -> None:
    assert columns(view(world, "(a, b) AS SELECT item, price, id FROM clicks")) == [
        "a text not null",
        "b double",
        "id bigint",
    ]


def test_too_many_names_are_refused(world: Planning) -> None:
    with pytest.raises(TooManyNames):
        view(world, "(a, b) AS SELECT item FROM clicks")


def test_two_columns_of_one_name_are_refused_and_a_list_cures_it(world: Planning) -> None:
    with pytest.raises(ColumnTwice):
        view(world, "AS SELECT item, item FROM clicks")
    assert columns(view(world, "(a, b) AS SELECT item, item FROM clicks")) == [
        "a text not null",
        "b text not null",
    ]


def test_a_column_must_have_a_type(world: Planning) -> None:
    with pytest.raises(ColumnOfUnknownType) as caught:
        view(world, "AS SELECT schema_of_json(item) AS found FROM clicks")
    assert caught.value.hint() == "Write a cast to the type that it has, as in (…)::text."
    assert columns(view(world, "AS SELECT schema_of_json(item)::text AS found FROM clicks")) == ["found text"]


def test_an_unknown_column_lists_the_columns_if_they_are_few_and_none_is_near(world: Planning) -> None:
    with pytest.raises(UnknownColumn) as caught:
        view(world, "AS SELECT zzz FROM clicks")
    assert caught.value.hint() == "The columns are id, item, price."
    with pytest.raises(UnknownColumn) as near:
        view(world, "AS SELECT prise FROM clicks")
    assert near.value.hint() == 'Did you mean "price"?'
    many = ", ".join(f"{n} AS c{n}" for n in range(11))
    with pytest.raises(UnknownColumn) as wide:
        view(world, f"AS SELECT zzz FROM (SELECT {many}) AS t")
    assert wide.value.hint() is None
    with pytest.raises(UnknownColumnOfObject) as commented:
        world.do("COMMENT ON COLUMN clicks.zzz IS 'x'")
    assert commented.value.hint() == "The columns are id, item, price."


def test_a_column_that_a_source_drops_says_how_to_have_it(world: Planning) -> None:
    with pytest.raises(UnknownColumn) as caught:
        view(world, "AS SELECT id FROM bare")
    assert caught.value.hint() == (
        'It is a field of the key, which source "bare" drops: add INCLUDE KEY to the source.'
    )


def test_a_key_that_is_kept_under_another_name_is_not_called_dropped(world: Planning) -> None:
    world.do(f"CREATE SOURCE whole FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO} INCLUDE KEY AS k")
    with pytest.raises(UnknownColumn) as caught:
        view(world, "AS SELECT id FROM whole")
    assert "INCLUDE KEY" not in str(caught.value.hint())


def test_the_key_of_a_text_topic_is_missed_with_the_same_hint(world: Planning) -> None:
    world.do("CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 't') FORMAT TEXT")
    with pytest.raises(UnknownColumn) as caught:
        view(world, "AS SELECT key FROM lines")
    assert "add INCLUDE KEY" in str(caught.value.hint())


# docs


def test_docs_follow_plain_projections_and_renames_through_views(world: Planning) -> None:
    world.do(
        "CREATE VIEW a AS SELECT item AS what, upper(item) AS loud FROM clicks;"
        "CREATE VIEW b (thing) AS SELECT what FROM a"
    )
    what, loud = world.named("a").columns
    assert column_comment(world.catalog, what) == "what was bought"
    assert column_comment(world.catalog, loud) is None
    assert column_comment(world.catalog, world.named("b").columns[0]) == "what was bought"


def test_a_comment_upstream_is_seen_downstream_at_once(world: Planning) -> None:
    world.do("CREATE VIEW a AS SELECT item FROM clicks; COMMENT ON COLUMN clicks.item IS 'goods'")
    assert column_comment(world.catalog, world.named("a").columns[0]) == "goods"


# kind and key


@pytest.mark.parametrize(
    ("query", "growth", "key"),
    [
        ("SELECT * FROM orders", Growth.KEYED, ["id"]),
        ("SELECT price, id AS number FROM orders WHERE price > 1", Growth.KEYED, ["number"]),
        ("SELECT id, id AS again FROM orders", Growth.KEYED, ["id"]),
        ("SELECT item FROM orders", Growth.CHANGING, []),
        ("SELECT id + 1 AS id FROM orders", Growth.CHANGING, []),
        ("SELECT id, count(*) AS n FROM clicks GROUP BY id", Growth.KEYED, ["id"]),
        ("SELECT name FROM headgate_catalog.objects", Growth.CHANGING, []),
        ("SELECT 1 AS one", Growth.APPEND, []),
        ("SELECT * FROM clicks", Growth.APPEND, []),
    ],
)
def test_filter_and_projection_keep_the_key_if_it_survives(
    world: Planning, query: str, growth: Growth, key: list[str]
) -> None:
    made = view(world, f"AS {query}")
    assert made.growth is growth
    assert [c.name for c in made.columns if c.key] == key


# what it needs


def test_a_view_depends_on_what_it_reads(world: Planning) -> None:
    made = view(world, "AS SELECT o.id FROM orders AS o JOIN clicks AS c ON o.id = c.id")
    assert made.dependencies == tuple(Dependency(world.named(n).id, DependencyKind.READS) for n in ("orders", "clicks"))


def test_a_missing_relation_is_named_with_what_is_near(world: Planning) -> None:
    with pytest.raises(UnknownObject) as caught:
        view(world, "AS SELECT * FROM order")
    assert caught.value.similar == ("orders",)


def test_a_type_is_no_relation(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer)")
    with pytest.raises(WrongKind):
        view(world, "AS SELECT * FROM point")


# CREATE OR REPLACE


def test_replacing_a_view_keeps_its_id_and_its_columns_ids_by_name(world: Planning) -> None:
    before = view(world, "AS SELECT item, price FROM clicks")
    world.do("COMMENT ON COLUMN v.price IS 'in EUR'")
    world.do("CREATE OR REPLACE VIEW v AS SELECT price, id FROM clicks")
    after = world.named("v")
    assert after.id == before.id
    assert [(c.name, c.id) for c in after.columns] == [("price", 2), ("id", 3)]
    assert column_comment(world.catalog, after.columns[0]) == "in EUR"


def test_a_column_that_comes_back_is_a_new_one(world: Planning) -> None:
    view(world, "AS SELECT item, price FROM clicks")
    world.do("CREATE OR REPLACE VIEW v AS SELECT item FROM clicks")
    world.do("CREATE OR REPLACE VIEW v AS SELECT item, price FROM clicks")
    assert [(c.name, c.id) for c in world.named("v").columns] == [("item", 1), ("price", 3)]


def test_a_view_in_use_may_get_other_columns_if_its_users_can_do_without(world: Planning) -> None:
    view(world, "AS SELECT item, price FROM clicks")
    world.do("CREATE VIEW w AS SELECT price FROM v; CREATE VIEW x AS SELECT * FROM w")
    world.do("CREATE OR REPLACE VIEW v AS SELECT id, price FROM clicks")
    world.do("CREATE OR REPLACE VIEW v AS SELECT 1 AS price FROM clicks")
    assert columns(world.named("x")) == ["price integer not null"]
    with pytest.raises(ReplacementBreaks) as caught:
        world.do("CREATE OR REPLACE VIEW v AS SELECT item FROM clicks")
    assert [(kind, name) for kind, name, _ in caught.value.broken] == [("view", "w"), ("view", "x")]
    assert 'column "price" does not exist' in caught.value.detail()


def test_a_list_of_names_does_not_come_to_mean_other_columns(world: Planning) -> None:
    view(world, "AS SELECT item, id FROM clicks")
    world.do("CREATE VIEW w (what, number) AS SELECT * FROM v")
    with pytest.raises(ReplacementBreaks) as caught:
        world.do("CREATE OR REPLACE VIEW v AS SELECT id, item FROM clicks")
    assert 'column "what" would be another one' in caught.value.detail()


@pytest.fixture
def fed(world: Planning) -> Planning:
    """Two views over each other, and three sinks over them: with a key, with a key in another view, and without one."""
    into = "INTO KAFKA CONNECTION kafka (TOPIC '{}')"
    world.do(
        "CREATE VIEW v AS SELECT id, price FROM orders; CREATE VIEW w AS SELECT id, price AS cost FROM v;"
        f"CREATE SINK newest FROM v {into.format('newest')} KEY (id) FORMAT JSON;"
        f"CREATE SINK costs FROM w {into.format('costs')} KEY (id) FORMAT JSON;"
        f"CREATE SINK every FROM w {into.format('every')} FORMAT JSON ENVELOPE NONE"
    )
    return world


def test_replacing_a_view_says_what_each_sink_does(fed: Planning) -> None:
    (planned,) = fed.do("CREATE OR REPLACE VIEW v AS SELECT id, price FROM orders WHERE price > 1")
    told = {fed.catalog.get(c.object).name: c.outcome for c in planned.consequences}
    assert told == {"newest": Outcome.IN_STEP, "costs": Outcome.IN_STEP, "every": Outcome.GOES_ON}
    assert {c.because_of for c in planned.consequences} == {fed.named("v").id}
    assert sorted(planned.notices)[-1] == (
        'sink "newest" is brought in step: rows that the new query gives otherwise are written again, and keys '
        "that it does not give are deleted"
    )


def test_a_sink_that_never_deletes_goes_on_from_where_it_is(world: Planning) -> None:
    world.do(
        "CREATE VIEW v AS SELECT id, item FROM clicks;"
        "CREATE SINK s FROM v INTO KAFKA CONNECTION kafka (TOPIC 's') KEY (id) NOT ENFORCED FORMAT JSON"
    )
    (planned,) = world.do("CREATE OR REPLACE VIEW v AS SELECT id, item FROM clicks WHERE id > 1")
    assert [c.outcome for c in planned.consequences] == [Outcome.GOES_ON]


def test_replacing_a_view_by_the_same_query_changes_no_sink(fed: Planning) -> None:
    (planned,) = fed.do("CREATE OR REPLACE VIEW v AS SELECT  id, price FROM orders")
    assert {c.outcome for c in planned.consequences} == {Outcome.UNCHANGED}
    assert planned.notices == ()


def test_a_query_with_which_sinks_no_longer_work_is_refused_with_all_of_them(fed: Planning) -> None:
    before = fed.catalog
    with pytest.raises(ReplacementBreaks) as caught:
        fed.do("CREATE OR REPLACE VIEW v AS SELECT id + 0 AS id, price FROM orders")
    assert caught.value.message() == 'cannot replace view "v": 3 objects that read it would no longer work'
    assert sorted((kind, name) for kind, name, _ in caught.value.broken) == [
        ("sink", "costs"),
        ("sink", "every"),
        ("sink", "newest"),
    ]
    assert 'sink "costs": sink "costs" cannot write view "w": its rows change' in caught.value.detail()
    assert fed.catalog is before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, price FROM orders WHERE rand() > 0.5",
        "SELECT id, price * rand() AS price FROM orders",
        "SELECT id, max(price) AS price FROM orders GROUP BY id",
    ],
)
def test_a_query_that_no_sink_takes_cannot_replace_a_view_under_one(fed: Planning, query: str) -> None:
    with pytest.raises(ReplacementBreaks):
        fed.do(f"CREATE OR REPLACE VIEW v AS {query}")


def test_the_columns_under_a_sink_stay(fed: Planning) -> None:
    with pytest.raises(ReplacementBreaks) as caught:
        fed.do("CREATE OR REPLACE VIEW v AS SELECT id, price, item FROM orders")
    assert caught.value.broken == (("sink", "newest", "the columns that it writes would be others"),)


def test_views_over_a_replaced_one_get_its_kind_and_key(world: Planning) -> None:
    world.do(
        "CREATE VIEW v AS SELECT id, price FROM orders; CREATE VIEW w AS SELECT * FROM v; CREATE VIEW x AS SELECT id FROM w"
    )
    world.do("CREATE OR REPLACE VIEW v AS SELECT id + 0 AS id, price FROM orders")
    assert [world.named(name).growth for name in "vwx"] == [Growth.CHANGING] * 3
    world.do("CREATE OR REPLACE VIEW v AS SELECT id, price FROM orders")
    assert [world.named(name).growth for name in "vwx"] == [Growth.KEYED] * 3
    assert [[c.name for c in world.named(name).columns if c.key] for name in "vwx"] == [["id"]] * 3


def test_a_sink_that_did_not_work_before_does_not_hold_a_replacement(fed: Planning) -> None:
    fed.catalog = apply(fed.catalog, ColumnsChanged(fed.named("w").id, fed.named("w").columns, Growth.CHANGING))
    fed.do("CREATE OR REPLACE VIEW v AS SELECT id, price FROM orders WHERE price > 2")
    assert fed.named("w").growth is Growth.KEYED


def test_a_view_cannot_read_itself(world: Planning) -> None:
    view(world, "AS SELECT item FROM clicks")
    with pytest.raises(DependencyCycle):
        world.do("CREATE OR REPLACE VIEW v AS SELECT item FROM v")


def test_replacing_what_is_no_view_is_refused(world: Planning) -> None:
    with pytest.raises(WrongKind):
        world.do("CREATE OR REPLACE VIEW clicks AS SELECT 1 AS one")


# types


def test_types_hold_fields_lists_maps_and_other_types_by_full_name(world: Planning) -> None:
    world.do(
        "CREATE TYPE point AS (x integer NOT NULL, y integer);"
        "CREATE TYPE line AS LIST (ELEMENT TYPE = point);"
        "CREATE TYPE places AS MAP (VALUE TYPE = point);"
        "CREATE TYPE colour AS enum('red', 'green')"
    )
    assert columns(world.named("point")) == ["x integer not null", "y integer"]
    assert world.named("line").body == parse_type("array<headgate.public.point>")
    assert world.named("places").body == parse_type("map<text, headgate.public.point>")
    assert world.named("colour").body == parse_type("enum('red', 'green')")
    assert world.named("line").dependencies == (Dependency(world.named("point").id, DependencyKind.TYPE),)


def test_a_type_of_an_unknown_type_is_refused(world: Planning) -> None:
    with pytest.raises(UnknownObject) as caught:
        world.do("CREATE TYPE line AS LIST (ELEMENT TYPE = pont)")
    assert caught.value.kind == "type"


def test_a_query_can_cast_to_a_type_and_read_its_fields(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer, y integer)")
    world.do("CREATE VIEW p AS SELECT ROW(1, 2)::point AS p FROM clicks")
    world.do("CREATE VIEW x AS SELECT (p).x FROM p")
    assert columns(world.named("x")) == ["x integer"]
