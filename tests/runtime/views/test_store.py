"""The storage of a view when its columns change: stored rows are read with the columns of today, and readers are not disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import StoredColumn
from headgate.runtime.errors import Fenced
from headgate.runtime.views.errors import ViewOutgrown
from headgate.runtime.views.store import ViewStore, physical_names
from headgate.runtime.views.target import ViewTarget

TASK = 7
OLD = (StoredColumn("id", "INT"), StoredColumn("odd (name)", "STRING"))
NEW = (
    StoredColumn("id", "BIGINT"),
    StoredColumn("odd (name)", "STRING"),
    StoredColumn("colour", "STRING", default='"blue"'),
    StoredColumn("NOTE", "STRING"),
)


def put(store: ViewStore, session: SparkSession, number: int, sql: str) -> None:
    store.append(store.written(session.sql(sql), number), Ledger(TASK, 1, number, 1, {}, "first"), "fence")


def shown(store: ViewStore, session: SparkSession) -> list[tuple[object, ...]]:
    pinned = store.pin(session)
    assert pinned is not None
    return sorted(map(tuple, store.shown(session, pinned).collect()))


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_stored_rows_get_the_columns_that_the_view_has_now(session: SparkSession, tmp_path: Path) -> None:
    old, new = (ViewStore(str(tmp_path), columns, TASK) for columns in (OLD, NEW))
    old.create(session)
    put(old, session, 1, "SELECT 1 AS id, 'a' AS `odd (name)`, 1 AS hg_weight")
    put(old, session, 2, "SELECT 2 AS id, 'b' AS `odd (name)`, 2 AS hg_weight")
    pinned = old.pin(session)
    assert pinned is not None
    old.compact(session, pinned)
    put(old, session, 3, "SELECT 1 AS id, 'a' AS `odd (name)`, -1 AS hg_weight")
    seen = old.pin(session)
    assert seen is not None
    assert shown(new, session) == [(2, "b", "blue", None), (2, "b", "blue", None)]

    ViewTarget(new, "v", "fence", lambda: session).begin(2)
    wide = "SELECT 5000000000 AS id, 'c' AS `odd (name)`, 'red' AS colour, 'soft' AS NOTE, 1 AS hg_weight"
    put(new, session, 4, wide)
    after = [(2, "b", "blue", None), (2, "b", "blue", None), (5000000000, "c", "red", "soft")]
    assert shown(new, session) == after
    assert [tuple(row) for row in old.shown(session, seen).collect()] == [(2, "b"), (2, "b")]
    pinned = new.pin(session)
    assert pinned is not None
    new.compact(session, pinned)
    assert shown(new, session) == after

    with pytest.raises(Fenced):
        ViewTarget(new, "v", "fence", lambda: session).begin(0)
    with pytest.raises(ViewOutgrown):
        ViewTarget(new, "v", "fence", lambda: session, definition="second").begin(3)


@pytest.mark.unit
def test_columns_in_files_have_names_that_delta_takes() -> None:
    columns = [StoredColumn(name, "INT") for name in ("a", "A", "a b", "a,b", "größe", "x=y;{z}")]
    assert physical_names(columns) == ["a", "A%", "a%20b", "a%2Cb", "gr%C3%B6%C3%9Fe", "x%3Dy%3B%7Bz%7D"]
