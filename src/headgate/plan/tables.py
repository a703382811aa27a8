"""A materialization INTO POSTGRES: the table, and which column holds which field. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from headgate.errors import HeadgateError, raise_all
from headgate.plan import materialization_errors as errors
from headgate.plan.errors import PlanError
from headgate.plan.native_types import joins_values, with_native
from headgate.plan.target_definitions import CHANGE_COLUMNS, Fields, TableColumn, TableName, TargetField
from headgate.schema import types as t
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong, SchemaError
from headgate.schema.formats.postgres import SYSTEM_COLUMNS, to_postgres
from headgate.schema.names import POSTGRES_LIMIT, ROOT, field_path, postgres_too_long
from headgate.schema.render import print_type

DEFAULT_SCHEMA = "public"

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_COMPARABLE = (t.Boolean, t.Integer, t.Bigint, t.Real, t.Double, t.Decimal, t.Text, t.Bytes, t.Date, t.Time,
               t.Timestamp, t.TimestampTz, t.Uuid, t.Enum)  # fmt: skip

_INTERNAL = ("headgate", "information_schema", "pg_catalog", "pg_toast")


def table_name(materialization: str, text: str | None) -> TableName:
    """The table that the option TABLE names. Names keep their case, with or without quotes."""
    if text is None:
        raise errors.TargetNameMissing(materialization, "TABLE")
    parts: list[str] = []
    at = 0
    while at <= len(text):
        found = _PART.match(text, at)
        if found is None:
            raise errors.MalformedTableName(text, "a part of it is empty, or its quotes do not match")
        parts.append(found[1].replace('""', '"') if found[1] is not None else found[2].strip())
        at = found.end() + 1
        if found.end() < len(text) and text[found.end()] != ".":
            raise errors.MalformedTableName(text, "its quotes do not match")
    if len(parts) > 2:
        raise errors.MalformedTableName(text, "it has more than two parts")
    for part in parts:
        if postgres_too_long(part) or "\0" in part or not part:
            raise errors.MalformedTableName(text, f"a part of it is empty or longer than {POSTGRES_LIMIT} bytes")
    if len(parts) == 2 and parts[0] in _INTERNAL:
        raise errors.MalformedTableName(text, f'the schema "{parts[0]}" is not for tables of users')
    return TableName(parts[0] if len(parts) == 2 else DEFAULT_SCHEMA, parts[-1])


def table_columns(materialization: str, fields: Fields, *, flat: bool) -> tuple[TableColumn, ...]:
    """The columns of a table. With ``flat`` every leaf is a column, with names joined by `_`; otherwise an object is one jsonb value.
    Raises everything that is wrong at once."""
    found: list[TableColumn] = []
    problems: list[HeadgateError] = []
    for field in fields:
        for above, leaf in field.leaves() if flat else [((), field)]:
            try:
                found.append(_column(materialization, above, leaf))
            except (SchemaError, PlanError) as error:
                problems.append(error)
    problems += _bad_names(found)
    problems += _bad_keys(materialization, found)
    raise_all(problems)
    return tuple(found)


def change_columns(columns: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
    """The columns of a table that has a row for every change. A deletion has nothing but its key. Raises NameClash for a field with
    the name of a column that says what the change was."""
    clashes = [
        NameClash(one.name, f"{ROOT} ({one.doc})", _path(column))
        for one in CHANGE_COLUMNS
        for column in columns
        if column.name == one.name
    ]
    raise_all(clashes)
    return tuple(replace(column, nullable=not column.field.key) for column in columns)


def _column(materialization: str, above: Fields, field: TargetField) -> TableColumn:
    name = "_".join(one.name for one in (*above, field))
    nullable = field.nullable or any(one.nullable for one in above)
    if field.native is None:
        return TableColumn(name, field, above, to_postgres(field.type), nullable)
    field = with_native(materialization, field, field.native)
    return TableColumn(name, field, above, field.native or "", nullable)


def _bad_names(found: Sequence[TableColumn]) -> Iterator[HeadgateError]:
    seen: dict[str, TableColumn] = {}
    for column in found:
        if not column.name or "\0" in column.name or column.name in SYSTEM_COLUMNS:
            yield InvalidColumnName(column.name, _path(column), "postgres")
        if postgres_too_long(column.name):
            yield NameTooLong(column.name, _path(column), POSTGRES_LIMIT)
        first = seen.setdefault(column.name, column)
        if first is not column:
            yield NameClash(column.name, _path(first), _path(column))


def _path(column: TableColumn) -> str:
    path = ROOT
    for one in (*column.above, column.field):
        path = field_path(path, one.name)
    return path


def _bad_keys(materialization: str, found: Sequence[TableColumn]) -> Iterator[HeadgateError]:
    for column in found:
        if not column.field.key:
            continue
        if not isinstance(column.field.type, _COMPARABLE) or _joins_keys(column.field):
            yield errors.KeyTypeRefused(materialization, column.name, print_type(t.plain(column.field.type)))
        elif column.field.native is not None and joins_values(column.field.type, column.field.native):
            yield errors.KeyTypeRefused(materialization, column.name, column.field.native)


def _joins_keys(field: TargetField) -> bool:
    """Whether two keys may become one value: the nearest double of a decimal may be that of another one too."""
    return isinstance(field.source, t.Decimal) and isinstance(field.type, t.Real | t.Double)
