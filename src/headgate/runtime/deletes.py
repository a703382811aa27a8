"""Keys that a batch of an upsert source takes out of a sink: rows deleted, and rows that no longer pass a filter."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.plan.definitions import TaskDefinition
from headgate.runtime.encode import encode
from headgate.runtime.source import SourceReader
from headgate.schema.formats.spark_ddl import spark_identifier


def deleted_keys(
    task: TaskDefinition, source: SourceReader, changes: DataFrame, rows: DataFrame
) -> DataFrame | None:
    """Tombstones for the keys of the batch that have no row in the output; None if the sink deletes nothing."""
    names, sink = task.source_key, task.sink
    if not names or sink.key is None:
        return None
    every = source.columns(changes)
    keys = every.select(*[F.col(spark_identifier(of)).alias(name) for name, of in names.items()])
    left, right = keys.alias("k"), rows.select(*[F.col(spark_identifier(n)) for n in names]).alias("r")
    same: Column = reduce(
        lambda a, b: a & b,
        [F.col(f"k.{spark_identifier(n)}").eqNullSafe(F.col(f"r.{spark_identifier(n)}")) for n in names],
    )
    gone = left.join(right, same, "left_anti")
    nothing = F.lit(None).cast("binary").alias("value")
    return gone.select(F.lit(sink.topic).alias("topic"), encode(sink.key).alias("key"), nothing)
