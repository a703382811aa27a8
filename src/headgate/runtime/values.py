"""Values of result rows -> JSON, as the statement protocol has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal

from pyspark.sql import Row
from pyspark.sql import types as spark

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def json_value(value: object, type_: spark.DataType) -> Json:
    """NULL is null, bytes are hex digits, decimals and times text, numbers that JSON has not are their names."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else _name(value)
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return bytes(value).hex()
        case datetime():
            return _timestamp(value, type_)
        case date() | time():
            return _trimmed(value.isoformat())
        case Row() if isinstance(type_, spark.StructType):
            return {f.name: json_value(v, f.dataType) for f, v in zip(type_.fields, value, strict=True)}
        case Mapping() if isinstance(type_, spark.MapType):
            return {str(k): json_value(v, type_.valueType) for k, v in value.items()}
        case list() | tuple() if isinstance(type_, spark.ArrayType):
            return [json_value(v, type_.elementType) for v in value]
        case _:
            return str(value)


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamp(value: datetime, type_: spark.DataType) -> str:
    """Spark gives an instant as a naive datetime in the driver's zone."""
    if isinstance(type_, spark.TimestampType):
        return _trimmed(value.astimezone(UTC).replace(tzinfo=None).isoformat()) + "Z"
    return _trimmed(value.isoformat())


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
