"""A batch that needs more memory than Spark has: its task says so, and the engine and the other tasks go on by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else
PIPELINE = """
CREATE SOURCE sizes FROM KAFKA CONNECTION kafka (TOPIC 'heap_sizes') FORMAT TEXT;
CREATE VIEW huge AS SELECT repeat('x', int(text)) AS text FROM sizes;
CREATE SINK heap_huge FROM huge INTO KAFKA CONNECTION kafka (TOPIC 'heap_huge') FORMAT TEXT;
"""
OTHER = (
    "CREATE SINK IF NOT EXISTS heap_sizes_copy FROM sizes INTO KAFKA CONNECTION kafka (TOPIC 'heap_copy') FORMAT TEXT;"
)


def test_a_batch_that_exhausts_the_heap_is_named_and_the_engine_recovers(world: World, tmp_path: Path) -> None:
    brokers = world.ensure("kafka")["kafka"]
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic("heap_sizes", 1)])["heap_sizes"].result(30)
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
    producer.produce("heap_sizes", b"900000000")
    producer.flush(30)
    environment = {"HEADGATE_WORLD": str(world.folder), "HEADGATE_SPARK_MEMORY": "512m"}
    with start_engine(tmp_path / "project", environment=environment) as engine:
        run(engine, PIPELINE)
        assert eventually(lambda: "ran out of memory, though its heap is 512m" in _shown(engine, "TASKS"), A_START)
        # The same process goes on, with another Spark. It may be away while this is asked.
        named = "Spark ended while it ran a batch. It ran out of memory"
        assert eventually(lambda: named in _shown(engine, "EVENTS FOR heap_huge"), A_START)
        # What does not need so much memory works.
        assert eventually(lambda: _answer(engine, "DROP SINK IF EXISTS heap_huge;") is not None, A_START)
        assert eventually(lambda: _answer(engine, OTHER) is not None, A_START)
        copied = "SELECT rows, error FROM headgate_catalog.tasks WHERE state = 'running';"
        assert eventually(lambda: _answer(engine, copied) == [(1, None)], A_START), _answer(engine, "SHOW TASKS;")
        assert engine.is_running


def _answer(engine: EngineProcess, statement: str) -> list[tuple[object, ...]] | None:
    """None while the engine is away."""
    try:
        return run(engine, statement)
    except Exception:  # noqa: BLE001 - the engine starts again
        return None


def _shown(engine: EngineProcess, what: str) -> str:
    return str(_answer(engine, f"SHOW {what};"))
