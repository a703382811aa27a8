"""What every benchmark is made of: rows, and ways to take time that a busy machine does not spoil."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Size: TypeAlias = Literal["small", "full"]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing measured. ``ours``, ``peer`` and ``promised`` are as shown; ``ratio`` is ours over peer's, both taken
    in this run. ``kept`` is None where nothing was promised."""

    what: str
    ours: str
    peer: str = "–"
    ratio: float | None = None
    promised: str = "–"
    kept: bool | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of one benchmark, and what a reader must know to judge them."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


Benchmark: TypeAlias = Callable[[Size], Report]


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """The least CPU time of this process over so many runs. The collector waits: its turns would fall on anybody."""
    best = float("inf")
    gc.disable()
    try:
        for _ in range(rounds):
            began = time.process_time()
            work()
            best = min(best, time.process_time() - began)
            gc.collect(0)
    finally:
        gc.enable()
    return best


def shown(seconds: float) -> str:
    """A time with three digits and a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError("µs always suits")


def compared(what: str, ours: float, peer: float | None = None, peer_name: str = "", limit: float | None = None) -> Row:
    """A row of two times in seconds. ``limit`` is what was promised of ours."""
    return Row(
        what,
        shown(ours),
        "–" if peer is None else f"{shown(peer)} {peer_name}".rstrip(),
        None if peer is None or peer == 0 else ours / peer,
        "–" if limit is None else f"under {shown(limit)}",
        None if limit is None else ours < limit,
    )


def wanted_parts(every: Sequence[str]) -> list[str]:
    """The parts of a benchmark that `HEADGATE_BENCH_PARTS` names, or all."""
    return os.environ.get("HEADGATE_BENCH_PARTS", ",".join(every)).split(",")


def wanted_records(small: bool) -> int:
    """How many records a topic gets: `HEADGATE_BENCH_RECORDS`, or by size."""
    return int(os.environ.get("HEADGATE_BENCH_RECORDS", "1200000" if small else "10000000"))


def load_note() -> str:
    load = os.getloadavg()
    return f"The machine's load at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}."
