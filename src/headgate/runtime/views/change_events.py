"""Signed changes as others see them: change events with the row before the change and the row after it, for ENVELOPE DEBEZIUM,
and rows with a sign, for SUBSCRIBE."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headgate.plan.definitions import OLD, PRESENT
from headgate.schema.names import internal_name
from headgate.schema.render import spark_identifier

NEW, SIGN = internal_name("new"), internal_name("sign")


def change_events(came: DataFrame, went: DataFrame, key: Sequence[str]) -> DataFrame:
    """A row for each change: the columns of the row as it is now, or was if it is gone, the old row, and `PRESENT`.

    With a key, the old and the new row of a key are one change. Without one, each row that came or went is a change.
    """
    if not key:
        added = came.withColumns({OLD: _no_row(came), PRESENT: F.lit(True)})
        return added.unionAll(
            went.withColumns({OLD: _row(went), PRESENT: F.lit(False)}).select(*map(_name, added.columns))
        )
    new, old = (frame.select(_row(frame).alias(name)) for frame, name in ((came, NEW), (went, OLD)))
    same = [F.col(NEW).getField(name).eqNullSafe(F.col(OLD).getField(name)) for name in key]
    pairs = new.join(old, reduce(Column.__and__, same), "full")
    if not _has_map(new.schema[NEW].dataType):
        pairs = pairs.where(~F.col(NEW).eqNullSafe(F.col(OLD)))
    now = F.coalesce(NEW, OLD)
    columns = [now.getField(name).alias(name) for name in came.columns]
    return pairs.select(*columns, F.col(OLD), F.col(NEW).isNotNull().alias(PRESENT))


def signed_rows(came: DataFrame, went: DataFrame, now: datetime) -> DataFrame:
    """The rows that came and went, with the time and how often each came more than it went."""
    signed = came.withColumn(SIGN, F.lit(1)).unionAll(went.withColumn(SIGN, F.lit(-1)))
    names = [_name(name) for name in came.columns]
    if not _has_map(came.schema):
        signed = signed.groupBy(*names).agg(F.sum(SIGN).alias(SIGN)).where(F.col(SIGN) != 0)
    return signed.select(F.lit(now).alias("hg_time"), F.col(SIGN).cast("bigint").alias("hg_diff"), *names)


def _row(frame: DataFrame) -> Column:
    return F.struct(*[F.col(_name(name)).alias(name) for name in frame.columns])


def _no_row(frame: DataFrame) -> Column:
    return F.when(F.lit(False), _row(frame))


def _name(name: str) -> str:
    return spark_identifier(name)


def _has_map(type_: DataType) -> bool:
    """Whether values of a type cannot be compared."""
    match type_:
        case MapType():
            return True
        case ArrayType():
            return _has_map(type_.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in type_.fields)
        case _:
            return False
