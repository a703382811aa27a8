"""A holder of the lease notices by itself that its time is over."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headgate.catalog.errors import CatalogBusy, CatalogError, CatalogFull, LeaseExpired, LeaseLost
from headgate.catalog.store import lease
from headgate.catalog.store.lease import OLDEST_BEAT, Heartbeat
from headgate.catalog.store.sqlite import SqliteStore
from tests.catalog.store.test_lease import lose_lease

pytestmark = pytest.mark.unit

LONG = 60.0  # seconds; no test waits so long unless it fails


class Catalog:
    """A catalog whose lease is renewed, or not, as the test says."""

    path = Path("c.db")

    def __init__(self) -> None:
        self.failure: CatalogError | None = None
        self.beats = threading.Semaphore(0)

    def heartbeat(self) -> None:
        self.beats.release()
        if self.failure is not None:
            raise self.failure


class Holder:
    """A process that holds the lease of `catalog`; `now` is its clock, in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "BEAT_EVERY", 0.01)
        monkeypatch.setattr(lease, "WATCH_EVERY", 0.01)
        self.now = 0.0
        self.lost: list[CatalogError] = []
        self.ended = threading.Event()
        self.catalog = Catalog()
        self.heartbeat = Heartbeat(self.catalog, self.end, lambda: self.now)

    def end(self, reason: CatalogError) -> None:
        self.lost.append(reason)
        self.ended.set()


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> Holder:
    return Holder(monkeypatch)


def test_a_recent_heartbeat_is_not_asked_about(holder: Holder) -> None:
    holder.now = OLDEST_BEAT
    holder.heartbeat.check()
    assert not holder.catalog.beats.acquire(blocking=False)


def test_a_check_renews_an_old_heartbeat_if_the_lease_is_still_ours(holder: Holder) -> None:
    holder.now = 2 * OLDEST_BEAT
    holder.heartbeat.check()
    assert holder.heartbeat.age == 0
    assert holder.lost == []


def test_a_check_ends_a_process_whose_lease_was_taken(holder: Holder) -> None:
    holder.now = 2 * OLDEST_BEAT
    holder.catalog.failure = LeaseLost("c.db", 1, "process 2")
    with pytest.raises(LeaseLost):
        holder.heartbeat.check()
    assert holder.lost == [holder.catalog.failure]


def test_the_lease_is_renewed_again_and_again(holder: Holder) -> None:
    holder.heartbeat.start()
    for _ in range(5):
        assert holder.catalog.beats.acquire(timeout=LONG)
    holder.heartbeat.stop()
    assert holder.lost == []


def test_a_lost_lease_ends_the_process_once(holder: Holder) -> None:
    holder.catalog.failure = LeaseLost("c.db", 1, "process 2")
    holder.now = 2 * OLDEST_BEAT
    holder.heartbeat.start()
    assert holder.ended.wait(LONG)
    holder.heartbeat.stop()
    assert len(holder.lost) == 1


def test_a_lease_that_cannot_be_renewed_ends_the_process(holder: Holder) -> None:
    holder.catalog.failure = CatalogBusy("c.db")
    holder.heartbeat.start()
    assert holder.catalog.beats.acquire(timeout=LONG)
    assert not holder.ended.is_set()
    holder.now = OLDEST_BEAT + 1
    assert holder.ended.wait(LONG)
    holder.heartbeat.stop()
    (reason,) = holder.lost
    assert isinstance(reason, LeaseExpired)
    assert reason.message() == 'could not renew the lease of catalog "c.db" for 26 seconds'


def test_a_full_disk_ends_nobody_because_nobody_can_take_the_lease(holder: Holder) -> None:
    holder.catalog.failure = CatalogFull("c.db")
    holder.heartbeat.start()
    assert holder.catalog.beats.acquire(timeout=LONG)
    assert holder.catalog.beats.acquire(timeout=LONG)  # the failure of the first is known by now
    holder.now = 2 * OLDEST_BEAT
    for _ in range(10):
        assert holder.catalog.beats.acquire(timeout=LONG)
    with pytest.raises(CatalogFull):
        holder.heartbeat.check()
    holder.heartbeat.stop()
    assert holder.lost == []


def test_a_store_that_was_replaced_is_found_out_by_its_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEAT_EVERY", 0.01)
    path, lost = tmp_path / "c.db", threading.Event()
    with SqliteStore(path) as old:
        heartbeat = Heartbeat(old, lambda _: lost.set())
        lose_lease(path)
        with SqliteStore(path):
            heartbeat.start()
            assert lost.wait(LONG)
            heartbeat.stop()
