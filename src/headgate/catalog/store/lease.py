"""The lease: which process may write to the catalog.

One process holds it, identified by host, pid and start time, as long as it renews it. It is a row that is read and written
inside write transactions, so that no two processes hold it. `Heartbeat` renews it, and ends an engine that was stopped for
too long.
"""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import psutil

from headgate.catalog.errors import CatalogError, CatalogFull, LeaseExpired, LeaseHeld, LeaseLost
from headgate.catalog.store.rows import from_micros, to_micros

log = logging.getLogger(__name__)

TIME_TO_LIVE = timedelta(seconds=30)  # without a heartbeat; then another process may take the lease
BEAT_EVERY = 2.0  # seconds between heartbeats
OLDEST_BEAT = 25.0  # seconds; a holder with an older heartbeat ends itself before another may take the lease
WATCH_EVERY = (
    0.5  # seconds between checks; two must find the heartbeat too old, so that a woken process can renew it first
)

# Counts the time that the machine slept, because the heartbeat in the catalog grows older meanwhile.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Process:
    """A process. A pid is used again; together with the start time (seconds since 1970) it is unique."""

    host: str
    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Lease:
    """`epoch` grows with each holder, so that a former holder that was only believed dead is recognised."""

    epoch: int
    holder: str
    process: Process
    since: datetime
    heartbeat: datetime


def is_free(lease: Lease | None, me: Process, now: datetime, alive: Callable[[Process], bool]) -> bool:
    """Whether the lease can be taken: nobody holds it, its holder is silent, or its holder is known to be dead.

    A silent holder may live. It finds its heartbeat too old when it wakes, and ends itself (`Heartbeat`).
    """
    if lease is None or now - lease.heartbeat > TIME_TO_LIVE:
        return True
    return lease.process.host == me.host and not alive(lease.process)


def silent_holder(lease: Lease | None, me: Process) -> Process | None:
    """The process that holds a lease which can be taken, if it still runs on this host: it was stopped, and does not know that
    its lease has gone."""
    if lease is None or lease.process == me or lease.process.host != me.host or not is_alive(lease.process):
        return None
    return lease.process


_START_TOLERANCE = 1.0  # seconds; the kernel counts in ticks from a boot time that it corrects now and then


def this_process() -> Process:
    return Process(socket.gethostname(), os.getpid(), psutil.Process().create_time())


def is_alive(process: Process) -> bool:
    """Whether the process still runs on this host. Another process with the same pid and a zombie do not count."""
    try:
        found = psutil.Process(process.pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            return False
        started = float(found.create_time())
        return abs(started - process.started) <= _START_TOLERANCE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def read(database: sqlite3.Connection) -> Lease | None:
    """The present lease, or None if nobody holds it."""
    row = database.execute("SELECT epoch, holder, host, pid, started, since, heartbeat FROM lease").fetchone()
    if row is None or row[1] is None:
        return None
    epoch, holder, host, pid, started, since, heartbeat = row
    return Lease(epoch, holder, Process(host, pid, started), from_micros(since), from_micros(heartbeat))


def take(database: sqlite3.Connection, path: Path, me: Process, now: datetime) -> Lease:
    """Take the lease under a new epoch, or raise `LeaseHeld`. Call it inside a write transaction."""
    held = read(database)
    if held is not None and not is_free(held, me, now, is_alive):
        raise LeaseHeld(str(path), held.process.host, held.process.pid, held.since)
    row = database.execute("SELECT epoch FROM lease").fetchone()
    mine = Lease((0 if row is None else row[0]) + 1, uuid.uuid4().hex, me, now, now)
    moment = to_micros(now)
    database.execute(
        "INSERT OR REPLACE INTO lease VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
        (mine.epoch, mine.holder, me.host, me.pid, me.started, moment, moment),
    )
    return mine


def heartbeat(database: sqlite3.Connection, path: Path, mine: Lease, now: datetime) -> None:
    """Record that the holder is alive, or raise `LeaseLost`. Every write transaction begins with this."""
    done = database.execute(
        "UPDATE lease SET heartbeat = ? WHERE epoch = ? AND holder = ?", (to_micros(now), mine.epoch, mine.holder)
    )
    if done.rowcount != 1:
        raise LeaseLost(str(path), mine.epoch, _who(read(database)))


def raise_above(database: sqlite3.Connection, mine: Lease, number: int) -> Lease:
    """Our lease under a number above another one. Call it inside a write transaction, after `heartbeat`."""
    raised = replace(mine, epoch=max(mine.epoch, number) + 1)
    database.execute(
        "UPDATE lease SET epoch = ? WHERE epoch = ? AND holder = ?", (raised.epoch, mine.epoch, mine.holder)
    )
    return raised


def give_back(database: sqlite3.Connection, mine: Lease) -> None:
    """Release the lease if it is still ours. The epoch is kept, so that it only grows."""
    database.execute("UPDATE lease SET holder = NULL WHERE epoch = ? AND holder = ?", (mine.epoch, mine.holder))


def _who(held: Lease | None) -> str:
    if held is None:
        return "another process"
    return f'process {held.process.pid} on host "{held.process.host}"'


class Renewable(Protocol):
    """A catalog whose lease this process holds."""

    @property
    def path(self) -> Path: ...

    def heartbeat(self) -> None:
        """Renew the lease. Raises LeaseLost if another process has taken it."""


def seconds_awake_or_asleep() -> float:
    return time.clock_gettime(_CLOCK)


class Heartbeat:
    """Renews a lease from a thread of its own, and watches from a second one that it is renewed.

    ``on_lost`` is called once, by one of these threads or by ``check``, when the lease is lost or could not be renewed in
    time. It must end the process and all that writes for it: another engine may write already.
    """

    def __init__(
        self,
        catalog: Renewable,
        on_lost: Callable[[CatalogError], None],
        clock: Callable[[], float] = seconds_awake_or_asleep,
    ) -> None:
        self._catalog = catalog
        self._on_lost = on_lost
        self._clock = clock
        self._last = clock()
        self._full = False  # nobody can write the catalog, so nobody can take the lease either
        self._due = threading.Event()
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("heartbeat", self._heartbeat), ("lease watch", self._watch))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._due.set()
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join()

    @property
    def age(self) -> float:
        """Seconds since the lease was last renewed."""
        return self._clock() - self._last

    def check(self) -> None:
        """Raise if the lease may no longer be ours. Call it before every step that others can see: mark, write, commit.

        Only reads a clock while the heartbeat is recent.
        """
        if self.age > OLDEST_BEAT:
            self._renew()

    def _renew(self) -> None:
        began = self._clock()
        try:
            self._catalog.heartbeat()
        except LeaseLost as lost:
            self._end(lost)
            raise
        except CatalogFull:
            self._full = True
            raise
        self._last, self._full = began, False

    def _heartbeat(self) -> None:
        logged = ""
        while not self._ended.is_set():
            self._due.wait(BEAT_EVERY)
            self._due.clear()
            if self._ended.is_set():
                return
            try:
                self._renew()
            except Exception as error:  # noqa: BLE001 - the watch ends the process if it lasts
                if str(error) != logged:  # logged once while it lasts
                    log.warning("could not renew the lease: %s", error)
                logged = str(error)

    def _watch(self) -> None:
        late = 0
        while not self._ended.wait(WATCH_EVERY):
            late = late + 1 if self.age > OLDEST_BEAT and not self._full else 0
            if late == 1:
                self._due.set()
            elif late:
                self._end(LeaseExpired(str(self._catalog.path), int(self.age)))

    def _end(self, reason: CatalogError) -> None:
        with self._guard:
            if self._ended.is_set():
                return
            self._ended.set()
        self._on_lost(reason)
