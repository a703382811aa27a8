"""Where a catalog lives between processes. The only part of the catalog that touches files, clock and processes.

In: lists of changes, each committed whole or not at all with its history and events. Out: snapshots. `Store` is
the port; `sqlite` implements it with one file, one writer by lease and any number of readers. What the engine
records beside the catalog (progress, quarantine, schemas seen) goes through the same writer. May import all of
`headgate.catalog`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, Unit
from headgate.catalog.history import Entry, Event
from headgate.catalog.tasks import Intent, Ledger, Quarantined, SchemaSeen, TaskStatus


class Reader(Protocol):
    """Any number of these at once, also while somebody writes; each answer is consistent in itself."""

    def load(self) -> Catalog:
        """The snapshot as last committed; the same object again while nothing was."""

    def history(self, object_id: int | None = None) -> tuple[Entry, ...]:
        """Oldest first; of one object, also a dropped one, or of all."""

    def events(self, after: int = 0) -> tuple[Event, ...]:
        """Those with a greater sequence number, oldest first."""

    def statuses(self) -> tuple[TaskStatus, ...]: ...

    def ledger(self, task: int) -> Ledger | None: ...

    def intent(self, task: int, generation: int, batch: int) -> Intent | None: ...

    def quarantined(self, task: int | None = None) -> tuple[Quarantined, ...]: ...

    def schemas_seen(self) -> tuple[SchemaSeen, ...]: ...

    def close(self) -> None: ...


class Store(Reader, Protocol):
    """The one writer. Every write raises `LeaseLost`, and stores nothing, once another process took over."""

    def commit(
        self,
        changes: Sequence[Change],
        *,
        cause: str,
        statement: str | None = None,
        position: str | None = None,
        planned: int | None = None,
    ) -> Catalog:
        """All the changes or none, durable on return. `planned` is the version that the changes were made for;
        `CatalogChanged` if it is no longer the present one. The text of a statement that carries a secret is
        replaced by one that does not."""

    def commit_all(self, units: Sequence[Unit], *, planned: int | None = None) -> Catalog:
        """As `commit`, for a script: all its statements in one transaction, each with its own text."""

    def emit(self, object_id: int, event: str, detail: str | None = None) -> Event:
        """An event of the engine's own, about an object that exists."""

    def beat(self) -> None:
        """Say that this writer is alive; to be called every `lease.BEAT_EVERY`."""

    def together(self) -> AbstractContextManager[None]:
        """What this thread writes within it is made durable at once, at its end."""

    def report(self, status: TaskStatus) -> None: ...

    def advance(self, ledger: Ledger) -> None:
        """Progress of a task whose output cannot hold it itself; forgets the intents up to that batch."""

    def intend(self, intent: Intent) -> Intent:
        """The intent of that batch: this one, or the one written before a crash, which then stands."""

    def quarantine(self, records: Iterable[Quarantined]) -> None:
        """A record that is there already for the task stays as it is."""

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        """Take records out of the quarantine, and say of others why they stay."""

    def saw(self, schemas: Iterable[SchemaSeen]) -> None: ...
