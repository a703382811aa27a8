"""What Spark's Avro reader gives -> the columns that an Avro schema has here.

Both agree except for a few types that Spark reads more plainly. Whatever agrees is left alone, so that an ordinary schema
costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, functions as F

from headgate.schema import types as t
from headgate.schema.formats.avro import tree

_DAY = 86_400_000  # milliseconds
_MAX_MILLIS = 2**63 // 1000  # milliseconds of which the microseconds can be counted
_UUID_PARTS, _UUID = "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5"


def to_columns(column: Column, schema: tree.AvroType, type_: t.Type) -> Column:
    """The column that Spark made of a schema, as the neutral type of that schema. A value that is not of the type is NULL;
    `avro_checks` says why."""
    if not needs_conversion(schema):
        return column
    match value_type(schema), type_:
        case _, t.Record():
            parts = [
                to_columns(field_of(column, names), of, f.type).alias(f.name)
                for names, of, f in parts_of(schema, type_)
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case tree.Array(items), t.Array(element):
            return F.transform(column, lambda item: to_columns(item, items, element))
        case tree.Map(values), t.Map(inner):
            return F.transform_values(column, lambda _, value: to_columns(value, values, inner))
        case plain, _:
            return to_leaf(column, plain, type_)


def needs_conversion(schema: tree.AvroType) -> bool:
    """Whether Spark reads anything in the schema in another way: unions of several types, times in milliseconds, uuids that
    are bytes, dates and times that only the names of Connect or Debezium mark."""
    return any(map(is_converted, tree.walk(schema)))


def is_converted(node: tree.AvroType) -> bool:
    """Whether Spark reads this very node in another way, whatever is inside it."""
    match node:
        case tree.Union():
            return _is_split(node)
        case tree.Record():  # the name that Connect gives to a record says nothing of its fields
            return False
        case _:
            logical = _logical_type(node)
            is_uuid = isinstance(node, tree.Fixed) and logical == "uuid"
            return logical == "time-millis" or is_uuid or "connect.name" in node.attributes


def to_leaf(column: Column, schema: tree.AvroType, type_: t.Type) -> Column:
    """A value without parts as its neutral type, NULL if it is no value of it."""
    kind, logical = tree.kind_of(schema), _logical_type(schema)
    match type_:
        case t.Time() if kind == "int":
            return F.when(column.between(0, _DAY - 1), F.call_function("time_from_millis", column))
        case t.Time() if kind == "long" and not logical:
            return F.when(column.between(0, _DAY * 1000 - 1), F.call_function("time_from_micros", column))
        case t.Date() if kind == "int" and not logical:
            return F.date_from_unix_date(column)
        case t.TimestampTz() if kind == "long" and not logical:
            return _timestamp(column, schema)
        case t.TimestampTz() if kind == "string":
            return column.try_cast("timestamp")
        case t.Timestamp() if kind == "long" and not str(logical).startswith("local"):
            return (column if logical else _timestamp(column, schema)).cast("timestamp_ntz")
        case t.Uuid() if kind == "fixed":
            return F.lower(F.regexp_replace(F.hex(column), _UUID_PARTS, _UUID))
        case _:
            return column


def _timestamp(column: Column, schema: tree.AvroType) -> Column:
    """A long that only the name of Connect or Debezium makes a timestamp."""
    if str(_attribute(schema, "connect.name")).endswith("MicroTimestamp"):
        return F.timestamp_micros(column)
    return F.when(column.between(-_MAX_MILLIS, _MAX_MILLIS - 1), F.timestamp_millis(column))


FieldNames: TypeAlias = tuple[str, ...]
"""A field inside a column, by the names that Spark has for the fields on the way to it."""


def field_of(column: Column, names: FieldNames) -> Column:
    return reduce(Column.getField, names, column)


def parts_of(schema: tree.AvroType, type_: t.Record) -> Iterator[tuple[FieldNames, tree.AvroType, t.Field]]:
    """The fields of a record, each with its schema; those of a union of several types one by one."""
    wanted = iter(type_.fields)
    if _is_split(schema):
        yield from _members((), schema, wanted)
        return
    record = value_type(schema)
    assert isinstance(record, tree.Record)
    for member in record.fields:
        if _is_split(member.type):
            yield from _members((member.name,), member.type, wanted)
        else:
            yield (member.name,), member.type, next(wanted)


def _members(
    names: FieldNames, union: tree.AvroType, wanted: Iterator[t.Field]
) -> Iterator[tuple[FieldNames, tree.AvroType, t.Field]]:
    for number, branch in enumerate(tree.values_of(union)):
        yield (*names, f"member{number}"), branch, next(wanted)


def _is_split(node: tree.AvroType) -> bool:
    """Whether a union becomes several columns."""
    return len(tree.values_of(node)) > 1


def value_type(node: tree.AvroType) -> tree.AvroType:
    """The type behind a nullable union."""
    return tree.values_of(node)[0]


def _logical_type(node: tree.AvroType) -> object:
    return _attribute(node, "logicalType")


def _attribute(node: tree.AvroType, key: str) -> object:
    return None if isinstance(node, tree.Union) else node.attributes.get(key)
