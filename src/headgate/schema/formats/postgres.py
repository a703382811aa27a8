"""The mapper for PostgreSQL: types of columns, and records as columns.

The type of a column is the text that PostgreSQL's `format_type` prints, so that it can be compared with the type of
a column in an existing table. A record becomes one column per leaf, with names joined by `_`. Inside an array or a
map it is jsonb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.errors import HeadgateError, raise_all
from headgate.schema import types as t
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong, UnresolvedType, UnsupportedType
from headgate.schema.names import POSTGRES_LIMIT, ROOT, field_path, postgres_too_long, print_name

# As `format_type` prints them. Types with arguments are printed by `to_postgres`.
_TO: dict[type, str] = {
    t.Boolean: "boolean",
    t.Integer: "integer",
    t.Bigint: "bigint",
    t.Real: "real",
    t.Double: "double precision",
    t.Text: "text",
    t.Bytes: "bytea",
    t.Date: "date",
    t.Time: "time without time zone",
    t.Timestamp: "timestamp without time zone",
    t.TimestampTz: "timestamp with time zone",
    t.Uuid: "uuid",
    t.Json: "jsonb",
    t.Enum: "text",
    t.Map: "jsonb",
    t.Record: "jsonb",
}
# With the short names that people write.
_FROM: dict[str, t.Type] = {
    "boolean": t.Boolean(), "bool": t.Boolean(),
    "smallint": t.Integer(), "int2": t.Integer(), "integer": t.Integer(), "int4": t.Integer(), "int": t.Integer(),
    "bigint": t.Bigint(), "int8": t.Bigint(),
    "real": t.Real(), "float4": t.Real(), "double precision": t.Double(), "float8": t.Double(),
    "text": t.Text(), "character varying": t.Text(), "varchar": t.Text(), "character": t.Text(), "bpchar": t.Text(),
    "char": t.Text(), "name": t.Text(), "citext": t.Text(),
    "bytea": t.Bytes(), "date": t.Date(), "uuid": t.Uuid(), "json": t.Json(), "jsonb": t.Json(),
    "time": t.Time(), "time without time zone": t.Time(),
    "timestamp": t.Timestamp(), "timestamp without time zone": t.Timestamp(),
    "timestamptz": t.TimestampTz(), "timestamp with time zone": t.TimestampTz(),
}  # fmt: skip
# Every table has these columns already.
SYSTEM_COLUMNS = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})
_FORMATTED = re.compile(
    r"""\s*(?P<name>(?:"(?:[^"]|"")*"|[^()\[\]"])+?)\s*(?:\((?P<arguments>[^()]*)\))?"""
    r"""(?P<zone>\s+with(?:out)?\s+time\s+zone)?\s*(?P<array>(?:\[\d*\])*)\s*\Z""",
    re.I,
)


def to_postgres(type_: t.Type, path: str = ROOT) -> str:
    """The type of a column for values of this type. A record is one column here: see `columns`."""
    match type_:
        case t.Decimal(precision, scale):
            return f"numeric({precision},{scale})"
        case t.Array(t.Array() | t.Map() | t.Record()):
            return "jsonb"
        case t.Array(element):
            return to_postgres(element, path) + "[]"
        case t.Named(parts):
            raise UnresolvedType(path, print_name(parts))
        case _:
            return _TO[type(type_)]


def from_postgres(text: str, path: str = ROOT, *, known: Mapping[str, t.Type] | None = None) -> t.Type:
    """The neutral type of a column, from the text that `format_type` prints for it.

    `known` gives the types of the database itself (domains, enums) by the name that `format_type` prints. `numeric`
    without arguments is decimal(38,18), and reading a value that does not fit is an error.
    """
    parts = _FORMATTED.match(text)
    if parts is None:
        raise UnsupportedType(path, "headgate", text, "it is not the name of a type")
    name = " ".join(parts["name"].lower().split())
    zone = " ".join((parts["zone"] or "").lower().split())
    type_ = (known or {}).get(parts["name"]) or _named(f"{name} {zone}".strip(), parts["arguments"], path)
    return t.Array(type_) if parts["array"] else type_


def _named(name: str, arguments: str | None, path: str) -> t.Type:
    """The type of a name that `format_type` prints."""
    if name in ("numeric", "decimal"):
        return _decimal(arguments, path)
    type_ = _FROM.get(name)
    if type_ is None:
        raise UnsupportedType(
            path, "headgate", name, "there is no such type", f"a view that casts it to {_nearest(name)}"
        )
    return type_


def _nearest(name: str) -> str:
    return "time" if name.startswith("time") else "text"


def _decimal(arguments: str | None, path: str) -> t.Type:
    if arguments is None:
        return t.Decimal()
    numbers = [int(number) for number in arguments.split(",")]
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if precision > t.MAX_PRECISION or not 0 <= scale <= precision:
        why = f"a decimal has at most {t.MAX_PRECISION} digits, and a scale among them"
        raise UnsupportedType(path, "headgate", f"numeric({arguments})", why, "a view that casts it to text")
    return t.Decimal(precision, scale)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `path` is the field that it holds, `type` the type of that field."""

    name: str
    path: str
    type: t.Type
    postgres: str
    nullable: bool
    doc: str | None


def columns(record: t.Record) -> tuple[Column, ...]:
    """The columns of a table for a record: its leaves, with names joined by `_`. Raises all clashes and bad names at
    once."""
    found = tuple(_columns(record, (), ROOT, False))
    raise_all(_problems(found))
    return found


def _columns(record: t.Record, above: tuple[str, ...], path: str, nullable: bool) -> Iterator[Column]:
    for field in record.fields:
        names, inner = (*above, field.name), field_path(path, field.name)
        # A record without fields has no leaves, but the table must show whether it is null.
        if isinstance(field.type, t.Record) and field.type.fields:
            yield from _columns(field.type, names, inner, nullable or field.nullable)
        else:
            yield _column(field, "_".join(names), inner, nullable)


def _column(field: t.Field, name: str, path: str, nullable: bool) -> Column:
    return Column(name, path, field.type, to_postgres(field.type, path), nullable or field.nullable, field.doc)


def _problems(found: tuple[Column, ...]) -> Iterator[HeadgateError]:
    """All names that the table cannot have, each as an error."""
    seen: dict[str, Column] = {}
    for column in found:
        if not column.name or "\0" in column.name or column.name in SYSTEM_COLUMNS:
            yield InvalidColumnName(column.name, column.path, "postgres")
        if postgres_too_long(column.name):
            yield NameTooLong(column.name, column.path, POSTGRES_LIMIT)
        first = seen.setdefault(column.name, column)
        if first is not column:
            yield NameClash(column.name, first.path, column.path)
