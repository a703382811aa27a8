"""Removes the storage of materialized views that were dropped, and the old rows of those whose query was replaced."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.positions import LogPosition
from headgate.catalog.tasks import Ledger
from headgate.runtime.views.store import RETENTION_MINUTES
from headgate.runtime.views.view_task import ViewFiles
from headgate.sql.statement import Kind

GRACE = timedelta(seconds=30)  # in which the last batch of a dropped view may still write
# How long a query may read rows that were replaced while it ran.
RETENTION = timedelta(minutes=RETENTION_MINUTES)


class ViewCatalog(Protocol):
    """The part of the catalog's store that the cleaner needs."""

    def load(self) -> Catalog: ...

    def ledger(self, task: int) -> Ledger | None: ...

    def task_uuid(self, task: int) -> str: ...

    def leaving_views(self, before: datetime) -> tuple[str, ...]: ...

    def forget_view(self, uuid: str) -> None: ...


class ViewCleaner:
    """Removes the storage that nobody needs any more, at each call of ``clean``. What cannot be removed is tried again at the
    next call."""

    def __init__(
        self, store: ViewCatalog, files: ViewFiles, grace: timedelta = GRACE, retention: timedelta = RETENTION
    ) -> None:
        self._store = store
        self._files = files
        self._grace = grace
        self._retention = retention
        self._unused_since: dict[tuple[str, int], datetime] = {}
        self._removed: set[tuple[str, int]] = set()

    def clean(self) -> None:
        now = datetime.now(UTC)
        for uuid in self._store.leaving_views(now - self._grace):
            self._files.remove(uuid)
            self._store.forget_view(uuid)
        for uuid, generation in old_generations(self._store):
            old = (uuid, generation)
            if old not in self._removed and now - self._unused_since.setdefault(old, now) >= self._retention:
                self._files.remove(uuid, generation)
                self._removed.add(old)


def old_generations(store: ViewCatalog) -> Iterator[tuple[str, int]]:
    """The generations of views that were replaced and that no task goes on from, each with the uuid of its view."""
    catalog = store.load()
    for id_ in catalog.desired:
        shown = store.ledger(id_) if catalog.get(id_).kind is Kind.MATERIALIZED_VIEW else None
        if shown is None or shown.generation == 1:
            continue
        held = set(_held_generations(store, catalog, id_))
        yield from ((store.task_uuid(id_), each) for each in range(1, shown.generation) if each not in held)


def _held_generations(store: ViewCatalog, catalog: Catalog, view: int) -> Iterator[int]:
    """The generations of a view at which tasks stand that read it."""
    for id_ in catalog.desired:
        ledger = store.ledger(id_) if catalog.get(view) in upstream(catalog, id_) else None
        position = None if ledger is None else ledger.positions.get(view)
        if isinstance(position, LogPosition) and position.number > 0:
            yield position.generation
