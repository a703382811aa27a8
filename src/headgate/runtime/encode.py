"""Rows -> keys and values of records, on the JVM."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from headgate.plan.sink import EncodedSide
from headgate.schema.types import Array, Decimal, Field, Json, Map, Record, Time, Timestamp, TimestampTz, Type
from headgate.sql.query.spark_ddl import spark_identifier


def encode(side: EncodedSide) -> Column:
    """The bytes of one side over the columns of the relation."""
    match side.encoding:
        case "AVRO":
            assert side.schema is not None
            assert side.schema_id is not None
            frame = F.lit(b"\x00" + side.schema_id.to_bytes(4, "big"))
            return F.concat(frame, to_avro(_record(side), side.schema))
        case "JSON":
            return F.to_json(_json_record(side), {"ignoreNullFields": "false"}).cast("binary")
        case "TEXT":
            return F.col(spark_identifier(side.columns[0])).cast("string").cast("binary")
        case "BYTES":
            return F.col(spark_identifier(side.columns[0])).cast("binary")


def _record(side: EncodedSide) -> Column:
    names = side.names or side.columns
    return F.struct(*[F.col(spark_identifier(c)).alias(n) for c, n in zip(side.columns, names, strict=True)])


def _json_record(side: EncodedSide) -> Column:
    fields = [_json(F.col(spark_identifier(f.name)), f.type).alias(f.name) for f in side.record.fields]
    return F.struct(*fields)


def _json(column: Column, type_: Type) -> Column:
    """What Spark's JSON writer must be given so that its text is ours: exact decimals, ISO times, JSON as JSON."""
    match type_:
        case Decimal() | Time():
            return column.cast("string")
        case Timestamp():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case TimestampTz():
            return F.concat(F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
        case Json():
            return F.parse_json(column)
        case Array() if _needs(type_.element):
            return F.transform(column, lambda item: _json(item, type_.element))
        case Map() if _needs(type_.value):
            return F.transform_values(column, lambda _, value: _json(value, type_.value))
        case Record() if any(_needs(f.type) for f in type_.fields):
            return F.when(column.isNotNull(), F.struct(*[_field(column, f) for f in type_.fields]))
        case _:
            return column


def _field(column: Column, field: Field) -> Column:
    return _json(column.getField(field.name), field.type).alias(field.name)


def _needs(type_: Type) -> bool:
    match type_:
        case Decimal() | Time() | Timestamp() | TimestampTz() | Json():
            return True
        case Array():
            return _needs(type_.element)
        case Map():
            return _needs(type_.value)
        case Record():
            return any(_needs(f.type) for f in type_.fields)
        case _:
            return False
