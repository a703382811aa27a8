"""A PostgreSQL table as the target of a task. Its ledger row moves in the transaction that writes the rows.

It proves the port with a target that is not Kafka, and stays in the tests until the real one comes. Rows have a text key
and an integer value. They come to the driver, so batches must be small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import psycopg
from pyspark.sql import SparkSession

from headgate.catalog.positions import dump_positions, load_positions
from headgate.runtime.errors import Fenced
from headgate.runtime.ports import Append, Batch, Changes, Diff, Ledger, Limit, Upsert, Written

LEDGER = """CREATE TABLE IF NOT EXISTS hg_ledger (
  task text PRIMARY KEY, generation bigint NOT NULL, number bigint NOT NULL, epoch bigint NOT NULL,
  positions text, definition text NOT NULL)"""
FIND = "SELECT generation, number, epoch, positions, definition FROM hg_ledger WHERE task = %s"


class PostgresTarget:
    """One table, one connection, one transaction per batch."""

    takes: frozenset[type[Changes]] = frozenset({Append, Upsert})
    commit: Literal["own", "catalog"] = "own"

    def __init__(self, address: str, task: int, uuid: str, table: str, *, keyed: bool) -> None:
        """`uuid` identifies the task here, because several catalogs may share one database."""
        self._task = task
        self._uuid = uuid
        self._table = table
        self._connection = psycopg.connect(address, application_name=f"headgate:{uuid}", autocommit=True)
        key = "PRIMARY KEY" if keyed else "NOT NULL"
        self._connection.execute(LEDGER)
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (key text {key}, value bigint)".encode())

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def begin(self, epoch: int) -> Ledger | None:
        """The first ledger row has no positions: it only holds the epoch."""
        with self._connection.transaction():
            self._connection.execute(
                "INSERT INTO hg_ledger VALUES (%s, 1, 0, 0, NULL, '') ON CONFLICT DO NOTHING", (self._uuid,)
            )
            held, ledger = self._locked_ledger()
            if held > epoch:
                raise Fenced(f'table "{self._table}"', f"task {self._task}", held, epoch)
            self._connection.execute("UPDATE hg_ledger SET epoch = %s WHERE task = %s", (epoch, self._uuid))
        return ledger

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        rows, deleted = _collected(changes)
        before_commit()
        with self._connection.transaction():
            held, ledger = self._locked_ledger()
            if ledger is not None and (ledger.number, ledger.positions) == (batch.number, batch.end):
                return Written(0)
            at_start = batch.number == 1 if ledger is None else ledger.positions == batch.start
            if held > batch.epoch or not at_start:
                raise Fenced(f'table "{self._table}"', f"task {self._task}", held, batch.epoch)
            self._merge(rows, deleted, keyed=isinstance(changes, Upsert))
            self._connection.execute(
                "UPDATE hg_ledger SET generation = %s, number = %s, positions = %s, definition = %s WHERE task = %s",
                (batch.generation, batch.number, dump_positions(batch.end), batch.definition, self._uuid),
            )
        return Written(len(rows))

    def _locked_ledger(self) -> tuple[int, Ledger | None]:
        """The epoch that the table holds, and its ledger."""
        row = self._connection.execute(f"{FIND} FOR UPDATE", (self._uuid,)).fetchone()
        assert row is not None
        generation, number, epoch, positions, definition = row
        if positions is None:
            return epoch, None
        return epoch, Ledger(self._task, generation, number, epoch, load_positions(positions), definition)

    def _merge(self, rows: list[tuple[str, int]], deleted: list[tuple[str]], *, keyed: bool) -> None:
        merge = " ON CONFLICT (key) DO UPDATE SET value = excluded.value" if keyed else ""
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self._table} VALUES (%s, %s){merge}".encode(), rows)
            cursor.executemany(f"DELETE FROM {self._table} WHERE key = %s".encode(), deleted)

    def contents(self, session: SparkSession) -> Upsert:
        rows = self._connection.execute(f"SELECT key, value FROM {self._table}".encode()).fetchall()
        return Upsert(session.createDataFrame(rows, "key string, value bigint"), ("key",))

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        self._connection.close()


def _collected(changes: Changes) -> tuple[list[tuple[str, int]], list[tuple[str]]]:
    """Rows to write and keys to delete. Everything is computed before the transaction begins."""
    assert not isinstance(changes, Diff)
    changes = changes.unmarked() if isinstance(changes, Upsert) else changes
    rows = [(row["key"], row["value"]) for row in changes.rows.collect()]
    if not isinstance(changes, Upsert) or changes.changed is None:
        return rows, []
    written = {key for key, _ in rows}
    return rows, [(row["key"],) for row in changes.changed.collect() if row["key"] not in written]
