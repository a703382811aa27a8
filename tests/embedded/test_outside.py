from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headgate.embedded import outside
from headgate.embedded.folder import WorldFolder, open_folder
from headgate.embedded.process import Record

pytestmark = pytest.mark.unit

GONE = Record(pid=2**22 + 1, started=0)  # no system gives such an id


def _claimed(tmp_path: Path, name: str, supervisor: Record = GONE) -> WorldFolder:
    folder = open_folder(tmp_path / name, tmp_path / "state")
    outside.claim(folder, supervisor)
    (folder.outside / "postgres").mkdir(exist_ok=True)
    return folder


def test_data_outside_goes_when_its_world_folder_is_gone(tmp_path: Path) -> None:
    gone, stays = _claimed(tmp_path, "gone"), _claimed(tmp_path, "stays")
    removed = gone.outside
    shutil.rmtree(gone.path)
    assert outside.prune(tmp_path / "state") == (removed,)
    assert not removed.exists()
    assert (stays.outside / "postgres").exists()


def test_data_of_a_supervisor_that_lives_stays(tmp_path: Path) -> None:
    folder = _claimed(tmp_path, "world", Record.of(os.getpid()))
    kept = folder.outside
    shutil.rmtree(folder.path)
    assert outside.prune(tmp_path / "state") == ()
    assert kept.exists()


def test_a_moved_world_keeps_its_data(tmp_path: Path) -> None:
    before = _claimed(tmp_path, "here")
    kept = before.outside
    before.path.rename(tmp_path / "there")
    assert _claimed(tmp_path, "there").outside == kept
    assert outside.prune(tmp_path / "state") == ()


def test_a_copied_world_does_not_share_the_data_of_the_first(tmp_path: Path) -> None:
    first = _claimed(tmp_path, "first")
    shutil.copytree(first.path, tmp_path / "second")
    second = _claimed(tmp_path, "second")
    assert second.outside != first.outside
    assert open_folder(first.path).id == first.id


def test_what_is_not_a_worlds_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state" / "somebody's").mkdir(parents=True)
    assert outside.prune(tmp_path / "state") == ()
    assert outside.prune(tmp_path / "nowhere") == ()
