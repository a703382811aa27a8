"""What is known of a query before it runs, and the errors that are found then."""

from __future__ import annotations

import re

import pytest

from headgate.errors import HeadgateError
from headgate.schema.render import print_type
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import ColumnRef, RelationName
from tests.sql.query.relations import find_relation, resolve

pytestmark = pytest.mark.unit


def analysed(query: str) -> AnalysedQuery:
    return analyse(query, find_relation, resolve)


def shown(query: str) -> list[str]:
    return [
        f"{c.name} {print_type(c.type) if c.type else '?'}{'' if c.nullable else ' not null'}"
        for c in analysed(query).columns
    ]


def failure(query: str) -> str:
    with pytest.raises(HeadgateError) as caught:
        analysed(query)
    return caught.value.diagnostic(query).render()


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT ID, name FROM orders", ["id bigint not null", "Name text not null"]),
        ("SELECT (k).f, k.g.h FROM orders", ["f integer", "h text"]),
        ("SELECT price * 2 FROM orders", ["?column? double"]),
        ("SELECT count(*), max(ts) FROM orders", ["count bigint not null", "max timestamptz"]),
        ("SELECT id::text FROM orders", ["id text not null"]),
        ("SELECT arr[0], m['a'] FROM orders", ["arr integer", "m double"]),
        ("SELECT ROW(1, 2)::point AS p", ["p record(x integer, y integer) not null"]),
        (
            "SELECT '3'::integer AS a, name::integer AS b, TRY_CAST('3' AS integer) AS c FROM orders",
            ["a integer not null", "b integer", "c integer"],
        ),
        ("SELECT c.id FROM orders o LEFT JOIN customers c ON o.id = c.id", ["id bigint"]),
        ("SELECT CASE WHEN paid THEN 1 END AS c FROM orders", ["c integer"]),
        ("SELECT _meta FROM orders", ["_meta text not null"]),
        ("VALUES (1, 'a'), (2, 'b')", ["col1 integer not null", "col2 text not null"]),
        ("SELECT j ->> 'a' AS a, j -> 'b' AS b FROM orders", ["a text", "b json"]),
        ("SELECT session_window(ts, '1 minute') AS w FROM orders", ["w ?"]),
    ],
)
def test_output_columns_are_named_and_typed(query: str, columns: list[str]) -> None:
    assert shown(query) == columns


def test_a_star_leaves_hidden_columns_out() -> None:
    assert "_meta" not in [c.name for c in analysed("SELECT * FROM orders").columns]


def test_docs_follow_plain_projections_and_renames_but_not_expressions() -> None:
    columns = analysed("SELECT id AS number, (price), price + 1 AS more FROM orders").columns
    assert [c.doc for c in columns] == ["the order's number", "in EUR", None]
    assert columns[0].origin == ColumnRef(1, 1)


def test_the_doc_of_a_field_follows_what_is_nothing_but_that_field() -> None:
    query = "SELECT k.g.h AS a, ((k).g).h, upper(k.g.h) AS b, k.f FROM orders"
    assert [c.doc for c in analysed(query).columns] == ["its height", "its height", None, None]


def test_docs_follow_through_subqueries_and_common_tables() -> None:
    query = "WITH a AS (SELECT price AS p FROM orders) SELECT q FROM (SELECT p AS q FROM a) AS b"
    assert [c.doc for c in analysed(query).columns] == ["in EUR"]


@pytest.mark.parametrize(
    ("query", "row_by_row"),
    [
        ("SELECT id FROM orders WHERE price > 1", True),
        ("SELECT id, x FROM orders LATERAL VIEW explode(arr) e AS x", True),
        ("SELECT a FROM (SELECT id AS a FROM orders) AS t WHERE a > 1", True),
        ("SELECT count(*) FROM orders", False),
        ("SELECT DISTINCT id FROM orders", False),
        ("SELECT id FROM orders LIMIT 1", False),
        ("SELECT id FROM orders ORDER BY id", False),
        ("SELECT o.id FROM orders o JOIN customers c ON o.id = c.id", False),
        ("SELECT id FROM orders UNION ALL SELECT id FROM customers", False),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM customers)", False),
        ("SELECT row_number() OVER (ORDER BY id) AS n FROM orders", False),
        ("SELECT 1", False),
    ],
)
def test_a_query_is_stateless_if_each_row_comes_from_one(query: str, row_by_row: bool) -> None:
    assert analysed(query).row_by_row is row_by_row


def test_relations_are_listed_once_and_common_tables_are_none() -> None:
    query = "WITH a AS (SELECT id FROM orders) SELECT a.id FROM a JOIN orders o ON a.id = o.id"
    assert analysed(query).relations == (RelationName("orders", 1),)


def test_a_call_without_signature_has_no_type_until_spark_gives_one() -> None:
    assert [column.type for column in analysed("SELECT session_window(ts, '1 minute') AS w FROM orders").columns] == [
        None
    ]


def test_spellings_of_postgres_become_those_of_spark() -> None:
    query = "SELECT `id`::text || $$it's$$ AS t, (k).f FROM orders o WHERE \"Name\" ~ '^a' AND arr[0] <=> 1"
    assert analysed(query).spark_sql == (
        "SELECT CAST(`o`.`id` AS STRING) || 'it\\'s' AS `t`, (`o`.`k`).`f` AS `f` FROM `rel_1` AS `o` "
        "WHERE `o`.`Name` RLIKE '^a' AND `o`.`arr`[0] IS NOT DISTINCT FROM 1"
    )


def test_functions_of_spark_reach_it_as_they_are_written() -> None:
    query = "SELECT to_timestamp(Name, 'yyyy-MM-dd') AS t, 7 / 2 AS h FROM orders"
    assert analysed(query).spark_sql == (
        "SELECT TO_TIMESTAMP(`orders`.`Name`, 'yyyy-MM-dd') AS `t`, 7 / 2 AS `h` FROM `rel_1` AS `orders`"
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT nme FROM orders",
            'error SQL-0403: column "nme" does not exist\n1 | SELECT nme FROM orders\n           ^^^\n'
            'detail: Looked in "orders".\nhint: Did you mean "Name"?',
        ),
        (
            "SELECT customer FROM orders",
            'error SQL-0403: column "customer" does not exist\n1 | SELECT customer FROM orders\n           ^^^^^^^^\n'
            'detail: Looked in "orders".\nhint: The source drops its key: add INCLUDE KEY to it.',
        ),
        (
            "SELECT id FROM orders o JOIN customers c ON o.id = c.id",
            'error SQL-0404: column "id" is ambiguous\n'
            "1 | SELECT id FROM orders o JOIN customers c ON o.id = c.id\n           ^^\n"
            "detail: It may be o.id or c.id.\n"
            "hint: Qualify it with the name of its relation, or put it in double quotes if the names differ only by case.",
        ),
        (
            "SELECT (k).zz FROM orders",
            'error SQL-0406: field "zz" of the record does not exist\n1 | SELECT (k).zz FROM orders\n               ^^',
        ),
        (
            "SELECT id\nFROM orderz",
            'error SQL-0405: the query has no relation "orderz"\n2 | FROM orderz\n         ^^^^^^\n'
            'hint: Did you mean "orders"?',
        ),
        (
            "SELECT uper(name) FROM orders",
            'error SQL-0411: function "uper" does not exist\n1 | SELECT uper(name) FROM orders\n           ^^^^^^^^^\n'
            'hint: Did you mean "upper", "user" or "power"?',
        ),
        (
            "SELECT id,, price FROM orders",
            "error SQL-0402: query cannot be read: nothing stands after this comma\n"
            "1 | SELECT id,, price FROM orders\n             ^",
        ),
    ],
)
def test_an_error_points_at_its_place_and_names_what_is_near(query: str, expected: str) -> None:
    assert failure(query) == expected


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT a FROM cases WHERE AA = 1", "SQL-0403"),
        ("SELECT x.id FROM orders", "SQL-0405"),
        ("SELECT id.f FROM orders", "SQL-0407"),
        ("SELECT id FROM orders UNION SELECT id, city FROM customers", "SQL-0408"),
        ("SELECT a FROM (VALUES (1)) AS v(a, b)", "SQL-0408"),
        ("SELECT CASE WHEN paid THEN 1 ELSE ARRAY[1] END FROM orders", "SQL-0409"),
        ("SELECT k FROM orders UNION ALL SELECT id FROM customers", "SQL-0409"),
        ("SELECT id FROM orders o, customers o", "SQL-0413"),
        ("SELECT id INTO t FROM orders", "SQL-0412"),
        ("SELECT id FROM orders NATURAL JOIN customers", "SQL-0412"),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "SQL-0412"),
        ("DELETE FROM orders", "SQL-0402"),
        ("SELECT id FROM orders WHERE", "SQL-0402"),
        ("SELECT (1", "SQL-0402"),
        ("SELECT 'abc", "SQL-0101"),
        ("SELECT id::decimal(99) FROM orders", "SCH-0104"),
        ("SELECT id -> 'a' FROM orders", "SQL-0414"),
        ("SELECT name -> 'a' FROM orders", "SQL-0414"),
        ("SELECT j ->> 'a' -> 'b' FROM orders", "SQL-0414"),
        ("SELECT id FROM orders WHERE id", "SQL-0415"),
        ("SELECT NOT id FROM orders", "SQL-0415"),
        ("SELECT 'x'::json", "SQL-0415"),
        ("SELECT name::point FROM orders", "SQL-0416"),
        ("SELECT ROW(1)::point", "SQL-0416"),
        ("SELECT id[0] FROM orders", "SQL-0417"),
        ("SELECT explode(arr) + 1 FROM orders", "SQL-0418"),
        ("SELECT row_number() FROM orders", "SQL-0418"),
        ("SELECT id, count(*) FROM orders", "SQL-0419"),
        ("SELECT count(*) FROM orders WHERE count(*) > 1", "SQL-0420"),
        ("SELECT id = arr FROM orders", "SQL-0409"),
        ("SELECT m = m FROM orders", "SQL-0412"),
        ("SELECT DISTINCT ON (name) id FROM orders", "SQL-0412"),
        ("SELECT name SIMILAR TO 'a' FROM orders", "SQL-0412"),
        ("SELECT id FROM orders WHERE id = $1", "SQL-0412"),
        ("SELECT j #> '{a}' FROM orders", "SQL-0412"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "SQL-0412"),
        ("SELECT id FROM orders LIMIT n", "SQL-0402"),
        ("SELECT id FROM orders ORDER BY 3", "SQL-0402"),
        ("SELECT o.id FROM orders o LEFT JOIN customers c", "SQL-0402"),
        ("SELECT 1234567890123456789012345678901234567890", "SQL-0402"),
        ("SELECT (SELECT id, n FROM orders)", "SQL-0408"),
        ("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a", "SQL-0413"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS a) AS t", "SQL-0404"),
    ],
)
def test_what_is_wrong_has_its_own_code(query: str, code: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        analysed(query)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT id FROM orders UNION ALL BY NAME SELECT id FROM customers", "BY NAME"),
        ("SELECT id FROM orders LEFT UNION ALL BY NAME SELECT id FROM customers", "BY NAME"),
        ("SELECT id FROM orders INTERSECT CORRESPONDING SELECT id FROM customers", "BY NAME"),
        ("SELECT id FROM orders ORDER BY id FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
        ("SELECT id FROM orders ORDER BY id LIMIT 10 PERCENT", "LIMIT by percent"),
        ("SELECT id FROM orders ORDER BY id LIMIT 1 BY n", "LIMIT … BY"),
        ("VALUES (1), (2) ORDER BY 1 LIMIT 1", "ORDER BY or LIMIT of VALUES"),
        ("SELECT n, count(*) FROM orders GROUP BY n WITH TOTALS", "WITH TOTALS"),
        ("SELECT sum(n) OVER (ORDER BY id ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM orders", "EXCLUDE in a window"),
        ("SELECT sum(n) OVER (ORDER BY id GROUPS 1 PRECEDING) FROM orders", "GROUPS in a window"),
        ("SELECT id FROM orders VERSION AS OF 1", "at another time"),
        ("SELECT id FROM orders FOR SYSTEM_TIME AS OF '2020-01-01'", "at another time"),
        ("SELECT id FROM orders USING SAMPLE 10 ROWS", "TABLESAMPLE"),
        ("SELECT id FROM (SELECT id FROM orders) AS t TABLESAMPLE (5 ROWS)", "TABLESAMPLE"),
        ("SELECT * ILIKE '%i%' FROM orders", "* ILIKE"),
        ("SELECT AS STRUCT id FROM orders", "SELECT AS"),
        ("SELECT CAST(name AS date FORMAT 'YYYY') FROM orders", "CAST with FORMAT"),
        ("SELECT id FROM orders WHERE n IN UNNEST(arr)", "IN UNNEST"),
        ("SELECT id FROM orders AS o OUTER APPLY explode(o.arr) AS t(x)", "APPLY"),
        ("SELECT id FROM orders CONNECT BY id = 1", "CONNECT BY"),
        ("SELECT id FROM orders ORDER BY id WITH FILL", "WITH FILL"),
        ("SELECT id, x FROM orders AS o LEFT JOIN UNNEST(o.arr) AS t(x) ON true", "LEFT JOIN UNNEST"),
        ("SELECT id, x FROM orders AS o JOIN UNNEST(o.arr) AS t(x) ON x > 1", "JOIN UNNEST with a condition"),
        ("SELECT id, x FROM orders AS o, explode(o.arr) AS t(x)", "a column as an argument of explode without LATERAL"),
        ("SELECT o.id FROM orders AS o STRAIGHT_JOIN customers AS c ON o.id = c.id", "STRAIGHT_JOIN"),
    ],
)
def test_a_clause_that_spark_does_not_have_is_refused_and_not_lost(query: str, what: str) -> None:
    assert re.search(f"{re.escape(what)}.* is not supported in a query", failure(query))


@pytest.mark.parametrize("rows", ["unnest(arr)", "explode(arr)", "LATERAL explode(arr)"])
def test_ordinality_is_refused_with_the_way_to_write_it(rows: str) -> None:
    """A function without a list of columns had it passed over in silence."""
    for alias in ("t", "t(e, n)"):
        found = failure(f"SELECT id FROM orders, {rows} WITH ORDINALITY AS {alias}")
        assert "WITH ORDINALITY is not supported in a query" in found
        assert "posexplode" in found


def test_names_that_differ_only_by_case_need_the_exact_one() -> None:
    assert shown('SELECT "A", a FROM cases') == ["A text", "a integer"]


@pytest.mark.parametrize(
    ("query", "spark"),
    [
        ("SELECT id FROM customers c RIGHT JOIN customers d USING (id)", "`d`.`id` AS `id`"),
        (
            "SELECT id FROM customers c FULL JOIN customers d USING (id)",
            "COALESCE(`c`.`id`, `d`.`id`) AS `id`",
        ),
        ("SELECT '${x}' AS a", "'\\u0024{x}'"),
        ("SELECT NULL AS a", "CAST(NULL AS STRING)"),
        ("SELECT ROW(id) AS a FROM orders", "NAMED_STRUCT('f1', `orders`.`id`)"),
        ("SELECT name ~* 'x' AS a FROM orders", "`orders`.`Name` RLIKE ('(?i)' || ('x'))"),
        ("SELECT k::json AS a FROM orders", "TO_JSON(`orders`.`k`)"),
        ("SELECT j ->> 'it''s' AS a FROM orders", "FROM_JSON("),
    ],
)
def test_what_spark_would_read_otherwise_is_written_for_it(query: str, spark: str) -> None:
    assert spark in analysed(query).spark_sql


def test_an_aggregate_of_any_kind_needs_state() -> None:
    assert not analysed("SELECT regr_slope(price, d) AS a, hll_sketch_agg(id) AS b FROM orders").row_by_row


def test_five_hundred_parentheses_are_read() -> None:
    assert shown("SELECT " + "(" * 500 + "1" + ")" * 500) == ["?column? integer not null"]


def test_ten_thousand_parentheses_are_an_error_and_no_crash() -> None:
    assert "SQL-0401" in failure("SELECT " + "(" * 10_000 + "1" + ")" * 10_000)


def test_a_chain_of_five_thousand_operators_is_read() -> None:
    assert shown("SELECT " + " + ".join(["1"] * 5000)) == ["?column? integer not null"]
