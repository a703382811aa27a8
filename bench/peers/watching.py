"""Counting what a side of a comparison has written while it runs, and what that costs.

A rate counts from the first look at which a tenth of the output was there to the look at which all of it was, and only the rows
between the two: starting, compiling and the first, slow records do not count on either side, nor does a large first batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

from bench.engines import statuses
from bench.peers.children import PeerFailed
from bench.pipeline import Course, Point
from bench.processes import cpu_seconds
from headgate.serve.client import EngineProcess

FIRST = 0.1  # the part of the output that does not count
STALLED = 300.0  # seconds without a row after which a side has failed
EVERY = 0.1  # seconds between two looks


def watch(name: str, total: int, rows: Callable[[], int], pids: Sequence[int], running: Callable[[], bool]) -> Course:
    """Look at the number of rows until it is ``total``. ``pids`` are the families that pay. ``running`` says whether more may come.

    Raises PeerFailed where too little comes, too much, or all at once.
    """
    points: list[Point] = []
    costs = dict.fromkeys(pids, 0.0)
    moved = time.monotonic()
    while not points or points[-1].rows < total:
        last = not running()  # asked first: what is written before the end must be seen
        found = rows()
        if found > (points[-1].rows if points else 0):
            moved = time.monotonic()
            costs = {pid: max(cost, _cost(pid)) for pid, cost in costs.items()}
            points.append(Point(found, moved, sum(costs.values())))
        elif time.monotonic() - moved > STALLED:
            raise PeerFailed(f"{name} has written {found:,} of {total:,} rows and no more for {STALLED:.0f} s")
        if last and found < total:
            raise PeerFailed(f"{name} has ended with {found:,} of {total:,} rows")
        time.sleep(EVERY)
    return counted(name, points, total)


def counted(name: str, points: Sequence[Point], total: int) -> Course:
    """The course from a tenth of the output on."""
    if points[-1].rows != total:
        raise PeerFailed(f"{name} has written {points[-1].rows:,} rows instead of {total:,}")
    late = [point for point in points if point.rows >= total * FIRST]
    if len(late) < 2:
        raise PeerFailed(f"{name} has written all of its {total:,} rows at once, so there is no rate: take more")
    return Course(late)


def tasks_run(engine: EngineProcess) -> bool:
    """Whether Headgate's tasks go on, which they do until they are dropped. Raises PeerFailed with the error of one."""
    for status in statuses(engine):
        if status.error is not None:
            raise PeerFailed(f"a task of Headgate has failed: {status.error}")
    return True


def _cost(pid: int) -> float:
    """CPU seconds of a family so far, with its members that have ended. 0 if its head has ended, as Flink does at the end."""
    with suppress(psutil.NoSuchProcess):
        return cpu_seconds(pid, ended=True)
    return 0.0
