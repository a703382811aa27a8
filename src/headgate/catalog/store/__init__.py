"""The stored catalog. The only part of the catalog that touches files, the clock and processes.

In: lists of changes, each committed whole or not at all, with its history and events. Out: snapshots. `Store` is the port.
`sqlite` implements it with one file, one writer by lease and any number of readers. The progress of tasks and the quarantine
go through the same writer. May import all of `headgate.catalog`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, Commit
from headgate.catalog.history import Entry, Event
from headgate.catalog.positions import RecordPosition
from headgate.catalog.tasks import Ledger, Mark, Quarantined, QuarantineFolder, TaskStatus


class Reader(Protocol):
    """Reads a catalog. There can be any number of readers, also while somebody writes. Each answer is of one moment."""

    def load(self) -> Catalog:
        """The snapshot of the last commit. Returns the same object until the next commit."""

    def history(self, object_id: int | None = None) -> tuple[Entry, ...]:
        """The history of one object, which may have been dropped, or of all. The oldest entry comes first."""

    def events(self, after: int = 0) -> tuple[Event, ...]:
        """The events with a greater sequence number, oldest first."""

    def statuses(self) -> tuple[TaskStatus, ...]: ...

    def task_uuid(self, task: int) -> str:
        """What identifies a task outside of the catalog, given when it was created. Other catalogs have other ones."""

    def ledger(self, task: int) -> Ledger | None: ...

    def mark(self, task: int) -> Mark | None: ...

    def quarantined(self, task: int | None = None, *, raw: bool = False) -> tuple[Quarantined, ...]:
        """The rejected records that are in the catalog itself. Their bytes are read only if ``raw`` says so."""

    def quarantine_folders(self, task: int | None = None) -> tuple[QuarantineFolder, ...]:
        """The folders of the warehouse that hold the other rejected records."""

    def count_quarantined(self, task: int) -> int:
        """How many rejected records there are in both places. Reads none of them."""

    def count_in_catalog(self, task: int) -> int:
        """How many of them are in the catalog itself."""

    def close(self) -> None: ...


class Store(Reader, Protocol):
    """The one writer. Every write raises `LeaseLost` and stores nothing if another process has taken over."""

    def commit(
        self,
        changes: Sequence[Change],
        *,
        cause: str,
        statement: str | None = None,
        position: RecordPosition | None = None,
        planned: int | None = None,
    ) -> Catalog:
        """All the changes or none, durable on return. `planned` is the version that the changes were made for;
        `CatalogChanged` if it is no longer the present one. The text of a statement that carries a secret is
        replaced by one that does not."""

    def commit_all(self, units: Sequence[Commit], *, planned: int | None = None) -> Catalog:
        """Like `commit`, for several statements in one transaction, each with its own text."""

    def emit(self, object_id: int, event: str, detail: str | None = None) -> Event:
        """An event of the engine's own, about an object that exists."""

    def heartbeat(self) -> None:
        """Say that this writer is alive; `lease.Heartbeat` does it all the time."""

    def report(self, *statuses: TaskStatus) -> None: ...

    def next_epoch(self, task: int) -> int:
        """The number of the lease times 2^20, plus how often this engine has started the task."""

    def raise_epoch(self, above: int) -> None:
        """Make all further epochs larger than one that a target holds: the catalog was restored from an old copy."""

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        """Compare-and-set of a task's progress, with the rejected records of the batch, which replace those of earlier
        attempts. ``folders`` were opened before and are full. None for ``rejected``: `reject` has stored all of them.
        Raises LedgerMoved."""

    def reject(
        self, task: int, number: int, records: Iterable[Quarantined], folders: Sequence[QuarantineFolder] = ()
    ) -> None:
        """Store many rejected records of a batch before its ledger moves."""

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        """Announce folders before anything is written to them. Their records are shown when a commit names them."""

    def replace_folders(self, old: Sequence[QuarantineFolder], new: QuarantineFolder | None) -> None:
        """Show the records of another folder, or of none, in place of those of the old ones."""

    def leaving_folders(self, before: datetime) -> tuple[QuarantineFolder, ...]:
        """The folders to remove, as far as no commit has named them since this time."""

    def forget_folder(self, folder: QuarantineFolder) -> None:
        """The folder is removed."""

    def leaving_views(self, before: datetime) -> tuple[str, ...]:
        """The uuids of materialized views that were dropped before this time, and whose storage is to be removed."""

    def forget_view(self, uuid: str) -> None:
        """The storage of a dropped view is removed."""

    def save_mark(self, task: int, mark: Mark) -> None: ...

    def quarantine(self, records: Iterable[Quarantined]) -> None:
        """A record that is there already for the task stays as it is."""

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        """Take records out of the quarantine, and say of others why they stay."""
