"""The storage of a view that is not what a task expects: refused, and nothing is read or written."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.positions import LogPosition
from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import MaterializedDefinition
from headgate.runtime.errors import ViewFilledAnew, ViewStorageGone
from headgate.runtime.ports import Limit
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.store import Head, ViewStore
from headgate.runtime.views.target import ViewTarget

pytestmark = pytest.mark.unit

NO_SESSION = cast("SparkSession", None)
VIEW = MaterializedDefinition(7, "v", (), None, appends=True, stored_grows=True)


class Gone(ViewStore):
    """A folder without a log."""

    def head(self, session: SparkSession) -> Head | None:
        return None


def reading(reached: Ledger | None) -> LogInput:
    return LogInput(VIEW, Gone("/nowhere", (), 7), lambda: reached, "signed", 'sink "s"')


def ledger(number: int) -> Ledger:
    return Ledger(7, 1, number, 1, {})


def test_a_reader_goes_as_far_as_the_catalog_knows_the_view_to_be() -> None:
    start = LogPosition(7, 1, 0)
    assert reading(None).choose_end(NO_SESSION, start, Limit(), None, None) == start
    assert reading(ledger(3)).choose_end(NO_SESSION, start, Limit(), None, None) == LogPosition(7, 1, 3)


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
