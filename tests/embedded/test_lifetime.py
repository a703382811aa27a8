"""Who starts a supervisor, who shares it, and when it ends; with no service running, or the quickest."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from headgate.embedded.errors import SupervisorDidNotStart, UnknownService, WorldFolderUnusable, WorldInUse
from headgate.embedded.folder import lock_folder, open_folder
from headgate.embedded.process import ProcessId
from headgate.embedded.world import World
from tests.embedded.world_fixtures import eventually, is_gone

pytestmark = pytest.mark.e2e

HOLDER = """
import sys, time
from headgate.embedded.world import World
world = World.open(sys.argv[1], idle_timeout=0.2)
print(world.status().pid, flush=True)
time.sleep(600)
"""


def test_the_supervisor_has_a_session_of_its_own_and_ends_after_the_last_lease(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.2) as first:
        pid = first.status().pid
        assert os.getsid(pid) == pid != os.getsid(0)
        with World.open(tmp_path) as second:
            assert second.status().pid == pid
            assert second.status().leases == 2
        time.sleep(0.6)
        assert first.status().pid == pid
    assert eventually(lambda: is_gone(pid), 5)
    assert World.running(tmp_path) is None


def test_concurrent_opens_share_one_supervisor(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with ThreadPoolExecutor(6) as pool:
        worlds = list(pool.map(lambda _: World.open(tmp_path, idle_timeout=0.2), range(6)))
    (pid,) = {world.status().pid for world in worlds}
    # The others that were started on the way have seen that they are not needed.
    assert eventually(lambda: {one.pid for one in psutil.Process().children()} - before == {pid}, 10)
    for world in worlds:
        world.close()
    assert eventually(lambda: is_gone(pid), 5)


def test_a_killed_holder_ends_its_lease(tmp_path: Path) -> None:
    with subprocess.Popen((sys.executable, "-c", HOLDER, str(tmp_path)), stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        holder.kill()
    assert eventually(lambda: is_gone(pid), 5)


def test_a_client_that_returns_within_the_idle_time_out_finds_the_same_supervisor(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=5) as world:
        pid = world.status().pid
    with World.open(tmp_path) as world:
        assert world.status().pid == pid
        world.shut_down()


def test_a_client_that_comes_while_a_supervisor_ends_gets_another(tmp_path: Path) -> None:
    for _ in range(5):
        with World.open(tmp_path, idle_timeout=0) as world:
            assert not is_gone(world.status().pid)


def test_a_pinned_world_stays_until_it_is_shut_down(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.1) as world:
        pid = world.pin().pid
    time.sleep(0.5)
    status = World.running(tmp_path)
    assert status is not None
    assert (status.pid, status.pinned, status.leases) == (pid, True, 0)
    with World.open(tmp_path) as world:
        world.shut_down()
        assert is_gone(pid)


def test_a_killed_supervisor_is_replaced_at_the_next_call(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.2) as world:
        before = world.status().pid
        os.kill(before, signal.SIGKILL)
        assert eventually(lambda: is_gone(before), 5)
        after = world.status().pid
        assert after != before
    assert eventually(lambda: is_gone(after), 5)


def test_a_supervisor_whose_folder_is_removed_ends(tmp_path: Path) -> None:
    with World.open(tmp_path / "world") as world:
        pid = world.pin().pid
        shutil.rmtree(tmp_path / "world")
        assert eventually(lambda: is_gone(pid), 10)
        with pytest.raises(WorldFolderUnusable):
            world.status()


def test_the_copy_of_a_running_world_is_a_world_of_its_own(tmp_path: Path) -> None:
    with World.open(tmp_path / "first", idle_timeout=0.2) as first:
        before = first.address("registry"), first.status().services
        shutil.copytree(tmp_path / "first", tmp_path / "copy")
        with World.open(tmp_path / "copy", idle_timeout=0.2) as copy:
            assert copy.status().pid != first.status().pid
            assert copy.address("registry") != before[0]
        assert (first.address("registry"), first.status().services) == before


def test_a_terminated_supervisor_leaves_no_socket(tmp_path: Path) -> None:
    with World.open(tmp_path) as world:
        pid = world.status().pid
        found = open_folder(tmp_path).supervisor()
        assert found is not None
        os.kill(pid, signal.SIGTERM)
        assert eventually(lambda: is_gone(pid), 5)
    assert not found[1].exists()
    assert open_folder(tmp_path).supervisor() is None


def test_a_folder_that_another_process_locked_is_in_use(tmp_path: Path) -> None:
    held = lock_folder(open_folder(tmp_path))
    assert held is not None
    with pytest.raises(WorldInUse) as caught:
        World.open(tmp_path, timeout=1)
    assert caught.value.pid == os.getpid()
    os.close(held)


def test_a_supervisor_that_stands_still_makes_its_folder_one_in_use(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.2) as world:
        pid = world.status().pid
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(WorldInUse) as caught:
                World.open(tmp_path, timeout=1)
            assert caught.value.pid == pid
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_supervisor_that_cannot_start_reports_why(tmp_path: Path) -> None:
    (open_folder(tmp_path).path / "lock").mkdir()
    with pytest.raises(SupervisorDidNotStart) as caught:
        World.open(tmp_path)
    assert "IsADirectoryError" in (caught.value.detail() or "")


def test_a_folder_that_became_read_only_is_reported(tmp_path: Path) -> None:
    (open_folder(tmp_path).path / "supervisor.json").mkdir()
    with pytest.raises(SupervisorDidNotStart) as caught:
        World.open(tmp_path)
    assert "WLD-0201" in (caught.value.detail() or "")


def test_an_unknown_service_is_reported_with_similar_names(tmp_path: Path) -> None:
    with World.open(tmp_path, idle_timeout=0.2) as world, pytest.raises(UnknownService) as caught:
        world.address("kafak")
    assert caught.value.hint() == 'Did you mean "kafka"?'


def test_a_folder_without_a_world_has_none_running_and_is_not_touched(tmp_path: Path) -> None:
    assert World.running(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_leftovers_of_an_earlier_supervisor_are_killed_first(tmp_path: Path) -> None:
    with subprocess.Popen(("sleep", "600")) as left:
        open_folder(tmp_path).remember_processes({"kafka": ProcessId.of(left.pid)})
        with World.open(tmp_path, idle_timeout=0.2):
            assert left.wait(5) == -signal.SIGKILL
