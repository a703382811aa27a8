"""The events that answer a statement, one JSON object per line, and a result as a table of text.

    {"event": "notice", "message": "..."}
    {"event": "progress", "message": "...", "rows": 1200}
    {"event": "columns", "columns": [{"name": "id", "type": "bigint"}]}
    {"event": "rows", "rows": [[1], [2]]}                       (zero or more times)
    {"event": "done", "tag": "SELECT 2"}                         (once per statement)
    {"event": "error", "code": "SQL-0103", "message": "...", ...}   (and nothing after it)

Values are JSON. Integers are numbers, also beyond 2^53. ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` are strings, and so
are decimals. Bytes are lower-case hex digits, dates and times have ISO form (timestamptz ends in Z), a json value is a
string with the JSON text. Records and maps are objects, arrays are arrays, NULL is null. Types have the form in which
DESCRIBE prints them. Readers ignore members that they do not know, so that events can get new ones.

``table_lines`` makes the table that the shell prints and that specs compare:

    id  price   tags
    --  ------  ----------
     1     3.5  ["a", "b"]
     2  <null>  []

Numbers are aligned to the right. A value of several lines keeps its lines. If the table must fit a width, the values of
the widest columns are folded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from textwrap import wrap
from typing import TypeAlias, assert_never

from rich.cells import cell_len

from headgate.errors import Diagnostic
from headgate.serve.errors import UnreadableEvent

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark about the statement, which does not change its outcome."""

    message: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running statement is. ``rows`` is the number of rows read so far, or None if unknown."""

    message: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result. ``type`` is the printed form of its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Columns:
    """The head of a result. It comes before its rows."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a result, each with one value per column."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class JsonRows:
    """``Rows`` whose JSON text exists already. Readers get ``Rows``."""

    json: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """A statement has succeeded. ``tag`` says what it did, for example ``CREATE SOURCE``."""

    tag: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The script has failed. No event follows."""

    diagnostic: Diagnostic


Event: TypeAlias = Notice | Progress | Columns | Rows | Done | Failed


def write_event(event: Event | JsonRows) -> bytes:
    """One line with its line feed."""
    if isinstance(event, JsonRows):
        return b'{"event":"rows","rows":' + event.json + b"}\n"
    return _compact(_as_json(event)) + b"\n"


def read_event(line: bytes | str) -> Event:
    """The event of a line that ``write_event`` wrote. Raises UnreadableEvent."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise UnreadableEvent("a line of it is no JSON") from error
    match data:
        case {"event": "notice", "message": str(message)}:
            return Notice(message)
        case {"event": "progress"}:
            return Progress(str(data.get("message", "")), _count(data.get("rows")))
        case {"event": "columns", "columns": list(columns)}:
            return Columns(tuple(map(_column, columns)))
        case {"event": "rows", "rows": list(rows)} if all(isinstance(row, list) for row in rows):
            return Rows(tuple(tuple(row) for row in rows))
        case {"event": "done", "tag": str(tag)}:
            return Done(tag)
        case {"event": "error", "code": str(), "message": str()}:
            known = {field.name: data.get(field.name) for field in fields(Diagnostic)}
            return Failed(Diagnostic(**known))
        case {"event": str(name)}:
            raise UnreadableEvent(f'an event "{name[:40]}" of this form is not known')
        case _:
            raise UnreadableEvent("a line of it is no event")


def _as_json(event: Event) -> dict[str, object]:
    """The members of an event, in the order of the table above."""
    match event:
        case Notice(message):
            return {"event": "notice", "message": message}
        case Progress(message, rows):
            return {"event": "progress", "message": message, "rows": rows}
        case Columns(columns):
            return {"event": "columns", "columns": [{"name": one.name, "type": one.type} for one in columns]}
        case Rows(rows):
            return {"event": "rows", "rows": rows}
        case Done(tag):
            return {"event": "done", "tag": tag}
        case Failed(diagnostic):
            return {"event": "error", **diagnostic.as_json()}
        case _:
            assert_never(event)


def _compact(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half of a surrogate pair, which UTF-8 does not have, becomes the escape \udXXX, which JSON has.
    return text.encode(errors="backslashreplace")


def _column(data: object) -> Column:
    match data:
        case {"name": str(name), "type": str(type_)}:
            return Column(name, type_)
        case _:
            raise UnreadableEvent("a column of it has no name or no type")


def _count(data: object) -> int | None:
    return data if isinstance(data, int) else None


GAP = "  "
MIN_FOLDED_WIDTH = 32  # a column is not folded to less
NULL = "<null>"


def value_text(value: Value) -> str:
    """One value as text, without quotes."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return json.dumps(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def table_lines(columns: Sequence[Column], rows: Sequence[Row], max_width: int | None = None) -> list[str]:
    """The header, a line of dashes, and the rows, without trailing blanks. Folded to ``max_width`` as far as possible."""
    cells = [[value_text(value).split("\n") for value in row] for row in rows]
    widths = _widths(columns, cells)
    if max_width is not None:
        _fold(cells, widths, max_width)
        widths = _widths(columns, cells)
    right = [_is_number(column.type) for column in columns]
    lines = [_line([column.name for column in columns], widths, [False] * len(columns))]
    lines.append(GAP.join("-" * width for width in widths))
    for row in cells:
        lines += [_line(parts, widths, right) for parts in zip_longest(*row, fillvalue="")]
    return lines


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[list[str]]]) -> list[int]:
    return [
        max(cell_len(column.name), *(cell_len(line) for row in cells for line in row[index]), 1)
        for index, column in enumerate(columns)
    ]


def _fold(cells: Sequence[list[list[str]]], widths: Sequence[int], max_width: int) -> None:
    """Fold the values of the widest columns, one column after another, until the table fits. Changes ``cells``."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - max_width
    for index in sorted(range(len(widths)), key=lambda i: -widths[i]):
        if excess <= 0 or widths[index] <= MIN_FOLDED_WIDTH:
            return
        width = max(MIN_FOLDED_WIDTH, widths[index] - excess)
        excess -= widths[index] - width
        for row in cells:
            row[index] = [part for line in row[index] for part in _folded(line, width)]


def _folded(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    return wrap(line, width, expand_tabs=False, replace_whitespace=False) or [""]


def _line(parts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        (" " * (width - cell_len(part))) + part if to_right else part + " " * (width - cell_len(part))
        for part, width, to_right in zip(parts, widths, right, strict=True)
    ]
    return GAP.join(padded).rstrip()


def _is_number(type_: str) -> bool:
    return type_.partition("(")[0] in ("integer", "bigint", "real", "double", "decimal")
