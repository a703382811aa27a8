"""Rows -> keys and values of records, on the JVM: the implementations of `SideWriter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, functions as F
from pyspark.sql.avro.functions import to_avro

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.convert import json_ready
from headgate.runtime.formats.frame import framed
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT, avro_names, element_path, field_path, value_path
from headgate.schema.render import spark_identifier
from headgate.schema.types import Array, Enum, Map, Record, Type, map_inner

MISSING = "it is null, and its schema has no null there"
NO_SYMBOL = "it is none of the symbols of its schema"


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Encodes columns as one side of a record. Only Avro has rows that it does not accept: its schema may demand a value."""

    side: RecordEncoding

    @property
    def can_reject(self) -> bool:
        return self.side.encoding == "AVRO" and any(_field_checks(self.side.record))

    def accepts(self, row: Mapping[str, Column]) -> Column:
        return _all([~check.fails(column) for column, check in self._checks(row)])

    def error(self, row: Mapping[str, Column]) -> Column:
        error = F.when(F.lit(False), _error("", ""))
        for column, check in self._checks(row):
            error = error.when(check.fails(column), _error(check.path, check.reason))
        return error

    def encode(self, row: Mapping[str, Column]) -> Column:
        side, first = self.side, row[self.side.columns[0]]
        match side.encoding:
            case "AVRO":
                assert side.schema is not None
                assert side.schema_id is not None
                names = side.names or side.columns
                types = {field.name: field.type for field in side.record.fields}
                fields = [_named(row[c], types[c]).alias(name) for c, name in zip(side.columns, names, strict=True)]
                return framed(side.schema_id, to_avro(F.struct(*fields), side.schema))
            case "JSON":
                ready = [json_ready(row[f.name], f.type).alias(f.name) for f in side.record.fields]
                return F.to_json(F.struct(*ready), {"ignoreNullFields": "false"}).cast("binary")
            case "TEXT":
                return first.cast("string").cast("binary")
            case "BYTES":
                return first.cast("binary")

    def _checks(self, row: Mapping[str, Column]) -> Iterator[tuple[Column, _Check]]:
        if self.side.encoding == "AVRO":
            yield from ((row[name], check) for name, check in _field_checks(self.side.record))


def row_of(side: RecordEncoding) -> dict[str, Column]:
    """The columns of a side, as a frame of the relation has them, without the fields that the side leaves out."""
    row = {name: F.col(spark_identifier(name)) for name in side.columns}
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


@dataclass(frozen=True, slots=True)
class _Check:
    """The condition under which a value cannot be written, as a function of the value. Never NULL."""

    fails: Callable[[Column], Column]
    path: str
    reason: str


def _all(conditions: Sequence[Column]) -> Column:
    """Whether all conditions hold. A balanced tree: a chain of thousands would be too deep for Spark."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else F.lit(True)
    middle = len(conditions) // 2
    return _all(conditions[:middle]) & _all(conditions[middle:])


def _named(column: Column, type_: Type) -> Column:
    """The value with the names that the fields of its records have in Avro, which Spark's writer goes by."""
    renamed = _with_avro_names(type_)
    return column if renamed == type_ else column.cast(to_spark(_nullable(renamed)))


def _with_avro_names(type_: Type) -> Type:
    if isinstance(type_, Record):
        names = avro_names([field.name for field in type_.fields])
        fields = zip(type_.fields, names, strict=True)
        type_ = replace(type_, fields=tuple(replace(field, name=name) for field, name in fields))
    return map_inner(type_, _with_avro_names)


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


def _field_checks(record: Record) -> Iterator[tuple[str, _Check]]:
    """What can be wrong with each field of a record, by the field's name."""
    for field in record.fields:
        for check in _checks(field.type, field_path(ROOT, field.name), nullable=field.nullable):
            yield field.name, check


def _checks(type_: Type, path: str, *, nullable: bool) -> Iterator[_Check]:
    """What can be wrong with a value of the type, and with its parts."""
    if not nullable:
        yield _Check(lambda value: value.isNull(), path, MISSING)
    match type_:
        case Enum():
            symbols = list(type_.symbols)
            yield _Check(lambda value: ~F.coalesce(value.isin(symbols), F.lit(True)), path, NO_SYMBOL)
        case Record():
            for field in type_.fields:
                inner = _checks(field.type, field_path(path, field.name), nullable=field.nullable)
                yield from (_in_field(field.name, check) for check in inner)
        case Array():
            inner = _checks(type_.element, element_path(path), nullable=type_.element_nullable)
            yield from (_in_elements(lambda value: value, check) for check in inner)
        case Map():
            inner = _checks(type_.value, value_path(path), nullable=type_.value_nullable)
            yield from (_in_elements(F.map_values, check) for check in inner)
        case _:
            return


def _in_field(name: str, check: _Check) -> _Check:
    def fails(value: Column) -> Column:
        return value.isNotNull() & check.fails(value.getField(name))

    return _Check(fails, check.path, check.reason)


def _in_elements(elements: Callable[[Column], Column], check: _Check) -> _Check:
    def fails(value: Column) -> Column:
        return F.coalesce(F.exists(elements(value), check.fails), F.lit(False))

    return _Check(fails, check.path, check.reason)


def _error(path: str, reason: str) -> Column:
    return F.struct(F.lit(path).alias("path"), F.lit(reason).alias("reason"))
