from __future__ import annotations

from pathlib import Path

import pytest

from headgate.embedded.errors import JavaMissing
from headgate.embedded.java import find_java, java_version

pytestmark = pytest.mark.unit


def fake_java(folder: Path, told: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    path.chmod(0o755)
    return path


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'openjdk version "21.0.3" 2024-04-16')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.path, java.version) == (tmp_path / "home" / "bin" / "java", 21)


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'java version "1.8.0_402"')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17" 2021-09-14')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.path, java.version) == (on_path, 17)


def test_java_eight_tells_its_version_in_the_old_way(tmp_path: Path) -> None:
    assert java_version(fake_java(tmp_path, 'java version "1.8.0_402"')) == 8


def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(tmp_path)})
    assert "openjdk-17-jre-headless" in caught.value.hint()


def test_the_error_names_the_java_that_is_too_old(tmp_path: Path) -> None:
    old = fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": str(old.parent)})
    assert f"{old} (version 11)" in caught.value.detail()
