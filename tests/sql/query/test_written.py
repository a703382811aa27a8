"""The text that was written for each expression of a query, and its place in Spark's SQL."""

from __future__ import annotations

import pytest

from headgate.sql.query.select import analyse
from headgate.sql.query.written import LONGEST
from tests.sql.query.corpus import QUERIES
from tests.sql.query.relations import find_relation, resolve

pytestmark = pytest.mark.unit


def written(query: str) -> list[tuple[str, int | None, str]]:
    """Spark's SQL, the column and the written text of every expression."""
    analysed = analyse(query, find_relation, resolve)
    return [(analysed.spark_sql[w.start : w.end], w.column, w.text) for w in analysed.written]


def texts(expression: str) -> list[str]:
    return [text for _, _, text in written(f"SELECT {expression} AS x FROM orders")]


def test_a_part_of_an_expression_is_known_by_its_own_text() -> None:
    assert written("SELECT id, 1 + price / (n - 2) AS r FROM orders WHERE n::text = 'x'") == [
        ("1 + `orders`.`price` / (`orders`.`n` - 2)", 1, "1 + price / (n - 2)"),
        ("`orders`.`price` / (`orders`.`n` - 2)", 1, "price / (n - 2)"),
        ("(`orders`.`n` - 2)", 1, "(n - 2)"),
        ("`orders`.`n` - 2", 1, "n - 2"),
        ("CAST(`orders`.`n` AS STRING) = 'x'", None, "n::text = 'x'"),
        ("CAST(`orders`.`n` AS STRING)", None, "n::text"),
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(price AS decimal(10,2))",
        "name::json",
        "CASE WHEN price > 1 THEN 1 ELSE NULL END",
        "CASE n WHEN 1 THEN 2 END",
        "arr[0]",
        "ARRAY[1, NULL]",
        "coalesce(price, NULL)",
        "current_date()",
        "-(price * 2)",
        "NOT paid",
        "extract(year FROM ts)",
        "trim(both 'x' from name)",
        "substring(name from 2 for 3)",
        "position('a' in name)",
        "ts AT TIME ZONE 'Europe/Berlin'",
        "upper(name) || '!'",
        "transform(arr, x -> x + 1)",
        "(ROW(1, 2)::point).x",
    ],
)
def test_the_text_of_an_expression_is_whole(expression: str) -> None:
    assert texts(expression)[0] == expression


def test_comments_around_and_line_breaks_within_are_left_out() -> None:
    assert texts("/* the price */ price\n   / n -- by number\n")[0] == "price / n"


def test_a_long_expression_is_cut() -> None:
    (text, *_) = texts(" + ".join(["price"] * 100))
    assert text == ("price + " * 20)[: LONGEST - 1] + "…"


def test_the_same_expression_in_two_columns_is_found_twice() -> None:
    assert [(column, text) for _, column, text in written("SELECT 1 / n AS a, 1 / n AS b FROM orders")] == [
        (0, "1 / n"),
        (1, "1 / n"),
    ]


def test_a_column_of_a_subquery_is_none_of_the_query() -> None:
    query = "SELECT r + 1 AS s FROM (SELECT 1 / n AS r FROM orders) AS t"
    assert [(column, text) for _, column, text in written(query)] == [(0, "r + 1"), (None, "1 / n")]


def test_what_is_very_deep_is_found_down_to_some_level_in_a_short_time() -> None:
    deep = "(" * 300 + "1 / n" + " + 1)" * 300
    assert texts(deep)[0].startswith("(((")


@pytest.mark.parametrize("query", QUERIES)
def test_every_written_text_is_a_part_of_the_query(query: str) -> None:
    words = " ".join(query.split())
    for _, _, text in written(query):
        assert text.removesuffix("…") in words


@pytest.mark.parametrize("query", QUERIES)
def test_expressions_are_known_also_after_the_tree_was_built(query: str) -> None:
    one, other = (analyse(query, find_relation, resolve) for _ in range(2))
    assert other.tree is not None
    assert one.written == other.written
