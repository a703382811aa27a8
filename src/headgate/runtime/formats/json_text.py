"""Values as JSON text, by Spark's own writer.

A value of type json is put into the text as it is. Spark could only take it through a variant, which rounds numbers of many
digits and rewrites others. So a record that holds json is written in parts: what holds none by Spark, and json between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from pyspark.sql import Column, functions as F

from headgate.schema.types import (
    Array,
    Decimal,
    Field,
    Json,
    Map,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    holds_json,
)

_NULL = "null"


def json_text(column: Column, type_: Type) -> Column:
    """The JSON text of a value; NULL for NULL."""
    match type_:
        case Json():
            return column
        case Record() if holds_json(type_):
            fields = [(f, column.getField(f.name)) for f in type_.fields]
            return F.when(column.isNotNull(), json_object(fields))
        case Array() if holds_json(type_):
            items = F.transform(column, lambda item: _or_null(item, type_.element))
            return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))
        case Map() if holds_json(type_):
            entries = F.transform(F.map_entries(column), lambda entry: _entry(entry, type_.value))
            return F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
        case _:
            # Spark writes only records and lists as JSON: the value stands in `{"v":…}` and is cut out of it.
            whole = _written([("v", column, type_)])
            return F.when(column.isNotNull(), F.substring(whole, F.lit(6), F.length(whole) - 6))


def json_object(fields: Sequence[tuple[Field, Column]], *, leave_out_nulls: bool = False) -> Column:
    """One JSON object of these fields, with a member for NULL too, unless these are left out at every depth, which is only for
    fields without json."""
    if not any(holds_json(field.type) for field, _ in fields):
        named = [(field.name, column, field.type) for field, column in fields]
        return _written(named, leave_out_nulls=leave_out_nulls)
    return F.concat(F.lit("{"), F.concat_ws(",", *_members(fields)), F.lit("}"))


def _members(fields: Sequence[tuple[Field, Column]]) -> Iterator[Column]:
    """The members of an object: those that hold json one by one, those between them together."""
    for holds, group in groupby(fields, lambda one: holds_json(one[0].type)):
        if holds:
            for field, column in group:
                yield F.concat(F.lit(f"{json.dumps(field.name, ensure_ascii=False)}:"), _or_null(column, field.type))
        else:
            whole = _written([(field.name, column, field.type) for field, column in group])
            yield F.substring(whole, F.lit(2), F.length(whole) - 2)


def _entry(entry: Column, type_: Type) -> Column:
    return F.concat(json_text(entry["key"], Text()), F.lit(":"), _or_null(entry["value"], type_))


def _or_null(column: Column, type_: Type) -> Column:
    return F.coalesce(json_text(column, type_), F.lit(_NULL))


def _written(fields: Sequence[tuple[str, Column, Type]], *, leave_out_nulls: bool = False) -> Column:
    ready = [_ready(column, type_).alias(name) for name, column, type_ in fields]
    return F.to_json(F.struct(*ready), {"ignoreNullFields": "true" if leave_out_nulls else "false"})


def _ready(column: Column, type_: Type) -> Column:
    """What Spark's JSON writer must be given so that its text is ours: exact decimals and ISO times."""
    match type_:
        case Decimal() | Time():
            return column.cast("string")
        case Timestamp():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case TimestampTz():
            return F.concat(F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
        case Array() if _needs(type_.element):
            return F.transform(column, lambda item: _ready(item, type_.element))
        case Map() if _needs(type_.value):
            return F.transform_values(column, lambda _, value: _ready(value, type_.value))
        case Record() if any(_needs(f.type) for f in type_.fields):
            return F.when(column.isNotNull(), F.struct(*[_field(column, f) for f in type_.fields]))
        case _:
            return column


def _field(column: Column, field: Field) -> Column:
    return _ready(column.getField(field.name), field.type).alias(field.name)


def _needs(type_: Type) -> bool:
    match type_:
        case Decimal() | Time() | Timestamp() | TimestampTz():
            return True
        case Array():
            return _needs(type_.element)
        case Map():
            return _needs(type_.value)
        case Record():
            return any(_needs(f.type) for f in type_.fields)
        case _:
            return False
