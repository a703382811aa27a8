"""Queries analysed per second, against sqlglot doing the nearest that it does: parse, qualify and annotate types.

The relations are those of the tests; sqlglot is given the same columns as its schema.
"""

from __future__ import annotations

from itertools import cycle, islice

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from bench.figures import Report, Row, Size, cpu_seconds
from headgate.schema.formats.spark import to_spark
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.select import analyse
from tests.sql.query.relations import RELATIONS, find_relation, resolve

QUERIES = """
SELECT id, price FROM orders
SELECT id, price * 2 AS twice, name FROM orders WHERE price > 10 AND paid
SELECT * FROM orders
SELECT o.id, c.city FROM orders o JOIN customers c ON o.id = c.id
SELECT o.id, c.id AS other, city FROM orders o LEFT JOIN customers c ON o.id = c.id WHERE o.n > 1
SELECT upper(city) AS u, count(*) AS c, sum(id) AS s FROM customers GROUP BY upper(city) HAVING count(*) > 1
SELECT day, count(*) AS c, avg(price) AS a, max(ts) AS m FROM orders GROUP BY day ORDER BY c
WITH big AS (SELECT id, price FROM orders WHERE price > 100) SELECT b.id, price + 1 AS p FROM big b
SELECT id FROM orders UNION ALL SELECT id FROM customers
SELECT CASE WHEN price > 1 THEN 1 ELSE 2.5 END AS a, coalesce(price, 0) AS b, 7 / 2 AS c FROM orders
SELECT d * d AS a, d / 3 AS b, d + 1 AS c, d - 0.5 AS e, d % 7 AS f, d * n AS g, -d AS j FROM orders
SELECT id::text AS t, CAST(price AS decimal(10,2)) AS p, n::bigint AS b, day::timestamp AS ts FROM orders
SELECT id FROM orders WHERE id IN (SELECT id FROM customers WHERE city = 'Bern')
SELECT row_number() OVER (PARTITION BY paid ORDER BY ts) AS r, lag(price) OVER (ORDER BY ts) AS before FROM orders
SELECT extract(year FROM ts) AS y, date_trunc('day', ts) AS d, ts::date AS e FROM orders
SELECT (SELECT max(price) FROM orders) AS highest, EXISTS (SELECT 1 FROM customers) AS any_customer
""".strip().splitlines()

# What only we read: PostgreSQL's and Spark's ways mixed, and types of the catalog.
OURS_ONLY = """
SELECT (k).f, k.g.h, arr[0], m['a'] FROM orders
SELECT ROW(1, 2)::point AS p, (ROW(1, 2)::point).x
SELECT j -> 'a' -> 0 ->> 'b' AS a FROM orders
SELECT transform(arr, x -> x + 1) AS t, filter(arr, x -> x > 1) AS f FROM orders
SELECT id, v FROM orders, LATERAL explode(m) AS e(k2, v)
SELECT o.*, city FROM orders o LEFT JOIN customers USING (id)
""".strip().splitlines()


def run(size: Size) -> Report:
    count, rounds = (len(QUERIES), 1) if size == "small" else (500, 5)
    shared = list(islice(cycle(QUERIES), count))
    mixed = list(islice(cycle(QUERIES + OURS_ONLY), count))
    schema = _schema()
    peer = cpu_seconds(lambda: [_sqlglot(text, schema) for text in shared], rounds) / count
    printed = cpu_seconds(lambda: [_sqlglot(text, schema).sql("spark") for text in shared], rounds) / count
    parsed = cpu_seconds(lambda: [sqlglot.parse_one(text, read="postgres") for text in shared], rounds) / count
    ours = cpu_seconds(lambda: [_ours(text) for text in shared], rounds) / count
    ours_printed = cpu_seconds(lambda: [_ours(text).spark_sql for text in shared], rounds) / count
    all_ours = cpu_seconds(lambda: [_ours(text).spark_sql for text in mixed], rounds) / count
    rows = (
        _rate("queries that both read, analysed", ours, peer, "sqlglot parse + qualify + annotate"),
        _rate("the same, Spark SQL printed by both", ours_printed, printed, "sqlglot, and its Spark SQL"),
        _rate("the same, Spark SQL printed by us alone", ours_printed, peer, "sqlglot parse + qualify + annotate"),
        _rate("the first against parsing alone", ours, parsed, "sqlglot parse"),
        _rate("with queries that only we read, Spark SQL printed", all_ours, None, ""),
    )
    notes = ("Queries per second of CPU time, best of the rounds; the ratio is our rate over the peer's.",)
    return Report("Queries", rows, notes)


def _rate(what: str, ours: float, peer: float | None, name: str) -> Row:
    shown = "–" if peer is None else f"{1 / peer:,.0f}/s {name}"
    return Row(what, f"{1 / ours:,.0f}/s", shown, None if peer is None else peer / ours)


def _ours(text: str) -> AnalysedQuery:
    return analyse(text, find_relation, resolve)


def _sqlglot(text: str, schema: MappingSchema) -> exp.Expr:
    return annotate_types(qualify(sqlglot.parse_one(text, read="postgres"), schema=schema, dialect="postgres"), schema)


def _schema() -> MappingSchema:
    columns: dict[str, object] = {
        name: {column.name: to_spark(column.type).simpleString() for column in relation.columns if column.type}
        for name, relation in RELATIONS.items()
    }
    return MappingSchema(columns, dialect="spark")
