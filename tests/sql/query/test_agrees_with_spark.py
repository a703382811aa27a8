"""What we say of a query before it runs is what Spark says of its translation: names, types, and nulls.

Spark may know that a column cannot be NULL where we are not sure; the other way round would be a lie.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.runtime.session import open_session
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Field, Record
from headgate.sql.query.analyse import analyse
from headgate.sql.query.functions import signatures, spark_functions
from tests.sql.query.relations import RELATIONS, find_relation, resolve

pytestmark = pytest.mark.spark

QUERIES = """
SELECT id, price * 2 AS twice, NAME, (k).f, k.g.h, arr[0], m['a'] FROM orders WHERE price > 10
SELECT o.id, c.city FROM orders o JOIN customers c ON o.id = c.id
SELECT o.*, city FROM orders o LEFT JOIN customers USING (id)
SELECT o.id, c.id AS other FROM orders o FULL JOIN customers c ON o.id = c.id
SELECT c.id, o.price FROM orders o RIGHT JOIN customers c ON o.id = c.id
SELECT id FROM orders o LEFT SEMI JOIN customers c ON o.id = c.id
SELECT ROW(1, 2)::point AS p, (ROW(1, 2)::point).x, id::text, CAST(price AS decimal(10,2)), n::bigint, day::timestamp
SELECT j -> 'a' -> 0 ->> 'b' AS a, j -> 'x' AS b FROM orders
SELECT upper(name) || '!' AS u, count(*), sum(price) FILTER (WHERE price > 1), avg(d), avg(n), sum(d), sum(n) FROM orders GROUP BY upper(name) HAVING count(*) > 1 ORDER BY 2 DESC
SELECT transform(arr, x -> x + 1), filter(arr, x -> x > 1), exists(arr, x -> x = id), forall(tags, t -> t = 'a') FROM orders
SELECT a.id, x FROM orders a LATERAL VIEW explode(arr) e AS x
SELECT id, v, k2 FROM orders, LATERAL explode(m) AS e(k2, v)
SELECT id, p, x FROM orders LATERAL VIEW posexplode(tags) e AS p, x
WITH big AS (SELECT id, price FROM orders WHERE price > 100) SELECT b.id, price + 1 AS p FROM big b UNION ALL SELECT id, 2 FROM customers ORDER BY id
SELECT CASE WHEN price > 1 THEN 1 ELSE 2.5 END AS a, coalesce(price, 0) AS b, 7 / 2 AS c, 7 % 2 AS d, 1 + id AS e FROM orders
SELECT d * d AS a, d / 3 AS b, d + 1 AS c, d - 0.5 AS e, d % 7 AS f, d * n AS g, d / d AS h, d * 1000000 AS i, -d AS j FROM orders
SELECT n + id AS a, n + r AS b, id + r AS c, r + price AS e, n * 2 AS f, n / 2 AS g, d + price AS h, d + r AS i, id / d AS l FROM orders
SELECT 1, 3000000000, 99999999999999999999, 1.5, 0.05, 1e3, 'x', TRUE, X'1F' AS h
SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) AS v(a, b)
SELECT id FROM orders WHERE id IN (SELECT id FROM customers WHERE city = orders.name)
SELECT "Name", `id`, $$it's$$ AS a, E'a\\nb' AS b, 'back\\slash' AS c FROM orders
SELECT * EXCEPT (arr, m) FROM orders
SELECT ts AT TIME ZONE 'Europe/Berlin' AS a, local AT TIME ZONE 'Europe/Berlin' AS b, extract(year FROM ts) AS c, extract(second FROM ts) AS d, ts::date FROM orders
SELECT DATE '2020-01-01' AS a, TIMESTAMP '2020-01-01 00:00:00' AS b
SELECT row_number() OVER (PARTITION BY name ORDER BY ts) AS n, lag(price) OVER (PARTITION BY name ORDER BY ts) AS before FROM orders
SELECT name ~ '^a' AS a, name RLIKE 'b' AS b, id <=> 3 AS c, name ILIKE 'c' AS d, id BETWEEN 1 AND 2 AS e, price IS NULL AS f, NOT paid AS g, n IN (1, 2) AS h FROM orders
SELECT left(name, 2) AS a, array(1, 2) AS b, ARRAY[1, NULL] AS c, size(tags) AS d, named_struct('a', 1, 'b', name) AS e, struct(id, name AS n) AS f, map('a', 1) AS g, if(price > 1, 1, 2) AS h FROM orders
SELECT (k).*, id FROM orders
SELECT a, "A" FROM cases
SELECT trim(both 'x' from name) AS a, substring(name from 2 for 3) AS b, position('a' in name) AS c, substring(name, 2) AS d FROM orders
SELECT DISTINCT name FROM orders LIMIT 3
SELECT count(DISTINCT name, id) AS a, max(ts) AS b, min(name) AS c, collect_list(n) AS d, first(price) AS e FROM orders
SELECT (SELECT max(price) FROM orders) AS highest, EXISTS (SELECT 1 FROM customers) AS any_customer
SELECT n FROM orders INTERSECT SELECT 1
SELECT day AS that_day, count(*) AS c FROM orders GROUP BY that_day ORDER BY c
SELECT coalesce(n, id) AS a, coalesce(n, r) AS b, coalesce(d, n) AS c, greatest(n, id, 3) AS d, nullif(n, 1) AS e FROM orders
""".strip().splitlines()

# One argument for every kind in the signatures.
ARGUMENTS = {
    "any": "n", "num": "price", "int": "n", "integral": "n", "float": "price", "decimal": "d", "text": "Name",
    "bytes": "raw", "bool": "paid", "date": "day", "ntz": "local", "ltz": "ts", "timestamp": "ts", "datetime": "day",
    "array": "arr", "map": "m", "record": "k",
}  # fmt: skip
# Calls that need particular arguments, or of which Spark takes only constants.
CALLS = {
    "approx_count_distinct": "approx_count_distinct(n)",
    "array_join": "array_join(tags, ',')",
    "array_max": "array_max(arr)",
    "bround": "bround(price, 1)",
    "conv": "conv('ff', 16, 10)",
    "date_trunc": "date_trunc('day', ts)",
    "exists": "exists(arr, x -> x > 1)",
    "filter": "filter(arr, x -> x > 1)",
    "flatten": "flatten(array(arr))",
    "forall": "forall(arr, x -> x > 1)",
    "format_number": "format_number(price, 2)",
    "ilike": "ilike(Name, 'a')",
    "json_object_keys": "json_object_keys(j)",
    "lag": "lag(n) OVER (ORDER BY id)",
    "lead": "lead(n) OVER (ORDER BY id)",
    "like": "like(Name, 'a')",
    "listagg": "listagg(Name, ',')",
    "map_filter": "map_filter(m, (k, v) -> v > 1)",
    "nth_value": "nth_value(n, 2) OVER (ORDER BY id)",
    "ntile": "ntile(4) OVER (ORDER BY id)",
    "regexp_extract": "regexp_extract(Name, 'a', 0)",
    "round": "round(price, 1)",
    "sentences": "sentences(Name)",
    "sequence": "sequence(1, 3)",
    "string_agg": "string_agg(Name, ',')",
    "typeof": "typeof(n)",
}
NEED_A_WINDOW = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist"}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_session((), settings={"spark.sql.caseSensitive": "true"})
    for relation in RELATIONS.values():
        fields = tuple(Field(c.name, c.type, c.nullable) for c in relation.columns if c.type is not None)
        schema = to_spark(Record(fields))
        assert isinstance(schema, StructType)
        session.createDataFrame([], schema).createOrReplaceTempView(relation.spark_name)
    yield session
    session.stop()


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_a_query(spark: SparkSession, query: str) -> None:
    query = query if "FROM" in query or "price" not in query else f"{query} FROM orders"
    agree(spark, query)


@pytest.mark.parametrize("name", sorted(signatures()))
def test_result_of_a_function(spark: SparkSession, name: str) -> None:
    for signature in signatures()[name]:
        agree(spark, f"SELECT {call(name, signature.arguments)} AS x FROM orders")


def call(name: str, kinds: tuple[str, ...]) -> str:
    if name in CALLS:
        return CALLS[name]
    arguments = [ARGUMENTS[kind.rstrip("*")] for kind in kinds if not kind.endswith("?")]
    over = " OVER (ORDER BY id)" if name in NEED_A_WINDOW else ""
    return f"{name}({', '.join(arguments)}){over}"


def agree(spark: SparkSession, query: str) -> None:
    ours = analyse(query, find_relation, resolve)
    theirs = spark.sql(ours.spark_sql).schema
    assert ours.untyped == ()
    assert [c.name for c in ours.columns] == theirs.fieldNames()
    for column, field in zip(ours.columns, theirs.fields, strict=True):
        assert column.type is not None, column.name
        assert to_spark(column.type).simpleString() == field.dataType.simpleString(), (
            f"{column.name} in {query}"
        )
        assert column.nullable or not field.nullable, f"{column.name} may be NULL in {query}"


def test_the_list_of_functions_is_that_of_spark(spark: SparkSession) -> None:
    theirs = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert spark_functions() == {name for name in theirs if name.isidentifier()}
