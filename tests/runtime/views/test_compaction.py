"""Compaction of a view's storage in portions: readers never see a part of it, a crash costs nothing, and the disk is bounded."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession, functions as F

from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import StoredColumn
from headgate.runtime.views import compaction
from headgate.runtime.views.commits import folder_size
from headgate.runtime.views.compaction import Compaction, portions
from headgate.runtime.views.store import Pinned, ViewStore
from tests.runtime.views.compacting import begun, compact

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

COLUMNS = (StoredColumn("id", "BIGINT"), StoredColumn("word", "STRING"))
ROWS = 2_000


class Table:
    """A view of `ROWS` keys. Every batch gives each key another word, which no codec makes small."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.store = ViewStore(str(folder), COLUMNS, 7, key=("id",))
        self.store.create(session)
        self.number = 0

    def words(self, number: int) -> str:
        return f"SELECT id, sha2(concat(id, ':', {number}), 512) AS word FROM range({ROWS})"

    def put(self) -> None:
        self.number += 1
        gone = f" UNION ALL SELECT *, -1 FROM ({self.words(self.number - 1)})" if self.number > 1 else ""
        rows = self.session.sql(f"SELECT *, 1 AS `hg:weight` FROM ({self.words(self.number)}){gone}")
        ledger = Ledger(7, 1, self.number, 1, {}, "d")
        self.store.append(self.store.written(rows.coalesce(1), self.number), ledger, "fence")

    def pin(self) -> Pinned:
        pinned = self.store.pin(self.session)
        assert pinned is not None
        return pinned

    def is_right(self, pinned: Pinned, number: int) -> bool:
        """Whether the view has the rows of a batch, each once."""
        rows = self.store.shown(self.session, pinned, number)
        hashed = F.sum(F.crc32(F.concat_ws(":", "id", "word").cast("binary")))
        found = rows.agg(F.count("*"), hashed).collect()
        words = (hashlib.sha512(f"{id_}:{number}".encode()).hexdigest() for id_ in range(ROWS))
        return [tuple(row) for row in found] == [
            (ROWS, sum(zlib.crc32(f"{id_}:{word}".encode()) for id_, word in enumerate(words)))
        ]


@pytest.fixture
def table(session: SparkSession, tmp_path: Path) -> Table:
    return Table(session, tmp_path)


def test_a_view_is_right_between_any_two_portions_and_readers_go_on_with_what_they_have(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds of one, four and two portions, with batches that come in between."""
    session, store = table.session, table.store
    table.put()
    compact(store, session)
    table.put()
    paused = table.pin()
    for parts in (4, 2):
        monkeypatch.setattr(compaction, "portions", lambda _, parts=parts: parts)
        work, steps = begun(store), 0
        while work.due == 0.0:
            work.step(session)
            steps += 1
            if steps == 2:
                table.put()
            assert table.is_right(table.pin(), table.number), f"step {steps}"
        snapshot = table.pin().snapshot
        assert snapshot is not None
        assert (snapshot.parts, snapshot.number) == (parts, table.number - 1)
    store.vacuum(session)
    assert table.is_right(paused, 2)
    assert table.is_right(table.pin(), table.number)


def test_a_reader_that_rests_during_compaction_and_vacuum_reads_on(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "portions", lambda _: 4)
    session, store = table.session, table.store
    for _ in range(2):
        table.put()
        compact(store, session)
    rows: Iterator[object] = (
        store.shown(session, table.pin()).repartition(4).sortWithinPartitions("id").toLocalIterator()
    )
    first = list(islice(rows, 3))
    for _ in range(2):
        table.put()
        compact(store, session)
    store.vacuum(session)
    assert len([*first, *rows]) == ROWS


def test_a_round_that_is_lost_half_way_is_begun_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "portions", lambda _: 4)
    session, store = table.session, table.store
    table.put()
    compact(store, session)
    for steps in (1, 3):
        table.put()
        lost = begun(store)
        for _ in range(steps):
            lost.step(session)
        assert table.is_right(table.pin(), table.number)
        snapshot = table.pin().snapshot
        compact(store, session)
        assert table.pin().snapshot != snapshot
        assert table.is_right(table.pin(), table.number)


def test_a_round_into_which_somebody_else_has_written_does_not_count(
    table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compaction, "portions", lambda _: 4)
    session, store = table.session, table.store
    table.put()
    compact(store, session)
    table.put()
    work = begun(store)
    for _ in range(3):
        work.step(session)
    begun(store).step(session)  # an engine that has lost its lease begins a round of its own
    before = table.pin().snapshot
    while work.due == 0.0:
        work.step(session)
    assert "was not compacted" in caplog.text
    assert table.pin().snapshot == before
    assert table.is_right(table.pin(), table.number)
    assert work.due is not None
    assert work.due > time.time()  # it is tried again later
    compact(store, session)
    assert table.is_right(table.pin(), table.number)


@pytest.fixture
def kept_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that nobody needs are kept for a second, where it is a quarter of an hour otherwise."""
    kept = "interval 1 seconds"
    properties = {"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept}
    monkeypatch.setattr("headgate.runtime.views.store._PROPERTIES", properties)
    for module in ("compaction", "store"):
        monkeypatch.setattr(f"headgate.runtime.views.{module}.RETENTION_SECONDS", 1.0)


@pytest.mark.usefixtures("kept_for_a_second")
def test_a_view_that_rests_after_a_compaction_can_be_read_when_the_time_of_retention_is_over(
    session: SparkSession, tmp_path: Path
) -> None:
    """Delta refuses a version of a table that is older, unless it is the last one."""
    table = Table(session, tmp_path)
    for _ in range(2):
        table.put()
        compact(table.store, session, readers=(1,))
        table.store.vacuum(session)
    table.store.trim(session, 1)
    time.sleep(2)
    assert table.is_right(table.pin(), table.number)


@pytest.mark.usefixtures("kept_for_a_second")
def test_the_disk_has_three_times_the_view_and_the_spare_bytes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch changes all rows, and the log is folded after every second one."""
    spare = 300_000
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 2)
    monkeypatch.setattr(compaction, "portions", lambda _: 2)
    session, store = table.session, Table(table.session, table.folder / "view")
    work = Compaction(store.store, "v", tuple, spare)
    for number in range(1, 7):
        store.put()
        work.committed(number)
        while work.due is not None and number % 2 == 0:
            time.sleep(max(0.0, work.due - time.time()))
            work.step(session)
        view = store.store.snapshot_size(session, store.pin().snapshot)
        logged = 2 * 2 * view  # two batches, each with all rows that went and all that came
        assert not view or folder_size(store.folder) <= 3 * view + spare + logged, f"batch {number}"
    assert store.is_right(store.pin(), store.number)
    assert len(list((store.folder / "log" / "_delta_log").glob("*.json"))) <= 25, "a checkpoint has the older ones"
    assert folder_size(store.folder) <= 1.3 * view + logged, "nothing old is left when nobody needs it"


@pytest.mark.parametrize(("size", "wanted"), [(0, 1), (64 << 20, 1), (65 << 20, 2), (300 << 20, 8), (1 << 50, 256)])
def test_a_view_has_as_many_portions_as_its_size_asks_for(size: int, wanted: int) -> None:
    assert portions(size) == wanted
