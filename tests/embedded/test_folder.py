from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headgate.embedded.errors import WorldFolderUnusable, WorldOfOtherVersion
from headgate.embedded.folder import (
    MAX_SOCKET_PATH,
    WorldFolder,
    is_listening,
    is_locked,
    lock_folder,
    lock_holder,
    make_socket_path,
    open_folder,
    register_root_data,
    remove_orphans,
)
from headgate.embedded.process import ProcessId

pytestmark = pytest.mark.unit


def test_a_new_folder_becomes_a_world_for_its_owner_alone(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "a" / "world")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / "world.json").stat().st_mode) == 0o600
    assert (folder.path / ".gitignore").read_text() == "*\n"


def test_a_world_keeps_its_id_and_ports(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "world")
    first.remember_port("kafka", 21000)
    first.remember_port("postgres", 21001)
    second = open_folder(tmp_path / "world")
    assert second.id == first.id != ""
    assert second.ports() == {"kafka": 21000, "postgres": 21001}


def test_concurrent_creations_give_the_same_world(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: open_folder(tmp_path / "world").id, range(32)))
    assert len(ids) == 1
    assert not [one for one in (tmp_path / "world").iterdir() if one.name.startswith("world.json.")]


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(WorldFolderUnusable) as caught:
        open_folder(tmp_path)
    assert 'such as "thesis.txt"' in caught.value.message()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "world").write_text("x")
    with pytest.raises(WorldFolderUnusable):
        open_folder(tmp_path / "world")


def test_a_path_too_long_for_the_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorldFolderUnusable) as caught:
        open_folder(tmp_path / ("x" * 300))
    assert caught.value.reason == "file name too long"


def test_a_world_of_another_layout_is_refused(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    data = json.loads((folder.path / "world.json").read_text())
    (folder.path / "world.json").write_text(json.dumps({**data, "layout": 99}))
    with pytest.raises(WorldOfOtherVersion) as caught:
        open_folder(tmp_path)
    assert (caught.value.found, caught.value.expected) == (99, 1)


def test_one_process_has_the_lock_and_its_pid_is_known(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    assert not is_locked(folder)
    held = lock_folder(folder)
    assert held is not None
    assert lock_folder(folder) is None
    assert is_locked(folder)
    assert lock_holder(folder) == os.getpid()
    os.close(held)
    assert not is_locked(folder)


def test_recorded_processes_are_read_back(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    records = {"kafka": ProcessId(12, 1.5), "postgres": ProcessId(13, 2.25)}
    folder.remember_processes(records)
    folder.remember_supervisor(ProcessId(7, 3.5), Path("/run/x.sock"))
    assert folder.processes() == records
    assert folder.supervisor() == (ProcessId(7, 3.5), Path("/run/x.sock"))
    folder.forget_supervisor()
    assert folder.supervisor() is None


def test_a_copied_folder_does_not_know_the_processes_of_the_first(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "first")
    first.remember_processes({"kafka": ProcessId(12, 1.5)})
    first.remember_supervisor(ProcessId(7, 3.5), Path("/run/x.sock"))
    shutil.copytree(first.path, tmp_path / "second")
    second = open_folder(tmp_path / "second")
    assert second.id == first.id
    assert (second.processes(), second.supervisor()) == ({}, None)


GONE = ProcessId(pid=2**22 + 1, started=0)  # no system gives such an id


def _claimed(tmp_path: Path, name: str, supervisor: ProcessId = GONE) -> WorldFolder:
    folder = open_folder(tmp_path / name, tmp_path / "state")
    register_root_data(folder, supervisor)
    (folder.root_data_folder / "postgres").mkdir(exist_ok=True)
    return folder


def test_data_outside_goes_when_its_world_folder_is_gone(tmp_path: Path) -> None:
    gone, stays = _claimed(tmp_path, "gone"), _claimed(tmp_path, "stays")
    removed = gone.root_data_folder
    shutil.rmtree(gone.path)
    assert remove_orphans(tmp_path / "state") == (removed,)
    assert not removed.exists()
    assert (stays.root_data_folder / "postgres").exists()


def test_data_of_a_supervisor_that_lives_stays(tmp_path: Path) -> None:
    folder = _claimed(tmp_path, "world", ProcessId.of(os.getpid()))
    kept = folder.root_data_folder
    shutil.rmtree(folder.path)
    assert remove_orphans(tmp_path / "state") == ()
    assert kept.exists()


def test_a_moved_world_keeps_its_data(tmp_path: Path) -> None:
    before = _claimed(tmp_path, "here")
    kept = before.root_data_folder
    before.path.rename(tmp_path / "there")
    assert _claimed(tmp_path, "there").root_data_folder == kept
    assert remove_orphans(tmp_path / "state") == ()


def test_a_copied_world_does_not_share_the_data_of_the_first(tmp_path: Path) -> None:
    first = _claimed(tmp_path, "first")
    shutil.copytree(first.path, tmp_path / "second")
    second = _claimed(tmp_path, "second")
    assert second.root_data_folder != first.root_data_folder
    assert open_folder(first.path).id == first.id


def test_data_without_an_owner_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state" / "somebody's").mkdir(parents=True)
    assert remove_orphans(tmp_path / "state") == ()
    assert remove_orphans(tmp_path / "nowhere") == ()


def test_the_path_is_short_however_deep_the_folder() -> None:
    path = make_socket_path(Path("/" + "deep/" * 200), {})
    assert len(str(path)) <= MAX_SOCKET_PATH
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert is_listening(path)
    assert not is_listening(path)
    path.unlink()


def test_two_folders_have_two_paths() -> None:
    assert make_socket_path(Path("/a"), {}) != make_socket_path(Path("/b"), {})


def test_the_systems_runtime_folder_is_used_if_it_is_short() -> None:
    with TemporaryDirectory() as runtime:
        path = make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": runtime})
        assert path.parent == Path(runtime) / "headgate"
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_that_is_too_long_or_open_to_others_is_not_used(tmp_path: Path) -> None:
    usual = make_socket_path(Path("/a"), {}).parent
    (tmp_path / ("x" * 100)).mkdir()
    assert make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": str(tmp_path / ("x" * 100))}).parent == usual
    with TemporaryDirectory() as runtime:
        (Path(runtime) / "headgate").mkdir()
        (Path(runtime) / "headgate").chmod(0o777)
        assert make_socket_path(Path("/a"), {"XDG_RUNTIME_DIR": runtime}).parent == usual
