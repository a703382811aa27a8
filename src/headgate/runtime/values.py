"""Values of result rows -> JSON, as the statement protocol has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import time
from decimal import Context, Decimal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as spark

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def json_value(value: object, type_: spark.DataType) -> Json:
    """NULL is null, bytes are hex digits, decimals and times text, numbers that JSON has not are their names. Dates and
    timestamps are text already: see `spelled`."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else _name(value)
        case Decimal():
            return format(_to_scale(value, type_), "f")
        case bytes() | bytearray():
            return bytes(value).hex()
        case time():
            return _trimmed(value.isoformat())
        case Row() if isinstance(type_, spark.StructType):
            return {f.name: json_value(v, f.dataType) for f, v in zip(type_.fields, value, strict=True)}
        case Mapping() if isinstance(type_, spark.MapType):
            return {str(k): json_value(v, type_.valueType) for k, v in value.items()}
        case list() | tuple() if isinstance(type_, spark.ArrayType):
            return [json_value(v, type_.elementType) for v in value]
        case _:
            return str(value)


def spelled(frame: DataFrame) -> DataFrame:
    """The frame with dates and timestamps as texts in ISO form: Python has none before the year 1 or after 9999."""
    types = [field.dataType for field in frame.schema.fields]
    if not any(map(_has_moment, types)):
        return frame
    names = [f"hg_{number}" for number in range(len(types))]  # a result may have a name twice
    told = [_told(F.col(name), type_).alias(name) for name, type_ in zip(names, types, strict=True)]
    return frame.toDF(*names).select(*told)


def _told(column: Column, type_: spark.DataType) -> Column:
    match type_:
        case _ if not _has_moment(type_):
            return column
        case spark.DateType():
            return column.cast("string")
        case spark.TimestampType() | spark.TimestampNTZType():
            text = F.replace(column.cast("string"), F.lit(" "), F.lit("T"))
            return F.concat(text, F.lit("Z")) if isinstance(type_, spark.TimestampType) else text
        case spark.ArrayType():
            return F.transform(column, lambda one: _told(one, type_.elementType))
        case spark.MapType():
            return F.transform_values(column, lambda _, one: _told(one, type_.valueType))
        case spark.StructType():
            fields = [_told(column.getField(f.name), f.dataType).alias(f.name) for f in type_.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
        case _:
            return column


def _has_moment(type_: spark.DataType) -> bool:
    match type_:
        case spark.StructType():
            return any(_has_moment(field.dataType) for field in type_.fields)
        case spark.ArrayType():
            return _has_moment(type_.elementType)
        case spark.MapType():
            return _has_moment(type_.valueType)
        case _:
            return isinstance(type_, spark.DateType | spark.TimestampType | spark.TimestampNTZType)


def _to_scale(value: Decimal, type_: spark.DataType) -> Decimal:
    """Spark gives small numbers with digits of their own behind the scale: -1.00E-10 for -0.0000000001."""
    if not isinstance(type_, spark.DecimalType):
        return value
    return value.quantize(Decimal(1).scaleb(-type_.scale), context=Context(prec=type_.precision))


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
