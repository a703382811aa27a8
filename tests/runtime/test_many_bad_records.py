"""Many bad records in one batch: they go to the warehouse, are shown once each, survive a kill, and are replayed."""

from __future__ import annotations

import io
import json
import os
import struct
from contextlib import suppress
from pathlib import Path

import fastavro
import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.catalog.store.reader import SqliteReader
from headgate.cli.commands import LAZY_SPARK
from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run, skipped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

MANY, IN_CATALOG = 6_000, 1_000
A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else
NUMBER = {"type": "record", "name": "number", "fields": [{"name": "n", "type": "int"}]}
PIPELINE = """
CREATE SOURCE numbers FROM KAFKA CONNECTION kafka (TOPIC 'many_numbers')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (ON ERROR = QUARANTINE);
CREATE VIEW shares AS SELECT n, 100 / n AS share FROM numbers;
CREATE SINK many_shares FROM shares INTO KAFKA CONNECTION kafka (TOPIC 'many_shares') FORMAT JSON;
"""
HELD = "SELECT count(*), count(DISTINCT partition, offset) FROM headgate_catalog.quarantine;"


def test_many_bad_records_outlive_a_kill_and_are_replayed_but_for_those_that_fail_again(
    world: World, tmp_path: Path
) -> None:
    found = world.ensure("kafka", "registry")
    numbers = _Numbers(found["kafka"], found["registry"])
    project = tmp_path / "project"
    environment = {"HEADGATE_WORLD": str(world.folder), "HEADGATE_QUARANTINE_IN_CATALOG": str(IN_CATALOG)}
    # The first engine dies when the folder is full and no commit names it yet.
    _die(project, {**environment, "HEADGATE_CRASH_AT": "after_quarantine:1"})
    (orphan,) = _folders(project)
    with SqliteReader(project / ".headgate" / "catalog.db") as catalog:
        assert (catalog.quarantine_folders(), catalog.quarantined()) == ((), ())

    with start_engine(project, environment=environment) as engine:
        assert eventually(lambda: skipped(engine) == {"many_shares": MANY + 1}, A_START), run(engine, "SHOW TASKS;")
        assert run(engine, HELD) == [(MANY + 1, MANY + 1)]
        assert eventually(lambda: orphan not in _folders(project), A_START)
        with SqliteReader(project / ".headgate" / "catalog.db") as catalog:
            assert len(catalog.quarantined()) <= IN_CATALOG
        assert len(run(engine, "SHOW QUARANTINE FOR many_shares;")) == MANY + 1
        raw = "SELECT hex(raw), path, expected, schema_id FROM headgate_catalog.quarantine WHERE length(raw) = 5;"
        assert run(engine, raw) == [(numbers.cut_short.hex().upper(), "$.value", "avro", numbers.later)]

        # Now the schema is known. One record divides by zero, and one ends too early: they stay.
        numbers.publish()
        assert run(engine, "REPLAY QUARANTINE FOR numbers;") == [("many_shares", MANY - 1, 0, 2)]
        first, second = sorted(
            str(reason) for (reason,) in run(engine, "SELECT reason FROM headgate_catalog.quarantine;")
        )
        assert "divide by zero" in first
        assert second == "It ends before its schema does"
        assert numbers.written() == sorted(range(1, MANY))
        run(engine, "DROP SINK many_shares;")
        assert run(engine, HELD) == [(0, 0)]
    with start_engine(project, environment={**environment, **LAZY_SPARK}):
        assert eventually(lambda: _folders(project) == [], A_START)


@pytest.mark.soak
def test_records_that_nobody_can_read_do_not_fill_the_engine(world: World, tmp_path: Path) -> None:
    count = int(os.environ.get("HEADGATE_BAD_RECORDS", "20000"))
    brokers = world.ensure("kafka")["kafka"]
    _put(brokers, "unreadable", [b"\xff" * 100] * count)
    with start_engine(tmp_path / "project", environment={"HEADGATE_WORLD": str(world.folder)}) as engine:
        run(
            engine,
            "CREATE SOURCE half FROM KAFKA CONNECTION kafka (TOPIC 'unreadable') FORMAT TEXT"
            " WITH (ON ERROR = QUARANTINE);"
            "CREATE SINK half_out FROM half INTO KAFKA CONNECTION kafka (TOPIC 'half_out') FORMAT TEXT;",
        )
        assert eventually(lambda: skipped(engine) == {"half_out": count}, 3 * A_START), run(engine, "SHOW TASKS;")
        assert run(engine, HELD) == [(count, count)]
        assert run(engine, "REPLAY QUARANTINE FOR half;") == [("half_out", 0, 0, count)]
        assert run(engine, HELD) == [(count, count)]
        # With half a million records it was 906 MB when the driver read all of them.
        assert psutil.Process(engine.pid).memory_info().rss < 400 << 20


class _Numbers:
    """A topic with the numbers from 0 to MANY - 1, and one record that ends early, written with a schema that is not known yet."""

    def __init__(self, brokers: str, registry: str) -> None:
        self._brokers, self._registry = brokers, registry
        self.later = self._register("many_numbers-value", NUMBER) + 1
        self.cut_short = struct.pack(">bi", 0, self.later)
        schema, values = fastavro.parse_schema(NUMBER), [self.cut_short]
        for n in range(MANY):
            body = io.BytesIO()
            body.write(struct.pack(">bi", 0, self.later))
            fastavro.schemaless_writer(body, schema, {"n": n})
            values.append(body.getvalue())
        _put(brokers, "many_numbers", values)

    def publish(self) -> None:
        assert self._register("many_elsewhere", {**NUMBER, "doc": "another one"}) == self.later

    def _register(self, subject: str, schema: object) -> int:
        with RegistryClient([self._registry]) as client:
            return client.register(subject, Schema(json.dumps(schema)))

    def written(self) -> list[int]:
        """The numbers in the sink's topic, however often they are there."""
        consumer = Consumer({"bootstrap.servers": self._brokers, "group.id": "look", "log_level": 0})
        try:
            partitions = consumer.list_topics("many_shares", 30).topics["many_shares"].partitions
            places = [TopicPartition("many_shares", p, 0) for p in partitions]
            left = sum(consumer.get_watermark_offsets(place, 30)[1] for place in places)
            consumer.assign(places)
            found = []
            while left:
                messages = [m for m in consumer.consume(1000, 10.0) if m.error() is None]
                assert messages, f"{left} records do not come"
                left -= len(messages)
                found += [json.loads(m.value() or b"null")["n"] for m in messages]
            return sorted(found)
        finally:
            consumer.close()


def _put(brokers: str, topic: str, values: list[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(30)
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0, "linger.ms": 20})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
        if number % 10_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def _die(project: Path, environment: dict[str, str]) -> None:
    """Start an engine that kills itself in the first batch of the pipeline, and wait for its end."""
    engine = start_engine(project, environment=environment)
    try:
        with suppress(Exception):  # it may die before it has answered
            run(engine, PIPELINE)
        assert eventually(lambda: not engine.is_running, A_START), "the engine did not reach its crash point"
    finally:
        engine.kill()


def _folders(project: Path) -> list[str]:
    warehouse = project / ".headgate" / "warehouse" / "quarantine"
    return sorted(folder.name for folder in warehouse.iterdir()) if warehouse.exists() else []
