"""What Spark's Avro reader gives -> the columns that we say an Avro schema has.

They agree but for a few types that Spark reads more plainly than we do. Anything that agrees is left alone, so that
an ordinary schema costs nothing. Schemas are trees here, in which every name is replaced by what it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.avro_plan import Tree
from headgate.runtime.formats.side import first_of, first_within
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type
from headgate.schema.types import Array, Date, Field, Map, Record, Time, Timestamp, TimestampTz, Type, Uuid

_DAY = 86_400_000  # milliseconds
_MOST = 2**63 // 1000  # milliseconds of which the microseconds can be counted
_UUID_PARTS, _UUID = "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5"


def reshape(column: Column, schema: Tree, type_: Type) -> Column:
    """The column that Spark made of a schema, as the neutral type of that schema. What is none is NULL; `misread` tells."""
    if not differs(schema):
        return column
    match type_:
        case Record():
            parts = [
                reshape(inner, part, f.type).alias(f.name) for inner, part, f in _parts(column, schema, type_)
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case Array(element):
            items = _plain(schema)["items"]
            return F.transform(column, lambda item: reshape(item, items, element))
        case Map(inner):
            values = _plain(schema)["values"]
            return F.transform_values(column, lambda _, value: reshape(value, values, inner))
        case _:
            return _leaf(column, _plain(schema), type_)


def misread(column: Column, schema: Tree, type_: Type, path: str = ROOT) -> Column | None:
    """Why what Spark made of a schema is not of its type, or NULL; None if nothing of it needs a look. Spark takes any
    number for a time of day, and other functions then fail on it."""
    match type_:
        case Record():
            parts = _parts(column, schema, type_)
            return first_of(misread(part, of, f.type, field_path(path, f.name)) for part, of, f in parts)
        case Array(element):
            return _first(column, _plain(schema)["items"], element, element_path(path))
        case Map(value):
            return _first(F.map_values(column), _plain(schema)["values"], value, value_path(path))
        case Time() if not differs(schema):
            return F.when(
                ~F.call_function("time_to_micros", column).between(0, _DAY * 1000 - 1), _none(type_, path)
            )
        case Time() | Timestamp() | TimestampTz() if differs(schema):
            made = _leaf(column, _plain(schema), type_)
            return F.when(column.isNotNull() & made.isNull(), _none(type_, path))
        case _:
            return None


def _none(type_: Type, path: str) -> Column:
    return F.lit(f"what is at {path} is no {print_type(type_)}")


def _first(values: Column, schema: Tree, type_: Type, path: str) -> Column | None:
    return first_within(values, lambda value: misread(value, schema, type_, path))


def differs(schema: Tree) -> bool:
    """Whether anything in the schema is read differently by Spark: unions of several types, times in milliseconds, uuids
    that are bytes, dates and times marked only by Connect's or Debezium's names."""
    match schema:
        case list():
            return _is_split(schema) or any(differs(branch) for branch in schema)
        case dict():
            # a record's name says nothing of its fields
            named = "connect.name" in schema and "fields" not in schema
            uuid = (schema.get("type"), schema.get("logicalType")) == ("fixed", "uuid")
            special = schema.get("logicalType") == "time-millis" or uuid or named
            inner = [schema.get("type"), schema.get("items"), schema.get("values"), *schema.get("fields", ())]
            return special or any(differs(part) for part in inner if isinstance(part, list | dict))
        case _:
            return False


def _leaf(column: Column, schema: Tree, type_: Type) -> Column:
    match type_:
        case Time() if _is(schema, "int"):
            return F.when(column.between(0, _DAY - 1), F.call_function("time_from_millis", column))
        case Time() if _is(schema, "long") and not _logical(schema):
            return F.when(column.between(0, _DAY * 1000 - 1), F.call_function("time_from_micros", column))
        case Date() if _is(schema, "int") and not _logical(schema):
            return F.date_from_unix_date(column)
        case TimestampTz() if _is(schema, "long") and not _logical(schema):
            return _moment(column, schema)
        case TimestampTz() if _is(schema, "string"):
            return column.try_cast("timestamp")
        case Timestamp() if _is(schema, "long") and not str(_logical(schema)).startswith("local"):
            return (column if _logical(schema) else _moment(column, schema)).cast("timestamp_ntz")
        case Uuid() if _is(schema, "fixed"):
            return F.lower(F.regexp_replace(F.hex(column), _UUID_PARTS, _UUID))
        case _:
            return column


def _moment(column: Column, schema: Mapping[str, Tree]) -> Column:
    """A long that only Connect's or Debezium's name makes a time."""
    if str(schema.get("connect.name", "")).endswith("MicroTimestamp"):
        return F.timestamp_micros(column)
    return F.when(column.between(-_MOST, _MOST - 1), F.timestamp_millis(column))


def _parts(column: Column, schema: Tree, type_: Record) -> Iterator[tuple[Column, Tree, Field]]:
    """The fields of a record as Spark has them, each with its schema: those of a union of several types one by one."""
    wanted = iter(type_.fields)
    if isinstance(schema, list) and _is_split(schema):
        yield from _members(column, schema, wanted)
        return
    for field in _plain(schema)["fields"]:
        inner = column.getField(str(field["name"]))
        if isinstance(field["type"], list) and _is_split(field["type"]):
            yield from _members(inner, field["type"], wanted)
        else:
            yield inner, field["type"], next(wanted)


def _members(
    column: Column, union: list[Tree], wanted: Iterator[Field]
) -> Iterator[tuple[Column, Tree, Field]]:
    for number, branch in enumerate(b for b in union if b != "null"):
        yield column.getField(f"member{number}"), branch, next(wanted)


def _is_split(branches: list[Tree]) -> bool:
    """Whether a union becomes several columns."""
    return len([b for b in branches if b != "null"]) > 1


def _plain(schema: Tree) -> Tree:
    """The schema behind a nullable union."""
    return next(b for b in schema if b != "null") if isinstance(schema, list) else schema


def _is(schema: Tree, primitive: str) -> bool:
    return schema == primitive or (isinstance(schema, dict) and schema.get("type") == primitive)


def _logical(schema: Tree) -> object:
    return schema.get("logicalType") if isinstance(schema, dict) else None
