"""`postgres-execute`, `postgres-verify` and `postgres-columns`, on the file's own database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql
from psycopg.adapt import Buffer, Loader

from headgate.serve.protocol import Column, Row, Value
from headgate.testing.compare import Result, check_rows, quoted, read_rows
from headgate.testing.context import Action, Deadline, Invocation, SpecContext
from headgate.testing.errors import Mismatch, ServiceFailed
from headgate.testing.notation import Json, read_json, write_json
from headgate.testing.parse import read_quoted
from headgate.testing.statements import statement_kind

# PostgreSQL's names of types that compare otherwise than as text -> ours.
_TYPES = {
    "int2": "integer", "int4": "integer", "int8": "bigint", "oid": "bigint", "numeric": "decimal",
    "float4": "real", "float8": "double", "json": "json", "jsonb": "json", "bool": "boolean",
    "date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz",
}  # fmt: skip

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(a.attrelid, a.attnum)
FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_COLUMN = re.compile(
    r'\s*("(?:[^"]|"")+"|\S+)\s+(.*?)(\s+not null)?\s*(?:\bcomment\s+("(?:[^"\\]|\\.)*"))?\s*', re.DOTALL
)


class JsonText(str):
    """The text of a json value, which must not be quoted again within an array."""

    __slots__ = ()


def _timestamp(text: str) -> str:
    """`2026-11-15 12:30:00+00` of a session in UTC, in ISO form."""
    text = text.replace(" ", "T", 1)
    return f"{text.removesuffix('+00')}Z" if text.endswith("+00") else text


def read_as_shown(connection: psycopg.Connection[Any]) -> None:
    """Read these types as text: Python has no infinite dates, and would round numbers in json."""
    for names, read in (
        (("date", "time", "timetz", "interval", "inet", "cidr"), str),
        (("timestamp", "timestamptz"), _timestamp),
        (("json", "jsonb"), JsonText),
    ):
        for name in names:
            connection.adapters.register_loader(name, _loader(read))


def _loader(read: Callable[[str], str]) -> type[Loader]:
    class TextLoader(Loader):
        def load(self, data: Buffer) -> str:
            return read(bytes(data).decode("utf-8"))

    return TextLoader


def type_name(oid: int) -> str:
    """Our name of a type by PostgreSQL's number, so that values compare as those of the engine do."""
    known = psycopg.adapters.types.get(oid)
    if known is None:
        return "text"
    if oid == known.array_oid:
        return f"array<{_TYPES.get(known.name, 'text')}>"
    return _TYPES.get(known.name, known.name)


def shown_row(row: Sequence[object]) -> Row:
    return tuple(map(_shown_value, row))


def _shown_value(value: object) -> Value:
    """A value of psycopg as the engine's protocol would have it."""
    if isinstance(value, list | tuple | dict):
        return write_json(_nested(value))
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)


def _nested(value: object) -> Json:
    """Within arrays decimals are strings, as everywhere in JSON."""
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _nested(item) for key, item in value.items()}
    if isinstance(value, JsonText):
        return read_json(value)
    return _shown_value(value)  # type: ignore[return-value]


def execute(call: Invocation, context: SpecContext) -> None:
    text = "\n".join(context.fill(call.body))
    with _connected(context, context.request_timeout) as connection:
        connection.execute(text.encode())


def verify(call: Invocation, context: SpecContext) -> None:
    """`postgres-verify`: the rows of a query. Their order counts if the query has ORDER BY."""
    query, rest = _split(call, context.fill(call.body))
    expected = read_rows(rest)
    ordered = statement_kind(query).is_ordered
    keep = len(call.body.lines) - len(rest)

    def attempt(deadline: Deadline) -> None:
        check_rows(expected, _query(query, deadline, context), ordered)

    context.eventually(attempt, call.body, keep)


def columns(call: Invocation, context: SpecContext) -> None:
    """`postgres-columns`: names, types, NOT NULL and comments of a table's columns."""
    table = call.text("table")
    expected = [_column(call, line) for line in context.fill(call.body)]

    def attempt(deadline: Deadline) -> None:
        with _connected(context, deadline.left) as connection:
            found = connection.execute(_COLUMNS, [_quoted_name(table)]).fetchall()
        actual = [_shown_column(str(name), str(type_), bool(fixed), comment) for name, type_, fixed, comment in found]
        if actual != expected:
            raise Mismatch(f'table "{table}" has other columns', tuple(expected), tuple(actual), tuple(actual))

    context.eventually(attempt, call.body)


def _query(text: str, deadline: Deadline, context: SpecContext) -> Result:
    with _connected(context, deadline.left) as connection:
        read_as_shown(connection)
        cursor = connection.execute(text.encode())
        if cursor.description is None:
            return Result((), ())
        found = tuple(Column(column.name, type_name(column.type_code)) for column in cursor.description)
        return Result(found, tuple(shown_row(row) for row in cursor.fetchall()))


@contextmanager
def _connected(context: SpecContext, seconds: float) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection in autocommit, so that a script may hold everything that psql runs. Statements have a time-out."""
    options = f"-c statement_timeout={max(1, int(seconds * 1000))} -c TimeZone=UTC"
    try:
        with psycopg.connect(context.postgres, autocommit=True, connect_timeout=10, options=options) as connection:
            yield connection
    except psycopg.Error as error:
        raise ServiceFailed("postgres", " ".join(str(error).split())) from error


def _split(call: Invocation, lines: Sequence[str]) -> tuple[str, list[str]]:
    """The query, up to the first line that ends in a semicolon, and the rows below it."""
    for index, line in enumerate(lines):
        if line.rstrip().endswith(";"):
            return "\n".join(lines[: index + 1]), list(lines[index + 1 :])
    raise call.wrong("wants one query that ends in a semicolon, then rows")


def _column(call: Invocation, line: str) -> str:
    """A line of the body in the form in which columns are compared."""
    found = _COLUMN.fullmatch(line)
    if found is None:
        raise call.wrong(f'cannot read the column "{line.strip()[:60]}"')
    name = found[1][1:-1].replace('""', '"') if found[1].startswith('"') else found[1]
    comment = read_quoted(found[4], 0)[0] if found[4] else None
    return _shown_column(name, " ".join(found[2].split()), bool(found[3]), comment)


def _shown_column(name: str, type_: str, not_null: bool, comment: object) -> str:
    written = name if re.fullmatch(r'[^\s"]+', name) else '"' + name.replace('"', '""') + '"'
    text = f"{written} {type_}{' not null' if not_null else ''}"
    return text if comment is None else f"{text} comment {quoted(str(comment))}"


def _quoted_name(table: str) -> str:
    """The name as a quoted identifier, because names keep their case. A dot separates the schema."""
    if '"' in table:
        return table
    return sql.Identifier(*table.split(".")).as_string(None)


ACTIONS = (
    Action("postgres-execute", execute, body="required"),
    Action("postgres-verify", verify, body="required"),
    Action("postgres-columns", columns, required=("table",), body="required"),
)
