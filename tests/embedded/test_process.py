from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from headgate.embedded.process import (
    LIFELINE,
    Command,
    Log,
    ProcessId,
    kill_leftovers,
    run,
    spawn,
)
from headgate.processes import last_lines
from tests.embedded.world_fixtures import eventually, is_gone

pytestmark = pytest.mark.unit

PARENT = """
import asyncio, sys
from pathlib import Path
from headgate.embedded.process import Command, spawn

async def main():
    folder = Path(sys.argv[1])
    process = await spawn(Command((sys.executable, "-c", "import time; time.sleep(600)"), folder), folder / "log")
    print(process.id.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def _python(folder: Path, program: str, stop_signal: signal.Signals = signal.SIGTERM) -> Command:
    return Command((sys.executable, "-I", "-S", "-c", program), folder, stop_signal=stop_signal)


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen((sys.executable, "-c", PARENT, str(tmp_path)), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        record = ProcessId.of(child)
        parent.kill()
    if sys.platform != "linux":
        kill_leftovers([record])
    assert eventually(lambda: is_gone(child), 5)


def test_a_program_whose_parent_was_gone_before_it_began_does_not_begin() -> None:
    command = (sys.executable, "-I", "-S", str(LIFELINE), "1", "9", "-1", "-1", "/bin/echo", "alive")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == ""
    assert "the parent is gone" in result.stderr
    assert result.returncode == 1


def test_a_child_that_ignores_the_stop_signal_is_killed_after_the_grace(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, float]:
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
        process = await spawn(_python(tmp_path, stubborn), tmp_path / "log")
        while not (tmp_path / "log").read_text():
            await asyncio.sleep(0.02)
        began = time.monotonic()
        await process.stop(timeout=0.3)
        return process.ended.result(), time.monotonic() - began

    status, took = asyncio.run(scenario())
    assert status == -signal.SIGKILL
    assert 0.3 <= took < 5


def test_a_child_is_stopped_with_the_signal_it_wants(tmp_path: Path) -> None:
    async def scenario() -> int:
        process = await spawn(_python(tmp_path, "import time; time.sleep(600)", signal.SIGINT), tmp_path / "log")
        await asyncio.sleep(0.3)
        await process.stop(timeout=10)
        return process.ended.result()

    assert asyncio.run(scenario()) in (-signal.SIGINT, 130)


def test_a_grandchild_that_holds_the_output_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    leaver = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)"

    async def scenario() -> int | None:
        return await run(_python(tmp_path, leaver), tmp_path / "log", timeout=20)

    began = time.monotonic()
    assert asyncio.run(scenario()) == 0
    assert time.monotonic() - began < 10
    os.kill(int((tmp_path / "log").read_text()), signal.SIGKILL)


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    assert asyncio.run(run(_python(tmp_path, "import time; time.sleep(600)"), tmp_path / "log", timeout=0.3)) is None


def test_the_output_of_a_child_is_in_its_log(tmp_path: Path) -> None:
    program = "import sys; print('said'); print('cried', file=sys.stderr); sys.exit(3)"
    assert asyncio.run(run(_python(tmp_path, program), tmp_path / "log", timeout=20)) == 3
    assert sorted((tmp_path / "log").read_text().split()) == ["cried", "said"]


def test_little_of_our_environment_reaches_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    environment = Command(("x",), tmp_path).environment()
    assert "PGDATA" not in environment
    assert environment["HOME"] == str(tmp_path)


def test_processes_left_behind_are_ended_with_all_below_them() -> None:
    nest = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    with subprocess.Popen((sys.executable, "-c", nest), stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        below = int(left.stdout.readline())
        assert kill_leftovers([ProcessId.of(left.pid)]) == 1
        assert eventually(lambda: is_gone(below), 5)
        assert eventually(lambda: is_gone(left.pid), 5)


def test_a_process_that_has_only_the_same_id_is_left_alone() -> None:
    with subprocess.Popen(("sleep", "600")) as other:
        mistaken = ProcessId(other.pid, ProcessId.of(other.pid).started - 60)
        assert not mistaken.alive()
        assert kill_leftovers([mistaken]) == 0
        assert other.poll() is None
        other.kill()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30))
def test_a_log_keeps_the_end_of_what_was_written_and_never_grows_beyond_its_bound(parts: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.log"
        log = Log(path, max_bytes=100, kept=2)
        for part in parts:
            log.write(part)
        log.close()
        kept = [file for file in (path.with_name("x.log.2"), path.with_name("x.log.1"), path) if file.exists()]
        assert b"".join(parts).endswith(b"".join(file.read_bytes() for file in kept))
        assert path.read_bytes().endswith(b"".join(parts[-1:]))
        assert sum(file.stat().st_size for file in Path(folder).iterdir()) <= 300


def test_the_last_lines_are_the_end_without_empty_ones_and_cut_to_a_readable_length(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("\n".join(f"line {number}\n" for number in range(50)) + "y" * 1000)
    assert last_lines(path, most=3) == ("line 48", "line 49", "y" * 240)


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none") == ()
