"""Child processes: the environment that lets one import this package, killing one with all its descendants, and the end
of its log."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

LINE_WIDTH = 240  # characters of a line of a log that an error shows


def program_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process, with this package on PYTHONPATH, so that a child imports the same code. Works also
    where the package is not installed."""
    sources = str(Path(__file__).parent.parent)
    paths = [sources, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths)), **(added or {})}


def process_tree(pid: int) -> list[psutil.Process]:
    """A process and its descendants. Call it while the process runs: later its children have another parent."""
    try:
        found = psutil.Process(pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: list[psutil.Process], timeout: float = 10.0) -> None:
    """Kill processes and wait up to ``timeout`` seconds until they have ended.

    A zombie has ended: in a container, the process that should reap orphans may never do so.
    """
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    deadline = time.monotonic() + timeout
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs. A zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def last_lines(path: Path, most: int = 20) -> tuple[str, ...]:
    """The last lines of a log that are not blank, each cut at LINE_WIDTH. Empty if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 32768))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line[:LINE_WIDTH] for line in text.splitlines() if line.strip())[-most:]
