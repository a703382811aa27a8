"""The storage of a view that is not what a task expects: refused, and nothing is read or written."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.positions import LogPosition
from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import MaterializedDefinition
from headgate.runtime.ports import Limit
from headgate.runtime.views.errors import ChangesTrimmed, ViewFilledAnew, ViewStorageGone
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.store import Head, Pinned, Snapshot, ViewStore
from headgate.runtime.views.target import ViewTarget

pytestmark = pytest.mark.unit

NO_SESSION = cast("SparkSession", None)
VIEW = MaterializedDefinition(7, "v", (), None, appends=True, stored_grows=True)


class Gone(ViewStore):
    """A folder without a log."""

    def head(self, session: SparkSession) -> Head | None:
        return None


def reading(reached: Ledger | None) -> LogInput:
    return LogInput(VIEW, lambda _: Gone("/nowhere", (), 7), lambda: reached, "signed", 'sink "s"')


def ledger(number: int) -> Ledger:
    return Ledger(7, 1, number, 1, {})


def test_a_reader_goes_as_far_as_the_catalog_knows_the_view_to_be() -> None:
    start = LogPosition(7, 1, 0)
    assert reading(None).choose_end(NO_SESSION, start, Limit(), None, None) == start
    assert reading(ledger(3)).choose_end(NO_SESSION, start, Limit(), None, None) == LogPosition(7, 1, 3)


def test_a_reader_begins_with_all_rows_or_behind_a_batch() -> None:
    assert reading(None).begin() == LogPosition(7, 1, 0)
    later = LogInput(VIEW, lambda _: Gone("/nowhere", (), 7), lambda: None, "rows", 'sink "s"', LogPosition(7, 2, 5))
    assert (later.begin(), later.first) == (LogPosition(7, 2, 5), LogPosition(7, 1, 0))


def test_a_view_that_is_behind_its_reader_is_noticed() -> None:
    reading(ledger(3)).check(LogPosition(7, 1, 3))
    reading(None).check(LogPosition(7, 1, 0))
    for reached in (None, ledger(2)):
        with pytest.raises(ViewFilledAnew):
            reading(reached).check(LogPosition(7, 1, 3))


def test_storage_that_was_deleted_is_noticed_by_the_view_and_by_its_readers() -> None:
    target = ViewTarget(Gone("/nowhere", (), 7), "v", "v", lambda: NO_SESSION, lambda: ledger(3))
    with pytest.raises(ViewStorageGone):
        target.begin(1)
    with pytest.raises(ViewStorageGone):
        reading(ledger(3)).read(NO_SESSION, LogPosition(7, 1, 1), LogPosition(7, 1, 3))


class Trimmed(ViewStore):
    """A view after batch 90, of whose log the first 40 batches are gone and those up to 60 are one change."""

    def pin(self, session: SparkSession) -> Pinned | None:
        return Pinned(Head(5, 1, ledger(90)), Snapshot("snapshot", 3, 80, trimmed=40, merged=((40, 60),)))


def test_a_reader_that_is_too_far_behind_is_told_so() -> None:
    behind = LogInput(VIEW, lambda _: Trimmed("/nowhere", (), 7), lambda: ledger(90), "signed", 'sink "s"')
    for begin, until in ((39, 90), (41, 90), (40, 59), (0, 39)):
        with pytest.raises(ChangesTrimmed):
            behind.read(NO_SESSION, LogPosition(7, 1, begin), LogPosition(7, 1, until))
    with pytest.raises(ChangesTrimmed):
        behind.rows(NO_SESSION, LogPosition(7, 1, 50))


def test_the_scheduler_knows_how_far_a_reader_is_behind() -> None:
    assert reading(None).known_end is None
    assert reading(ledger(4)).known_end == LogPosition(7, 1, 4)
