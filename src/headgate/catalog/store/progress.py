"""What the engine records beside the catalog: states, ledgers, intents, quarantined records, schemas seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

import orjson

from headgate.catalog.store.rows import from_micros, to_micros
from headgate.catalog.tasks import (
    InputVersion,
    Intent,
    Ledger,
    PartitionOffset,
    Quarantined,
    SchemaSeen,
    State,
    TaskStatus,
)


def write_status(database: sqlite3.Connection, status: TaskStatus) -> None:
    database.execute(
        "INSERT OR REPLACE INTO task_status VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            status.task, status.state.value, to_micros(status.since), status.error, status.batch, status.rows,
            status.skipped, status.lag, status.batches, status.batch_seconds,
            None if status.last_commit is None else to_micros(status.last_commit), status.failures,
        ),
    )  # fmt: skip


def read_statuses(database: sqlite3.Connection) -> Iterator[TaskStatus]:
    rows = database.execute(
        "SELECT task, state, since, error, batch, rows, skipped, lag, batches, batch_seconds, last_commit, failures"
        " FROM task_status ORDER BY task"
    )
    for task, state, since, error, batch, read, skipped, lag, batches, seconds, last_commit, failures in rows:
        committed = None if last_commit is None else from_micros(last_commit)
        yield TaskStatus(
            task, State(state), from_micros(since), error, batch, read, skipped, lag, batches, seconds, committed,
            failures,
        )  # fmt: skip


def write_ledger(database: sqlite3.Connection, ledger: Ledger) -> None:
    """Intents up to the ledger's batch, and those of older generations, have served."""
    database.execute(
        "INSERT OR REPLACE INTO ledgers VALUES (?,?,?,?,?)",
        (ledger.task, ledger.generation, ledger.batch, _dump(ledger.offsets), _dump(ledger.versions)),
    )
    database.execute(
        "DELETE FROM intents WHERE task = ? AND (generation, batch) <= (?, ?)",
        (ledger.task, ledger.generation, ledger.batch),
    )


def read_ledger(database: sqlite3.Connection, task: int) -> Ledger | None:
    row = database.execute("SELECT * FROM ledgers WHERE task = ?", (task,)).fetchone()
    if row is None:
        return None
    _, generation, batch, offsets, versions = row
    return Ledger(task, generation, batch, _offsets(offsets), _versions(versions))


def write_intent(database: sqlite3.Connection, intent: Intent) -> None:
    database.execute(
        "INSERT OR IGNORE INTO intents VALUES (?,?,?,?,?,?,?,?)",
        (
            intent.task, intent.generation, intent.batch, _dump(intent.offsets), _dump(intent.versions),
            orjson.dumps(intent.schema_ids).decode(), intent.catalog_version, to_micros(intent.now),
        ),
    )  # fmt: skip


def read_intent(database: sqlite3.Connection, task: int, generation: int, batch: int) -> Intent | None:
    row = database.execute(
        "SELECT offsets, versions, schema_ids, catalog_version, now FROM intents"
        " WHERE task = ? AND generation = ? AND batch = ?",
        (task, generation, batch),
    ).fetchone()
    if row is None:
        return None
    offsets, versions, schema_ids, catalog_version, now = row
    ids = tuple(orjson.loads(schema_ids))
    return Intent(
        task,
        generation,
        batch,
        _offsets(offsets),
        _versions(versions),
        ids,
        catalog_version,
        from_micros(now),
    )


def write_quarantine(database: sqlite3.Connection, records: Iterable[Quarantined]) -> None:
    """Without those of a task that was dropped while its last batch was under way."""
    database.executemany(
        "INSERT OR IGNORE INTO quarantine"
        ' (object, task, topic, partition, "offset", time, schema_id, path, expected, reason, raw)'
        " SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11 WHERE EXISTS (SELECT 1 FROM objects WHERE id = ?2)",
        [
            (
                r.object, r.task, r.topic, r.partition, r.offset, to_micros(r.time), r.schema_id, r.path, r.expected,
                r.reason, r.raw,
            )
            for r in records
        ],
    )  # fmt: skip


_THE_RECORD = ' WHERE task = ? AND topic IS ? AND partition IS ? AND "offset" IS ?'


def delete_quarantine(database: sqlite3.Connection, records: Iterable[Quarantined]) -> None:
    database.executemany(
        "DELETE FROM quarantine" + _THE_RECORD, [(r.task, r.topic, r.partition, r.offset) for r in records]
    )


def update_quarantine(database: sqlite3.Connection, records: Iterable[Quarantined]) -> None:
    """What is said of the records."""
    database.executemany(
        "UPDATE quarantine SET schema_id = ?, path = ?, expected = ?, reason = ?" + _THE_RECORD,
        [
            (r.schema_id, r.path, r.expected, r.reason, r.task, r.topic, r.partition, r.offset)
            for r in records
        ],
    )


def read_quarantine(database: sqlite3.Connection, task: int | None) -> Iterator[Quarantined]:
    rows = database.execute(
        'SELECT object, task, topic, partition, "offset", time, schema_id, path, expected, reason, raw'
        " FROM quarantine WHERE ?1 IS NULL OR task = ?1 ORDER BY sequence",
        (task,),
    )
    for object_, task_, topic, partition, offset, time, *rest in rows:
        yield Quarantined(object_, task_, topic, partition, offset, from_micros(time), *rest)


def write_schemas(database: sqlite3.Connection, schemas: Iterable[SchemaSeen]) -> None:
    rows = [(s.registry, s.id, s.subject, s.version, s.format, s.text) for s in schemas]
    database.executemany("INSERT OR REPLACE INTO schemas_seen VALUES (?,?,?,?,?,?)", rows)


def read_schemas(database: sqlite3.Connection) -> Iterator[SchemaSeen]:
    rows = database.execute(
        "SELECT registry, id, subject, version, format, text FROM schemas_seen ORDER BY registry, subject, version"
    )
    return (SchemaSeen(*row) for row in rows)


def _dump(parts: tuple[PartitionOffset, ...] | tuple[InputVersion, ...]) -> str:
    rows = [
        [p.topic, p.partition, p.offset, p.topic_id]
        if isinstance(p, PartitionOffset)
        else [p.relation, p.version]
        for p in parts
    ]
    return orjson.dumps(rows).decode()


def _offsets(text: str) -> tuple[PartitionOffset, ...]:
    return tuple(PartitionOffset(*row) for row in orjson.loads(text))


def _versions(text: str) -> tuple[InputVersion, ...]:
    return tuple(InputVersion(*row) for row in orjson.loads(text))
