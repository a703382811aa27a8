"""Encodes rows as keys and values of records.

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
from headgate.runtime.formats import delimited, write_checks as rules
from headgate.runtime.formats.frame import framed
from headgate.runtime.formats.json_text import are_written_as_they_are, json_object, json_of, json_text
from headgate.runtime.formats.protobuf_writer import ProtobufEncoder
from headgate.runtime.formats.write_checks import (
    MISSING as MISSING,
    NO_SYMBOL as NO_SYMBOL,
    Check,
    field_checks,
    passes_in_sql,
)
from headgate.schema.formats.spark import to_spark
from headgate.schema.render import spark_ddl, spark_identifier
from headgate.schema.types import Array, Double, Field, Integer, Map, Record, Type, map_inner, with_nulls

Row: TypeAlias = Mapping[str, Column]


class FrameRow(Mapping[str, Column]):
    """Columns of a frame, by name. A column is made when it is first asked for, because that takes eight calls into the JVM. What
    can be said of many columns in one SQL text needs none of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._made: dict[str, Column | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Column:
        found = self._made[name]
        if found is None:
            found = self._made[name] = F.col(spark_identifier(name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class RecordWriter:
    """Encodes columns as one side of a record, in any format. Used by one thread at a time."""

    def __init__(self, side: RecordEncoding, rule: rules.Rule | None = None) -> None:
        """``rule`` finds the values that cannot be written. The default is the rule of the format."""
        self.side = side
        self._rule = rule or _RULES[side.encoding]

    @property
    def can_reject(self) -> bool:
        return any(True for _ in self._field_checks())

    def accepts(self, row: Row) -> Column:
        if not isinstance(row, FrameRow):
            return _all([~check.fails(column) for column, check in self._checks(row)])
        # One text for what many columns have: 2,000 columns took 49,000 calls into the JVM, most of the time of a schema change.
        checks = [(f, check, passes_in_sql(f, check)) for f in self.side.record.fields for check in self._of_field(f)]
        in_sql = [text for _, _, text in checks if text is not None]
        others = [~check.fails(row[f.name]) for f, check, text in checks if text is None]
        return _all([*([F.expr(" AND ".join(in_sql))] if in_sql else []), *others])

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
            case "JSON" if side.whole:
                return F.coalesce(json_text(row[fields[0].name], fields[0].type), F.lit("null")).cast("binary")
            case "JSON":
                return _document(fields, row).cast("binary")
            case "TEXT":
                return _text(row[fields[0].name], fields[0].type).cast("binary")
            case "BYTES":
                return row[fields[0].name].cast("binary")
            case "PRIMITIVE":
                return _big_endian(row[fields[0].name], fields[0].type)
            case "DELIMITED":
                return delimited.line([(row[f.name], f.type) for f in fields], side.delimiter).cast("binary")
            case _:
                assert_never(side.encoding)

    @cached_property
    def _protobuf(self) -> ProtobufEncoder:
        """The encoder of Protobuf. Making it compiles the schema."""
        assert self.side.written is not None
        return ProtobufEncoder.of(self.side.record, self.side.written)

    def _framed(self, body: Column) -> Column:
        assert self.side.schema_id is not None
        return framed(self.side.schema_id, body)

    def _checks(self, row: Row) -> Iterator[tuple[Column, Check]]:
        return ((row[name], check) for name, check in self._field_checks())

    def _field_checks(self) -> Iterator[tuple[str, Check]]:
        """What can be wrong with each field of the record, by the field's name."""
        return ((field.name, check) for field in self.side.record.fields for check in self._of_field(field))

    def _of_field(self, field: Field) -> Iterator[Check]:
        yield from field_checks(field, self._rule)
        if self.side.encoding == "PROTOBUF":
            yield from self._protobuf.json_checks(field)


_RULES: Mapping[str, rules.Rule] = {
    "AVRO": rules.avro_rule,
    "JSON SCHEMA": rules.json_schema_rule,
    "PROTOBUF": rules.protobuf_rule,
    "JSON": rules.json_rule,
    "TEXT": rules.text_rule,
    "BYTES": rules.bytes_rule,
    "PRIMITIVE": rules.bytes_rule,
    "DELIMITED": rules.delimited_rule,
}


def _big_endian(column: Column, type_: Type) -> Column:
    """A number in the bytes that Kafka's own serializers write."""
    if isinstance(type_, Double):
        # Avro writes a double in the same eight bytes, the last one first.
        written = F.hex(to_avro(column, '"double"'))
        return F.unhex(F.concat(*[F.substring(written, at, 2) for at in range(15, 0, -2)]))
    digits = 8 if isinstance(type_, Integer) else 16
    text = F.lpad(F.right(F.hex(column.cast("bigint")), F.lit(digits)), digits, "0")
    return F.unhex(text)


def row_of(side: RecordEncoding, inside: Column | None = None) -> Row:
    """The columns of a side, by name, without the fields that the side leaves out. They are columns of a frame, or fields of the
    column ``inside``."""
    if inside is None and not side.left_out:
        return FrameRow(side.columns)
    row = {name: F.col(spark_identifier(name)) if inside is None else inside.getField(name) for name in side.columns}
    for name in {path[0] for path in side.left_out} & row.keys():
        field = side.record.field(name)
        assert field is not None
        row[name] = _with_fields_of(row[name], field.type)
    return row


def _with_fields_of(value: Column, type_: Type) -> Column:
    """The value with only the fields that the type has."""
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


def _document(fields: Sequence[Field], row: Row) -> Column:
    if isinstance(row, FrameRow) and fields and are_written_as_they_are(fields):
        return json_of(_struct((field, field) for field in fields))
    return json_object([(field, row[field.name]) for field in fields])


def _text(column: Column, type_: Type) -> Column:
    """A scalar as SQL casts it to text, anything else as JSON."""
    return json_text(column, type_) if isinstance(type_, Record | Array | Map) else column.cast("string")


def _avro_record(side: RecordEncoding, row: Row) -> Column:
    """The row for Avro's writer, which finds the fields of records by their names in the schema. Renaming uses a cast, which
    matches fields by position."""
    fields = list(zip(side.record.fields, _with_names(side.record, dict(side.renames), ()).fields, strict=True))
    if isinstance(row, FrameRow) and fields:
        return _struct(fields)
    columns = []
    for field, named in fields:
        column = row[field.name]
        # Spark refuses a cast from nullable to not nullable. `accepts` has checked for nulls before.
        changed = column if named.type == field.type else column.cast(to_spark(with_nulls(named.type)))
        columns.append(changed.alias(named.name))
    return F.struct(*columns)


def _struct(fields: Iterable[tuple[Field, Field]]) -> Column:
    """A record of columns of a frame, each with the field that it becomes, as one SQL text."""
    return F.expr(f"struct({', '.join(_renamed(field, named) for field, named in fields)})")


def _renamed(field: Field, named: Field) -> str:
    """A column of a frame under another name, as SQL."""
    column = spark_identifier(field.name)
    changed = column if named.type == field.type else f"CAST({column} AS {spark_ddl(named.type)})"
    return f"{changed} AS {spark_identifier(named.name)}"


def _with_names(record: Record, renames: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> Record:
    """The record with the names that its fields have in the schema."""

    def renamed(type_: Type, path: tuple[str, ...]) -> Type:
        if isinstance(type_, Record):
            return _with_names(type_, renames, path)
        return map_inner(type_, lambda inner: renamed(inner, path))

    fields = [(field, (*path, field.name)) for field in record.fields]
    named = (replace(f, name=renames.get(at, f.name), type=renamed(f.type, at)) for f, at in fields)
    return replace(record, fields=tuple(named))


def _all(conditions: Sequence[Column]) -> Column:
    """Whether all conditions hold. They form a balanced tree, because a chain of thousands would be too deep for Spark."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else F.lit(True)
    middle = len(conditions) // 2
    return _all(conditions[:middle]) & _all(conditions[middle:])


def _error(path: str, reason: str) -> Column:
    return F.struct(F.lit(path).alias("path"), F.lit(reason).alias("reason"))
