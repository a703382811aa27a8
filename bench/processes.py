"""What a process and all below it cost: CPU time and memory of a family."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil


def cpu_seconds(pid: int | None = None, *, ended: bool = False) -> float:
    """So far, of the family of a process, or of this one. ``ended`` adds those that ended and were waited for."""
    return sum(_of_family(pid, lambda one: sum(one.cpu_times()[: 4 if ended else 2])))


def memory(pid: int) -> int:
    """Bytes that the family holds now. Not of those that were started this moment: a process that the JVM starts has the
    JVM's own memory until it becomes another program, which would count twice."""
    return int(sum(_of_family(pid, lambda one: one.memory_info().rss if _is_grown(one) else 0)))


def _is_grown(one: psutil.Process) -> bool:
    return time.time() - one.create_time() > 1


def _of_family(pid: int | None, measure: Callable[[psutil.Process], float]) -> Iterator[float]:
    """Hadoop starts some that live for milliseconds only."""
    found = psutil.Process(pid)
    for one in (found, *found.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            yield measure(one)
