"""What the engine records beside the catalog: states, ledgers, marks and quarantined records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from headgate.catalog.positions import dump_positions, dump_record, load_positions, load_record
from headgate.catalog.store.rows import from_micros, to_micros
from headgate.catalog.tasks import (
    Ledger,
    Mark,
    ProgressSlot,
    Quarantined,
    QuarantineFolder,
    State,
    TaskStatus,
    require_ledger,
)
from headgate.errors import InternalError


def write_status(database: sqlite3.Connection, status: TaskStatus) -> None:
    database.execute(
        "INSERT OR REPLACE INTO task_status VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            status.task, status.state.value, to_micros(status.since), status.error, status.batch, status.rows,
            status.skipped, status.lag, status.batches, status.batch_seconds,
            None if status.last_commit is None else to_micros(status.last_commit), status.failures,
            status.notice, status.stored_bytes,
        ),
    )  # fmt: skip


def read_statuses(database: sqlite3.Connection) -> Iterator[TaskStatus]:
    rows = database.execute(
        "SELECT task, state, since, error, batch, rows, skipped, lag, batches, batch_seconds, last_commit, failures,"
        " notice, stored_bytes FROM task_status ORDER BY task"
    )
    for task, state, since, error, batch, read, skipped, lag, batches, seconds, last_commit, failures, *rest in rows:
        committed = None if last_commit is None else from_micros(last_commit)
        yield TaskStatus(
            task, State(state), from_micros(since), error, batch, read, skipped, lag, batches, seconds, committed,
            failures, *rest,
        )  # fmt: skip


def read_uuid(database: sqlite3.Connection, task: int) -> str:
    row = database.execute("SELECT uuid FROM task_uuids WHERE task = ?", (task,)).fetchone()
    if row is None:
        raise InternalError(f"task {task} has no uuid")
    return str(row[0])


def read_slot(database: sqlite3.Connection, task: int) -> ProgressSlot:
    row = database.execute("SELECT uuid, number FROM project, progress_slots WHERE task = ?", (task,)).fetchone()
    if row is None:
        raise InternalError(f"task {task} has no progress slot")
    return ProgressSlot(*row)


def write_ledger(database: sqlite3.Connection, expected: Ledger | None, new: Ledger) -> None:
    """Compare and set. The mark has served. Raises LedgerMoved; so does the last batch of a task that was dropped."""
    require_ledger(expected, read_ledger(database, new.task), new.task)
    database.execute(
        "INSERT OR REPLACE INTO ledgers SELECT ?1,?2,?3,?4,?5,?6 WHERE EXISTS (SELECT 1 FROM objects WHERE id = ?1)",
        (new.task, new.generation, new.number, new.epoch, dump_positions(new.positions), new.definition),
    )
    database.execute("DELETE FROM marks WHERE task = ?", (new.task,))


def read_ledger(database: sqlite3.Connection, task: int) -> Ledger | None:
    row = database.execute("SELECT * FROM ledgers WHERE task = ?", (task,)).fetchone()
    if row is None:
        return None
    _, generation, number, epoch, positions, definition = row
    return Ledger(task, generation, number, epoch, load_positions(positions), definition)


def write_mark(database: sqlite3.Connection, task: int, mark: Mark) -> None:
    end = None if mark.end is None else dump_positions(mark.end)
    database.execute(
        "INSERT OR REPLACE INTO marks SELECT ?1,?2,?3 WHERE EXISTS (SELECT 1 FROM objects WHERE id = ?1)",
        (task, end, mark.attempts),
    )


def read_mark(database: sqlite3.Connection, task: int) -> Mark | None:
    row = database.execute('SELECT "end", attempts FROM marks WHERE task = ?', (task,)).fetchone()
    return None if row is None else Mark(None if row[0] is None else load_positions(row[0]), row[1])


def clear_rejected(database: sqlite3.Connection, task: int, number: int, now: int) -> None:
    """Forget what an earlier attempt at the batch put into the quarantine."""
    database.execute("DELETE FROM quarantine WHERE task = ? AND batch = ?", (task, number))
    database.execute(_LEAVE + " WHERE task = ? AND batch = ? AND state = 'kept'", (now, task, number))


def write_quarantine(database: sqlite3.Connection, batch: int | None, records: Iterable[Quarantined]) -> None:
    """Without those of a task that was dropped while its last batch was under way. A record that is there already for the
    task stays as it is."""
    database.executemany(
        "INSERT OR IGNORE INTO quarantine"
        " (object, task, position, batch, time, schema_id, path, expected, reason, raw)"
        " SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10 WHERE EXISTS (SELECT 1 FROM objects WHERE id = ?2)",
        [
            (
                r.object, r.task, dump_record(r.position), batch, to_micros(r.time), r.schema_id, r.path, r.expected,
                r.reason, r.raw,
            )
            for r in records
        ],
    )  # fmt: skip


_THE_RECORD = " WHERE task = ? AND position = ?"


def delete_quarantine(database: sqlite3.Connection, records: Iterable[Quarantined]) -> None:
    database.executemany("DELETE FROM quarantine" + _THE_RECORD, [(r.task, dump_record(r.position)) for r in records])


def update_quarantine(database: sqlite3.Connection, records: Iterable[Quarantined]) -> None:
    """What is said of the records."""
    database.executemany(
        "UPDATE quarantine SET schema_id = ?, path = ?, expected = ?, reason = ?" + _THE_RECORD,
        [(r.schema_id, r.path, r.expected, r.reason, r.task, dump_record(r.position)) for r in records],
    )


def read_quarantine(database: sqlite3.Connection, task: int | None, *, raw: bool) -> Iterator[Quarantined]:
    """Without ``raw``, no bytes of records are read."""
    rows = database.execute(
        f"SELECT object, task, position, time, schema_id, path, expected, reason, {'raw' if raw else 'NULL'}"
        " FROM quarantine WHERE ?1 IS NULL OR task = ?1 ORDER BY sequence",
        (task,),
    )
    for object_, task_, position, time, *rest in rows:
        yield Quarantined(object_, task_, load_record(position), from_micros(time), *rest)


def count_in_catalog(database: sqlite3.Connection, task: int) -> int:
    """How many quarantined records of a task are in the catalog itself. Reads only an index."""
    (held,) = database.execute("SELECT count(*) FROM quarantine WHERE task = ?", (task,)).fetchone()
    return int(held)


# Folders. A folder is known before its first file is written, and until its last one is removed, so that none is forgotten.

_LEAVE = "UPDATE quarantine_folders SET state = 'leaving', since = ?"


def open_folders(database: sqlite3.Connection, task: int, folders: Iterable[QuarantineFolder], now: int) -> None:
    """Announce the folders that a task is going to write. Others that it was writing are what a failed attempt left."""
    database.execute(_LEAVE + " WHERE task = ? AND state = 'writing'", (now, task))
    database.executemany(
        "INSERT INTO quarantine_folders VALUES (?,?,?,?,?,'writing',?)",
        [(folder.name, folder.object, folder.task, folder.batch, folder.records, now) for folder in folders],
    )


def keep_folder(database: sqlite3.Connection, folder: QuarantineFolder, now: int) -> None:
    """Show the records of a folder. That of a task that was dropped meanwhile is leaving already, and stays so."""
    database.execute(
        "UPDATE quarantine_folders SET state = 'kept', since = ? WHERE name = ? AND state = 'writing'",
        (now, folder.name),
    )


def drop_folder(database: sqlite3.Connection, folder: QuarantineFolder, now: int) -> None:
    database.execute(_LEAVE + " WHERE name = ?", (now, folder.name))


def drop_unfinished_folders(database: sqlite3.Connection, now: int) -> None:
    """Those that engines before this one were writing."""
    database.execute(_LEAVE + " WHERE state = 'writing'", (now,))


def drop_orphaned_folders(database: sqlite3.Connection, now: int) -> None:
    """Those of tasks and sources that were dropped."""
    database.execute(
        _LEAVE + " WHERE state != 'leaving' AND (task NOT IN (SELECT id FROM objects)"
        " OR object NOT IN (SELECT id FROM objects))",
        (now,),
    )


def read_folders(database: sqlite3.Connection, task: int | None) -> Iterator[QuarantineFolder]:
    yield from _folders(database, "WHERE state = 'kept' AND (?1 IS NULL OR task = ?1) ORDER BY batch, name", (task,))


def read_leaving_folders(database: sqlite3.Connection, before: int) -> Iterator[QuarantineFolder]:
    yield from _folders(database, "WHERE state = 'leaving' AND since <= ?", (before,))


def forget_folder(database: sqlite3.Connection, folder: QuarantineFolder) -> None:
    database.execute("DELETE FROM quarantine_folders WHERE name = ? AND state = 'leaving'", (folder.name,))


def _folders(database: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Iterator[QuarantineFolder]:
    rows = database.execute("SELECT name, object, task, batch, records FROM quarantine_folders " + where, values)
    return (QuarantineFolder(*row) for row in rows)


# The storage of dropped views


def read_leaving_views(database: sqlite3.Connection, before: int) -> Iterator[str]:
    for row in database.execute("SELECT uuid FROM leaving_views WHERE since <= ?", (before,)):
        yield row[0]


def forget_view(database: sqlite3.Connection, uuid: str) -> None:
    database.execute("DELETE FROM leaving_views WHERE uuid = ?", (uuid,))


def read_row_message(database: sqlite3.Connection, materialization: int) -> bytes | None:
    found = database.execute("SELECT file FROM row_messages WHERE task = ?", (materialization,)).fetchone()
    return None if found is None else bytes(found[0])


def write_row_message(database: sqlite3.Connection, materialization: int, file: bytes) -> None:
    database.execute("INSERT OR REPLACE INTO row_messages VALUES (?,?)", (materialization, file))


def read_hook_position(database: sqlite3.Connection, hook: str) -> int:
    found = database.execute("SELECT sequence FROM web_hooks WHERE hook = ?", (hook,)).fetchone()
    return 0 if found is None else int(found[0])


def write_hook_position(database: sqlite3.Connection, hook: str, sequence: int) -> None:
    database.execute("INSERT OR REPLACE INTO web_hooks VALUES (?,?)", (hook, sequence))


def read_project_uuid(database: sqlite3.Connection) -> str:
    (found,) = database.execute("SELECT uuid FROM project").fetchone()
    return str(found)
