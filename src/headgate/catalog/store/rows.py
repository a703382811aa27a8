"""Read and write a snapshot, its history and its events as rows. Only the difference between two snapshots is written."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta

from headgate.catalog.catalog import Catalog, build_catalog
from headgate.catalog.changes import AppliedChange, Commit, ObjectCreated, SecretChanged, object_id_of
from headgate.catalog.history import Entry, Event, describe, event_of
from headgate.catalog.objects import (
    NO_COMMENT,
    Column,
    Comment,
    Dependency,
    DependencyKind,
    DesiredTaskState,
    FieldComment,
    Growth,
    Object,
)
from headgate.catalog.positions import dump_record, load_record
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, SecretSource, redacted_statement
from headgate.catalog.store.codec import definition_text, read_definition, read_type, type_text
from headgate.sql.query.tree import ColumnRef
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def write_difference(database: sqlite3.Connection, old: Catalog | None, new: Catalog) -> None:
    """Write the difference between two snapshots to the tables."""
    before = {} if old is None else old.objects
    _delete(database, (i for i in before if new.objects.get(i) is not before[i]))
    _insert(database, (o for o in new.objects.values() if before.get(o.id) is not o))
    for gone in before.keys() - new.objects.keys():
        if before[gone].kind is Kind.MATERIALIZED_VIEW:
            _let_leave(database, gone)
        _forget(database, gone)
    _write_secrets(database, {} if old is None else dict(old.secrets), new)
    _write_desired(database, {} if old is None else dict(old.desired), new)
    database.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (new.version, new.next_id))


def read_version(database: sqlite3.Connection) -> int | None:
    """The version of the stored snapshot; None if there is none yet."""
    row = database.execute("SELECT version FROM state").fetchone()
    return None if row is None else int(row[0])


def read_catalog(database: sqlite3.Connection) -> Catalog:
    """The stored snapshot. Call it inside a transaction, so that all tables are of one moment."""
    version, next_id = database.execute("SELECT version, next_id FROM state").fetchone()
    return build_catalog(
        version,
        next_id,
        _read_objects(database, _read_columns(database), _read_dependencies(database)),
        {row[0]: _secret(row[1], row[2]) for row in database.execute("SELECT object, place, content FROM secrets")},
        {row[0]: DesiredTaskState(row[1]) for row in database.execute("SELECT task, state FROM desired")},
    )


def _delete(database: sqlite3.Connection, ids: Iterable[int]) -> None:
    rows = [(i,) for i in ids]
    database.executemany("DELETE FROM objects WHERE id = ?", rows)
    database.executemany("DELETE FROM columns WHERE object = ?", rows)
    database.executemany("DELETE FROM dependencies WHERE object = ?", rows)


def _insert(database: sqlite3.Connection, objects: Iterable[Object]) -> None:
    new = list(objects)
    database.executemany("INSERT INTO objects VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", map(_object_row, new))
    database.executemany(
        "INSERT INTO columns VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (_column_row(o.id, position, c) for o in new for position, c in enumerate(o.columns)),
    )
    database.executemany(
        "INSERT INTO dependencies VALUES (?,?,?,?,?)",
        ((o.id, i, d.on, d.use.value, d.blocks_drop) for o in new for i, d in enumerate(o.dependencies)),
    )


def _object_row(o: Object) -> tuple[object, ...]:
    growth = None if o.growth is None else o.growth.value
    body = None if o.body is None else type_text(o.body)
    return (
        o.id, o.kind.value, o.parent, o.name, to_micros(o.created), o.statement, definition_text(o.definition), growth, body,
        o.next_column, o.comment.explicit, o.comment.imported, o.comment.suppressed, o.fillings,
    )  # fmt: skip


def _column_row(object_id: int, position: int, c: Column) -> tuple[object, ...]:
    origin = (None, None) if c.origin is None else (c.origin.object, c.origin.column)
    return (
        object_id, position, c.id, c.name, type_text(c.type), c.nullable, c.key, *origin,
        c.comment.explicit, c.comment.imported, c.comment.suppressed, _field_comments_text(c.fields),
    )  # fmt: skip


def _field_comments_text(comments: tuple[FieldComment, ...]) -> str | None:
    return json.dumps([[list(known.path), known.text] for known in comments]) if comments else None


def _field_comments(text: str | None) -> tuple[FieldComment, ...]:
    return () if text is None else tuple(FieldComment(tuple(path), comment) for path, comment in json.loads(text))


def _let_leave(database: sqlite3.Connection, view: int) -> None:
    """Remember the storage of a dropped view, which is removed later."""
    now = to_micros(datetime.now(UTC))
    database.execute("INSERT INTO leaving_views SELECT uuid, ? FROM task_uuids WHERE task = ?", (now, view))


def _forget(database: sqlite3.Connection, gone: int) -> None:
    """Delete what was recorded about a dropped task. History and events stay."""
    for table in ("task_status", "task_uuids", "progress_slots", "ledgers", "marks", "quarantine", "row_messages"):
        database.execute(f"DELETE FROM {table} WHERE task = ?", (gone,))
    database.execute("DELETE FROM quarantine WHERE object = ?", (gone,))


def _write_secrets(database: sqlite3.Connection, old: dict[int, SecretSource], new: Catalog) -> None:
    database.executemany("DELETE FROM secrets WHERE object = ?", [(i,) for i in old.keys() - new.secrets.keys()])
    changed = [(i, *_secret_row(s)) for i, s in new.secrets.items() if old.get(i) is not s]
    database.executemany("INSERT OR REPLACE INTO secrets VALUES (?,?,?)", changed)


def _write_desired(database: sqlite3.Connection, old: dict[int, DesiredTaskState], new: Catalog) -> None:
    database.executemany("DELETE FROM desired WHERE task = ?", [(i,) for i in old.keys() - new.desired.keys()])
    changed = [(i, d.value) for i, d in new.desired.items() if old.get(i) is not d]
    database.executemany("INSERT OR REPLACE INTO desired VALUES (?,?)", changed)
    uuids = [(i, uuid.uuid4().hex) for i in new.desired.keys() - old.keys()]
    database.executemany("INSERT INTO task_uuids VALUES (?,?)", uuids)
    with_progress = [i for i, _ in sorted(uuids) if _holds_progress(new.objects[i])]
    database.executemany(_TAKE_SLOT, [(i,) for i in with_progress])


# The smallest number that is free.
_TAKE_SLOT = """INSERT INTO progress_slots
    SELECT ?, min(n) FROM (SELECT 0 AS n UNION ALL SELECT number + 1 FROM progress_slots)
    WHERE n NOT IN (SELECT number FROM progress_slots)"""


def _holds_progress(task: Object) -> bool:
    """Whether the target of a task is a topic that holds its progress."""
    return isinstance(task.definition, CreateSink) and task.definition.with_options.delivery == "exactly once"


_SECRETS: dict[str, type[SecretSource]] = {"sealed": EncryptedSecret, "environment": FromEnvironment, "file": FromFile}
_SECRET_PLACES = {source: place for place, source in _SECRETS.items()}


def _secret_row(source: SecretSource) -> tuple[str, str]:
    """The place of a secret, and what is kept of it there."""
    (content,) = astuple(source)
    return _SECRET_PLACES[type(source)], content


def _secret(place: str, content: str) -> SecretSource:
    return _SECRETS[place](content)


def _read_columns(database: sqlite3.Connection) -> dict[int, list[Column]]:
    found: dict[int, list[Column]] = {}
    rows = database.execute(
        "SELECT object, id, name, type, nullable, key, origin_object, origin_column, explicit, imported, suppressed,"
        " fields FROM columns ORDER BY object, position"
    )
    for object_, id_, name, type_, nullable, key, above, column, explicit, imported, suppressed, fields in rows:
        origin = None if above is None else ColumnRef(above, column)
        comment = _comment(explicit, imported, suppressed)
        made = Column(id_, name, read_type(type_), nullable == 1, key == 1, origin, comment, _field_comments(fields))
        found.setdefault(object_, []).append(made)
    return found


def _read_dependencies(database: sqlite3.Connection) -> dict[int, list[Dependency]]:
    found: dict[int, list[Dependency]] = {}
    rows = database.execute("SELECT object, depends_on, use, holds FROM dependencies ORDER BY object, position")
    for object_, on, use, holds in rows:
        found.setdefault(object_, []).append(Dependency(on, DependencyKind(use), bool(holds)))
    return found


def _read_objects(
    database: sqlite3.Connection, columns: dict[int, list[Column]], dependencies: dict[int, list[Dependency]]
) -> list[Object]:
    rows = database.execute(
        "SELECT id, kind, parent, name, created, statement, definition, growth, body, next_column,"
        " fillings, explicit, imported, suppressed FROM objects ORDER BY id"
    )
    found = []
    for id_, kind, parent, name, created, statement, definition, growth, body, next_column, fillings, *comment in rows:
        made = Object(
            id_, Kind(kind), parent, name, from_micros(created), statement, read_definition(definition),
            tuple(columns.get(id_, ())), growth and Growth(growth), body and read_type(body),
            tuple(dependencies.get(id_, ())), _comment(*comment), next_column, fillings,
        )  # fmt: skip
        found.append(made)
    return found


def _comment(explicit: str | None, imported: str | None, suppressed: int) -> Comment:
    if explicit is None and imported is None and not suppressed:
        return NO_COMMENT  # most comments are empty; sharing one object halves the memory of a large catalog
    return Comment(explicit, imported, bool(suppressed))


# history and events


def append_history(database: sqlite3.Connection, unit: Commit, steps: Sequence[AppliedChange], now: datetime) -> None:
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


def read_events(database: sqlite3.Connection, after: int, most: int | None = None) -> Iterator[Event]:
    rows = database.execute(
        "SELECT sequence, time, object_id, object, event, detail FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?",
        (after, -1 if most is None else most),
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
