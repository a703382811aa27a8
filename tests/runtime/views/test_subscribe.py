"""SUBSCRIBE and EMIT CHANGES of a running engine: rows that come and go, until the client stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from headgate.serve.protocol import Failed, Rows
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SETUP = """
CREATE SOURCE told FROM KAFKA CONNECTION kafka (TOPIC 'told') FORMAT TEXT ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW counts AS SELECT text, count(*) AS n FROM told GROUP BY text;
CREATE VIEW loud AS SELECT upper(text) AS text, n FROM counts WHERE n > 1;
"""


def changes(engine: EngineProcess, sql: str) -> Iterator[tuple[object, ...]]:
    """The changes as they come, without their time."""
    for event in engine.client.run(sql):
        assert not isinstance(event, Failed), event.diagnostic.render()
        if isinstance(event, Rows):
            for row in event.rows:
                assert str(row[0]).startswith("20")
                yield row[1:]


def test_changes_come_until_the_client_stops(world: World, tmp_path: Path) -> None:
    brokers = world.ensure("kafka")["kafka"]
    admin = AdminClient({"bootstrap.servers": brokers})  # a client that nobody holds ends before its answer comes
    admin.create_topics([NewTopic("told", 1)])["told"].result(30)
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})

    def put(key: str, value: str | None) -> None:
        producer.produce("told", value, key)
        producer.flush(30)

    with start_engine(tmp_path / "project", environment={"HEADGATE_WORLD": str(world.folder)}) as engine:
        run(engine, SETUP)
        put("1", "a")
        followed = changes(engine, "SUBSCRIBE counts;")
        assert next(followed) == (1, "a", 1)
        put("2", "a")
        assert {next(followed), next(followed)} == {(-1, "a", 1), (1, "a", 2)}
        put("1", None)
        assert {next(followed), next(followed)} == {(-1, "a", 2), (1, "a", 1)}
        put("1", "a")
        assert {next(followed), next(followed)} == {(-1, "a", 1), (1, "a", 2)}
        assert list(changes(engine, "SELECT text FROM loud EMIT CHANGES LIMIT 1;")) == [(1, "A")]
        assert run(engine, "SELECT text, n FROM counts;") == [("a", 2)]
