"""The catalog in its SQLite file, open for reading."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogDamaged
from headgate.catalog.history import Entry, Event
from headgate.catalog.objects import ROOT
from headgate.catalog.secrets import Secret
from headgate.catalog.store import progress, rows
from headgate.catalog.store.database import connect, migrations, transaction
from headgate.catalog.store.keys import Keys, key_file_beside
from headgate.catalog.tasks import Ledger, Mark, ProgressSlot, Quarantined, QuarantineFolder, TaskStatus

T_ = TypeVar("T_")


class SqliteReader:
    """A catalog that is open for reading. It takes no lease and creates no file.

    There can be any number of readers, also while somebody writes. Each answer is of one moment.
    """

    _writer = False

    def __init__(
        self, path: Path, *, environment: Mapping[str, str] = os.environ, scripts: tuple[str, ...] | None = None
    ) -> None:
        self.path = path
        self.keys = Keys(key_file_beside(path), environment)
        self._lock = threading.RLock()
        self._scripts = migrations() if scripts is None else scripts
        self._database = connect(path, self._scripts, writer=self._writer)
        self._snapshot: Catalog | None = None

    def load(self) -> Catalog:
        """The snapshot of the last commit. Returns the same object until the next commit."""
        with self._reading() as database:
            if self._snapshot is None or rows.read_version(database) != self._snapshot.version:
                self._snapshot = self._read(database)
            return self._snapshot

    def reveal(self, secret: int) -> Secret:
        """The value of a secret, decrypted or read from its place. Do not store it."""
        catalog = self.load()
        return self.keys.reveal(catalog, catalog.get(secret))

    def history(self, object_id: int | None = None) -> tuple[Entry, ...]:
        """The history of one object, which may have been dropped, or of all. The oldest entry comes first."""
        return self._all(lambda database: rows.read_history(database, object_id))

    def events(self, after: int = 0, most: int | None = None) -> tuple[Event, ...]:
        """The events with a greater sequence number, oldest first; at most so many."""
        return self._all(lambda database: rows.read_events(database, after, most))

    def project_uuid(self) -> str:
        """What identifies the project outside of the catalog."""
        with self._reading() as database:
            return progress.read_project_uuid(database)

    def hook_position(self, hook: str) -> int:
        """The sequence number of the last event that a web hook has received; 0 for a new one."""
        with self._reading() as database:
            return progress.read_hook_position(database, hook)

    def statuses(self) -> tuple[TaskStatus, ...]:
        return self._all(progress.read_statuses)

    def task_uuid(self, task: int) -> str:
        """What identifies a task outside of the catalog, given when it was created. Other catalogs have other ones."""
        with self._reading() as database:
            return progress.read_uuid(database, task)

    def progress_slot(self, task: int) -> ProgressSlot:
        with self._reading() as database:
            return progress.read_slot(database, task)

    def row_message(self, materialization: int) -> bytes | None:
        """The message of a materialization ON DEMAND as clients last saw it, as a serialized FileDescriptorProto."""
        with self._reading() as database:
            return progress.read_row_message(database, materialization)

    def ledger(self, task: int) -> Ledger | None:
        with self._reading() as database:
            return progress.read_ledger(database, task)

    def mark(self, task: int) -> Mark | None:
        with self._reading() as database:
            return progress.read_mark(database, task)

    def quarantined(self, task: int | None = None, *, raw: bool = False) -> tuple[Quarantined, ...]:
        """The rejected records that are in the catalog itself. Their bytes are read only if ``raw`` says so."""
        return self._all(lambda database: progress.read_quarantine(database, task, raw=raw))

    def quarantine_folders(self, task: int | None = None) -> tuple[QuarantineFolder, ...]:
        """The folders of the warehouse that hold the other rejected records."""
        return self._all(lambda database: progress.read_folders(database, task))

    def count_quarantined(self, task: int) -> int:
        """How many rejected records there are in both places. Reads none of them."""
        with self._reading() as database:
            folders = progress.read_folders(database, task)
            return progress.count_in_catalog(database, task) + sum(folder.records for folder in folders)

    def count_in_catalog(self, task: int) -> int:
        """How many of them are in the catalog itself."""
        with self._reading() as database:
            return progress.count_in_catalog(database, task)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, transaction(self._database, self.path, write=False):
            yield self._database

    def _all(self, query: Callable[[sqlite3.Connection], Iterable[T_]]) -> tuple[T_, ...]:
        with self._reading() as database:
            return tuple(query(database))

    def _read(self, database: sqlite3.Connection) -> Catalog:
        """Read the stored snapshot in one transaction."""
        try:
            catalog = rows.read_catalog(database)
        except (ValueError, KeyError, TypeError) as failure:
            raise CatalogDamaged(str(self.path), f"a row that cannot be read ({failure})") from failure
        lost = _dangling(catalog)
        if lost is not None:
            raise CatalogDamaged(str(self.path), lost)
        return catalog


def _dangling(catalog: Catalog) -> str | None:
    """Describes an object that refers to one that does not exist; None if there is no such object."""
    for entry in catalog.objects.values():
        pointed = [d.on for d in entry.dependencies] + ([entry.parent] if entry.parent != ROOT else [])
        if any(i not in catalog.objects for i in pointed):
            return f"object {entry.id} refers to an object that is not there"
    if any(i not in catalog.objects for i in (*catalog.secrets, *catalog.desired)):
        return "a secret or a task without its object"
    return None
