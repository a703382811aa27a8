"""History and events as rows. They are appended in the transaction of their changes and read in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime

from headgate.catalog.apply import AppliedChange, object_id_of
from headgate.catalog.changes import Commit, ObjectCreated, SecretChanged
from headgate.catalog.history import Entry, Event, describe, event_of
from headgate.catalog.positions import dump_record, load_record
from headgate.catalog.secrets import redacted_statement
from headgate.catalog.store.rows import from_micros, to_micros


def append(database: sqlite3.Connection, unit: Commit, steps: Sequence[AppliedChange], now: datetime) -> None:
    """Append the lines and events of one statement."""
    text = shown_statement(steps, unit.statement)
    written = None if text is None else _write_statement(database, text)
    time, position = to_micros(now), None if unit.position is None else dump_record(unit.position)
    database.executemany(
        "INSERT INTO history (time, object_id, object, change, cause, position, statement) VALUES (?,?,?,?,?,?,?)",
        [
            (time, object_id_of(step.change), step.name_after, line, unit.cause, position, written)
            for step in steps
            for line in describe(step)
        ],
    )
    for step in steps:
        append_event(database, object_id_of(step.change), step.name_after, event_of(step.change), _detail(step), now)


def append_event(
    database: sqlite3.Connection, object_id: int, name: str, event: str, detail: str | None, now: datetime
) -> Event:
    row = (to_micros(now), object_id, name, str(event), detail)
    done = database.execute("INSERT INTO events (time, object_id, object, event, detail) VALUES (?,?,?,?,?)", row)
    return Event(done.lastrowid or 0, now, object_id, name, str(event), detail)


def read_history(database: sqlite3.Connection, object_id: int | None) -> Iterator[Entry]:
    rows = database.execute(
        "SELECT h.sequence, h.time, h.object_id, h.object, h.change, h.cause, h.position, s.text"
        " FROM history h LEFT JOIN statements s ON s.id = h.statement"
        " WHERE ?1 IS NULL OR h.object_id = ?1 ORDER BY h.sequence",
        (object_id,),
    )
    for sequence, time, id_, name, change, cause, position, statement in rows:
        at = None if position is None else load_record(position)
        yield Entry(sequence, from_micros(time), id_, name, change, cause, at, statement)


def read_events(database: sqlite3.Connection, after: int) -> Iterator[Event]:
    rows = database.execute(
        "SELECT sequence, time, object_id, object, event, detail FROM events WHERE sequence > ? ORDER BY sequence",
        (after,),
    )
    for sequence, time, *rest in rows:
        yield Event(sequence, from_micros(time), *rest)


def shown_statement(steps: Sequence[AppliedChange], statement: str | None) -> str | None:
    """The text of the statement for the history. A statement with a secret is replaced by one without."""
    redacted = [text for text in map(_redacted, steps) if text is not None]
    return ";\n".join(redacted) if redacted else statement


def _redacted(step: AppliedChange) -> str | None:
    match step.change:
        case ObjectCreated(new, source) if source is not None:
            return redacted_statement("CREATE", new.name, source)
        case SecretChanged(_, source) if step.after is not None:
            return redacted_statement("ALTER", step.after.name, source)
        case _:
            return None


def _detail(step: AppliedChange) -> str | None:
    return "; ".join(describe(step)) or None


def _write_statement(database: sqlite3.Connection, text: str) -> int | None:
    return database.execute("INSERT INTO statements (text) VALUES (?)", (text,)).lastrowid
