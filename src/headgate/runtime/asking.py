"""Types that only Spark can tell: analysis of a query over empty relations, nothing is run."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.catalog.information_schema import SYSTEM_RELATIONS
from headgate.catalog.snapshot import Catalog
from headgate.plan.definitions import spark_name
from headgate.plan.relations import query_relation, relations_read, system_relations_read
from headgate.runtime.failures import translated
from headgate.schema.formats.spark import from_spark, to_spark
from headgate.schema.types import Field, Record, Type
from headgate.sql.query.scope import AnalysedQuery


def asked_types(session: SparkSession, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
    """The types of a query's columns, as Spark has them."""
    session = session.newSession()
    for id_ in relations_read(analysed):
        columns = query_relation(catalog, catalog.get(id_)).columns
        fields = tuple(Field(c.name, c.type, c.nullable) for c in columns if c.type is not None)
        _empty(session, spark_name(id_), Record(fields))
    for name in system_relations_read(analysed):
        relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
        _empty(session, name.replace(".", "_"), relation.columns)
    try:
        schema = session.sql(analysed.spark_sql).schema
    except Exception as error:
        raise translated(error) from error
    return tuple(from_spark(field.dataType) for field in schema.fields)


def _empty(session: SparkSession, name: str, columns: Record) -> None:
    schema = to_spark(columns)
    assert isinstance(schema, StructType)
    session.createDataFrame([], schema).createOrReplaceTempView(name)
