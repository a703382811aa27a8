"""What is said of a Spark that has ended, and how one is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from headgate.runtime.session import JAVA_OPTIONS, _exit_status, kill_jvm_of, why_ended
from tests.embedded.world_fixtures import eventually

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "ran out of memory, though its heap is 2g. The setting memory in the table [spark]"),
        (52, "ran out of memory, though its heap is 2g"),
        (-9, "Signal 9 ended it"),
        (1, "It ended with status 1."),
        (None, "It ended."),
    ],
)
def test_the_exit_status_says_why_spark_ended(status: int | None, said: str) -> None:
    assert said in why_ended(status, "2g", "spark")


def test_a_process_that_nobody_can_ask_any_more_has_no_status() -> None:
    def wait(_: float) -> int:
        raise psutil.NoSuchProcess(1)

    assert _exit_status(cast("psutil.Process", SimpleNamespace(wait=wait))) is None


def test_java_ends_when_it_runs_out_of_memory() -> None:
    assert "-XX:+ExitOnOutOfMemoryError" in JAVA_OPTIONS


PARENT = """
import subprocess, sys
java = subprocess.Popen([sys.argv[1], "-c", "import time; time.sleep(600)"])
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(java.pid, other.pid, flush=True)
java.wait()
other.kill()
"""


def test_the_jvm_of_another_engine_is_killed_and_nothing_else_of_it(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(sys.executable)
    command = [sys.executable, "-c", PARENT, str(tmp_path / "java")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        java, other = map(psutil.Process, map(int, parent.stdout.readline().split()))
        assert eventually(lambda: java.name() == "java", 60.0)  # its parent's name until it runs
        parent.send_signal(signal.SIGSTOP)
        kill_jvm_of(parent.pid)
        assert eventually(lambda: java.status() == psutil.STATUS_ZOMBIE, 60.0)
        assert other.is_running()
        parent.send_signal(signal.SIGCONT)
    kill_jvm_of(parent.pid)  # an engine that has gone meanwhile
