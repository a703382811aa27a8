"""Kafka Connect in standalone mode with Debezium's JDBC sink.

The sink wants records with a schema. Connect 4.3 can be given the schema once in its settings (`schema.content`); older ones
would need it in every record. A task for each core; Connect's default would be one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers import downloads
from bench.peers.children import Child, java
from headgate.embedded.host import LOOPBACK, choose_port

STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
SINK = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": str(os.cpu_count() or 1),
    "consumer.override.auto.offset.reset": "earliest",
    "insert.mode": "upsert",
    "primary.key.mode": "record_value",
    "schema.evolution": "none",  # the table is there
}


@contextmanager
def running(folder: Path, brokers: str, schema: Mapping[str, Any], sink: Mapping[str, str]) -> Iterator[Child]:
    """Run a sink in a new folder. ``schema`` is that of the values, ``sink`` what is added to SINK."""
    folder.mkdir()
    worker = {
        "bootstrap.servers": brokers,
        "listeners": f"http://{LOOPBACK}:{choose_port(None)}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": CONVERTER,
        "value.converter.schemas.enable": "true",
        "value.converter.schema.content": json.dumps(schema),
        "offset.storage.file.filename": str(folder / "offsets"),
        "plugin.path": str(downloads.connectors()),
        "plugin.discovery": "service_load",
    }
    files = []
    for name, settings in (("worker", worker), ("sink", {**SINK, **sink})):
        files.append(folder / f"{name}.properties")
        files[-1].write_text(properties(settings))
    with java("Debezium's sink", folder, downloads.jars("connect"), (STANDALONE, *map(str, files)), {}) as child:
        yield child


def properties(settings: Mapping[str, str]) -> str:
    """A file of properties as Java reads it."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def field(name: str, type_: str, *, optional: bool = False, meaning: str | None = None) -> dict[str, Any]:
    """A field of a Connect schema. ``meaning`` names a logical type."""
    named = {} if meaning is None else {"name": meaning}
    return {"field": name, "type": type_, "optional": optional, **named}
