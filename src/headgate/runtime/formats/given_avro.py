"""Rows -> records of a given Avro schema in the JVM, for schemas of which Spark's writer does the same as `given/avro.py`.

Python workers take several times as long. They stay for what Spark cannot write or would change: unions of several types,
times, milliseconds (Spark cuts the rest off), uuids and other fixed of a meaning, references, and defaults that are no scalars.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal as Number

from pyspark.sql import Column, functions as F

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.write_checks import Rule
from headgate.runtime.formats.writers import RecordWriter, Row
from headgate.schema.encodings import type_of_schema
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Bigint, Boolean, Double, Enum, Field, Integer, Map, Real, Record, Text, Type

_LOGICAL = frozenset({"date", "timestamp-micros", "local-timestamp-micros", "decimal"})
_SCALARS = (Boolean, Integer, Bigint, Real, Double, Text, Enum)


class FilledRowWriter:
    """Like `GivenWriter`: writes rows with the fields of a given schema, in its order and with its defaults. Made by `in_jvm` and
    `json_in_jvm` alone."""

    def __init__(self, side: RecordEncoding, physical: Record, rule: Rule | None = None) -> None:
        self._logical = side.record
        self._physical = physical
        names = tuple(field.name for field in physical.fields)
        self._writer = RecordWriter(replace(side, columns=names, record=physical, given=False), rule)

    @property
    def can_reject(self) -> bool:
        return self._writer.can_reject

    def accepts(self, row: Row) -> Column:
        return self._writer.accepts(self._rewritten(row))

    def error(self, row: Row) -> Column:
        return self._writer.error(self._rewritten(row))

    def encode(self, row: Row) -> Column:
        return self._writer.encode(self._rewritten(row))

    def _rewritten(self, row: Row) -> Row:
        known = {field.name: field.type for field in self._logical.fields}
        return {
            field.name: _field(field, None if field.name not in known else (row[field.name], known[field.name]))
            for field in self._physical.fields
        }


def in_jvm(side: RecordEncoding) -> FilledRowWriter | None:
    """A writer for the side; None if Python workers must write it."""
    written = side.written
    if side.encoding != "AVRO" or side.whole or side.references or written is None:
        return None
    physical = type_of_schema(written.format, written).type
    if not isinstance(physical, Record) or not _is_plain(load_tree(written.text)):
        return None
    return FilledRowWriter(side, physical) if can_fill(side.record, physical) else None


def _is_plain(node: tree.AvroType) -> bool:
    """Whether Spark writes all values of the node as they are."""
    match node:
        case tree.Record():
            return all(_is_plain(field.type) for field in node.fields)
        case tree.Array():
            return _is_plain(node.items)
        case tree.Map():
            return _is_plain(node.values)
        case tree.Union():
            values = tree.values_of(node)
            return len(values) == 1 and len(node.branches) == 2 and _is_plain(values[0])
        case tree.Enum():
            return True
        case tree.Fixed():
            return "logicalType" not in node.attributes
        case tree.Primitive():
            return "connect.name" not in node.attributes and node.attributes.get("logicalType", "date") in _LOGICAL
        case _:
            return False


def can_fill(logical: Record, physical: Record) -> bool:
    """Whether every field without a column, and every null that must not be written, has a value that is easy to write."""
    known = {field.name: field.type for field in logical.fields}
    return all(_can_fill_field(field, known.get(field.name)) for field in physical.fields)


def _can_fill_field(field: Field, column: Type | None) -> bool:
    if field.default is not None and not isinstance(field.type, _SCALARS):
        return False
    if column is None:
        return field.nullable or field.default is not None
    inner, within = column, field.type
    while isinstance(inner, Array | Map) and isinstance(within, Array | Map):
        inner = inner.element if isinstance(inner, Array) else inner.value
        within = within.element if isinstance(within, Array) else within.value
    return can_fill(inner, within) if isinstance(inner, Record) and isinstance(within, Record) else True


def _field(field: Field, given: tuple[Column, Type] | None) -> Column:
    type_ = to_spark(field.type)
    if given is None:
        return F.lit(None).cast(type_) if field.default is None else _default(field)
    value = _value(given[0], given[1], field.type)
    return value if field.default is None or field.nullable else F.coalesce(value, _default(field))


def _default(field: Field) -> Column:
    value = json.loads(field.default or "null", parse_float=Number)
    return F.lit(float(value) if isinstance(value, Number) else value).cast(to_spark(field.type))


def _value(value: Column, have: Type, want: Type) -> Column:
    """The value with the fields of the schema, in its order."""
    match have, want:
        case Record(), Record():
            known = {field.name: field.type for field in have.fields}
            fields = [
                _field(f, None if f.name not in known else (value.getField(f.name), known[f.name])).alias(f.name)
                for f in want.fields
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
        case Array(), Array() if _holds_record(want):
            return F.transform(value, lambda item: _value(item, have.element, want.element))
        case Map(), Map() if _holds_record(want):
            return F.transform_values(value, lambda _, item: _value(item, have.value, want.value))
        case _:
            return value


def _holds_record(type_: Type) -> bool:
    match type_:
        case Record():
            return True
        case Array(element):
            return _holds_record(element)
        case Map(value):
            return _holds_record(value)
        case _:
            return False
