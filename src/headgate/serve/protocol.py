"""The events that answer a statement, one JSON object per line.

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
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TypeAlias, assert_never

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
