"""now() and the like, with the time of a batch in their place."""

from __future__ import annotations

import pytest

from headgate.sql.query import tree as n
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import Stability, Unstable
from tests.sql.query.relations import find_relation, find_small

pytestmark = pytest.mark.unit

TIME = "(SELECT `time` FROM hg_now)"


@pytest.mark.parametrize(
    ("written", "pinned"),
    [
        ("now()", TIME),
        ("current_timestamp", TIME),
        ("current_timestamp()", TIME),
        ("current_date", f"CAST({TIME} AS DATE)"),
        ("curdate()", f"CAST({TIME} AS DATE)"),
        ("localtimestamp", f"CAST({TIME} AS TIMESTAMP_NTZ)"),
        ("unix_timestamp()", f"UNIX_TIMESTAMP({TIME})"),
        ("'now'::timestamp", f"CAST({TIME} AS TIMESTAMP_NTZ)"),
        ("timestamptz 'now'", f"CAST({TIME} AS TIMESTAMP)"),
    ],
)
def test_the_time_of_a_batch_takes_the_place_of_a_function(written: str, pinned: str) -> None:
    analysed = analyse(f"SELECT id, {written} AS t FROM k", find_small)
    assert pinned not in analysed.spark_sql
    assert f"{pinned} AS `t`" in analysed.pinned.spark_sql
    tree = analysed.pinned.tree
    assert isinstance(tree, n.Project)
    assert tree.columns[1].value.sql == pinned
    assert Stability(tree, lambda _: Unstable()).result.columns[1] == {"now"}
    assert analysed.pinned.columns == analysed.columns


@pytest.mark.parametrize("written", ["unix_timestamp('2020', 'y')", "rand()", "date 'today'", "current_time()", "a"])
def test_everything_else_stays_as_it_is(written: str) -> None:
    analysed = analyse(f"SELECT id, {written} AS t FROM k", find_small)
    assert analysed.pinned is analysed


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("ts > 'now'", "now"),
        ("local <= ('NOW')", "now"),
        ("ts - 'now' > INTERVAL '1' DAY", "now"),
        ("to_timestamp('now') > ts", "now"),
        ("day = 'today'", "today"),
        ("day IN ('2026-01-01', 'tomorrow UTC')", "tomorrow"),
        ("day BETWEEN 'yesterday' AND '2030-01-01'", "yesterday"),
        ("day > date_sub('today', 7)", "today"),
        ("date('today') = day", "today"),
        ("coalesce(day, 'today') > '2026-01-01'", "today"),
        ("CASE WHEN n > 1 THEN day ELSE 'today' END > '2026-01-01'", "today"),
        ("CASE day WHEN 'today' THEN n END > 1", "today"),
    ],
)
def test_a_word_that_is_compared_or_combined_with_a_time_means_a_time(condition: str, word: str) -> None:
    """Spark parses it when it computes the query, so that the result changes with the time."""
    tree = analyse(f"SELECT id FROM orders WHERE {condition}", find_relation).tree
    assert Stability(tree, lambda _: Unstable()).result.rows == {word}


@pytest.mark.parametrize(
    "condition",
    ["Name = 'now'", "coalesce(Name, 'today') = 'now'", "to_date('today', 'y') > day", "day > '2026-01-01'"],
)
def test_the_same_word_is_a_text_elsewhere(condition: str) -> None:
    tree = analyse(f"SELECT id, 'today' AS t FROM orders WHERE {condition}", find_relation).tree
    assert Stability(tree, lambda _: Unstable()).result == Unstable((frozenset(), frozenset()))


def test_now_as_a_word_gets_the_time_of_a_batch() -> None:
    analysed = analyse("SELECT id FROM orders WHERE ts > 'now' AND local > 'now'", find_relation)
    assert f"`ts` > {TIME}" in analysed.pinned.spark_sql.replace("`orders`.", "").replace(
        f"CAST({TIME} AS TIMESTAMP)", TIME
    )
    assert f"`local` > CAST({TIME} AS TIMESTAMP_NTZ)" in analysed.pinned.spark_sql.replace("`orders`.", "")


def test_the_time_is_found_in_subqueries_and_common_tables() -> None:
    query = "WITH t AS (SELECT id FROM k WHERE now() > '2020-01-01') SELECT id FROM k WHERE a IN (SELECT id FROM t)"
    assert TIME in analyse(query, find_small).pinned.spark_sql
    query = "SELECT id FROM k WHERE EXISTS (SELECT 1 FROM k AS x WHERE x.id = k.id AND current_date > '2020-01-01')"
    tree = analyse(query, find_small).pinned.tree
    assert any(TIME in expression.sql for node in n.walk(tree) for expression in n.expressions_of(node))
