"""A batch that needs more memory than Spark has: its task says so, and the engine and the other tasks go on by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, started_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else
PIPELINE = """
CREATE SOURCE sizes FROM KAFKA CONNECTION kafka (TOPIC 'heap_sizes') FORMAT TEXT;
CREATE VIEW huge AS SELECT repeat('x', int(text)) AS text FROM sizes;
CREATE SINK heap_huge FROM huge INTO KAFKA CONNECTION kafka (TOPIC 'heap_huge') FORMAT TEXT;
"""
OTHER = "CREATE SINK heap_sizes_copy FROM sizes INTO KAFKA CONNECTION kafka (TOPIC 'heap_copy') FORMAT TEXT;"


def test_a_batch_that_exhausts_the_heap_is_named_and_the_engine_recovers(world: World, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": world.ensure("kafka")["kafka"], "log_level": 0})
    producer.produce("heap_sizes", b"900000000")
    producer.flush(30)
    environment = {"HEADGATE_WORLD": str(world.folder), "HEADGATE_SPARK_MEMORY": "512m"}
    with started_engine(tmp_path / "project", environment=environment) as engine:
        run(engine, PIPELINE)
        assert eventually(lambda: "ran out of memory, though its heap is 512m" in _error(engine, "heap_huge"), A_START)
        events = "SELECT detail FROM headgate_catalog.events WHERE object = 'heap_huge' AND event = 'notice';"
        assert "Spark ended while it ran a batch. It ran out of memory" in str(_answer(engine, events))
        # The same process goes on, with another Spark, and what does not need so much memory works.
        assert eventually(lambda: _answer(engine, "DROP SINK heap_huge;") is not None, A_START)
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


def _error(engine: EngineProcess, task: str) -> str:
    return str(_answer(engine, f"SELECT error FROM headgate_catalog.tasks WHERE name = '{task}';"))
