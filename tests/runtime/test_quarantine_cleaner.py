"""Which folders of bad records are removed, and when."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.catalog.tasks import QuarantineFolder
from headgate.runtime import quarantine
from headgate.runtime.quarantine import GRACE, QuarantineCleaner, QuarantineFiles
from headgate.runtime.session import SparkSession

pytestmark = pytest.mark.unit

FOLDERS = [QuarantineFolder(name, 1, 2, 3, 4) for name in "abc"]


class Store:
    """Holds folders that are leaving."""

    def __init__(self) -> None:
        self.left = [*FOLDERS]
        self.asked: list[datetime] = []
        self.asked_twice = threading.Event()

    def leaving_folders(self, before: datetime) -> tuple[QuarantineFolder, ...]:
        self.asked.append(before)
        if len(self.asked) > 1:
            self.asked_twice.set()
        return tuple(self.left)

    def forget_folder(self, folder: QuarantineFolder) -> None:
        self.left.remove(folder)


def no_session() -> SparkSession:
    return cast("SparkSession", None)


def test_a_folder_that_cannot_be_removed_is_tried_again_and_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "CLEAN_EVERY", 0.01)
    store, removed = Store(), list[str]()

    def remove(_: SparkSession, folder: QuarantineFolder) -> None:
        removed.append(folder.name)
        if removed == ["a", "b"]:
            raise OSError("the file system is away")

    cleaner = QuarantineCleaner(store, cast("QuarantineFiles", SimpleNamespace(remove=remove)), no_session)
    began = datetime.now(UTC)
    cleaner.start()
    assert store.asked_twice.wait(30)
    cleaner.stop()
    assert removed == ["a", "b", "b", "c"]
    assert store.left == []
    # At first nobody can be using a folder; later a query or a batch may.
    assert store.asked[0] >= began
    assert store.asked[1] <= datetime.now(UTC) - GRACE


def test_spark_is_not_opened_for_nothing() -> None:
    store = Store()
    store.left = []

    def opened() -> SparkSession:
        raise AssertionError

    QuarantineCleaner(store, QuarantineFiles("warehouse"), opened).clean(datetime.now(UTC))
    assert len(store.asked) == 1
