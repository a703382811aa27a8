"""A materialization INTO POSTGRES: the table, and which column holds which field. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from headgate.errors import HeadgateError, raise_all
from headgate.plan import materialization_errors as errors
from headgate.plan.errors import PlanError
from headgate.plan.target_definitions import Fields, TableColumn, TableName, TargetField, record_of
from headgate.schema import types as t
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong, SchemaError
from headgate.schema.formats.postgres import from_postgres, to_postgres
from headgate.schema.names import POSTGRES_LIMIT, ROOT, field_path, postgres_too_long
from headgate.schema.render import print_type

DEFAULT_SCHEMA = "public"

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
# A name of a type, perhaps with a schema, its arguments and brackets. Nothing else gets into DDL.
_NATIVE = re.compile(
    r"""(?P<name>(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)(?:(?:\.|\ )(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*))*)"""
    r"""\s*(?P<arguments>\(\s*\d+(?:\s*,\s*\d+)?\s*\))?(?P<zone>\s+with(?:out)?\s+time\s+zone)?\s*(?P<array>(?:\[\])?)\Z""",
    re.I,
)
_SERIAL = {"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"}
# Types whose arguments refuse what does not fit. A time or a bit string is rounded or cut in silence.
_LIMITED = {"numeric", "decimal", "varchar", "character varying", "char", "character", "bpchar"}
_COMPARABLE = (t.Boolean, t.Integer, t.Bigint, t.Real, t.Double, t.Decimal, t.Text, t.Bytes, t.Date, t.Time,
               t.Timestamp, t.TimestampTz, t.Uuid, t.Enum)  # fmt: skip


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


def _column(materialization: str, above: Fields, field: TargetField) -> TableColumn:
    name = "_".join(one.name for one in (*above, field))
    nullable = field.nullable or any(one.nullable for one in above)
    if field.native is None:
        return TableColumn(name, field, above, to_postgres(field.type), nullable)
    field = _with_native(materialization, field, field.native)
    return TableColumn(name, field, above, field.native or "", nullable)


def with_natives(materialization: str, field: TargetField) -> TargetField:
    """The field, whose leaves have their native types as they go into DDL."""
    if field.fields:
        inner = tuple(with_natives(materialization, one) for one in field.fields)
        return replace(field, fields=inner, type=record_of(inner))
    return field if field.native is None else _with_native(materialization, field, field.native)


def _with_native(materialization: str, field: TargetField, native: str) -> TargetField:
    """The field with its native type as it goes into DDL, and with the type that its values are checked for."""

    def refuse(reason: str, cure: str = "") -> errors.NativeTypeRefused:
        return errors.NativeTypeRefused(materialization, field.name, native, reason, cure)

    text = " ".join(native.split())
    parts = _NATIVE.match(text)
    if parts is None:
        raise refuse("it is not the name of a type")
    name, arguments = parts["name"].lower(), parts["arguments"]
    if name in _SERIAL:
        raise refuse("a sequence would fill it", "Write bigint or integer.")
    if arguments is not None and name not in _LIMITED:
        raise refuse("values would be rounded or cut in silence", "Leave the number in parentheses out.")
    try:
        known = from_postgres(text)
    except SchemaError:
        known = None
    if isinstance(known, t.Decimal) and isinstance(field.type, t.Integer | t.Bigint | t.Real | t.Double | t.Decimal):
        # The database would round; a decimal of this scale is checked before.
        field = replace(field, type=known if arguments is not None else field.type)
    elif isinstance(known, t.Boolean) and not isinstance(field.type, t.Boolean):
        raise refuse(f"a {print_type(t.plain(field.type))} is no boolean")
    elif not isinstance(field.type, t.Text | t.Enum) and isinstance(known, t.Integer | t.Bigint | t.Real | t.Double):
        field = _number(field, known, refuse)
    return replace(field, native=text)


def _number(field: TargetField, known: t.Type, refuse: Callable[[str, str], HeadgateError]) -> TargetField:
    """A number column: the values are checked as numbers of its type. The database checks the range of smallint."""
    if isinstance(known, t.Real) and not isinstance(field.type, t.Real):
        raise refuse("most numbers would lose digits", "Write double precision.")
    return replace(field, type=known)


def _bad_names(found: Sequence[TableColumn]) -> Iterator[HeadgateError]:
    seen: dict[str, TableColumn] = {}
    for column in found:
        if not column.name or "\0" in column.name:
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
        if column.field.key and not isinstance(column.field.type, _COMPARABLE):
            yield errors.KeyTypeRefused(materialization, column.name, print_type(t.plain(column.field.type)))
