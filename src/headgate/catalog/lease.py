"""Who may write: one process, known by host, pid and start time, that is alive or was heard of lately. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

TIME_TO_LIVE = timedelta(
    seconds=30
)  # of a holder on another host, which cannot be looked at; it beats every 10 s
BEAT_EVERY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Process:
    """A pid alone may be another process by now; with its start time (seconds of the epoch) it is one for ever."""

    host: str
    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Lease:
    """`epoch` grows with each holder, so a holder that was taken for dead cannot pass for the present one."""

    epoch: int
    holder: str
    process: Process
    since: datetime
    heartbeat: datetime


def is_free(lease: Lease | None, me: Process, now: datetime, alive: Callable[[Process], bool]) -> bool:
    """Whether the catalog can be taken: nobody holds it, or the holder is dead (here) or silent (elsewhere)."""
    if lease is None:
        return True
    if lease.process.host == me.host:
        return not alive(lease.process)
    return now - lease.heartbeat > TIME_TO_LIVE
