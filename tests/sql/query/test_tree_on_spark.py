"""The tree of a query gives the same rows as the query itself when Spark runs both."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from pyspark.sql import SparkSession

from headgate.sql.query.growth import derive
from headgate.sql.query.scope import AnalysedQuery, Relation
from headgate.sql.query.select import analyse
from headgate.sql.query.tree_sql import spark_sql
from tests.spark import small_frame
from tests.sql.query.random_queries import GROWTHS, Contents, Queries, find_relation
from tests.sql.query.relations import find_small
from tests.sql.query.test_growth import CASES
from tests.sql.query.test_growth_law import check_claim

pytestmark = pytest.mark.spark

# Their rows differ from run to run, or depend on an order that nobody asked for.
UNSTEADY = ("rand()", "now()", "unix_timestamp()", "LIMIT")
QUERIES = [query for line in CASES.splitlines() if (query := line.partition("->")[0].strip())]
STEADY = [query for query in QUERIES if not any(word in query for word in UNSTEADY)]

SMALL = "id bigint not null, a int, b string, tags array<string>, m map<string, int>"
ROWS = [
    (1, 2, "1", ["p", "q"], {"u": 1, "v": 2}),
    (2, None, "2", [], {}),
    (3, 2, None, None, None),
    (4, 1, "3", ["p", None], {"u": None}),
]


@cache
def with_small_relations(session: SparkSession) -> SparkSession:
    for name, shift in (("k", 0), ("l", 1), ("k2", 2), ("ap", 0), ("ap2", 1), ("ch", 2)):
        rows = [(id_ + shift, *rest) for id_, *rest in ROWS]
        small_frame(session, rows, SMALL).createOrReplaceTempView(name)
    return session


Rows = Counter[tuple[object, ...]]


def both(session: SparkSession, analysed: AnalysedQuery) -> tuple[Rows, Rows]:
    """The rows of the query, and those of its tree. Values are compared as they print, because maps do not hash."""
    return rows_of(session, analysed.spark_sql), rows_of(session, spark_sql(analysed.tree))


def rows_of(session: SparkSession, text: str) -> Rows:
    return Counter(tuple(map(str, row)) for row in session.sql(text).collect())


@pytest.mark.parametrize("query", STEADY)
def test_the_tree_of_a_query_gives_its_rows(session: SparkSession, query: str) -> None:
    whole, tree = both(with_small_relations(session), analyse(query, find_small))
    assert tree == whole


@pytest.mark.parametrize("seed", range(12))
def test_random_queries_do_as_their_trees_say(session: SparkSession, seed: int) -> None:
    random = Random(seed)
    query, contents = Queries(random).query(), Contents(random)
    analysed = analyse(query.text.ours, lambda parts: _random(find_relation(parts)))
    claimed = derive(analysed.tree, lambda read: GROWTHS[read.name])
    before: Rows = Counter()
    for _ in range(2):
        contents.change()
        write(session, contents)
        whole, tree = both(session, analysed)
        assert tree == whole, query.text.ours
        check_claim(claimed, before, whole, query.text.ours)
        before = whole


def write(session: SparkSession, contents: Contents) -> None:
    for name, rows in contents.rows().items():
        typed = [(*row[:3], json.loads(row[3]) if row[3] is not None else None) for row in rows]
        frame = small_frame(session, typed, "id bigint, a int, b int, tags array<int>")
        frame.createOrReplaceTempView(f"random_{name}")


def _random(relation: Relation) -> Relation:
    return replace(relation, spark_name=f"random_{relation.name.name}")
