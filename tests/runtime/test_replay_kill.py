"""kill -9 of an engine in the midst of REPLAY QUARANTINE: no record is lost, and none is doubled in a keyed topic."""

from __future__ import annotations

import io
import json
import struct
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import all_run, run, skipped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

MANY = 5_000  # set aside, so that the engine dies while they are written
A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else
STOCK = {
    "type": "record",
    "name": "stock",
    "fields": [{"name": "id", "type": "int"}, {"name": "n", "type": "int"}],
}
PIPELINE = """
CREATE SOURCE stock FROM KAFKA CONNECTION kafka (TOPIC 'held_stock')
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
  ENVELOPE UPSERT WITH (ON ERROR = QUARANTINE);
CREATE SINK held_state FROM stock INTO KAFKA CONNECTION kafka (TOPIC 'held_state') KEY (key)
  KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;
CREATE SOURCE log FROM KAFKA CONNECTION kafka (TOPIC 'held_stock')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (ON ERROR = QUARANTINE);
CREATE SINK held_log FROM log INTO KAFKA CONNECTION kafka (TOPIC 'held_log') FORMAT JSON;
"""


def test_a_replay_that_is_killed_loses_nothing(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    stock = _Stock(found["kafka"], found["registry"])
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    engine = start_engine(project, environment=environment)
    try:
        run(engine, PIPELINE)
        both = {"held_log": MANY, "held_state": MANY}
        assert eventually(lambda: skipped(engine) == both, A_START), run(engine, "SHOW TASKS;")
        stock.publish()
        for sink in ("held_state", "held_log"):
            _killed_in_replay(engine, stock, sink)
            engine = start_engine(project, environment=environment)
        assert eventually(lambda: all_run(engine), A_START), run(engine, "SHOW TASKS;")
        run(engine, "REPLAY QUARANTINE FOR SOURCE stock; REPLAY QUARANTINE FOR SOURCE log;")
        assert _held(engine) == []
        assert run(engine, "REPLAY QUARANTINE FOR SINK held_log;") == [("held_log", 0, 0, 0)]
        wanted = {n: n for n in range(MANY)} | {n: -n for n in range(10)}
        assert stock.latest("held_state") == wanted
        log = stock.log("held_log")
        assert log.keys() == {*((n, n) for n in range(MANY)), *((n, -n) for n in range(10))}
    finally:
        engine.kill()


class _Stock:
    """A topic of which MANY records name a schema that is not registered at first, and ten newer ones one that is."""

    def __init__(self, brokers: str, registry: str) -> None:
        self._brokers = brokers
        self._registry = registry
        known = self._register("held_stock-value", STOCK)
        self._later = known + 1
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic("held_stock", 2)])["held_stock"].result(30)
        producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
        for id_, numbers in ((self._later, range(MANY)), (known, range(0, -10, -1))):
            for n in numbers:
                producer.produce("held_stock", _encoded(id_, n), key=str(abs(n)))
                producer.poll(0)
            producer.flush(60)

    def publish(self) -> None:
        assert self._register("held_elsewhere", {**STOCK, "doc": "another one"}) == self._later

    def _register(self, subject: str, schema: object) -> int:
        with RegistryClient([self._registry]) as client:
            return client.register(subject, Schema(json.dumps(schema)))

    def written(self, topic: str) -> int:
        consumer = self._consumer()
        try:
            return sum(
                consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1]
                for p in consumer.list_topics(topic, 30).topics[topic].partitions
            )
        finally:
            consumer.close()

    def log(self, topic: str) -> Counter[tuple[int, int]]:
        """How often each record is in a topic."""
        return Counter((value["id"], value["n"]) for _, value in self._records(topic))

    def latest(self, topic: str) -> dict[int, int]:
        """The last `n` of each key."""
        found = {int(key): value for key, value in self._records(topic)}
        return {key: value["n"] for key, value in found.items() if value is not None}

    def _records(self, topic: str) -> list[tuple[bytes, dict[str, int]]]:
        consumer, left = self._consumer(), self.written(topic)
        found = []
        try:
            partitions = consumer.list_topics(topic, 30).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            while left:
                messages = [m for m in consumer.consume(1000, 5.0) if m.error() is None]
                assert messages, f"{left} records do not come"
                left -= len(messages)
                found += [(m.key() or b"", json.loads(m.value() or b"null")) for m in messages]
            return found
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer({"bootstrap.servers": self._brokers, "group.id": "look", "log_level": 0})


def _encoded(schema_id: int, n: int) -> bytes:
    body = io.BytesIO()
    body.write(struct.pack(">bi", 0, schema_id))
    fastavro.schemaless_writer(body, fastavro.parse_schema(STOCK), {"id": abs(n), "n": n})
    return body.getvalue()


def _killed_in_replay(engine: EngineProcess, stock: _Stock, sink: str) -> None:
    """Kill the engine when the first replayed record is written."""
    assert eventually(lambda: all_run(engine), A_START), run(engine, "SHOW TASKS;")
    before = stock.written(sink)
    replay = threading.Thread(target=_replay, args=(engine, sink))
    replay.start()
    assert eventually(lambda: stock.written(sink) > before, A_START)
    engine.kill()
    replay.join()


def _held(engine: EngineProcess) -> list[tuple[object, ...]]:
    return run(engine, "SELECT task, count(*) FROM headgate_catalog.quarantine GROUP BY task ORDER BY task;")


def _replay(engine: EngineProcess, sink: str) -> None:
    with suppress(Exception):  # the engine is killed meanwhile
        run(engine, f"REPLAY QUARANTINE FOR SINK {sink};")
