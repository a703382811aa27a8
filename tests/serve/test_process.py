"""Engines as child processes: those that do not start, and those that do not end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headgate.processes import is_alive, process_tree
from headgate.serve.client import EngineProcess, start_engine
from headgate.serve.errors import (
    EngineDidNotStart,
)

pytestmark = pytest.mark.unit


def test_an_engine_that_ends_at_once_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("some line\nthe disk is full\n")
    process = subprocess.Popen(["false"])
    engine = EngineProcess(tmp_path, process, tmp_path / "engine.log")
    with pytest.raises(EngineDidNotStart) as caught:
        engine.wait_until_ready(10)
    assert caught.value.reason == "it ended with status 1"
    assert "the disk is full" in caught.value.detail()


def test_an_engine_that_never_becomes_ready_is_reported_and_killed(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path, subprocess.Popen(["sleep", "60"]), tmp_path / "engine.log")
    with pytest.raises(EngineDidNotStart, match="not ready within"):
        engine.wait_until_ready(0.2)
    assert engine.is_running
    engine.kill()
    assert not engine.is_running


def test_an_engine_that_ignores_its_end_is_killed_with_its_children(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    EngineProcess(tmp_path, process, tmp_path / "log").stop(timeout=0.3)
    process.stdout.close()
    assert not any(map(is_alive, process_tree(child)))


def test_a_command_that_cannot_serve_is_an_error(tmp_path: Path) -> None:
    """Python itself does not start so."""
    with pytest.raises(EngineDidNotStart) as caught:
        start_engine(tmp_path, environment={"PYTHONHOME": str(tmp_path)}, timeout=60)
    assert any("init" in line for line in caught.value.last)
