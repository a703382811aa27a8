"""What the registry keeps, in one SQLite file: schemas, the versions of subjects, and settings.

A schema's id is given once and never to another text: when the last version of a schema is removed for good, its
text is forgotten but its id and fingerprint stay, so that the same schema, registered again, gets its old id back.
Every change is one transaction, on disk before it is answered (WAL, synchronous=FULL): a process killed at any
moment leaves either all of a change or nothing of it.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.registry.server.errors import StoreFailed, StoreUnusable

FILE_NAME = "registry.sqlite"
FORMAT = 1

_TABLES = """
CREATE TABLE schemas (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- AUTOINCREMENT: an id is never given twice
  type        TEXT NOT NULL,
  text        TEXT,                               -- NULL: forgotten, no version has it any more
  refs        TEXT NOT NULL,                      -- JSON: [[name, subject, version], ...]
  fingerprint TEXT NOT NULL,
  normalized  TEXT NOT NULL                       -- fingerprint of the normalized schema
);
CREATE INDEX schemas_fingerprint ON schemas (fingerprint);
CREATE TABLE versions (
  subject TEXT NOT NULL,
  version INTEGER NOT NULL,
  id      INTEGER NOT NULL REFERENCES schemas (id),
  deleted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (subject, version)
) WITHOUT ROWID;
CREATE INDEX versions_id ON versions (id);
CREATE TABLE uses (                               -- schema id refers to a version of a subject
  id      INTEGER NOT NULL REFERENCES schemas (id),
  subject TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (subject, version, id)
) WITHOUT ROWID;
CREATE TABLE configs (subject TEXT PRIMARY KEY, level TEXT, normalize INTEGER) WITHOUT ROWID;
CREATE TABLE modes (subject TEXT PRIMARY KEY, mode TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """A folder with the registry's file. Safe to use from several threads, and from several processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._write_lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = self._connect()
        except OSError as failure:
            raise StoreUnusable(str(folder), failure.strerror or str(failure)) from failure
        except sqlite3.DatabaseError as failure:
            raise StoreUnusable(str(self._path), str(failure)) from failure
        try:
            self._prepare()
        except BaseException:
            self._writer.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """The rows as they are at one moment, whatever is written meanwhile."""
        connection = self._take()
        try:
            with _transaction(connection, "BEGIN"):
                yield Tables(connection)
        finally:
            self._idle.put(connection)

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """One change: all of it is on disk when the block ends, nothing of it when the block raises."""
        with self._write_lock, _transaction(self._writer, "BEGIN IMMEDIATE"):
            yield Tables(self._writer)

    def close(self) -> None:
        self._writer.close()
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        with _transaction(self._writer, "BEGIN IMMEDIATE"):
            (found,) = self._writer.execute("PRAGMA user_version").fetchone()
            if found == 0:
                for statement in _TABLES.split(";\n"):
                    self._writer.execute(statement)
                self._writer.execute(f"PRAGMA user_version = {FORMAT}")
            elif found != FORMAT:
                raise StoreUnusable(
                    str(self._path), f"it has format {found}, this version writes format {FORMAT}"
                )


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    try:
        connection.execute(begin)
        try:
            yield
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.OperationalError as failure:
        raise StoreFailed(str(failure)) from failure
