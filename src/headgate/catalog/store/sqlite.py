"""The catalog in one SQLite file: one writer by lease, many readers, every commit whole.

The writer keeps the snapshot in memory and writes only what a commit changed. A reader reads the file again when its version
has changed. Instances may be used from several threads.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from headgate.catalog.catalog import Catalog, empty_catalog
from headgate.catalog.changes import Change, Commit, SecretChanged, apply_each
from headgate.catalog.errors import CatalogChanged, CatalogError, CatalogFull
from headgate.catalog.history import Event
from headgate.catalog.positions import RecordPosition
from headgate.catalog.secrets import EncryptedSecret, Secret
from headgate.catalog.store import lease as leases, progress, rows
from headgate.catalog.store.database import migrate, transaction
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.tasks import Ledger, Mark, Quarantined, QuarantineFolder, TaskStatus

EPOCHS_PER_LEASE = 2**20  # starts of one task that an engine can count
REJECTED_AT_ONCE = 500  # rejected records that are stored in one transaction

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


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
        self.silent_holder: leases.Process | None = None  # who had the lease before, if it was stopped and still runs
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
            held, me = leases.read(self._database), leases.this_process()
            lease = leases.take(self._database, self.path, me, now)
            self.silent_holder = leases.silent_holder(held, me)
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
