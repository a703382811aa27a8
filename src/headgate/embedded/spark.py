"""Spark with the jars of the lock, and the class archive that halves its start.

Java reads, checks and links some 14,000 classes before Spark answers its first query. A class archive (AppCDS) holds
them ready to be mapped: on two cores a session takes 5 instead of 10 seconds of CPU, and 11 instead of 19 up to the
second query. Set-up makes the archive once (`python -m headgate.embedded.spark`) and keeps it in the cache folder.
Everything works without one.

Java refuses an archive of another build of Java or another class path, and starts as if there were none. So every
Spark has a folder of its own, named for the folder that it is installed in, and an archive's name says what it was made
from. The name also holds its size: Java maps the file without a check of its length, and a truncated one crashes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.jars import cache_folder, fetch, find_java, jar_set, package_folder
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.runtime.query_process import QuerySettings
from headgate.runtime.session import SparkSession, open_session, warm_up_and_stop

HEAP = "spark.driver.memory"
LEAST_HEAP, MOST_HEAP = 1024, 8192  # megabytes
RUN = "3"  # another number if another class path or first session makes another archive
TOPIC = "words"  # that the first session writes and reads
SPARK_FILE = "spark"  # in the folder of a Spark's archives: where that Spark is installed


def open_spark(
    *,
    application: str = "headgate",
    master: str = "local[8]",
    warehouse: Path | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with the jars of the lock, fetched if they are missing, and with the class archive if there is one.

    ``memory`` is the size of the heap as Java writes it; None is Spark's own default, 1 GB.
    """
    java = find_java().path
    return open_session(
        fetch("spark"),
        application=application,
        master=master,
        java=java,
        archive=find_archive(java),
        warehouse=warehouse,
        settings={**({} if memory is None else {HEAP: memory}), **(settings or {})},
    )


def default_heap(total: int) -> int:
    """Megabytes of the heap on a machine with so many: a quarter, as Java itself takes, but at least what Spark needs and at
    most what a larger heap would still speed up. The rest is for Python workers, the query process, services and the page
    cache."""
    return max(LEAST_HEAP, min(MOST_HEAP, total // 4))


def query_settings(folder: Path, *, memory: str, at_once: int, spool: int, spark: Mapping[str, str]) -> QuerySettings:
    """What a query process needs for its session: the same jars, Java and class archive."""
    java = find_java().path
    return QuerySettings(folder, tuple(fetch("spark")), java, find_archive(java), memory, at_once, spool, dict(spark))


def find_archive(java: Path) -> Path | None:
    """The complete class archive for this Java and the installed Spark, or None."""
    found = _archive_folder().glob(f"{_fingerprint(java)}-*.jsa")
    return next((path for path in found if path.stem.endswith(f"-{path.stat().st_size}")), None)


def make_archive(java: Path) -> Path:
    """The class archive, made by a first session if it is missing. Raises OSError if it cannot be written."""
    if (found := find_archive(java)) is not None:
        return found
    folder = _archive_folder()
    _remove_outdated(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SPARK_FILE).write_text(str(package_folder("pyspark")))
    part = folder / f"{os.getpid()}.part"
    try:
        # Java names each of the thousand classes that it leaves out, unless its log is off.
        settings = {"spark.driver.defaultJavaOptions": f"-XX:ArchiveClassesAtExit={part} -Xlog:disable"}
        with _broker() as brokers:
            warm_up_and_stop(open_session(fetch("spark"), java=java, settings=settings), brokers, TOPIC)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o644)
        return part.replace(folder / f"{_fingerprint(java)}-{part.stat().st_size}.jsa")
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _broker() -> Iterator[str]:
    """A broker with an empty topic."""
    with tempfile.TemporaryDirectory(prefix="headgate-classes-") as folder, World.open(Path(folder)) as world:
        try:
            brokers = world.kafka()
            _create_topic(brokers)
            yield brokers
        finally:
            world.shut_down()


def _create_topic(brokers: str) -> None:
    """The client ends with this function: one that outlived the broker would report a lost connection."""
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)


def _archive_folder() -> Path:
    name = hashlib.sha256(str(package_folder("pyspark")).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / name


def _fingerprint(java: Path) -> str:
    """Of what an archive is made from: the build of Java, known by its file, Spark's version, the jars, and what is run. Java
    refuses an archive if a jar of its class path has another time, as after Spark was installed again in the same place."""
    binary = java.resolve()
    jars = " ".join(jar.sha256 for jar in jar_set("spark"))
    installed = max(jar.stat().st_mtime_ns for jar in (package_folder("pyspark") / "jars").glob("*.jar"))
    parts = (str(binary), str(binary.stat().st_mtime_ns), version("pyspark"), str(installed), jars, RUN)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _remove_outdated(folder: Path) -> None:
    """Remove this Spark's archives, which are of an older Java or older jars, and those of Sparks that are gone."""
    shutil.rmtree(folder, ignore_errors=True)
    for spark in folder.parent.glob(f"*/{SPARK_FILE}"):
        if not Path(spark.read_text()).exists():
            shutil.rmtree(spark.parent, ignore_errors=True)


def main() -> None:
    """`python -m headgate.embedded.spark`: make the class archive, and print where it is."""
    try:
        sys.stdout.write(f"{make_archive(find_java().path)}\n")
    except (HeadgateError, OSError) as error:
        sys.exit(error.diagnostic().render() if isinstance(error, HeadgateError) else str(error))


if __name__ == "__main__":
    main()
