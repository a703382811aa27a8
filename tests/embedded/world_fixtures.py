"""A world for tests, and ways to look at what it leaves behind."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from headgate.embedded.folder import ROOT_DATA
from headgate.embedded.process import ProcessId
from headgate.embedded.world import World


def open_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for a whole run, stopped at its end. Services start when a test first asks for them."""
    with World.open(tmp_path_factory.mktemp("world"), idle_timeout=1.0) as world:
        try:
            yield world
        finally:
            world.shut_down()
            remove_outside(world.folder)


def remove_outside(below: Path) -> None:
    """Remove the data that worlds in this folder, or below it, have outside of it because we are root."""
    for owner in ROOT_DATA.glob("*/owner"):
        data = json.loads(owner.read_text())
        if Path(data["folder"]).is_relative_to(below) and not ProcessId(data["pid"], data["started"]).alive():
            shutil.rmtree(owner.parent)


def eventually(holds: Callable[[], bool], timeout: float = 15.0) -> bool:
    """Whether it comes to hold within so many seconds."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_gone(pid: int) -> bool:
    """Whether no process has that id any more; one that only waits to be reaped does not run."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def family(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
