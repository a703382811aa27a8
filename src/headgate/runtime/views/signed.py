"""Signed bags: rows with a weight, which is positive for rows that came and negative for rows that went."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as F

from headgate.schema.names import WEIGHT as WEIGHT
from headgate.schema.render import spark_identifier


def each_once(signed: DataFrame) -> DataFrame:
    """The same bag with the weights 1 and -1 only, which is what the queries of views expect."""
    weights = F.array_repeat(F.signum(WEIGHT).cast("int"), F.abs(WEIGHT).cast("int"))
    names = [spark_identifier(name) for name in signed.columns if name != WEIGHT]
    return signed.select(*names, F.explode(weights).alias(WEIGHT))


def repeated(signed: DataFrame) -> DataFrame:
    """Rows as often as they are there."""
    return each_once(signed.where(F.col(WEIGHT) > 0)).drop(WEIGHT)


def summed(signed: DataFrame, *, skip: bool = False) -> DataFrame:
    """Each row once, with the sum of its weights. Rows that differ only in hidden columns may have come and gone."""
    if skip:
        return signed
    names = [spark_identifier(name) for name in signed.columns if name != WEIGHT]
    return signed.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
