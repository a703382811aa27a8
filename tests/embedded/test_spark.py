"""The class archive: made once, used by the next Spark, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from headgate.embedded import spark
from headgate.embedded.jars import cache_folder, find_java, package_folder
from headgate.runtime.session import ARCHIVE_OPTIONS

# Prints the archives that the JVM has mapped.
SESSION = """
from pathlib import Path
from headgate.embedded.spark import open_spark
session = open_spark(master="local[1]")
assert session.range(3).count() == 3
maps = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/maps").read_text()
print(*{line.split()[-1] for line in maps.splitlines() if line.endswith(".jsa")}, sep="\\n")
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with all jars and no archive."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "jars").symlink_to(cache_folder() / "jars")
    monkeypatch.setenv("HEADGATE_CACHE", str(folder))
    return folder


@pytest.mark.spark
def test_spark_uses_the_archive_that_set_up_has_made(session: SparkSession) -> None:
    archive = spark.find_archive(find_java().path)
    assert archive is not None
    assert sorted(path.name for path in archive.parent.iterdir()) == sorted((archive.name, spark.SPARK_FILE))
    (jvm,) = (child for child in psutil.Process().children() if child.name() == "java")
    assert str(archive) in {mapped.path for mapped in jvm.memory_maps()}


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(900)  # 20 seconds on a machine that does nothing else
def test_an_archive_is_made_and_the_next_spark_uses_it(cache: Path) -> None:
    made = subprocess.run([sys.executable, "-m", "headgate.embedded.spark"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    archive = Path(made.stdout.strip())
    assert archive.is_relative_to(cache)
    assert [path for path in archive.parent.iterdir() if path.name != spark.SPARK_FILE] == [archive]
    ran = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == made.stderr  # what Java says of its modules at every start
    assert str(archive) in ran.stdout.splitlines()


@pytest.mark.spark
@pytest.mark.parametrize("content", [b"", b"no archive"], ids=["empty", "garbage"])
def test_java_says_nothing_about_an_archive_that_does_not_fit(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.jsa").write_bytes(content)
    options = ARCHIVE_OPTIONS.format(archive=tmp_path / "x.jsa").split()
    java = str(find_java().path)
    plain = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    with_it = subprocess.run([java, *options, "-version"], capture_output=True, text=True, check=True)
    assert with_it.stdout == ""
    assert with_it.stderr == plain.stderr.replace(", sharing", "")


@pytest.fixture
def java(tmp_path: Path) -> Path:
    (tmp_path / "java").touch()
    return tmp_path / "java"


def put_archive(java: Path, *, size: int = 10) -> Path:
    folder = spark._archive_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / spark.SPARK_FILE).write_text(str(package_folder("pyspark")))
    archive = folder / f"{spark._fingerprint(java)}-10.jsa"
    archive.write_bytes(b"x" * size)
    return archive


@pytest.mark.unit
def test_an_archive_belongs_to_one_build_of_java(cache: Path, java: Path) -> None:
    assert spark.find_archive(java) is None
    archive = put_archive(java)
    assert spark.find_archive(java) == archive
    java.unlink()
    java.symlink_to("/bin/sh")
    assert spark.find_archive(java) is None


@pytest.mark.unit
def test_an_archive_belongs_to_the_spark_that_is_installed(
    cache: Path, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java compares the times of the jars, which are others when Spark is installed again in the same folder."""
    jar = tmp_path / "pyspark" / "jars" / "spark-core.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    monkeypatch.setattr(spark, "package_folder", lambda _: tmp_path / "pyspark")
    archive = put_archive(java)
    assert spark.find_archive(java) == archive
    os.utime(jar, (1, 1))
    assert spark.find_archive(java) is None


@pytest.mark.unit
def test_a_truncated_archive_is_not_used(cache: Path, java: Path) -> None:
    put_archive(java, size=9)
    assert spark.find_archive(java) is None


@pytest.mark.unit
def test_archives_of_sparks_that_are_gone_are_removed(cache: Path, java: Path) -> None:
    mine = put_archive(java).parent
    gone, other = cache / "classes" / "gone", cache / "classes" / "other"
    for folder, home in ((gone, cache / "nowhere"), (other, cache)):
        folder.mkdir()
        (folder / spark.SPARK_FILE).write_text(str(home))
    spark._remove_outdated(mine)
    assert [path.name for path in (cache / "classes").iterdir()] == ["other"]
