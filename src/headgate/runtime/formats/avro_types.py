"""What Spark's Avro reader gives -> the columns that an Avro schema has here.

Both agree except for a few types that Spark reads more plainly. Whatever agrees is left alone, so that an ordinary schema
costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.side import first_element_error, first_error
from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.tree import AvroType, kind_of, values_of, walk
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type
from headgate.schema.types import Type

_DAY = 86_400_000  # milliseconds
_MAX_MILLIS = 2**63 // 1000  # milliseconds of which the microseconds can be counted
_UUID_PARTS, _UUID = "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5"


def to_columns(column: Column, schema: AvroType, type_: Type) -> Column:
    """The column that Spark made of a schema, as the neutral type of that schema. A value that is not of the type is NULL;
    `out_of_range` says why."""
    if not needs_conversion(schema):
        return column
    match _value_type(schema), type_:
        case _, t.Record():
            parts = [to_columns(inner, part, f.type).alias(f.name) for inner, part, f in _parts(column, schema, type_)]
            return F.when(column.isNotNull(), F.struct(*parts))
        case tree.Array(items), t.Array(element):
            return F.transform(column, lambda item: to_columns(item, items, element))
        case tree.Map(values), t.Map(inner):
            return F.transform_values(column, lambda _, value: to_columns(value, values, inner))
        case plain, _:
            return _leaf(column, plain, type_)


def out_of_range(column: Column, schema: AvroType, type_: Type, path: str = ROOT) -> Column | None:
    """Why what Spark made of a schema is not a value of its type, or NULL; None if nothing of it needs a check. Spark takes
    any number for a time of day, and other functions then fail on it."""
    match _value_type(schema), type_:
        case _, t.Record():
            parts = _parts(column, schema, type_)
            return first_error(out_of_range(part, of, f.type, field_path(path, f.name)) for part, of, f in parts)
        case tree.Array(items), t.Array(element):
            return _first(column, items, element, element_path(path))
        case tree.Map(values), t.Map(inner):
            return _first(F.map_values(column), values, inner, value_path(path))
        case _, t.Time() if not needs_conversion(schema):
            micros = F.call_function("time_to_micros", column)
            return F.when(~micros.between(0, _DAY * 1000 - 1), _no_value(type_, path))
        case plain, t.Time() | t.Timestamp() | t.TimestampTz() if needs_conversion(schema):
            made = _leaf(column, plain, type_)
            return F.when(column.isNotNull() & made.isNull(), _no_value(type_, path))
        case _:
            return None


def _no_value(type_: Type, path: str) -> Column:
    return F.lit(f"what is at {path} is no {print_type(type_)}")


def _first(values: Column, schema: AvroType, type_: Type, path: str) -> Column | None:
    return first_element_error(values, lambda value: out_of_range(value, schema, type_, path))


def needs_conversion(schema: AvroType) -> bool:
    """Whether Spark reads anything in the schema in another way: unions of several types, times in milliseconds, uuids that
    are bytes, dates and times that only the names of Connect or Debezium mark."""
    return any(map(_is_special, walk(schema)))


def _is_special(node: AvroType) -> bool:
    match node:
        case tree.Union():
            return _is_split(node)
        case tree.Record():  # the name that Connect gives to a record says nothing of its fields
            return False
        case _:
            logical = _logical_type(node)
            is_uuid = isinstance(node, tree.Fixed) and logical == "uuid"
            return logical == "time-millis" or is_uuid or "connect.name" in node.attributes


def _leaf(column: Column, schema: AvroType, type_: Type) -> Column:
    kind, logical = kind_of(schema), _logical_type(schema)
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


def _timestamp(column: Column, schema: AvroType) -> Column:
    """A long that only the name of Connect or Debezium makes a timestamp."""
    if str(_attribute(schema, "connect.name")).endswith("MicroTimestamp"):
        return F.timestamp_micros(column)
    return F.when(column.between(-_MAX_MILLIS, _MAX_MILLIS - 1), F.timestamp_millis(column))


def _parts(column: Column, schema: AvroType, type_: t.Record) -> Iterator[tuple[Column, AvroType, t.Field]]:
    """The fields of a record as Spark has them, each with its schema; those of a union of several types one by one."""
    wanted = iter(type_.fields)
    if _is_split(schema):
        yield from _members(column, schema, wanted)
        return
    record = _value_type(schema)
    assert isinstance(record, tree.Record)
    for member in record.fields:
        inner = column.getField(member.name)
        if _is_split(member.type):
            yield from _members(inner, member.type, wanted)
        else:
            yield inner, member.type, next(wanted)


def _members(column: Column, union: AvroType, wanted: Iterator[t.Field]) -> Iterator[tuple[Column, AvroType, t.Field]]:
    for number, branch in enumerate(values_of(union)):
        yield column.getField(f"member{number}"), branch, next(wanted)


def _is_split(node: AvroType) -> bool:
    """Whether a union becomes several columns."""
    return len(values_of(node)) > 1


def _value_type(node: AvroType) -> AvroType:
    """The type behind a nullable union."""
    return values_of(node)[0]


def _logical_type(node: AvroType) -> object:
    return _attribute(node, "logicalType")


def _attribute(node: AvroType, key: str) -> object:
    return None if isinstance(node, tree.Union) else node.attributes.get(key)
