"""Rows that a sink cannot encode, and engines that die around their batch: none is lost, and none is in the quarantine twice."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.catalog.store.reader import SqliteReader
from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from headgate.serve.errors import EngineDidNotStart
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else
IN_CATALOG = 50
MANY, FEW = 400, 20  # records of the first and of the second batch; every other one cannot be encoded
HELD = "SELECT count(*), count(DISTINCT partition, offset) FROM headgate_catalog.quarantine WHERE object = 'points';"
PIPELINE = """
CREATE TYPE reject_point AS (x integer NOT NULL);
CREATE SOURCE reject_lines FROM KAFKA CONNECTION kafka (TOPIC 'reject_lines') FORMAT TEXT;
CREATE VIEW reject_points AS SELECT text, ROW(try_cast(text AS integer))::reject_point AS p FROM reject_lines;
CREATE SINK points FROM reject_points INTO KAFKA CONNECTION kafka (TOPIC 'reject_points')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (ON ERROR = QUARANTINE);
CREATE SINK latest_points FROM reject_points INTO KAFKA CONNECTION kafka (TOPIC 'reject_latest') KEY (text) NOT ENFORCED
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (ON ERROR = SKIP);
"""
MENDED = """
CREATE OR REPLACE VIEW reject_points AS
  SELECT text, ROW(coalesce(try_cast(text AS integer), -1))::reject_point AS p FROM reject_lines;
"""


def test_an_engine_that_dies_around_rows_it_cannot_encode_loses_and_doubles_none(world: World, tmp_path: Path) -> None:
    brokers = world.ensure("kafka", "registry")["kafka"]
    project = tmp_path / "project"
    environment = {"HEADGATE_WORLD": str(world.folder), "HEADGATE_QUARANTINE_IN_CATALOG": str(IN_CATALOG)}
    _create(brokers)
    _put(brokers, range(MANY))
    # Many of them go to a folder, which the first engine fills and does not commit.
    _die(project, {**environment, "HEADGATE_CRASH_AT": "after_quarantine:1"}, PIPELINE)
    _die(project, {**environment, "HEADGATE_CRASH_AT": "after_write:1"})
    # Few of them go to the catalog, in the transaction of the ledger.
    engine = start_engine(project, environment={**environment, "HEADGATE_CRASH_AT": "after_write:2"})
    try:
        assert eventually(lambda: _in_quarantine(project) == MANY // 2, A_START), run(engine, "SHOW TASKS;")
        _put(brokers, range(MANY, MANY + FEW))
        assert eventually(lambda: not engine.is_running, A_START), "the engine did not reach its crash point"
    finally:
        engine.kill()
    bad = {f"no {number}" for number in range(MANY + FEW) if number % 2}
    good = {str(number) for number in range(MANY + FEW) if number % 2 == 0}
    with start_engine(project, environment=environment) as engine:
        _holds(engine, len(bad))
        assert eventually(lambda: set(_written(brokers, "reject_latest")) == good, A_START)
        assert eventually(lambda: set(_written(brokers, "reject_points")) == good, A_START)
        run(engine, MENDED)
        assert run(engine, "REPLAY QUARANTINE FOR SINK points;") == [("points", len(bad), 0, 0)]
        assert run(engine, HELD) == [(0, 0)]
        written = _written(brokers, "reject_points")
    assert written.keys() == bad | good
    assert {written[text] for text in bad} == {1}


def _holds(engine: EngineProcess, count: int) -> None:
    assert eventually(lambda: run(engine, HELD) == [(count, count)], A_START), run(engine, "SHOW TASKS;")


def _in_quarantine(project: Path) -> int:
    """The records in the quarantine, as the catalog knows them. A SELECT would start the process that runs queries."""
    with SqliteReader(project / ".headgate" / "catalog.db") as catalog:
        return len(catalog.quarantined()) + sum(folder.records for folder in catalog.quarantine_folders())


def _create(brokers: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic("reject_lines", 2)])["reject_lines"].result(30)


def _put(brokers: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0, "linger.ms": 20})
    for number in numbers:
        text = f"no {number}" if number % 2 else str(number)
        producer.produce("reject_lines", text.encode(), partition=number // 2 % 2)
    assert producer.flush(60) == 0


def _die(project: Path, environment: dict[str, str], script: str = "") -> None:
    """Start an engine that kills itself, and wait for its end. It may die before it answers."""
    with suppress(EngineDidNotStart):
        engine = start_engine(project, environment=environment)
        try:
            with suppress(Exception):
                run(engine, script) if script else None
            assert eventually(lambda: not engine.is_running, A_START), "the engine did not reach its crash point"
        finally:
            engine.kill()


def _written(brokers: str, topic: str) -> Counter[str]:
    """How often each text is in a topic of the sinks. An Avro string begins behind the frame, after its length."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "look", "log_level": 0})
    try:
        places = [TopicPartition(topic, 0, 0)]
        left = consumer.get_watermark_offsets(places[0], 30)[1]
        consumer.assign(places)
        found: Counter[str] = Counter()
        while left:
            messages = [m for m in consumer.consume(1000, 10.0) if m.error() is None]
            assert messages, f"{left} records do not come"
            left -= len(messages)
            for message in messages:
                value = message.value() or b""
                found[value[6 : 6 + value[5] // 2].decode()] += 1
        return found
    finally:
        consumer.close()
