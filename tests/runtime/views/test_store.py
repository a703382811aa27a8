"""The storage of a view when its columns change: stored rows are read with the columns of today, and readers are not disturbed."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import StoredColumn
from headgate.runtime.errors import Fenced
from headgate.runtime.views.commits import local_folder
from headgate.runtime.views.errors import ViewOutgrown
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import Pinned, ViewStore, physical_names, remove_folder, stored_type
from headgate.runtime.views.target import ViewTarget

TASK = 7
OLD = (StoredColumn("id", "INT"), StoredColumn("odd (name)", "STRING"))
NEW = (
    StoredColumn("id", "BIGINT"),
    StoredColumn("odd (name)", "STRING"),
    StoredColumn("colour", "STRING", default='"blue"'),
    StoredColumn("NOTE", "STRING"),
    StoredColumn("at", "STRUCT<`a b`: TIME>"),
)


def put(store: ViewStore, session: SparkSession, number: int, sql: str) -> None:
    store.append(store.written(session.sql(sql), number), Ledger(TASK, 1, number, 1, {}, "first"), "fence")


def shown(store: ViewStore, session: SparkSession) -> list[tuple[object, ...]]:
    pinned = store.pin(session)
    assert pinned is not None
    return sorted(map(tuple, store.shown(session, pinned).collect()))


@pytest.mark.spark
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.timeout(600)
def test_stored_rows_get_the_columns_that_the_view_has_now(
    session: SparkSession, tmp_path: Path, elsewhere: bool
) -> None:
    """Also on a file system that Python cannot look at: Hadoop's viewfs shows a folder under an address of its own."""
    folder = str(tmp_path)
    if elsewhere:
        session.conf.set("fs.viewfs.mounttable.elsewhere.link./shown", f"file://{tmp_path}")
        folder = "viewfs://elsewhere/shown/of a task/1"
    old, new = (ViewStore(folder, columns, TASK) for columns in (OLD, NEW))
    old.create(session)
    put(old, session, 1, "SELECT 1 AS id, 'a' AS `odd (name)`, 1 AS `hg:weight`")
    put(old, session, 2, "SELECT 2 AS id, 'b' AS `odd (name)`, 2 AS `hg:weight`")
    pinned = old.pin(session)
    assert pinned is not None
    old.compact(session, pinned)
    put(old, session, 3, "SELECT 1 AS id, 'a' AS `odd (name)`, -1 AS `hg:weight`")
    seen = old.pin(session)
    assert seen is not None
    assert shown(new, session) == [(2, "b", "blue", None, None), (2, "b", "blue", None, None)]

    ViewTarget(new, "v", "fence", lambda: session).begin(2)
    wide = (
        "SELECT 5000000000 AS id, 'c' AS `odd (name)`, 'red' AS colour, 'soft' AS NOTE, "
        "named_struct('a b', TIME'10:11:12.123456') AS at, 1 AS `hg:weight`"
    )
    put(new, session, 4, wide)
    after = [(2, "b", "blue", None, None)] * 2 + [(5000000000, "c", "red", "soft", (time(10, 11, 12, 123456),))]
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

    assert local_folder(folder) is None or not elsewhere
    assert new.size(session) > 0
    remove_folder(session, folder)
    assert new.head(session) is None
    assert not (tmp_path / "of a task" / "1").exists()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_reader_that_is_paused_for_long_finds_one_change_in_the_place_of_many(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.runtime.views.store.MERGE_AFTER", 3)
    store = ViewStore(str(tmp_path), OLD, TASK)
    store.create(session)
    paused, slow = 1, 2  # the last batches that two tasks have read
    for number in range(1, 9):
        moved = f"SELECT {number} AS id, 'a' AS `odd (name)`, 1 AS `hg:weight`"
        put(store, session, number, f"{moved} UNION ALL SELECT {number - 1}, 'a', -1" if number > 1 else moved)
        if number in (4, 6, 8):
            store.compact(session, pin(store, session), (paused, slow))
    pinned = pin(store, session)
    kept = [number for number in range(9) if pinned.has_batch(number)]
    assert kept == [1, 2, 6, 7, 8]
    assert changed(store, session, pinned, 1, 2) == [(1, -1), (2, 1)]
    assert changed(store, session, pinned, 2, 8) == [(2, -1), (8, 1)]
    held = session.read.format("delta").load(f"{tmp_path}/log").where("hg_batch > 2 AND hg_batch <= 6")
    assert held.count() == 2  # of the changes of four batches
    for number in kept:
        assert [row["id"] for row in store.shown(session, pinned, number).collect()] == [number]


def pin(store: ViewStore, session: SparkSession) -> Pinned:
    pinned = store.pin(session)
    assert pinned is not None
    return pinned


def changed(store: ViewStore, session: SparkSession, pinned: Pinned, after: int, until: int) -> list[tuple[int, int]]:
    rows = store.consolidated(store.changes(session, pinned.head, after, until)).collect()
    return sorted((row["id"], row[WEIGHT]) for row in rows)


@pytest.mark.unit
def test_types_in_files_are_those_that_delta_takes() -> None:
    assert stored_type("TIMESTAMP") == "TIMESTAMP"
    assert stored_type("ARRAY<STRUCT<`TIME`: TIME, `a``T`: INT>>") == "ARRAY<STRUCT<`TIME`: STRING, `a%60T`: INT>>"
    assert (
        stored_type("MAP<STRING, STRUCT<`größe (cm)`: INT>>")
        == "MAP<STRING, STRUCT<`gr%C3%B6%C3%9Fe%20%28cm%29`: INT>>"
    )


@pytest.mark.unit
def test_columns_in_files_have_names_that_delta_takes() -> None:
    columns = [StoredColumn(name, "INT") for name in ("a", "A", "a b", "a,b", "größe", "x=y;{z}")]
    assert physical_names(columns) == ["a", "A%", "a%20b", "a%2Cb", "gr%C3%B6%C3%9Fe", "x%3Dy%3B%7Bz%7D"]
