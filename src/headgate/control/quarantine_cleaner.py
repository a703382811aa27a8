"""Removes the folders of bad records that nobody needs any more: replayed, dropped with their task, or left by a crash."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from headgate.catalog.tasks import QuarantineFolder
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.session import SparkSession

log = logging.getLogger(__name__)

EVERY = 60.0  # seconds
GRACE = timedelta(minutes=10)  # in which a query may still read a folder, and a cancelled batch may still write one


class Folders(Protocol):
    """The part of the catalog's store that the cleaner needs."""

    def leaving_folders(self, before: datetime) -> tuple[QuarantineFolder, ...]: ...

    def forget_folder(self, folder: QuarantineFolder) -> None: ...


class QuarantineCleaner:
    """Runs in a thread of its own from ``start`` to ``stop``. Uses Spark only if there is something to remove."""

    def __init__(
        self,
        store: Folders,
        files: QuarantineFiles,
        session: Callable[[], SparkSession],
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """``also`` is called after each round: it removes what else is to be removed."""
        self._store = store
        self._files = files
        self._session = session
        self._also = also
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine cleaner", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def clean(self, before: datetime) -> None:
        """Remove the folders that have been leaving since before this time. What fails is tried again next time."""
        for folder in self._store.leaving_folders(before):
            if self._ended.is_set():
                return
            self._files.remove(self._session(), folder)
            self._store.forget_folder(folder)

    def _run(self) -> None:
        """Before the first batch and the first query of this engine nobody uses such a folder, so there is no grace."""
        before = datetime.now(UTC)
        while not self._ended.is_set():
            try:
                self.clean(before)
                self._also()
            except Exception as error:  # noqa: BLE001 - a folder that stays is no harm
                log.warning("a folder of the quarantine could not be removed: %s", str(error)[:200])
            self._ended.wait(EVERY)
            before = datetime.now(UTC) - GRACE
