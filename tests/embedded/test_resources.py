from __future__ import annotations

from pathlib import Path

import pytest

from headgate.embedded.errors import NotEnoughDisk, NotEnoughMemory
from headgate.embedded.resources import MEGABYTE, available_memory, check_room, free_disk

pytestmark = pytest.mark.unit


def _container(path: Path, limit: str, used: int, of_files: int) -> Path:
    (path / "memory.max").write_text(f"{limit}\n")
    (path / "memory.current").write_text(f"{used}\n")
    (path / "memory.stat").write_text(f"anon 1\ninactive_file {of_files}\n")
    return path


def test_a_container_has_what_its_limit_leaves_and_pages_of_files_count_as_free(tmp_path: Path) -> None:
    container = _container(tmp_path, str(100 * MEGABYTE), 90 * MEGABYTE, 20 * MEGABYTE)
    assert available_memory(container) == 30


def test_a_container_over_its_limit_has_nothing(tmp_path: Path) -> None:
    assert available_memory(_container(tmp_path, str(10 * MEGABYTE), 50 * MEGABYTE, 0)) == 0


def test_without_a_limit_the_machine_counts(tmp_path: Path) -> None:
    unlimited = available_memory(_container(tmp_path, "max", 1, 0))
    assert unlimited > 10
    assert abs(unlimited - available_memory(tmp_path / "none")) < 2000


def test_too_little_memory_is_told_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughMemory) as caught:
        check_room("opensearch", tmp_path, memory=1_000_000_000, disk=1)
    assert caught.value.needed == 1_000_000_000
    assert 0 < caught.value.available < 1_000_000_000


def test_too_little_disk_is_told_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughDisk) as caught:
        check_room("kafka", tmp_path, memory=1, disk=10_000_000_000)
    assert caught.value.folder == str(tmp_path)


def test_free_disk_of_a_folder_that_is_not_there_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    assert abs(free_disk(tmp_path / "a" / "b") - free_disk(tmp_path)) < 2000
