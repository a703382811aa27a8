"""NESTED = TABLES: records and arrays of records of a materialization INTO POSTGRES as tables of their own. Pure.

A record becomes the table `<table>_<field>` with the key of its parent and its leaves by name. An array of records becomes such a table with
the column `_index`, which counts from 0. An array of records inside a record has the names of both; one inside another array is jsonb.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headgate.errors import HeadgateError, raise_all
from headgate.plan import materialization_errors as errors
from headgate.plan.native_types import with_natives
from headgate.plan.target_definitions import (
    INDEX,
    NESTED,
    ChildColumn,
    ChildTable,
    Fields,
    TableColumn,
    TableName,
    TargetField,
    record_of,
)
from headgate.schema import types as t
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong
from headgate.schema.formats.postgres import SYSTEM_COLUMNS, to_postgres
from headgate.schema.names import POSTGRES_LIMIT, ROOT, field_path, postgres_too_long


def split_nested(fields: Fields) -> tuple[Fields, Fields]:
    """The fields that are columns of the table itself, and those that become tables. A record of the key stays."""
    own: list[TargetField] = []
    nested: list[TargetField] = []
    for field in fields:
        is_nested = bool(field.fields) or _is_array_of_records(field.type)
        (nested if is_nested and not field.key else own).append(field)
    return tuple(own), tuple(nested)


def child_tables(
    materialization: str, table: TableName, key: Sequence[TableColumn], nested: Fields
) -> tuple[ChildTable, ...]:
    """The tables of some records and arrays of records. Raises everything that is wrong with their names at once."""
    found: list[ChildTable] = []
    for field in nested:
        for above, part in _parts(with_natives(materialization, field)):
            name = TableName(table.schema, "_".join([table.name, *(one.name for one in (*above, part))]))
            staged = TableColumn(f"{NESTED}{len(found)}", part, above, "jsonb", True)
            columns = _record_columns(part) if part.fields else _array_columns(part)
            found.append(ChildTable(name, staged, not part.fields, tuple(columns)))
    raise_all([*_bad_tables(table, found), *(problem for one in found for problem in _bad_columns(one, key))])
    for one in found:
        if not one.columns:
            raise errors.NoFields(materialization)
    return tuple(found)


def _is_array_of_records(type_: t.Type) -> bool:
    return isinstance(type_, t.Array) and isinstance(type_.element, t.Record) and bool(type_.element.fields)


def _parts(field: TargetField) -> Iterator[tuple[Fields, TargetField]]:
    """What a field becomes: a record without its arrays of records, and each of these."""
    if not field.fields:
        yield (), field
        return
    if (pruned := _without_arrays(field)) is not None:
        yield (), pruned
    for above, leaf in field.leaves():
        if _is_array_of_records(leaf.type):
            yield above, leaf


def _without_arrays(field: TargetField) -> TargetField | None:
    """The record without arrays of records; None if nothing is left of it."""
    if not field.fields:
        return None if _is_array_of_records(field.type) else field
    inner = tuple(kept for one in field.fields if (kept := _without_arrays(one)) is not None)
    return replace(field, fields=inner, type=record_of(inner)) if inner else None


def _record_columns(record: TargetField) -> Iterator[ChildColumn]:
    """The leaves of a record. A record that may be missing has no row then, so that its leaves need not be nullable."""
    for inner in record.fields:
        for above, leaf in inner.leaves():
            names = tuple(one.name for one in (*above, leaf))
            nullable = leaf.nullable or any(one.nullable for one in above)
            yield ChildColumn(TableColumn("_".join(names), leaf, above, _postgres(leaf), nullable), names)


def _postgres(leaf: TargetField) -> str:
    return to_postgres(leaf.type) if leaf.native is None else leaf.native


def _array_columns(array: TargetField) -> Iterator[ChildColumn]:
    assert isinstance(array.type, t.Array)
    assert isinstance(array.type.element, t.Record)
    yield from _element_columns(array.type.element, ())


def _element_columns(record: t.Record, above: tuple[t.Field, ...]) -> Iterator[ChildColumn]:
    for field in record.fields:
        if isinstance(field.type, t.Record) and field.type.fields:
            yield from _element_columns(field.type, (*above, field))
            continue
        names = tuple(one.name for one in (*above, field))
        nullable = field.nullable or any(one.nullable for one in above)
        leaf = TargetField(field.name, None, field.type, field.type, nullable, doc=field.doc)
        yield ChildColumn(TableColumn("_".join(names), leaf, (), to_postgres(field.type), nullable), names)


# Names


def _bad_tables(parent: TableName, found: Sequence[ChildTable]) -> Iterator[HeadgateError]:
    seen: dict[str, str] = {parent.name: ROOT}
    for one in found:
        path = ROOT
        for step in (*one.staged.above, one.staged.field):
            path = field_path(path, step.name)
        if postgres_too_long(one.table.name):
            yield NameTooLong(one.table.name, path, POSTGRES_LIMIT)
        if one.table.name in seen:
            yield errors.ChildTableTwice(one.table.name, seen[one.table.name], path)
        seen.setdefault(one.table.name, path)


def _bad_columns(child: ChildTable, key: Sequence[TableColumn]) -> Iterator[HeadgateError]:
    seen = {column.name: f"{ROOT} (key)" for column in key}
    if child.is_array:
        seen.setdefault(INDEX, f"{ROOT} (position in the array)")
    for one in child.columns:
        path = field_path(ROOT, child.staged.field.name)
        for step in one.path:
            path = field_path(path, step)
        if one.column.name in SYSTEM_COLUMNS:
            yield InvalidColumnName(one.column.name, path, "postgres")
        if postgres_too_long(one.column.name):
            yield NameTooLong(one.column.name, path, POSTGRES_LIMIT)
        if one.column.name in seen:
            yield NameClash(one.column.name, seen[one.column.name], path)
        seen.setdefault(one.column.name, path)
