"""One writer at a time: who holds the catalog is named, who is dead is followed, who was replaced is fenced off."""

from __future__ import annotations

import os
import signal
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.catalog.changes import ObjectRenamed
from headgate.catalog.errors import LeaseHeld, LeaseLost
from headgate.catalog.store.lease import TIME_TO_LIVE, Lease, Process, is_alive, is_free, this_process
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.tasks import Ledger
from tests.catalog.building import NOW
from tests.catalog.store.children import child, line

pytestmark = pytest.mark.unit

HERE = Process("here", 100, 1.0)


def held_by(process: Process) -> Lease:
    return Lease(1, "someone", process, NOW, NOW)


def test_a_lease_that_nobody_holds_is_free() -> None:
    assert is_free(None, HERE, NOW, lambda _: True)


@pytest.mark.parametrize("alive", [True, False])
def test_a_holder_on_this_host_counts_until_it_is_dead(alive: bool) -> None:
    assert is_free(held_by(Process("here", 7, 2.0)), HERE, NOW + TIME_TO_LIVE, lambda _: alive) is not alive


@pytest.mark.parametrize("host", ["here", "there"])
def test_a_holder_counts_as_long_as_it_is_heard_of_wherever_it_is(host: str) -> None:
    held = held_by(Process(host, 7, 2.0))
    assert not is_free(held, HERE, NOW + TIME_TO_LIVE, lambda _: True)
    assert is_free(held, HERE, NOW + TIME_TO_LIVE + timedelta(microseconds=1), lambda _: True)


def test_a_pid_that_was_given_to_another_process_is_not_the_holder() -> None:
    me = this_process()
    assert is_alive(me)
    assert not is_alive(Process(me.host, me.pid, me.started - 60))


def test_a_second_writer_is_told_who_holds_the_catalog(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db", clock=lambda: NOW), pytest.raises(LeaseHeld) as caught:
        SqliteStore(tmp_path / "c.db", clock=lambda: NOW)
    assert (caught.value.pid, caught.value.host, caught.value.since) == (
        os.getpid(),
        this_process().host,
        NOW,
    )
    assert "2024-05-01T12:30:15+00:00" in (caught.value.detail() or "")


def test_a_closed_writer_gives_the_lease_back(tmp_path: Path) -> None:
    for _ in range(3):
        SqliteStore(tmp_path / "c.db").close()


def test_a_holder_in_another_process_is_refused_alive_and_taken_over_dead(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with child("hold", path) as process:
        assert line(process) == "holding"
        with pytest.raises(LeaseHeld) as caught:
            SqliteStore(path)
        assert caught.value.pid == process.pid
        with SqliteReader(path) as reader:
            assert reader.load().version == 0
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but left a zombie, which holds nothing
        SqliteStore(path).close()


def lose_lease(path: Path) -> None:
    """As if the holder had not been heard of for long."""
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE lease SET heartbeat = 0")
    database.close()


def test_a_writer_that_was_replaced_can_write_nothing_any_more(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with SqliteStore(path) as old:
        lose_lease(path)
        with SqliteStore(path) as new:
            for write in (
                lambda: old.commit([ObjectRenamed(2, "main")], cause="statement"),
                lambda: old.advance(None, Ledger(2, 1, 1, 5, {})),
                old.heartbeat,
            ):
                with pytest.raises(LeaseLost) as caught:
                    write()
                assert f"process {os.getpid()} on host" in caught.value.message()
            new.commit([ObjectRenamed(2, "renamed")], cause="statement")
            new.heartbeat()
        with SqliteReader(path) as reader:
            assert reader.load().get(2).name == "renamed"
            assert len(reader.history()) == 1


def test_a_holder_that_was_stopped_for_long_is_named_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with child("hold", path) as process:
        assert line(process) == "holding"
        process.send_signal(signal.SIGSTOP)
        lose_lease(path)
        with SqliteStore(path) as store:
            assert store.silent_holder is not None
            assert store.silent_holder.pid == process.pid
            lose_lease(path)
            with SqliteStore(path) as again:  # this very process
                assert again.silent_holder is None


def test_a_beat_keeps_a_lease_alive(tmp_path: Path) -> None:
    path, now = tmp_path / "c.db", NOW
    with SqliteStore(path, clock=lambda: now) as store:
        now = NOW + 2 * TIME_TO_LIVE
        store.heartbeat()
        with pytest.raises(LeaseHeld):
            SqliteStore(path, clock=lambda: NOW + 3 * TIME_TO_LIVE)
