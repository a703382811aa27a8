"""A world for tests, and ways to see what it leaves behind."""

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
    """One world for several tests. A service starts when a test first needs it."""
    with World.open(tmp_path_factory.mktemp("world"), idle_timeout=1.0) as world:
        try:
            yield world
        finally:
            world.shut_down()
            remove_root_data(world.folder)


def remove_root_data(below: Path) -> None:
    """Remove the data that worlds in this folder have outside of it, under root."""
    for owner in ROOT_DATA.glob("*/owner"):
        data = json.loads(owner.read_text())
        if Path(data["folder"]).is_relative_to(below) and not ProcessId(data["pid"], data["started"]).alive():
            shutil.rmtree(owner.parent)


def eventually(holds: Callable[[], bool], timeout: float = 15.0) -> bool:
    """Whether ``holds`` returns True within ``timeout`` seconds. A check that takes long, as a query does, is repeated less often, and
    so is one that has failed some times: it takes the processors from what it waits for."""
    deadline, pause = time.monotonic() + timeout, 0.05
    while True:
        began = time.monotonic()
        if holds():
            return True
        ended = time.monotonic()
        if ended > deadline:
            return False
        time.sleep(min(max(pause, 2 * (ended - began)), 2.0))
        pause = min(1.5 * pause, 0.25)


def is_gone(pid: int) -> bool:
    """Whether the process has ended. A zombie counts as ended."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def process_tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
