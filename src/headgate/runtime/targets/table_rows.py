"""Rows of a relation -> rows of a staging table, as columns of Spark.

A value is staged in the type that Arrow has for it, or as text where the binary COPY has no form for its type; the merge casts it to the
column's type. An int64 that is copied into a numeric column becomes 0 without an error, so nothing is ever copied into the
types of the target itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
from psycopg import sql
from pyspark.sql import Column, DataFrame, functions as F

from headgate.plan.definitions import PRESENT
from headgate.plan.native_types import text_form
from headgate.plan.target_definitions import NESTED, TableColumn, TableDefinition, TargetField
from headgate.runtime.checked_casts import RANGE, checked_cast
from headgate.runtime.formats.json_text import json_object
from headgate.runtime.target_rows import FieldColumns, Leaf, document_problems, value_at
from headgate.schema import types as t
from headgate.schema.formats.postgres import to_postgres
from headgate.schema.names import ROOT, field_path, internal_name
from headgate.schema.render import print_type, spark_identifier
from headgate.schema.types import Array, plain

OP, HASH, ROW = internal_name("op"), internal_name("hash"), internal_name("row")
WRITE, DELETE, BAD, NOTHING, CHANGED = range(5)
"""What a staged row means: write it, delete its key, leave it out because it does not fit, ignore it, or delete its key unless it is
among the others."""

_STAGED: dict[type, str] = {
    t.Boolean: "boolean", t.Integer: "integer", t.Bigint: "bigint", t.Real: "real", t.Double: "double precision",
    t.Decimal: "numeric", t.Text: "text", t.Enum: "text", t.CatalogEnum: "text", t.Bytes: "bytea", t.Date: "date",
    t.Time: "time", t.Timestamp: "timestamp", t.TimestampTz: "timestamptz", t.Uuid: "text",
}  # fmt: skip
# pgpq has the wrong type number for lists of timestamptz, and no lists of some others.
_DIRECT_ELEMENTS = (t.Boolean, t.Integer, t.Bigint, t.Real, t.Double, t.Text, t.Enum)
NOT_ISO = "it is not written as its type in the table needs it"
_FLOATS = ("double precision", "real")
_FIRST_DAY = "-4713-11-24"  # there is a year 0
_LAST_DAY = 2_145_042_905  # days from 1970
# An explicit cast to these cuts what is too long; an assignment refuses it.
_ASSIGNED = ("varchar", "character", "char", "bpchar")


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column of the staging table and how the merge reads it."""

    column: TableColumn
    type: str

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_checked_text(self) -> bool:
        """Whether it is a text that the database casts, and may refuse."""
        return self.type == "text" and self.column.postgres != "text"

    def merged(self, held: str, stage: str = "s") -> sql.Composable:
        """The expression that gives the value of a column that has the type ``held`` in the table. ``stage`` is the alias of the
        staging table."""
        name = sql.Identifier(stage, self.name)
        final = self.column.postgres
        if held == "numeric" and final in _FLOATS:  # it was widened so; a cast would keep 15 digits, or 6
            return sql.SQL("{}::text::numeric").format(name)
        if not self.type.startswith("text") or final == self.type or final.lower().startswith(_ASSIGNED):
            return name
        return sql.SQL("{}::{}").format(name, sql.SQL(final))


class TableRows:
    """The staged rows of one table. Its columns are made when Spark runs."""

    def __init__(self, table: TableDefinition) -> None:
        self.table = table
        self.staged = tuple(StagedColumn(column, staged_type(column)) for column in table.columns)
        # With the records that become rows of child tables, each as one JSON text.
        self.every = (*self.staged, *(StagedColumn(child.staged, "text") for child in table.children))
        self._keys = tuple(one for one in self.staged if one.column.field.key)

    def frame(self, rows: DataFrame, *, marked: bool = False) -> DataFrame:
        """A staged row for every row of the relation. ``marked`` rows have the column `PRESENT`. A row that does not fit, or that is
        deleted, has only its key."""
        every, keys = _Values(self.every), _Values(self._keys)
        present = F.col(PRESENT) if marked else F.lit(True)
        bad_key = keys.problem.isNotNull()
        op = (
            F.when(~present & bad_key, F.lit(NOTHING))
            .when(~present, F.lit(DELETE))
            .when(every.problem.isNotNull(), F.lit(BAD))
            .otherwise(F.lit(WRITE))
        )
        ready = every.fields.with_documents(rows).withColumn(OP, op)
        wanted = {True: F.col(OP).isin(WRITE, DELETE) | ((F.col(OP) == BAD) & ~bad_key), False: F.col(OP) == WRITE}
        values = [
            F.when(wanted[one.column.field.key], value).alias(one.name)
            for one, value in zip(self.every, every.staged, strict=True)
        ]
        staged = [F.col(spark_identifier(one.name)) for one in self.every]
        return ready.select(*values, F.col(OP)).withColumn(HASH, self._hash(staged))

    def _hash(self, staged: Sequence[Column]) -> Column:
        """By which a row that the database refuses is found again. Times of day are hashed as text: not every Spark hashes them."""
        pairs = zip(self.every, staged, strict=True)
        return F.xxhash64(*[column.cast("string") if one.type == "time" else column for one, column in pairs])

    def keys(self, changed: DataFrame) -> DataFrame:
        """A staged row of nothing but the key for every row of a frame that has the key columns of the relation."""
        keys = _Values(self._keys)
        op = F.when(keys.problem.isNotNull(), F.lit(NOTHING)).otherwise(F.lit(CHANGED))
        values = [value.alias(one.name) for one, value in zip(self._keys, keys.staged, strict=True)]
        return changed.select(*values, op.alias(OP)).distinct()

    def known_keys(self, rows: DataFrame) -> DataFrame:
        """The keys of all rows of the relation, staged only to find those that it does not have."""
        return self.keys(rows).withColumn(OP, F.lit(NOTHING))

    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column, Column]:
        """The rows, what is wrong with each, and the hash of what is staged of it if it fits."""
        every = _Values(self.every)
        return every.fields.with_documents(rows), every.problem, self._hash(every.staged)


class _Values:
    """The values of some columns of a table. ``staged`` has them in the types of the staging table. ``problem`` is the first that is
    wrong with any of them: struct<path, expected, reason>, NULL if they all fit."""

    def __init__(self, columns: Sequence[StagedColumn]) -> None:
        leaves = [leaf for one in columns for leaf in _leaves(one.column)]
        self.fields = FieldColumns(leaves)
        values = iter(self.fields.values)
        self.staged = [_staged(one, values) for one in columns]
        own = [_misfit(one, value) for one, value in zip(columns, self.staged, strict=True)]
        own += list(_inside_records(columns, iter(zip(leaves, self.fields.values, strict=True))))
        self.problem = F.coalesce(self.fields.problem, *[one for one in own if one is not None])


def _inside_records(columns: Sequence[StagedColumn], leaves: Iterator[tuple[Leaf, Column]]) -> Iterator[Column]:
    """What is wrong with the leaves of objects that are staged as one JSON value. A child table takes each leaf in its own type."""
    for one in columns:
        for leaf, value in islice(leaves, len(_leaves(one.column))):
            if not one.column.field.fields:
                continue
            if not one.name.startswith(NESTED):
                yield from document_problems(value, leaf.field.type, leaf.place.tokens)
            elif form := text_form(leaf.field):
                fits = _has_form(value, form, is_list=isinstance(leaf.field.type, Array))
                yield _problem(fits, leaf.field, str(leaf.field.native), NOT_ISO)


def _misfit(one: StagedColumn, value: Column) -> Column | None:
    """What is wrong with a value that fits its field: the copy of all rows would fail of it, or its native type would keep a part of it.
    None if the database takes every value."""
    field = one.column.field
    form = text_form(field) if one.type in ("text", "text[]") else None
    fits = _in_range(one.type, value) if form is None else _has_form(value, form, is_list=isinstance(field.type, Array))
    if fits is None:
        return None
    if form is None:
        return _problem(fits, field, print_type(plain(field.type)), RANGE)
    return _problem(fits, field, one.column.postgres, NOT_ISO)


def _problem(fits: Column, field: TargetField, expected: str, reason: str) -> Column:
    path = ROOT
    for step in () if field.path is None else field.path.tokens:
        path = field_path(path, step)
    texts = (("path", path), ("expected", expected), ("reason", reason))
    return F.when(~fits, F.struct(*[F.lit(text).alias(name) for name, text in texts]))


def _has_form(value: Column, form: str, *, is_list: bool) -> Column:
    pattern = F.lit(f"\\A(?:{form})\\z")
    return F.forall(value, lambda one: one.isNull() | F.rlike(one, pattern)) if is_list else F.rlike(value, pattern)


def _in_range(staged: str, value: Column) -> Column | None:
    """Whether a day or a moment is one that PostgreSQL has: its time begins in 4714 BC, and its days end in the year 5874897."""
    match staged:
        case "date":
            first = value >= F.lit(_FIRST_DAY).cast("date")
            return first & (value <= F.date_from_unix_date(F.lit(_LAST_DAY)))
        case "timestamp":
            return value >= F.lit(_FIRST_DAY).cast("timestamp_ntz")
        case "timestamptz":
            return value >= F.lit(_FIRST_DAY).cast("timestamp")
        case _:
            return None


def _leaves(column: TableColumn) -> list[Leaf]:
    return [Leaf(leaf, above) for above, leaf in column.field.leaves(column.above)]


def _staged(one: StagedColumn, values: Iterator[Column]) -> Column:
    """The value of a column, made of the next values of leaves."""
    field = one.column.field
    if field.fields:
        return _object(field, values)
    value = next(values)
    if one.column.postgres == "jsonb" and field.native is None:
        return value  # its text already
    if one.type == "text":
        return _as_text(value, field.type)
    if one.type == "text[]" and isinstance(field.type, t.Array):
        element = field.type.element
        return F.transform(value, lambda item: _as_text(item, element))
    return value


def _object(field: TargetField, values: Iterator[Column]) -> Column:
    """An object as JSON text, made of the values of its leaves."""
    members: list[tuple[t.Field, Column]] = []
    for inner in field.fields:
        if inner.fields:
            members.append((t.Field(inner.name, t.Json()), _object(inner, values)))
        else:
            held = t.Json() if to_postgres(inner.type) == "jsonb" else inner.type
            members.append((t.Field(inner.name, held), next(values)))
    made = json_object(members)
    if field.path is None or field.path.inside is not None:
        return made
    return F.when(value_at(field.path).isNotNull(), made)


def _as_text(value: Column, type_: t.Type) -> Column:
    """The text of a value as PostgreSQL reads it."""
    match type_:
        case t.Text() | t.Enum() | t.Uuid() | t.Json():
            return value
        case t.Bytes():
            return F.concat(F.lit("\\x"), F.hex(value))
        case t.Real() | t.Double():
            return value.cast("string")
        case _:
            return checked_cast(value, type_, t.Text()).value


def staged_type(column: TableColumn) -> str:
    """The type that a column has in the staging table."""
    type_ = column.field.type
    if not isinstance(type_, t.Array) or column.postgres == "jsonb":
        return "text" if column.field.native is not None else _STAGED.get(type(type_), "text")
    if column.field.native is None and isinstance(type_.element, _DIRECT_ELEMENTS):
        return f"{_STAGED[type(type_.element)]}[]"
    return "text[]"


def arrow_rows(frame: DataFrame) -> pa.Table:
    """The rows of a staged frame on the driver, in types that the binary COPY takes."""
    table = frame.toArrow()
    schema = pa.schema([pa.field(f.name, _copied(f.type)) for f in table.schema])
    return table.cast(schema) if schema != table.schema else table


def _copied(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time64(type_):
        return pa.time64("us")  # Spark has microseconds, and writes them as nanoseconds
    if pa.types.is_large_string(type_):
        return pa.string()
    return type_
