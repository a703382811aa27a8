"""Analyses of queries are kept, and made again when anything that they were made from has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.plan.relations import analyse_query
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Query
from tests.plan.planning import Planning, record

pytestmark = pytest.mark.unit

TEXT = "SELECT id, item, CAST(id AS amount) AS paid FROM v"


@pytest.fixture
def world() -> Planning:
    world = Planning()
    world.catalog = replace(world.catalog, analyses={})
    world.topic("t", value=record("v", ("id", "long"), ("item", "string")))
    world.do(
        "CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 't') FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;"
        "CREATE TYPE amount AS decimal(10, 2);"
        "CREATE SCHEMA other;"
        "CREATE VIEW v AS SELECT id, item FROM s"
    )
    return world


def analysed(world: Planning) -> AnalysedQuery:
    return analyse_query(world.catalog, world.path, Query(TEXT))


def test_a_query_is_analysed_once_while_nothing_that_it_reads_changes(world: Planning) -> None:
    first = analysed(world)
    world.do("CREATE VIEW unrelated AS SELECT item FROM s; CREATE SCHEMA third")
    assert analysed(world) is first


@pytest.mark.parametrize(
    ("change", "column", "attribute"),
    [
        ("COMMENT ON COLUMN s.item IS 'what was bought'", 1, "doc"),
        ("CREATE OR REPLACE VIEW v AS SELECT id, concat(item, NULL) AS item FROM s", 1, "nullable"),
        ("DROP TYPE amount; CREATE TYPE amount AS decimal(12, 2)", 2, "type"),
    ],
    ids=["a comment two levels up", "another definition", "another type of the same name"],
)
def test_a_change_of_what_a_query_reads_is_seen(world: Planning, change: str, column: int, attribute: str) -> None:
    before = getattr(analysed(world).columns[column], attribute)
    world.do(change)
    assert getattr(analysed(world).columns[column], attribute) != before


def test_a_name_that_means_another_object_by_now_is_looked_up_again(world: Planning) -> None:
    world.path = replace(world.path, entries=(("headgate", "other"), *world.path.entries))
    before = analysed(world).relations
    world.do("CREATE VIEW v AS SELECT id, item FROM public.s")
    assert analysed(world).relations != before


def test_an_analysis_of_what_is_gone_is_not_used(world: Planning) -> None:
    analysed(world)
    world.do("ALTER VIEW v RENAME TO w")
    with pytest.raises(Exception, match='relation "v" does not exist'):
        analysed(world)
