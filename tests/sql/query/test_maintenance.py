"""How each kind of query is kept, and which queries cannot be kept."""

from __future__ import annotations

import pytest

from headgate.schema.types import Bigint
from headgate.sql.query.growth import Append, Changing, Growth, Keyed
from headgate.sql.query.maintenance import Maintenance, maintain, undetermined
from headgate.sql.query.select import analyse
from tests.sql.query.signed_queries import find_relation

pytestmark = pytest.mark.unit

GROWTHS: dict[str, Growth] = {"k": Keyed((0,)), "bag": Changing("It has no key."), "ap": Append()}


def kept(query: str) -> Maintenance:
    analysed = analyse(query, find_relation)
    columns = [(column.name, column.type or Bigint()) for column in analysed.columns]
    return maintain(analysed.tree, columns, lambda read: GROWTHS[read.name])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, a + 1 AS n FROM ap WHERE b > 0",
        "SELECT id FROM ap UNION ALL SELECT id FROM bag",
        "SELECT a, count(*) AS n, sum(d) AS s, avg(b) AS m, max(s) AS t FROM ap GROUP BY a HAVING count(*) > 1",
        "SELECT count(*) AS n FROM bag",
        "SELECT DISTINCT a FROM ap",
        # what to write instead of EXCEPT
        "SELECT x FROM (SELECT a AS x, 1 AS l, 0 AS r FROM bag UNION ALL SELECT b, 0, 1 FROM k) AS t GROUP BY x "
        "HAVING sum(l) > 0 AND sum(r) = 0",
        "SELECT window(timestamp_seconds(id), '1 minute') AS w, sum(a) AS n FROM bag GROUP BY window(timestamp_seconds(id), '1 minute')",
    ],
)
def test_these_queries_read_only_the_changes(query: str) -> None:
    made = kept(query)
    assert made.incremental
    assert {version for _, version in made.reads} == {"changes"}


@pytest.mark.parametrize(
    ("query", "versions"),
    [
        ("SELECT k.id FROM k JOIN ap ON k.a = ap.a", {"changes", "now", "before"}),
        ("SELECT a, max(b) AS m FROM bag GROUP BY a", {"changes", "now"}),
        ("SELECT a, count(DISTINCT b) AS n FROM ap GROUP BY a", {"changes", "now"}),
        ("SELECT a, avg(id) AS m FROM ap GROUP BY a", {"changes", "now"}),
        ("SELECT a, median(b) AS m, percentile(b, 0.9) AS p FROM ap GROUP BY a", {"changes", "now"}),
        ("SELECT a, count(*) FILTER (WHERE b > 0) AS n FROM ap GROUP BY a", {"changes", "now"}),
    ],
)
def test_these_queries_read_all_rows_of_what_changed(query: str, versions: set[str]) -> None:
    made = kept(query)
    assert made.incremental
    assert {version for _, version in made.reads} == versions


@pytest.mark.parametrize(
    ("query", "operator", "why"),
    [
        ("SELECT k.id FROM k LEFT JOIN ap ON k.a = ap.a", "left join", "first or last partner"),
        ("SELECT id FROM k EXCEPT SELECT id FROM ap", "EXCEPT", "how often it is on both sides"),
        ("SELECT id, rank() OVER (ORDER BY a) AS r FROM k", "window function rank", "all rows of its partition"),
        (
            "SELECT id, row_number() OVER (ORDER BY a) AS r FROM k",
            "window function row_number",
            "all rows of its partition",
        ),
        ("SELECT id FROM k ORDER BY id LIMIT 3", "LIMIT", "when another one comes"),
        (
            "SELECT id FROM ap GROUP BY id, session_window(timestamp_seconds(id), '1 minute')",
            "GROUP BY (id, key)",
            "two become one",
        ),
        ("SELECT id, session_window(timestamp_seconds(id), '1 minute') AS w FROM ap", "projection", "two become one"),
        ("SELECT a, count(*) AS n FROM k GROUP BY ROLLUP (a)", "GROUP BY (a)", "every grouping set"),
        ("SELECT id FROM k WHERE a IN (SELECT b FROM ap)", "filter", "has a subquery"),
        ("SELECT k.id FROM k JOIN (SELECT max(a) AS m FROM ap) AS t ON k.a = t.m", "aggregate of all rows", "all rows"),
    ],
)
def test_these_queries_are_computed_anew_and_say_why(query: str, operator: str, why: str) -> None:
    made = kept(query)
    assert not made.incremental
    (note,) = [note for note in made.notes if note.how == "recomputed"]
    assert note.operator == operator
    assert why in note.why


def test_rows_of_a_linear_query_over_rows_that_only_come_need_no_consolidation() -> None:
    assert kept("SELECT id FROM ap WHERE a > 0").grows
    assert not kept("SELECT DISTINCT id FROM ap").grows
    assert not kept("SELECT id FROM k").grows


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT collect_list(a) AS l FROM ap", "collect_list depends on the order in which rows are read"),
        ("SELECT first(a) AS f FROM ap", "first depends on the order"),
        ("SELECT id, first_value(b) OVER (ORDER BY a) AS n FROM ap", "rows that are equal in ORDER BY"),
        ("SELECT id, row_number() OVER (PARTITION BY a) AS n FROM ap", "rows that are equal in ORDER BY"),
        ("SELECT id FROM ap WHERE a IN (SELECT lag(b) OVER (ORDER BY a) FROM k)", "rows that are equal in ORDER BY"),
        ("SELECT id FROM ap LIMIT 3", "LIMIT without ORDER BY"),
        ("SELECT id FROM ap WHERE a = (SELECT b FROM k ORDER BY b LIMIT 1)", "LIMIT in a subquery"),
    ],
)
def test_a_query_whose_result_depends_on_the_order_of_rows_is_found(query: str, why: str) -> None:
    found = undetermined(analyse(query, find_relation).tree)
    assert found is not None
    assert why in found.why


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, sum(b) AS s, rank() OVER (ORDER BY a) AS r FROM ap GROUP BY a ORDER BY a LIMIT 3",
        "SELECT a, sort_array((collect_list(b)), false) AS l, size(collect_set(b)) AS n FROM ap GROUP BY a",
        "SELECT a, array_sort(array_agg(DISTINCT b) FILTER (WHERE b > 0)) AS l FROM ap GROUP BY a HAVING size(collect_list(b)) > 1",
        "SELECT a, listagg(s, ',') WITHIN GROUP (ORDER BY s DESC) AS l FROM ap GROUP BY a",
        "SELECT a, string_agg(DISTINCT s) WITHIN GROUP (ORDER BY s) AS l FROM ap GROUP BY a",
        "SELECT a, mode() WITHIN GROUP (ORDER BY b) AS l FROM ap GROUP BY a",
    ],
)
def test_a_query_whose_rows_determine_its_result_is_not(query: str) -> None:
    assert undetermined(analyse(query, find_relation).tree) is None


@pytest.mark.parametrize(
    ("query", "instead"),
    [
        ("SELECT sort_array(collect_list(a)) AS l, collect_list(a) AS m FROM ap", "sort_array"),
        ("SELECT array_sort(collect_list(a), (x, y) -> 0) AS l FROM ap", "sort_array"),
        ("SELECT slice(collect_list(a), 1, 2) AS l FROM ap", "sort_array"),
        ("SELECT listagg(s) WITHIN GROUP (ORDER BY id) AS l FROM ap", "with the value itself"),
        ("SELECT mode(a) AS m FROM ap", "mode() WITHIN GROUP"),
        ("SELECT max_by(a, b) AS m FROM ap", "max(struct(y, x)).x"),
        ("SELECT any_value(a) AS m FROM ap", "min or max"),
        ("SELECT last_value(b) OVER (ORDER BY a) AS m FROM ap", "a frame of ROWS"),
    ],
)
def test_what_to_write_for_a_result_that_the_rows_do_not_determine(query: str, instead: str) -> None:
    found = undetermined(analyse(query, find_relation).tree)
    assert found is not None
    assert instead in found.instead
