"""The relational tree of a query, and that it is the same query to Spark."""

from __future__ import annotations

from textwrap import dedent

import pytest

from headgate.errors import Span
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import ColumnRef, Expr, Project, Scan, columns_of, expressions_of, walk
from headgate.sql.query.tree_sql import spark_sql
from tests.sql.query.corpus import QUERIES
from tests.sql.query.relations import find_relation, find_small, resolve
from tests.sql.query.tree_lines import shown

pytestmark = pytest.mark.unit


def golden(text: str) -> str:
    return dedent(text).strip()


def tree(query: str) -> str:
    return "\n".join(shown(analyse(query, find_small).tree))


@pytest.mark.parametrize("query", QUERIES)
def test_the_spark_sql_is_the_same_after_the_tree_has_been_built(query: str) -> None:
    printed, built = analyse(query, find_relation, resolve), analyse(query, find_relation, resolve)
    assert printed.spark_sql.startswith(("SELECT", "WITH", "VALUES", "("))
    assert columns_of(built.tree)  # the builder takes the nodes apart that are printed
    assert (built.spark_sql, built.written) == (printed.spark_sql, printed.written)


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_has_a_tree_with_its_columns(query: str) -> None:
    analysed = analyse(query, find_relation, resolve)
    assert [ref.name for ref in columns_of(analysed.tree)] == [column.name for column in analysed.columns]
    made = [ref for node in walk(analysed.tree) for ref in _own_columns(node)]
    assert len(made) == len(set(made)) or "WITH" in query


def _own_columns(node: object) -> list[object]:
    return [o.ref for o in node.columns] if isinstance(node, Scan | Project) else []


@pytest.mark.parametrize("query", QUERIES)
def test_expressions_use_only_columns_that_are_there(query: str) -> None:
    analysed = analyse(query, find_relation, resolve)
    made = {ref for node in walk(analysed.tree) for ref in columns_of(node)}
    for node in walk(analysed.tree):
        for expression in () if isinstance(node, Scan) else expressions_of(node):
            assert expression.uses <= made


def test_clauses_become_nodes_in_the_order_in_which_they_are_computed() -> None:
    query = """
        SELECT l.b, sum(k.a) + 1 AS s, row_number() OVER (ORDER BY sum(k.a)) AS place
        FROM k JOIN l USING (id) WHERE k.a > 1 GROUP BY l.b HAVING count(*) > 2 ORDER BY s LIMIT 3
    """
    assert tree(query) == golden("""
        Limit 3
          Sort `s#12` NULLS LAST
            Project b#11 = `b#14`, s#12 = `sum#15` + 1, place#13 = `row_number#17`
              Window row_number#17 = ROW_NUMBER() OVER (ORDER BY `sum#15` NULLS LAST)
                Filter `count#16` > 2
                  Aggregate by [b#14 = `b#8`]: sum#15 = SUM(`a#2`), count#16 = COUNT(*)
                    Filter `a#2` > 1
                      Join inner `id#1` = `id#6`
                        Scan k: id#1, a#2, b#3, tags#4, m#5
                        Scan l: id#6, a#7, b#8, tags#9, m#10
    """)


def test_an_order_by_what_is_not_shown_is_below_the_projection() -> None:
    assert tree("SELECT a FROM k ORDER BY id DESC LIMIT 2") == golden("""
        Project a#6 = `a#2`
          Limit 2
            Sort `id#1` DESC NULLS FIRST
              Scan k: id#1, a#2, b#3, tags#4, m#5
    """)


def test_a_correlated_subquery_is_a_tree_of_its_own() -> None:
    query = "SELECT a, (SELECT max(l.a) FROM l WHERE l.id = k.a) AS last FROM k GROUP BY a"
    assert tree(query) == golden("""
        Project a#12 = `a#14`, last#13 = (SELECT `max#15` AS `max#11` FROM (SELECT MAX(`a#7`) AS `max#15` FROM (SELECT * FROM (SELECT `id` AS `id#6`, `a` AS `a#7`, `b` AS `b#8`, `tags` AS `tags#9`, `m` AS `m#10` FROM l) WHERE `id#6` = `a#14`) HAVING true))
          in an expression:
            Project max#11 = `max#15`
              Aggregate by []: max#15 = MAX(`a#7`)
                Filter `id#6` = `a#14`
                  Scan l: id#6, a#7, b#8, tags#9, m#10
          Aggregate by [a#14 = `a#2`]:
            Scan k: id#1, a#2, b#3, tags#4, m#5
    """)


def test_functions_that_return_rows_are_nodes() -> None:
    query = "SELECT id, posexplode(tags) AS (pos, tag), x FROM k LATERAL VIEW OUTER explode(tags) e AS x"
    assert tree(query) == golden("""
        Project id#7 = `id#1`, pos#8 = `pos#11`, tag#9 = `tag#12`, x#10 = `x#6`
          Generate POSEXPLODE(`tags#4`) as pos#11, tag#12
            Generate outer EXPLODE(`tags#4`) as x#6
              Scan k: id#1, a#2, b#3, tags#4, m#5
    """)


def test_a_lateral_subquery_is_the_right_side_of_a_join() -> None:
    assert tree("SELECT k.id, n FROM k, LATERAL (SELECT k.a + l.a AS n FROM l) AS s") == golden("""
        Project id#13 = `id#1`, n#14 = `n#12`
          Join cross lateral
            Scan k: id#1, a#2, b#3, tags#4, m#5
            Subquery s: n#12
              Project n#11 = `a#2` + `a#7`
                Scan l: id#6, a#7, b#8, tags#9, m#10
    """)


def test_common_tables_are_read_with_columns_of_their_own() -> None:
    query = "WITH t AS (SELECT id FROM k) SELECT x.id FROM t AS x LEFT JOIN t AS y ON x.id = y.id"
    assert tree(query) == golden("""
        Project id#9 = `id#7`
          Join left `id#7` = `id#8`
            Subquery x: id#7
              Project id#6 = `id#1`
                Scan k: id#1, a#2, b#3, tags#4, m#5
            Subquery y: id#8
              Project id#6 = `id#1`
                Scan k: id#1, a#2, b#3, tags#4, m#5
    """)


def test_grouping_sets_are_written_out() -> None:
    assert tree("SELECT id, a, b, count(*) FROM k GROUP BY id, CUBE (a, b)") == golden("""
        Project id#6 = `id#10`, a#7 = `a#11`, b#8 = `b#12`, count#9 = `count#13`
          Aggregate by [id#10 = `id#1`, a#11 = `a#2`, b#12 = `b#3`] sets [[0, 1, 2], [0, 1], [0, 2], [0]]: count#13 = COUNT(*)
            Scan k: id#1, a#2, b#3, tags#4, m#5
    """)


def test_set_operations_have_columns_of_their_own() -> None:
    assert tree("SELECT id FROM k UNION ALL (SELECT a FROM l EXCEPT VALUES (1))") == golden("""
        SetOperation union all as id#17
          Project id#6 = `id#1`
            Scan k: id#1, a#2, b#3, tags#4, m#5
          SetOperation except as a#16
            Project a#12 = `a#8`
              Scan l: id#7, a#8, b#9, tags#10, m#11
            Project col1#15 = `col1#14`
              Subquery _values: col1#14
                Values col1#13 of 1 rows
    """)


def test_an_expression_knows_what_it_uses_and_what_makes_it_unstable() -> None:
    analysed = analyse("SELECT id + n AS a, rand() AS b, 'now'::timestamp AS c FROM orders", find_relation)
    assert isinstance(analysed.tree, Project)
    a, b, c = (output.value for output in analysed.tree.columns)
    assert sorted(ref.name for ref in a.uses) == ["id", "n"]
    assert (a.unstable, a.span) == (frozenset(), Span(7, 13))
    assert (b.unstable, c.unstable) == (frozenset({"rand"}), frozenset({"now"}))


def test_a_plain_column_is_told_with_its_origin() -> None:
    analysed = analyse("SELECT id AS number FROM orders", find_relation)
    assert isinstance(analysed.tree, Project)
    (output,) = analysed.tree.columns
    assert output.value.column is not None
    assert (output.value.column.name, output.origin, output.doc) == (
        "id",
        ColumnRef(1, 1),
        "the order's number",
    )


def test_the_sql_of_a_tree_names_every_column_by_its_ref() -> None:
    analysed = analyse("SELECT c.id, d.id FROM customers c JOIN customers d ON c.city = d.city", find_relation)
    assert spark_sql(analysed.tree) == (
        "SELECT `id#1` AS `id#5`, `id#3` AS `id#6` FROM (SELECT * FROM (SELECT `id` AS `id#1`, "
        "`city` AS `city#2` FROM rel_2) JOIN (SELECT `id` AS `id#3`, `city` AS `city#4` FROM rel_2) "
        "ON `city#2` = `city#4`)"
    )
    assert all(isinstance(each, Expr) for node in walk(analysed.tree) for each in expressions_of(node))
