"""Values as JSON text, by Spark's own writer.

A value of type json is put into the text as it is. Spark could only take it through a variant, which rounds numbers of many
digits and rewrites others. So a record that holds json is written in parts: what holds none by Spark, and json between.

A field without a value is null, unless its path is one of ``left_out``. Spark leaves all such fields out or none, so a record with
fields of both kinds is written in parts, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set as AbstractSet
from itertools import groupby
from typing import Literal, TypeAlias

from pyspark.sql import Column, functions as F

from headgate.schema.names import ROOT, element_path, field_path, value_path
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
    Uuid,
)

_NULL = "null"
MOST_PARTS = 50
"""Of one object, each of which is a call of Spark's writer. Keys have fewer: INSERT writes the same keys, in the order of the fields."""

Style: TypeAlias = Literal["json", "null", "left out"]
"""What Spark must be told for a value, or that it cannot write it: values of one style are written together."""


def json_text(column: Column, type_: Type, left_out: AbstractSet[str] = frozenset(), path: str = ROOT) -> Column:
    """The JSON text of a value; NULL for NULL."""
    styles = _styles(type_, left_out, path)
    if not _needs_parts(styles):
        # Spark writes only records and lists as JSON: the value stands in `{"v":…}` and is cut out of it.
        whole = _written([("v", column, type_)], styles)
        return F.when(column.isNotNull(), F.substring(whole, F.lit(6), F.length(whole) - 6))
    match type_:
        case Record(fields):
            members = [(f, column.getField(f.name)) for f in fields]
            return F.when(column.isNotNull(), json_object(members, left_out, path))
        case Array(element):
            items = F.transform(column, lambda item: _or_null(json_text(item, element, left_out, element_path(path))))
            return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))
        case Map(value):
            entries = F.transform(F.map_entries(column), lambda entry: _entry(entry, value, left_out, path))
            return F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
        case _:
            return column


def json_object(
    fields: Sequence[tuple[Field, Column]], left_out: AbstractSet[str] = frozenset(), path: str = ROOT
) -> Column:
    """One JSON object of these fields."""
    styles = [_field_styles(field, left_out, path) for field, _ in fields]
    together = frozenset[Style]().union(*styles)
    if not _needs_parts(together):
        return _written([(field.name, column, field.type) for field, column in fields], together)
    return F.concat(F.lit("{"), F.concat_ws(",", *_members(fields, styles, left_out, path)), F.lit("}"))


def are_written_as_they_are(fields: Sequence[Field]) -> bool:
    """Whether Spark writes all of these fields together, and none of them needs another form before."""
    styles = frozenset[Style]().union(*(_field_styles(field, frozenset(), ROOT) for field in fields))
    return not _needs_parts(styles) and not any(_needs(field.type) for field in fields)


def json_of(record: Column) -> Column:
    """One JSON object of a record whose fields are written as they are."""
    return F.to_json(record, {"ignoreNullFields": "false"})


def _members(
    fields: Sequence[tuple[Field, Column]], styles: Sequence[frozenset[Style]], left_out: AbstractSet[str], path: str
) -> Iterator[Column]:
    """The members of an object: fields of one style together, others one by one. NULL where there are none. They come in the
    order of the fields, unless that makes too many parts."""
    parts, style = list(zip(styles, fields, strict=True)), lambda part: (_needs_parts(part[0]), "left out" in part[0])
    if sum(1 for _ in groupby(parts, style)) > MOST_PARTS:
        parts.sort(key=lambda part: "left out" in part[0])
    for (alone, without_nulls), group in groupby(parts, style):
        members = [member for _, member in group]
        if not alone:
            named = [(field.name, column, field.type) for field, column in members]
            whole = _written(named, {"left out"} if without_nulls else set())
            yield F.nullif(F.substring(whole, F.lit(2), F.length(whole) - 2), F.lit(""))
            continue
        for field, column in members:
            at = field_path(path, field.name)
            text = json_text(column, field.type, left_out, at)
            name = F.lit(f"{json.dumps(field.name, ensure_ascii=False)}:")
            yield F.concat(name, text if at in left_out else _or_null(text))


def _entry(entry: Column, type_: Type, left_out: AbstractSet[str], path: str) -> Column:
    text = json_text(entry["value"], type_, left_out, value_path(path))
    return F.concat(json_text(entry["key"], Text()), F.lit(":"), _or_null(text))


def _or_null(text: Column) -> Column:
    return F.coalesce(text, F.lit(_NULL))


def _styles(type_: Type, left_out: AbstractSet[str], path: str) -> frozenset[Style]:
    """The styles of everything in a value."""
    match type_:
        case Json():
            return frozenset(("json",))
        case Record(fields):
            return frozenset[Style]().union(*(_field_styles(field, left_out, path) for field in fields))
        case Array(element):
            return _styles(element, left_out, element_path(path))
        case Map(value):
            return _styles(value, left_out, value_path(path))
        case _:
            return frozenset()


def _field_styles(field: Field, left_out: AbstractSet[str], path: str) -> frozenset[Style]:
    at = field_path(path, field.name)
    own: frozenset[Style] = frozenset(("left out",) if at in left_out else ("null",)) if field.nullable else frozenset()
    return own | _styles(field.type, left_out, at)


def _needs_parts(styles: AbstractSet[Style]) -> bool:
    return "json" in styles or len(styles) > 1


def _written(fields: Sequence[tuple[str, Column, Type]], styles: AbstractSet[Style]) -> Column:
    ready = [_ready(column, type_).alias(name) for name, column, type_ in fields]
    return F.to_json(F.struct(*ready), {"ignoreNullFields": "true" if "left out" in styles else "false"})


def _ready(column: Column, type_: Type) -> Column:
    """What Spark's JSON writer must be given so that its text is ours: exact decimals and ISO times."""
    match type_:
        case Decimal() | Time():
            return column.cast("string")
        case Timestamp():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case TimestampTz():
            return F.concat(F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
        case Uuid():
            return F.lower(column)
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
        case Decimal() | Time() | Timestamp() | TimestampTz() | Uuid():
            return True
        case Array():
            return _needs(type_.element)
        case Map():
            return _needs(type_.value)
        case Record():
            return any(_needs(f.type) for f in type_.fields)
        case _:
            return False
