"""The catalog in one SQLite file: one writer by lease, many readers, every commit whole.

The writer keeps the snapshot in memory and writes only what a commit changed. A reader reads the file again when its version
has changed. Instances may be used from several threads.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from headgate.catalog.catalog import Catalog, empty_catalog
from headgate.catalog.changes import Change, Commit, SecretChanged, apply_each
from headgate.catalog.errors import CatalogChanged, CatalogDamaged, CatalogError, CatalogFull
from headgate.catalog.history import Entry, Event
from headgate.catalog.objects import ROOT
from headgate.catalog.positions import RecordPosition
from headgate.catalog.secrets import EncryptedSecret, Secret
from headgate.catalog.store import lease as leases, progress, rows
from headgate.catalog.store.database import connect, migrate, migrations, transaction
from headgate.catalog.store.keys import Keys, key_file_beside
from headgate.catalog.tasks import Ledger, Mark, ProgressSlot, Quarantined, QuarantineFolder, TaskStatus

EPOCHS_PER_LEASE = 2**20  # starts of one task that an engine can count
REJECTED_AT_ONCE = 500  # rejected records that are stored in one transaction

Clock = Callable[[], datetime]
T_ = TypeVar("T_")


def utc_now() -> datetime:
    return datetime.now(UTC)


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


class SqliteStore(SqliteReader):
    """A catalog that is open for writing. It holds the lease until it is closed.

    Every write raises LeaseLost and stores nothing if another process has taken over.
    """

    _writer = True

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = utc_now,
        environment: Mapping[str, str] = os.environ,
        scripts: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(path, environment=environment, scripts=scripts)
        self._clock = clock
        self._closed = False
        self._unwritten: dict[int, TaskStatus] = {}
        self._starts: dict[int, int] = {}  # of tasks, by this engine
        self._jobs: deque[_Job] = deque()
        try:
            self._lease = self._begin()
        except BaseException:
            self._database.close()
            raise

    def commit(
        self,
        changes: Sequence[Change],
        *,
        cause: str,
        statement: str | None = None,
        position: RecordPosition | None = None,
        planned: int | None = None,
    ) -> Catalog:
        """Store all the changes or none, durable on return. ``planned`` is the version that the changes were made for.
        Raises CatalogChanged if it is no longer the present one. The text of a statement that carries a secret is
        replaced by one that does not."""
        return self.commit_all([Commit(tuple(changes), cause, statement, position)], planned=planned)

    def commit_all(self, units: Sequence[Commit], *, planned: int | None = None) -> Catalog:
        """Like ``commit``, for several statements in one transaction, each with its own text."""
        with self._lock:
            before = after = self.load()
            if planned is not None and planned != before.version:
                raise CatalogChanged(planned, before.version)
            with self._writing() as database:
                for unit in units:
                    after, done = apply_each(after, unit.changes)
                    rows.append_history(database, unit, done, self._clock())
                rows.write_difference(database, before, after)
                progress.drop_orphaned_folders(database, self._now())
            self._snapshot = after
            return after

    def emit(self, object_id: int, event: str, detail: str | None = None) -> Event:
        """Store an event of the engine's own, about an object that exists."""
        name = self.load().display_name(object_id)
        with self._writing() as database:
            return rows.append_event(database, object_id, name, event, detail, self._clock())

    def heartbeat(self) -> None:
        """Say that this writer is alive. `lease.Heartbeat` does it all the time."""
        with self._writing():
            pass

    def report(self, *statuses: TaskStatus) -> None:
        """Store the statuses of tasks. If the disk is full they are kept in memory, because they may be what reports that."""
        try:
            with self._writing() as database:
                for status in statuses:
                    progress.write_status(database, status)
            for status in statuses:
                self._unwritten.pop(status.task, None)
        except CatalogFull:
            self._unwritten |= {status.task: status for status in statuses}

    def statuses(self) -> tuple[TaskStatus, ...]:
        return tuple(self._unwritten.get(status.task, status) for status in super().statuses())

    def next_epoch(self, task: int) -> int:
        """The number of the lease times 2^20, plus how often this engine has started the task."""
        with self._lock:
            self._starts[task] = self._starts.get(task, 0) + 1
            return self._lease.epoch * EPOCHS_PER_LEASE + self._starts[task]

    def raise_epoch(self, above: int) -> None:
        """Make all further epochs larger than one that a target holds: the catalog was restored from an old copy."""
        with self._lock:
            with self._writing() as database:
                raised = leases.raise_above(database, self._lease, above // EPOCHS_PER_LEASE)
            self._lease = raised

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        """Compare-and-set of a task's progress, with the rejected records of the batch, which replace those of earlier
        attempts. ``folders`` were opened before and are full. None for ``rejected``: ``reject`` has stored all of them.
        Raises LedgerMoved."""

        def work(database: sqlite3.Connection) -> None:
            progress.write_ledger(database, expected, new)
            if rejected is not None:
                self._replace_rejected(database, new.task, new.number, folders)
                progress.write_quarantine(database, new.number, rejected)

        self._grouped(work)

    def reject(
        self, task: int, number: int, records: Iterable[Quarantined], folders: Sequence[QuarantineFolder] = ()
    ) -> None:
        """Store many rejected records of a batch before its ledger moves. In pieces, so that others can write
        meanwhile."""
        self._grouped(lambda database: self._replace_rejected(database, task, number, folders))
        left = iter(records)
        while chunk := list(islice(left, REJECTED_AT_ONCE)):
            with self._writing() as database:
                progress.write_quarantine(database, number, chunk)

    def _replace_rejected(
        self, database: sqlite3.Connection, task: int, number: int, folders: Sequence[QuarantineFolder]
    ) -> None:
        progress.clear_rejected(database, task, number, self._now())
        for folder in folders:
            progress.keep_folder(database, folder, self._now())

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        """Announce folders before anything is written to them. Their records are shown when a commit names them."""
        with self._writing() as database:
            progress.open_folders(database, task, folders, self._now())

    def replace_folders(self, old: Sequence[QuarantineFolder], new: QuarantineFolder | None) -> None:
        """Show the records of another folder, or of none, in place of those of the old ones."""
        with self._writing() as database:
            for each in old:
                progress.drop_folder(database, each, self._now())
            if new is not None:
                progress.keep_folder(database, new, self._now())

    def leaving_folders(self, before: datetime) -> tuple[QuarantineFolder, ...]:
        """The folders to remove, as far as no commit has named them since this time."""
        return self._all(lambda database: progress.read_leaving_folders(database, rows.to_micros(before)))

    def forget_folder(self, folder: QuarantineFolder) -> None:
        """Forget a folder that is removed."""
        with self._writing() as database:
            progress.forget_folder(database, folder)

    def leaving_views(self, before: datetime) -> tuple[str, ...]:
        """The uuids of materialized views that were dropped before this time, and whose storage is to be removed."""
        return self._all(lambda database: progress.read_leaving_views(database, rows.to_micros(before)))

    def forget_view(self, uuid: str) -> None:
        """Forget a dropped view whose storage is removed."""
        with self._writing() as database:
            progress.forget_view(database, uuid)

    def save_row_message(self, materialization: int, file: bytes) -> None:
        with self._writing() as database:
            progress.write_row_message(database, materialization, file)

    def save_hook_position(self, hook: str, sequence: int) -> None:
        with self._writing() as database:
            progress.write_hook_position(database, hook, sequence)

    def save_mark(self, task: int, mark: Mark) -> None:
        self._grouped(lambda database: progress.write_mark(database, task, mark))

    def quarantine(self, records: Iterable[Quarantined]) -> None:
        """Store rejected records. A record that is there already for the task stays as it is."""
        with self._writing() as database:
            progress.write_quarantine(database, None, records)

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        """Take records out of the quarantine, and say of others why they stay."""
        with self._writing() as database:
            progress.delete_quarantine(database, leaving)
            progress.update_quarantine(database, staying)

    def seal(self, secret: Secret) -> EncryptedSecret:
        """Encrypt the secret for a change. The first call creates the key file."""
        return self.keys.vault(create=True).seal(secret)

    def change_key(self) -> Catalog:
        """Encrypt every secret again: with a new key, or with the first of the keys in the environment.

        The old key is removed last, so that a crash at any moment leaves every secret readable.
        """
        if self.keys.in_file:
            self.keys.add_new_key()
        catalog, vault = self.load(), self.keys.vault(create=False)
        sealed = {i: s for i, s in catalog.secrets.items() if isinstance(s, EncryptedSecret)}
        changes = [SecretChanged(i, vault.reencrypt(catalog.display_name(i), s)) for i, s in sealed.items()]
        after = self.commit(changes, cause="change of the secret key", planned=catalog.version)
        if self.keys.in_file:
            self.keys.forget_old_keys()
        return after

    def close(self) -> None:
        """Give the lease back. A lease that cannot be given back (a full disk) ends with this process."""
        with self._lock, contextlib.closing(self._database), contextlib.suppress(CatalogError):
            if not self._closed:
                with transaction(self._database, self.path, write=True):
                    leases.give_back(self._database, self._lease)
            self._closed = True

    def _begin(self) -> leases.Lease:
        """Take the lease, then bring the file up to date, in one transaction."""
        now = self._clock()
        with transaction(self._database, self.path, write=True):
            lease = leases.take(self._database, self.path, leases.this_process(), now)
            migrate(self._database, self._scripts)
            if rows.read_version(self._database) is None:
                rows.write_difference(self._database, None, empty_catalog(now))
            progress.drop_unfinished_folders(self._database, rows.to_micros(now))
        return lease

    def _now(self) -> int:
        return rows.to_micros(self._clock())

    def _grouped(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Write in one transaction with all that other threads want to write at the same moment. Whoever gets the lock first
        does the work of all that wait: 40 tasks that end a batch together would otherwise wait for the disk 40 times."""
        job = _Job(work)
        self._jobs.append(job)
        with self._lock:
            if not job.done:
                self._run_jobs()
        if job.error is not None:
            raise job.error

    def _run_jobs(self) -> None:
        jobs = [self._jobs.popleft() for _ in range(len(self._jobs))]
        try:
            with self._writing() as database:
                for job in jobs:
                    job.run(database)
        except BaseException as error:
            for job in jobs:
                job.error = error
            raise
        finally:
            for job in jobs:
                job.done = True

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, transaction(self._database, self.path, write=True):
            leases.heartbeat(self._database, self.path, self._lease, self._clock())
            yield self._database


class _Job:
    """A write of one thread. Its own failure does not keep the others from being stored."""

    def __init__(self, work: Callable[[sqlite3.Connection], None]) -> None:
        self._work = work
        self.done = False
        self.error: BaseException | None = None

    def run(self, database: sqlite3.Connection) -> None:
        database.execute("SAVEPOINT job")
        try:
            self._work(database)
        except CatalogError as error:
            database.execute("ROLLBACK TO job")
            self.error = error
        database.execute("RELEASE job")


def _dangling(catalog: Catalog) -> str | None:
    """Describes an object that refers to one that does not exist; None if there is no such object."""
    for entry in catalog.objects.values():
        pointed = [d.on for d in entry.dependencies] + ([entry.parent] if entry.parent != ROOT else [])
        if any(i not in catalog.objects for i in pointed):
            return f"object {entry.id} refers to an object that is not there"
    if any(i not in catalog.objects for i in (*catalog.secrets, *catalog.desired)):
        return "a secret or a task without its object"
    return None
