"""Keys that a batch of an upsert source takes out of a sink: rows deleted, and rows that no longer pass a filter."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.catalog.objects import Column as CatalogColumn
from headgate.catalog.objects import ColumnRef, Object
from headgate.catalog.snapshot import Catalog
from headgate.plan.definitions import SinkDefinition
from headgate.runtime.encode import encode
from headgate.runtime.source import SourceReader
from headgate.schema.formats.spark_ddl import spark_identifier


def deleted_keys(
    catalog: Catalog, plan: SinkDefinition, source: SourceReader, changes: DataFrame, rows: DataFrame
) -> DataFrame | None:
    """Tombstones for the keys of the batch that have no row in the output; None if the sink deletes nothing."""
    if plan.envelope != "UPSERT" or source.plan.envelope == "NONE" or plan.key is None:
        return None
    names = {name: _source_column(catalog, catalog.get(plan.relation), name) for name in plan.key.columns}
    every = source.columns(changes)
    keys = every.select(*[F.col(spark_identifier(of)).alias(name) for name, of in names.items()])
    left, right = keys.alias("k"), rows.select(*[F.col(spark_identifier(n)) for n in names]).alias("r")
    same: Column = reduce(
        lambda a, b: a & b,
        [F.col(f"k.{spark_identifier(n)}").eqNullSafe(F.col(f"r.{spark_identifier(n)}")) for n in names],
    )
    gone = left.join(right, same, "left_anti")
    nothing = F.lit(None).cast("binary").alias("value")
    return gone.select(F.lit(plan.topic).alias("topic"), encode(plan.key).alias("key"), nothing)


def _source_column(catalog: Catalog, relation: Object, name: str) -> str:
    """The source's column that a column of a chain of views is a plain projection of."""
    column = next(c for c in relation.columns if c.name == name)
    while (above := _above(catalog, column.origin)) is not None:
        column = above
    return column.name


def _above(catalog: Catalog, origin: ColumnRef | None) -> CatalogColumn | None:
    return None if origin is None else catalog.get(origin.object).column(origin.column)
