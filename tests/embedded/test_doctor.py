from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from headgate.embedded.doctor import check_cache, check_heap, check_jars, check_postgres_data, check_service
from headgate.embedded.errors import CacheUnusable, PostgresDataOfOtherVersion
from headgate.embedded.folder import open_folder
from headgate.embedded.host import is_root
from headgate.embedded.jars import Jar, jar_path
from headgate.embedded.service import ServiceStatus
from headgate.embedded.spark import default_heap

pytestmark = pytest.mark.unit

JAR = Jar("org.example", "thing", "1.0", None, "jar", hashlib.sha256(b"good").hexdigest(), 4_000_000)


def _put(cache: Path, content: bytes) -> None:
    path = jar_path(JAR, cache)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_a_jar_with_the_right_hash_is_ok(tmp_path: Path) -> None:
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
    found = check_service(ServiceStatus("kafka", "died", None, None, "/logs/kafka.log", None))
    assert found.verdict == "fail"
    assert "/logs/kafka.log" in found.repair


def test_a_service_that_nobody_asked_for_is_no_failure() -> None:
    assert check_service(ServiceStatus("kafka", "stopped", None, None, "/logs/kafka.log", None)).verdict == "ok"
    running = check_service(ServiceStatus("kafka", "running", "127.0.0.1:1", os.getpid(), "/l", None))
    assert running.found == "running at 127.0.0.1:1"


def test_postgres_data_of_another_version_fails_and_says_what_to_do(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "world")
    cluster = folder.data("postgres", as_other_user=is_root()) / "data"
    cluster.mkdir(parents=True)
    try:
        (cluster / "PG_VERSION").write_text("16")
        with pytest.raises(PostgresDataOfOtherVersion) as caught:
            list(check_postgres_data(folder.path))
        (cluster / "PG_VERSION").write_text("18")
        (found,) = check_postgres_data(folder.path)
    finally:
        shutil.rmtree(cluster.parent.parent)
    assert "pg_dumpall" in str(caught.value.hint())
    assert found.verdict == "ok"


def test_a_cache_that_cannot_be_made_fails_and_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CacheUnusable) as caught:
        list(check_cache())
    assert "HEADGATE_CACHE" in str(caught.value.hint())


@pytest.mark.parametrize(("total", "heap"), [(512, 1024), (4096, 1024), (16_000, 4000), (128_000, 8192)])
def test_sparks_heap_is_a_quarter_of_the_machine_and_one_to_eight_gigabytes(total: int, heap: int) -> None:
    assert default_heap(total) == heap
    (found,) = check_heap(None, total)
    assert (found.verdict, found.found.startswith(f"{heap} MB of {total} MB")) == ("ok", True)


def test_a_heap_that_leaves_nothing_to_the_machine_is_a_warning() -> None:
    (fits,), (found,) = check_heap("3g", 4096), check_heap("3600M", 4096)
    assert (fits.verdict, found.verdict, found.found[:7]) == ("ok", "warn", "3600 MB")
    assert "[spark]" in found.repair
