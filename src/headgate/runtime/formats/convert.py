"""A value of the type that it was written with -> a value of the type that a side has now.

A field that the writer lacks is NULL, numbers widen, and where a change was accepted a value becomes text or json. A value
that cannot be converted becomes NULL here. `Decoder` fails the batch if the query uses that field.
"""

from __future__ import annotations

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.json_text import json_text
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Double, Field, Json, Map, Record, Text, Type


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
        case Json(), Double():
            return _double(column)
        case _, Text() if not isinstance(have, Record | Array | Map):
            return column.cast("string")
        case _, Json():
            return json_text(column, have)
        case _ if can_hold(want, have):
            return column.cast(to_spark(want))
        case _:
            return F.lit(None).cast(to_spark(want))


def _double(text: Column) -> Column:
    """The nearest double of a number that is kept as its text beside it (`plan.exact_numbers`). None is infinite in a document."""
    number = text.try_cast("double")
    too_large = F.raise_error(F.lit("a number is out of range")).cast("double")
    return F.when(F.abs(number) == F.lit(float("inf")), too_large).otherwise(number)


def _field(column: Column, have: Record, want: Field) -> Column:
    found = next((field for field in have.fields if field.name == want.name), None)
    if found is None:
        return F.lit(None).cast(to_spark(want.type))
    return convert(column.getField(found.name), found.type, want.type)
