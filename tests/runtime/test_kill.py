"""kill -9 of a running engine while records flow, between all steps of a batch and at random: nothing is lost.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from headgate.embedded.world import World
from headgate.serve.client import start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, KILLS, SEED, Step, flowing, in_turn, kill_engines, progress
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]


# Between mark and write, in the middle of a write, between write and commit, and in the second batch of an engine.
STEPS = (
    Step("after_mark"),
    Step("in_write"),
    Step("after_write"),
    Step("in_write", 2),
    Step("after_commit"),
    Step("after_write", 2),
)


def test_engines_killed_between_steps_of_a_batch_and_at_random_lose_nothing(world: World, tmp_path: Path) -> None:
    """A keyed topic ends up equal, whether its sink runs in micro-batches or in real time."""
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "crash_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, orders.pipeline + KEYED, project, environment, in_turn(STEPS), least=2)
    wanted = set(range(int(CHEAP), flow.sent))
    with start_engine(project, environment=environment) as engine:
        came = orders.arrived(wanted, A_START)
        assert came.keys() == wanted, f"lost after kills with seed {SEED}: {run(engine, 'SHOW TASKS;')}"
        for topic in ("crash_keyed", "crash_live"):
            complete = eventually(lambda topic=topic: orders.latest(topic) == wanted, A_START)  # type: ignore[misc]
            assert complete, (topic, run(engine, "SHOW TASKS;"))


KEYED = """
CREATE SOURCE crash_state FROM KAFKA CONNECTION kafka (TOPIC 'crash_orders') KEY FORMAT TEXT
  VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE VIEW crash_dear AS SELECT key, id FROM crash_state WHERE price >= 100;
CREATE SINK crash_keyed FROM crash_dear INTO KAFKA CONNECTION kafka (TOPIC 'crash_keyed') KEY (key)
  KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT WITH (LATENCY = 'micro-batch');
CREATE SINK crash_live FROM crash_dear INTO KAFKA CONNECTION kafka (TOPIC 'crash_live') KEY (key)
  KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT WITH (LATENCY = 'real time');
"""


def test_an_engine_told_to_stop_neither_loses_nor_doubles(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "drain_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with flowing(orders) as flow:
        with start_engine(project, environment=environment) as engine:
            run(engine, orders.pipeline)
            assert eventually(lambda: progress(project) > 0, A_START)
        stopped = progress(project)
        engine = start_engine(project, environment=environment)
        assert eventually(lambda: progress(project) > stopped, A_START)
    wanted = set(range(int(CHEAP), flow.sent))
    came = orders.arrived(wanted, A_START)
    # As a service manager does: the signal goes to every process, and Spark ends by it before the engine does.
    process = psutil.Process(engine.pid)
    for one in (*process.children(), process):
        one.terminate()
    assert eventually(lambda: not engine.is_running, A_START)
    assert came.keys() == wanted
    assert set(came.values()) == {1}
