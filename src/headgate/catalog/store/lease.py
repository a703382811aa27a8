"""The lease: which process may write to the catalog.

One process holds it, identified by host, pid and start time, as long as it lives or sends heartbeats. It is a row that is
read and written inside write transactions, so that no two processes hold it.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import psutil

from headgate.catalog.errors import LeaseHeld, LeaseLost
from headgate.catalog.store.rows import from_micros, to_micros

TIME_TO_LIVE = timedelta(
    seconds=30
)  # of a holder on another host, which cannot be looked at; it beats every 10 s
BEAT_EVERY = timedelta(seconds=10)


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
    """Whether the lease can be taken: nobody holds it, or its holder is dead (on this host) or silent (on another)."""
    if lease is None:
        return True
    if lease.process.host == me.host:
        return not alive(lease.process)
    return now - lease.heartbeat > TIME_TO_LIVE


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
        "UPDATE lease SET heartbeat = ? WHERE epoch = ? AND holder = ?",
        (to_micros(now), mine.epoch, mine.holder),
    )
    if done.rowcount != 1:
        raise LeaseLost(str(path), mine.epoch, _who(read(database)))


def give_back(database: sqlite3.Connection, mine: Lease) -> None:
    """Release the lease if it is still ours. The epoch is kept, so that it only grows."""
    database.execute(
        "UPDATE lease SET holder = NULL WHERE epoch = ? AND holder = ?", (mine.epoch, mine.holder)
    )


def _who(held: Lease | None) -> str:
    if held is None:
        return "another process"
    return f'process {held.process.pid} on host "{held.process.host}"'
