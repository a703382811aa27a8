"""What Spark's Avro reader gives -> the columns that we say an Avro schema has.

They agree but for a few types that Spark reads more plainly than we do. Anything that agrees is left alone, so that
an ordinary schema costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.schema.types import Array, Date, Map, Record, Time, Timestamp, TimestampTz, Type


def reshape(column: Column, schema: object, type_: Type) -> Column:
    """The column that Spark made of a schema, given as a tree, as the neutral type of that schema."""
    return _reshape(column, schema, type_) if differs(schema) else column


def differs(schema: object) -> bool:
    """Whether anything in the schema is read differently by Spark: unions of several types, times in milliseconds,
    dates and times marked only by Connect's or Debezium's names."""
    match schema:
        case list():
            return _is_split(schema) or any(differs(branch) for branch in schema)
        case dict():
            # a record's name says nothing of its fields
            named = "connect.name" in schema and "fields" not in schema
            special = schema.get("logicalType") == "time-millis" or named
            inner = [schema.get("type"), schema.get("items"), schema.get("values"), *_fields(schema)]
            return special or any(differs(part) for part in inner if isinstance(part, list | dict))
        case _:
            return False


def _reshape(column: Column, schema: object, type_: Type) -> Column:
    schema = _plain(schema)
    match type_:
        case Record() if isinstance(schema, dict) and "fields" in schema:
            fields = _record_fields(column, schema, type_)
            return F.when(column.isNotNull(), F.struct(*fields))
        case Array():
            items = schema.get("items") if isinstance(schema, dict) else None
            return F.transform(column, lambda item: _reshape(item, items, type_.element))
        case Map():
            values = schema.get("values") if isinstance(schema, dict) else None
            return F.transform_values(column, lambda _, value: _reshape(value, values, type_.value))
        case Time() if _is(schema, "int"):
            return F.call_function("time_from_millis", column)
        case Time() if _is(schema, "long") and not _logical(schema):
            return F.call_function("time_from_micros", column)
        case Date() if _is(schema, "int") and not _logical(schema):
            return F.date_from_unix_date(column)
        case TimestampTz() if _is(schema, "long") and not _logical(schema):
            return _moment(column, schema)
        case TimestampTz() if _is(schema, "string"):
            return column.cast("timestamp")
        case Timestamp() if _is(schema, "long") and not str(_logical(schema)).startswith("local"):
            return (column if _logical(schema) else _moment(column, schema)).cast("timestamp_ntz")
        case _:
            return column


def _moment(column: Column, schema: object) -> Column:
    """A long that only Connect's or Debezium's name makes a time."""
    name = str(schema.get("connect.name", "")) if isinstance(schema, dict) else ""
    return F.timestamp_micros(column) if name.endswith("MicroTimestamp") else F.timestamp_millis(column)


def _record_fields(column: Column, schema: Mapping[str, object], type_: Record) -> list[Column]:
    made: list[Column] = []
    wanted = list(type_.fields)
    for field in _fields(schema):
        assert isinstance(field, dict)
        inner = column.getField(str(field["name"]))
        branches = field["type"] if isinstance(field["type"], list) else None
        if branches is not None and _is_split(branches):
            for number, branch in enumerate(b for b in branches if b != "null"):
                target = wanted.pop(0)
                made.append(
                    _reshape(inner.getField(f"member{number}"), branch, target.type).alias(target.name)
                )
        else:
            target = wanted.pop(0)
            made.append(_reshape(inner, field["type"], target.type).alias(target.name))
    return made


def _is_split(branches: list[object]) -> bool:
    """Whether a union becomes several columns. Spark itself merges int with long, and float with double."""
    return len([b for b in branches if b != "null"]) > 1


def _plain(schema: object) -> object:
    """The schema behind a nullable union."""
    return next((b for b in schema if b != "null"), "null") if isinstance(schema, list) else schema


def _fields(schema: Mapping[str, object]) -> list[object]:
    fields = schema.get("fields")
    return fields if isinstance(fields, list) else []


def _is(schema: object, primitive: str) -> bool:
    return schema == primitive or (isinstance(schema, dict) and schema.get("type") == primitive)


def _logical(schema: object) -> object:
    return schema.get("logicalType") if isinstance(schema, dict) else None
