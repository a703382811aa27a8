"""Values as JSON text, by Spark's own writer."""

from __future__ import annotations

from pyspark.sql import Column, functions as F

from headgate.schema.types import Array, Decimal, Field, Json, Map, Record, Time, Timestamp, TimestampTz, Type


def json_text(column: Column, type_: Type) -> Column:
    """The JSON text of a value; NULL for NULL."""
    if isinstance(type_, Json):
        return column
    # Spark writes only records and lists as JSON: the value stands in `{"v":…}` and is cut out of it.
    whole = F.to_json(F.struct(json_ready(column, type_).alias("v")), {"ignoreNullFields": "false"})
    return F.when(column.isNotNull(), F.substring(whole, F.lit(6), F.length(whole) - 6))


def json_ready(column: Column, type_: Type) -> Column:
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
            return F.transform(column, lambda item: json_ready(item, type_.element))
        case Map() if _needs(type_.value):
            return F.transform_values(column, lambda _, value: json_ready(value, type_.value))
        case Record() if any(_needs(f.type) for f in type_.fields):
            return F.when(column.isNotNull(), F.struct(*[_field(column, f) for f in type_.fields]))
        case _:
            return column


def _field(column: Column, field: Field) -> Column:
    return json_ready(column.getField(field.name), field.type).alias(field.name)


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
