from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.main import headgate
from headgate.embedded.folder import lock_folder, open_folder

pytestmark = pytest.mark.unit

CHECKS = {
    "python",
    "java",
    "jars of kafka",
    "jars of opensearch",
    "ports",
    "memory",
    "disk",
    "service user",
    "world",
}


def _findings(folder: Path) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(headgate, ("doctor", "--folder", str(folder), "--output", "json"))
    return result.exit_code, {one["check"]: one for one in json.loads(result.stdout)}


def test_every_need_is_looked_at_and_nothing_is_made(tmp_path: Path) -> None:
    status, found = _findings(tmp_path / "none")
    assert set(found) >= CHECKS
    assert status == (1 if any(one["verdict"] == "fail" for one in found.values()) else 0)
    assert all(one["repair"] for one in found.values() if one["verdict"] != "ok")
    assert not (tmp_path / "none").exists()


def test_without_java_the_check_fails_and_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = CliRunner().invoke(headgate, ("doctor", "--folder", str(tmp_path / "none")))
    assert result.exit_code == 1
    assert "Java 17 or newer was not found" in result.stdout
    assert "openjdk-17-jre-headless" in result.stdout


def test_an_empty_cache_is_a_warning_that_says_how_to_fill_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    _, found = _findings(tmp_path / "none")
    assert found["jars of kafka"]["verdict"] == "warn"
    assert "-m headgate.embedded.jars kafka`" in found["jars of kafka"]["repair"]


def test_a_world_that_another_process_locked_fails(tmp_path: Path) -> None:
    held = lock_folder(open_folder(tmp_path / "world"))
    assert held is not None
    status, found = _findings(tmp_path / "world")
    os.close(held)
    assert status == 1
    assert found["world"]["verdict"] == "fail"
    assert str(os.getpid()) in found["world"]["found"]


def test_a_folder_of_another_layout_fails(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text('{"layout": 99}')
    status, found = _findings(tmp_path)
    assert (status, found["world"]["verdict"]) == (1, "fail")
