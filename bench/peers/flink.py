"""Flink SQL: a script run by Flink's own SQL client, with Flink in the same process, to the end of what it reads.

Checkpoints are off, as they are by default, so Flink never waits for its producer and would lose its place in a crash. The
tasks run in parallel on as many cores as the machine has; Flink's default would be one. The class path and the options of Java
are those of Flink's own scripts, less its memory settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.peers import downloads
from bench.peers.children import Child, java
from headgate.embedded.host import LOOPBACK

CLIENT = "org.apache.flink.table.client.SqlClient"
SETTINGS = {
    "execution.target": "local",
    "table.dml-sync": "true",
    "table.local-time-zone": "UTC",
    "parallelism.default": str(os.cpu_count() or 1),
    "jobmanager.bind-host": LOOPBACK,
    "taskmanager.bind-host": LOOPBACK,
    "rest.address": LOOPBACK,
    "rest.bind-address": LOOPBACK,
}


@contextmanager
def running(folder: Path, script: str) -> Iterator[Child]:
    """Run a script in a new folder."""
    folder.mkdir()
    settings = "".join(f"{name}: {value}\n" for name, value in SETTINGS.items())
    (folder / "config.yaml").write_text(settings)
    (folder / "script.sql").write_text(script)
    arguments = (CLIENT, "embedded", "-f", str(folder / "script.sql"))
    with java("Flink", folder, class_path(), arguments, {"FLINK_CONF_DIR": str(folder)}) as child:
        yield child


def class_path() -> list[Path]:
    """The SQL client needs the Python jar for the options of its command line, although no Python runs."""
    home = downloads.flink()
    opt = [next((home / "opt").glob(f"{name}-*.jar")) for name in ("flink-sql-client", "flink-python")]
    return [*sorted((home / "lib").glob("*.jar")), *opt, *downloads.jars("flink")]


def table(name: str, columns: str, options: Mapping[str, str]) -> str:
    """A statement that declares a table of a connector."""
    written = ",\n  ".join(f"{quoted(key)} = {quoted(value)}" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (\n  {written});\n"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def topic(name: str, brokers: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The options of a topic. ``properties`` are those of the consumer or producer."""
    given = {f"properties.{key}": value for key, value in properties.items()}
    return {"connector": "kafka", "topic": name, "properties.bootstrap.servers": brokers, **given}


BOUNDED = {"scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset"}
