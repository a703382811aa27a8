from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from headgate.embedded.doctor import check_jars, check_service
from headgate.embedded.jars import Jar, jar_path
from headgate.embedded.keeper import Status

pytestmark = pytest.mark.unit

JAR = Jar("org.example", "thing", "1.0", None, "jar", hashlib.sha256(b"good").hexdigest(), 4_000_000)


def _put(cache: Path, content: bytes) -> None:
    path = jar_path(JAR, cache)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_a_jar_that_is_there_as_locked_is_ok(tmp_path: Path) -> None:
    _put(tmp_path, b"good")
    assert check_jars("jars", [JAR], tmp_path, "thing").verdict == "ok"


def test_a_missing_jar_is_a_warning_that_says_how_to_fetch_it(tmp_path: Path) -> None:
    found = check_jars("jars", [JAR], tmp_path, "thing")
    assert found.verdict == "warn"
    assert "1 of 1" in found.found
    assert "-m headgate.embedded.jars thing`" in found.repair


def test_a_jar_with_another_hash_is_a_failure_that_names_it(tmp_path: Path) -> None:
    _put(tmp_path, b"evil")
    found = check_jars("jars", [JAR], tmp_path, "thing")
    assert found.verdict == "fail"
    assert "org.example:thing:1.0" in found.found


def test_a_service_that_died_is_a_failure_that_names_its_log() -> None:
    found = check_service(Status("kafka", "died", None, None, "/logs/kafka.log", None))
    assert found.verdict == "fail"
    assert "/logs/kafka.log" in found.repair


def test_a_service_that_nobody_asked_for_is_no_failure() -> None:
    assert check_service(Status("kafka", "stopped", None, None, "/logs/kafka.log", None)).verdict == "ok"
    running = check_service(Status("kafka", "running", "127.0.0.1:1", os.getpid(), "/l", None))
    assert running.found == "running at 127.0.0.1:1"
