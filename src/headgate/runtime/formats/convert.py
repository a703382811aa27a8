"""A value of the type that it was written with -> a value of the type that a side has now.

A field that the writer lacks is NULL, numbers widen, and where a change was accepted a value becomes text or json. A value
that cannot be converted becomes NULL here. `Decoder` fails the batch if the query uses that field. `json_text` makes JSON text by
Spark's own writer.
"""

from __future__ import annotations

from pyspark.sql import Column, functions as F

from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Decimal, Field, Json, Map, Record, Text, Time, Timestamp, TimestampTz, Type


def convert(column: Column, have: Type, want: Type) -> Column:
    if to_spark(have) == to_spark(want):  # docs and full names do not show in the data
        return column
    match have, want:
        case Record(), Record():
            fields = [_field(column, have, field).alias(field.name) for field in want.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
        case Array(), Array():
            return F.transform(column, lambda item: convert(item, have.element, want.element))
        case Map(), Map():
            return F.transform_values(column, lambda _, value: convert(value, have.value, want.value))
        case Json(), Text():
            return column
        case _, Text() if not isinstance(have, Record | Array | Map):
            return column.cast("string")
        case _, Json():
            return json_text(column, have)
        case _ if can_hold(want, have):
            return column.cast(to_spark(want))
        case _:
            return F.lit(None).cast(to_spark(want))


def _field(column: Column, have: Record, want: Field) -> Column:
    found = next((field for field in have.fields if field.name == want.name), None)
    if found is None:
        return F.lit(None).cast(to_spark(want.type))
    return convert(column.getField(found.name), found.type, want.type)


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
            return F.when(column.isNotNull(), F.struct(*[_json_field(column, f) for f in type_.fields]))
        case _:
            return column


def _json_field(column: Column, field: Field) -> Column:
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
