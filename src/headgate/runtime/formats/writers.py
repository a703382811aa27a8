"""Rows -> keys and values of records: the implementations of `SideWriter`.

Everything is computed in the JVM, except for Protobuf, which needs Python workers (`protobuf_writer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias, assert_never

from pyspark.sql import Column, functions as F
from pyspark.sql.avro.functions import to_avro

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats import write_checks as rules
from headgate.runtime.formats.frame import framed
from headgate.runtime.formats.json_text import json_object, json_text
from headgate.runtime.formats.protobuf_writer import ProtobufEncoder
from headgate.runtime.formats.write_checks import MISSING as MISSING, NO_SYMBOL as NO_SYMBOL, Check, field_checks
from headgate.schema.formats.spark import to_spark
from headgate.schema.render import spark_identifier
from headgate.schema.types import Array, Field, Integer, Map, Record, Type, map_inner

Row: TypeAlias = Mapping[str, Column]


class RecordWriter:
    """Encodes columns as one side of a record, in any format. Used by one thread at a time."""

    def __init__(self, side: RecordEncoding) -> None:
        self.side = side

    @property
    def can_reject(self) -> bool:
        return any(True for _ in self._field_checks())

    def accepts(self, row: Row) -> Column:
        return _all([~check.fails(column) for column, check in self._checks(row)])

    def error(self, row: Row) -> Column:
        error = F.when(F.lit(False), _error("", ""))
        for column, check in self._checks(row):
            error = error.when(check.fails(column), _error(check.path, check.reason))
        return error

    def encode(self, row: Row) -> Column:
        side, fields = self.side, self.side.record.fields
        match side.encoding:
            case "AVRO":
                return self._framed(to_avro(_avro_record(side, row), side.schema or ""))
            case "JSON SCHEMA":
                return self._framed(_document(fields, row).cast("binary"))
            case "PROTOBUF":
                return self._framed(self._protobuf.encode(row))
            case "JSON":
                return _document(fields, row).cast("binary")
            case "TEXT":
                return _text(row[fields[0].name], fields[0].type).cast("binary")
            case "BYTES":
                return row[fields[0].name].cast("binary")
            case "PRIMITIVE":
                return _big_endian(row[fields[0].name], fields[0].type)
            case _:
                assert_never(side.encoding)

    @cached_property
    def _protobuf(self) -> ProtobufEncoder:
        """Compiles the schema, which is needed for Protobuf alone."""
        assert self.side.written is not None
        return ProtobufEncoder.of(self.side.record, self.side.written)

    def _framed(self, body: Column) -> Column:
        assert self.side.schema_id is not None
        return framed(self.side.schema_id, body)

    def _checks(self, row: Row) -> Iterator[tuple[Column, Check]]:
        return ((row[name], check) for name, check in self._field_checks())

    def _field_checks(self) -> Iterator[tuple[str, Check]]:
        """What can be wrong with each field of the record, by the field's name."""
        for field in self.side.record.fields:
            for check in field_checks(field, _RULES[self.side.encoding]):
                yield field.name, check
            if self.side.encoding == "PROTOBUF":
                yield from ((field.name, check) for check in self._protobuf.json_checks(field))


_RULES: Mapping[str, rules.Rule] = {
    "AVRO": rules.avro_rule,
    "JSON SCHEMA": rules.json_schema_rule,
    "PROTOBUF": rules.protobuf_rule,
    "JSON": rules.json_rule,
    "TEXT": rules.text_rule,
    "BYTES": rules.bytes_rule,
    "PRIMITIVE": rules.bytes_rule,
}


def _big_endian(column: Column, type_: Type) -> Column:
    """A whole number as Kafka's own serialisers write it."""
    digits = 8 if isinstance(type_, Integer) else 16
    text = F.lpad(F.right(F.hex(column.cast("bigint")), F.lit(digits)), digits, "0")
    return F.unhex(text)


def row_of(side: RecordEncoding, inside: Column | None = None) -> dict[str, Column]:
    """The columns of a side, as a frame of the relation has them, or a column of such rows, without the fields that the side
    leaves out."""
    row = {name: F.col(spark_identifier(name)) if inside is None else inside.getField(name) for name in side.columns}
    for name in {path[0] for path in side.left_out} & row.keys():
        field = side.record.field(name)
        assert field is not None
        row[name] = _with_fields_of(row[name], field.type)
    return row


def _with_fields_of(value: Column, type_: Type) -> Column:
    """The value with the fields of the type alone."""
    match type_:
        case Record():
            fields = [_with_fields_of(value.getField(f.name), f.type).alias(f.name) for f in type_.fields]
            return F.when(value.isNotNull(), F.struct(*fields))
        case Array():
            return F.transform(value, lambda item: _with_fields_of(item, type_.element))
        case Map():
            return F.transform_values(value, lambda _, item: _with_fields_of(item, type_.value))
        case _:
            return value


def _document(fields: Iterable[Field], row: Row) -> Column:
    return json_object([(field, row[field.name]) for field in fields])


def _text(column: Column, type_: Type) -> Column:
    """A scalar as SQL casts it to text, anything else as JSON."""
    return json_text(column, type_) if isinstance(type_, Record | Array | Map) else column.cast("string")


def _avro_record(side: RecordEncoding, row: Row) -> Column:
    """The row as Avro's writer takes it, which finds fields by the names of the schema, at any depth. A cast of records goes
    by position."""
    fields = side.record.fields
    columns = []
    for field, named in zip(fields, _with_names(side.record, dict(side.renames), ()).fields, strict=True):
        column = row[field.name]
        changed = column if named.type == field.type else column.cast(to_spark(_nullable(named.type)))
        columns.append(changed.alias(named.name))
    return F.struct(*columns)


def _with_names(record: Record, renames: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> Record:
    """The record with the names that its fields have in the schema."""

    def renamed(type_: Type, path: tuple[str, ...]) -> Type:
        if isinstance(type_, Record):
            return _with_names(type_, renames, path)
        return map_inner(type_, lambda inner: renamed(inner, path))

    fields = [(field, (*path, field.name)) for field in record.fields]
    named = (replace(f, name=renames.get(at, f.name), type=renamed(f.type, at)) for f, at in fields)
    return replace(record, fields=tuple(named))


def _nullable(type_: Type) -> Type:
    """The type with nulls everywhere: Spark casts nothing that may be null to what may not. `accepts` has looked for nulls."""
    match type_:
        case Record():
            type_ = replace(type_, fields=tuple(replace(field, nullable=True) for field in type_.fields))
        case Array():
            type_ = replace(type_, element_nullable=True)
        case Map():
            type_ = replace(type_, value_nullable=True)
    return map_inner(type_, _nullable)


def _all(conditions: Sequence[Column]) -> Column:
    """Whether all conditions hold. A balanced tree: a chain of thousands would be too deep for Spark."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else F.lit(True)
    middle = len(conditions) // 2
    return _all(conditions[:middle]) & _all(conditions[middle:])


def _error(path: str, reason: str) -> Column:
    return F.struct(F.lit(path).alias("path"), F.lit(reason).alias("reason"))
