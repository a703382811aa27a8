"""The answer to a statement: events, one JSON object per line.

    {"event": "notice", "message": "..."}
    {"event": "progress", "message": "...", "rows": 1200}
    {"event": "columns", "columns": [{"name": "id", "type": "bigint"}]}
    {"event": "rows", "rows": [[1], [2]]}                       (any number of times)
    {"event": "done", "tag": "SELECT 2"}                         (once per statement)
    {"event": "error", "code": "SQL-0103", "message": "...", ...}   (and nothing after it)

Values are JSON: integers as numbers also beyond 2^53, ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` as strings,
decimals as strings, bytes as lower-case hex digits, dates and times in ISO form (timestamptz ends in Z), json as a
string that holds the JSON text, records and maps as objects, arrays as arrays, NULL as null. Types are in their one
printed form. Members that a reader does not know are ignored, so that events may gain some.
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
    message: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running statement is; ``rows`` are those read so far, where that is known."""

    message: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Columns:
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A statement has succeeded; ``tag`` says what it did, as in ``CREATE SOURCE``."""

    tag: str


@dataclass(frozen=True, slots=True)
class Failed:
    diagnostic: Diagnostic


Event: TypeAlias = Notice | Progress | Columns | Rows | Done | Failed


def write_event(event: Event) -> bytes:
    """One line, its end included."""
    return _compact(_as_json(event)) + b"\n"


def read_event(line: bytes | str) -> Event:
    """The event that ``write_event`` wrote. Raises UnreadableEvent."""
    try:
        told = json.loads(line)
    except ValueError as wrong:
        raise UnreadableEvent("a line of it is no JSON") from wrong
    match told:
        case {"event": "notice", "message": str(message)}:
            return Notice(message)
        case {"event": "progress"}:
            return Progress(str(told.get("message", "")), _count(told.get("rows")))
        case {"event": "columns", "columns": list(columns)}:
            return Columns(tuple(map(_column, columns)))
        case {"event": "rows", "rows": list(rows)} if all(isinstance(row, list) for row in rows):
            return Rows(tuple(tuple(row) for row in rows))
        case {"event": "done", "tag": str(tag)}:
            return Done(tag)
        case {"event": "error", "code": str(), "message": str()}:
            known = {field.name: told.get(field.name) for field in fields(Diagnostic)}
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
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _column(told: object) -> Column:
    match told:
        case {"name": str(name), "type": str(type_)}:
            return Column(name, type_)
        case _:
            raise UnreadableEvent("a column of it has no name or no type")


def _count(told: object) -> int | None:
    return told if isinstance(told, int) else None
