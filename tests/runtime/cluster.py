"""A standalone Spark cluster on loopback: a master and two workers, as child processes, from pyspark's own jars."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from headgate.embedded.host import LOOPBACK, choose_port
from headgate.embedded.jars import find_java
from tests.embedded.world_fixtures import eventually

WORKERS = 2
# Without the REST door for submitting, whose port is fixed. What is compiled once is enough for so short a life.
OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dspark.master.rest.enabled=false",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)


@contextmanager
def standalone_cluster(folder: Path, workers: int = WORKERS) -> Iterator[str]:
    """The master's `spark://` address. Every worker has one core and 1 GB, and works in a folder of its own."""
    port, page = choose_port(None), choose_port(None)
    started: list[subprocess.Popen[bytes]] = []
    try:
        where = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))
        started.append(_start(folder / "master", "master.Master", *where))
        address = f"spark://{LOOPBACK}:{port}"
        for number in range(workers):
            work = folder / f"worker-{number}"
            given = ("--host", LOOPBACK, "--cores", "1", "--memory", "1g", "--webui-port", "0")
            started.append(_start(work, "worker.Worker", *given, "--work-dir", str(work / "apps"), address))
        assert eventually(lambda: _alive(page) == workers, 60), _logs(folder)
        yield address
    finally:
        for process in reversed(started):  # the workers first: a worker ends its executors when it is told to stop
            process.terminate()
        for process in started:
            _reap(process)


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    java = [str(find_java().path), *OPTIONS, "-cp", f"{_pyspark()}/jars/*"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*java, f"org.apache.spark.deploy.{name}", *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, env=_environment(),
        )  # fmt: skip


def _environment() -> dict[str, str]:
    """What a machine of a cluster would have: Spark and Java, and neither our source folder nor our settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    java = find_java().path.resolve().parent.parent
    spark = {"SPARK_HOME": str(_pyspark()), "SPARK_SCALA_VERSION": "2.13"}  # what its shell scripts would set
    return {**kept, **spark, "SPARK_LOCAL_IP": LOOPBACK, "JAVA_HOME": str(java)}


def _pyspark() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _alive(page: int) -> int:
    """How many workers the master's page counts as alive."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{page}/json/", timeout=5) as answer:
            return int(answer.read().count(b'"state" : "ALIVE"'))
    except OSError:
        return 0


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _logs(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*/log")))
