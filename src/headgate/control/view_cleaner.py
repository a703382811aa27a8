"""Removes the storage of materialized views that were dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from headgate.runtime.views.view_task import ViewFiles

GRACE = timedelta(seconds=30)  # in which the last batch of a dropped view may still write


class LeavingViews(Protocol):
    """The part of the catalog's store that the cleaner needs."""

    def leaving_views(self, before: datetime) -> tuple[str, ...]: ...

    def forget_view(self, uuid: str) -> None: ...


def remove_dropped_views(store: LeavingViews, files: ViewFiles, grace: timedelta = GRACE) -> None:
    """Remove what dropped views have stored. What fails is tried again next time."""
    for uuid in store.leaving_views(datetime.now(UTC) - grace):
        files.remove(uuid)
        store.forget_view(uuid)
