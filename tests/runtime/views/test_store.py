"""The storage of a view when its columns change: stored rows are read with the columns of today, and readers are not disturbed."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession, functions as F

from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import ELEMENT, FieldDefault, StoredColumn
from headgate.runtime.errors import Fenced
from headgate.runtime.views.commits import local_folder, remove_folder
from headgate.runtime.views.errors import ViewOutgrown
from headgate.runtime.views.recent import few_rows
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import Pinned, ViewStore
from headgate.runtime.views.stored_columns import physical_names, stored_type
from headgate.runtime.views.target import ViewTarget
from tests.runtime.views.compacting import compact

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
    compact(old, session)
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
    compact(new, session)
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
def test_a_view_whose_rows_only_come_is_known_as_it_was_before_its_snapshot(
    session: SparkSession, tmp_path: Path
) -> None:
    store = ViewStore(str(tmp_path), OLD, TASK, grows=True)
    store.create(session)
    put(store, session, 1, "SELECT 1 AS id, 'a' AS `odd (name)`, 1 AS `hg:weight` FROM range(2)")
    put(store, session, 2, "SELECT * FROM VALUES (1, 'a', 1), (2, 'b', 1) AS t(id, `odd (name)`, `hg:weight`)")
    compact(store, session)
    pinned = pin(store, session)
    before = store.shown(session, pinned, 1)
    assert sorted(map(tuple, before.collect())) == [(1, "a"), (1, "a")]
    assert sorted(map(tuple, store.rows(session, pinned, 1).collect())) == [(1, "a", 2)]
    assert shown(store, session) == [(1, "a"), (1, "a"), (1, "a"), (2, "b")]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_reader_that_is_paused_for_long_finds_one_change_in_the_place_of_many(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.runtime.views.compaction.MERGE_AFTER", 3)
    store = ViewStore(str(tmp_path), OLD, TASK)
    store.create(session)
    paused, slow = 1, 2  # the last batches that two tasks have read
    for number in range(1, 9):
        moved = f"SELECT {number} AS id, 'a' AS `odd (name)`, 1 AS `hg:weight`"
        put(store, session, number, f"{moved} UNION ALL SELECT {number - 1}, 'a', -1" if number > 1 else moved)
        if number in (4, 6, 8):
            compact(store, session, (paused, slow))
    pinned = pin(store, session)
    kept = [number for number in range(9) if pinned.has_batch(number)]
    assert kept == [1, 2, 6, 7, 8]
    assert changed(store, session, pinned, 1, 2) == [(1, -1), (2, 1)]
    assert changed(store, session, pinned, 2, 8) == [(2, -1), (8, 1)]
    held = session.read.format("delta").load(f"{tmp_path}/log").where("hg_batch > 2 AND hg_batch <= 6")
    assert held.count() == 2  # of the changes of four batches
    for number in kept:
        assert [row["id"] for row in store.shown(session, pinned, number).collect()] == [number]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_zero_has_no_sign_in_stored_rows(session: SparkSession, tmp_path: Path) -> None:
    """Rows that are read to be taken away have gone through GROUP BY, which knows one zero. The text of it must be that of the row
    that came."""
    columns = (
        StoredColumn("d", "DOUBLE"),
        StoredColumn("many", "ARRAY<STRUCT<`a b`: FLOAT, `n`: INT>>"),
        StoredColumn("named", "MAP<STRING, DOUBLE>"),
    )
    store = ViewStore(str(tmp_path), columns, TASK, grows=True)
    store.create(session)
    zero = "-0.0D AS d, array(named_struct('a b', -0.0F, 'n', 1), NULL) AS many, map('k', -0.0D) AS named"
    put(store, session, 1, f"SELECT {zero}, 1 AS `hg:weight`")
    put(store, session, 2, "SELECT double('NaN') AS d, NULL AS many, map('k', 1.5D) AS named, 1 AS `hg:weight`")
    rows = (
        store.shown(session, pin(store, session)).selectExpr(*(f"CAST({c.name} AS STRING)" for c in columns)).collect()
    )
    assert sorted(map(tuple, rows)) == [("0.0", "[{0.0, 1}, null]", "{k -> 0.0}"), ("NaN", None, "{k -> 1.5}")]


@pytest.mark.spark
@pytest.mark.parametrize(("columns", "taken"), [(1, True), (20, False)])
def test_rows_with_many_long_texts_are_not_taken_into_memory(session: SparkSession, columns: int, taken: bool) -> None:
    """4,000 rows of twenty texts with 3,000 characters would be 240 MB for the driver."""
    wide = session.range(3).select(*(F.repeat(F.lit("x"), 3_000).alias(f"t{at}") for at in range(columns)))
    assert (few_rows(wide) is not None) is taken


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_field_that_came_later_inside_of_a_value_has_its_default(session: SparkSession, tmp_path: Path) -> None:
    inner = (FieldDefault(("b c",), '"red"'), FieldDefault(("many", ELEMENT, "n"), "7"))
    old = StoredColumn("x", "STRUCT<`a a`: INT, `many`: ARRAY<STRUCT<`m`: INT>>>")
    new = StoredColumn(
        "x",
        "STRUCT<`b c`: STRING, `a a`: BIGINT, `many`: ARRAY<STRUCT<`m`: INT, `n`: INT>>, `late`: DATE>",
        inner=inner,
    )
    before, after = (ViewStore(str(tmp_path), (column, StoredColumn("id", "INT")), TASK) for column in (old, new))
    before.create(session)
    value = "named_struct('a a', 1, 'many', array(named_struct('m', 2), NULL))"
    put(before, session, 1, f"SELECT {value} AS x, 1 AS id, 1 AS `hg:weight` UNION ALL SELECT NULL, 2, 1")
    compact(before, session)
    put(before, session, 2, f"SELECT {value} AS x, 3 AS id, 1 AS `hg:weight`")
    wanted = ("red", 1, [(2, 7), None], None)
    for begun in (False, True):
        if begun:
            ViewTarget(after, "v", "fence", lambda: session).begin(2)
        rows = after.shown(session, pin(after, session)).orderBy("id").collect()
        assert [row["x"] for row in rows] == [wanted, None, wanted]


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
