"""Schema changes while records flow through a view with `*` into a sink: nothing is lost or doubled, and every value
stands in its column.

`HEADGATE_SCHEMA_CHANGES` sets how many changes.
"""

from __future__ import annotations

import io
import json
import os
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run

CHANGES = int(os.environ.get("HEADGATE_SCHEMA_CHANGES", "6"))  # all kinds of change happen in the first five
PER_VERSION = 120
PARTITIONS = 2
PATIENCE = 300.0

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(900 + 60 * CHANGES)]

APPEND = """
CREATE SOURCE {topic} FROM KAFKA CONNECTION kafka (TOPIC '{topic}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {topic}_all AS SELECT * FROM {topic};
CREATE SINK {topic}_sink FROM {topic}_all INTO KAFKA CONNECTION kafka (TOPIC '{topic}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""
# A key of its own for each record, so that both ways give the same topic.
KEYED = """
CREATE SOURCE {topic} FROM KAFKA CONNECTION kafka (TOPIC '{topic}')
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
  INCLUDE KEY AS k ENVELOPE UPSERT;
CREATE VIEW {topic}_all AS SELECT * FROM {topic};
CREATE SINK {topic}_sink FROM {topic}_all INTO KAFKA CONNECTION kafka (TOPIC '{topic}_out') KEY (k)
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
  WITH (KEY IN VALUE = false, LATENCY = '{latency}');
"""
PIPELINES = {
    "soak": APPEND.format(topic="soak"),
    "soak_batches": KEYED.format(topic="soak_batches", latency="micro-batch"),
    "soak_live": KEYED.format(topic="soak_live", latency="real time"),
}


def test_schema_changes_under_load(world: World, tmp_path: Path) -> None:
    """Of an append sink and of keyed ones of both ways, side by side in one engine."""
    found = world.ensure("kafka", "registry")
    writers = {topic: Writer(found["kafka"], found["registry"], topic) for topic in PIPELINES}
    with start_engine(tmp_path / "project", environment={"HEADGATE_WORLD": str(world.folder)}) as engine:
        run(engine, "".join(PIPELINES.values()))
        for writer in writers.values():
            writer.start()
        for topic, writer in writers.items():
            writer.join()
            out = Output(found["kafka"], found["registry"], f"{topic}_out")
            complete = eventually(lambda out=out, writer=writer: len(out.seen()) >= len(writer.sent), PATIENCE)  # type: ignore[misc]
            assert complete, (topic, len(out.rows), len(writer.sent), run(engine, "SHOW TASKS;"))
            came_as_sent(out, writer)


def came_as_sent(out: Output, writer: Writer) -> None:
    assert Counter(row["id"] for row in out.rows) == Counter(row["id"] for row in writer.sent)
    by_id = {row["id"]: row for row in out.rows}
    for sent in writer.sent:
        came = {name: value for name, value in by_id[sent["id"]].items() if value is not None}
        assert came == sent


class Writer(threading.Thread):
    """Version n has the fields f1 to fn beside the id; from the third on the id is a long, and from the fifth on
    version f1 is no longer written."""

    def __init__(self, brokers: str, registry: str, topic: str) -> None:
        super().__init__(daemon=True)
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
        self._topic = topic
        self.sent: list[dict[str, object]] = []
        self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "log_level": 0})
        self._registry = registry
        self._ids = [self._register(0)]

    def run(self) -> None:
        pause = threading.Event()
        for version in range(CHANGES + 1):
            if version:
                self._ids.append(self._register(version))
            for number in range(PER_VERSION):
                # Others still write as before for a while.
                self._put(version if number % 3 else max(0, version - 1), version * PER_VERSION + number)
                pause.wait(0.02)
        self._producer.flush(60)

    def _register(self, version: int) -> int:
        with RegistryClient([self._registry]) as client:
            return client.register(f"{self._topic}-value", Schema(json.dumps(schema(version))))

    def _put(self, version: int, id_: int) -> None:
        fields = [f for f in schema(version)["fields"] if f["name"] != "id"]  # type: ignore[attr-defined]
        row: dict[str, object] = {"id": id_, **{str(f["name"]): id_ + n for n, f in enumerate(fields)}}
        body = io.BytesIO()
        body.write(struct.pack(">bi", 0, self._ids[version]))
        fastavro.schemaless_writer(body, fastavro.parse_schema(schema(version)), row)
        self._producer.produce(self._topic, body.getvalue(), key=str(id_))
        self._producer.poll(0)
        self.sent.append(row)


def schema(version: int) -> dict[str, object]:
    names = [f"f{n}" for n in range(1, version + 1) if not (n == 1 and version >= 5)]
    added = [{"name": name, "type": ["null", "int"], "default": None} for name in names]
    fields = [{"name": "id", "type": "int" if version < 3 else "long"}, *added]
    return {"type": "record", "name": "soak", "fields": fields}


class Output:
    """All that the sink has written, each record read by the schema that it names."""

    def __init__(self, brokers: str, registry: str, topic: str) -> None:
        self.rows: list[Mapping[str, object]] = []
        self._consumer = Consumer({"bootstrap.servers": brokers, "group.id": "soak", "log_level": 0})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._registry = registry
        self._schemas: dict[int, object] = {}

    def seen(self) -> list[Mapping[str, object]]:
        for message in self._consumer.consume(1000, 1.0):
            value = message.value()
            assert message.error() is None
            assert value is not None
            self.rows.append(self._read(value))
        return self.rows

    def _read(self, value: bytes) -> Mapping[str, object]:
        (schema_id,) = struct.unpack(">xI", value[:5])
        if schema_id not in self._schemas:
            with RegistryClient([self._registry]) as client:
                text = client.schema_by_id(schema_id).text
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(text))
        read = fastavro.schemaless_reader(io.BytesIO(value[5:]), self._schemas[schema_id], None)  # type: ignore[arg-type]
        assert isinstance(read, dict)
        return read
