"""What we say of a query before it runs is what Spark says of its translation: names, types, and nulls.

Spark may know that a column cannot be NULL where we are not sure; the other way round would be a lie.
"""

from __future__ import annotations

from functools import cache

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Field, Record
from headgate.sql.query.functions import signatures, spark_functions
from headgate.sql.query.select import analyse
from headgate.sql.query.tree_sql import spark_sql
from tests.sql.query.corpus import QUERIES
from tests.sql.query.relations import RELATIONS, find_relation, resolve

pytestmark = pytest.mark.spark

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
    "window": "window(ts, '1 hour')",
}
NEED_A_WINDOW = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist"}


@pytest.fixture
def spark(session: SparkSession) -> SparkSession:
    return with_relations(session)


@cache
def with_relations(session: SparkSession) -> SparkSession:
    """The session with an empty view for every relation of the corpus, made when it is first asked for."""
    session.conf.set("spark.sql.caseSensitive", True)
    for relation in RELATIONS.values():
        fields = tuple(
            Field(c.name, c.type, c.nullable) for c in (*relation.columns, *relation.hidden) if c.type is not None
        )
        schema = to_spark(Record(fields))
        assert isinstance(schema, StructType)
        session.createDataFrame([], schema).createOrReplaceTempView(relation.spark_name)
    return session


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_a_query(spark: SparkSession, query: str) -> None:
    agree(spark, query)


@pytest.mark.parametrize("query", QUERIES)
def test_the_tree_of_a_query_has_columns_of_the_same_types(spark: SparkSession, query: str) -> None:
    ours = analyse(query, find_relation, resolve)
    whole, printed = spark.sql(ours.spark_sql).schema, spark.sql(spark_sql(ours.tree)).schema
    assert [f.dataType.simpleString() for f in printed] == [f.dataType.simpleString() for f in whole]


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
    assert [c.name for c in ours.columns] == theirs.fieldNames()
    for column, field in zip(ours.columns, theirs.fields, strict=True):
        assert column.type is not None, column.name
        assert to_spark(column.type).simpleString() == field.dataType.simpleString(), f"{column.name} in {query}"
        assert column.nullable or not field.nullable, f"{column.name} may be NULL in {query}"


# Delta adds them to Spark. They read the changes of a table of Delta's, and queries of users have none.
OF_DELTA = {"table_changes", "table_changes_by_path"}


def test_the_list_of_functions_is_that_of_spark(spark: SparkSession) -> None:
    theirs = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert spark_functions() == {name for name in theirs if name.isidentifier()} - OF_DELTA
