"""kill -9 of a running engine while records flow, between all steps of a batch and at random: nothing is lost.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from headgate.catalog.store.sqlite import SqliteReader
from headgate.embedded.world import World
from headgate.serve.client import start_engine
from headgate.serve.errors import EngineDidNotStart
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

KILLS = int(os.environ.get("HEADGATE_KILLS", "2"))
SEED = int(os.environ.get("HEADGATE_KILL_SEED", str(random.SystemRandom().randrange(10**6))))
A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else; 20 on an idle one

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 2))]


POINTS = ("after_mark", "in_write", "after_write", "after_commit")


def test_an_engine_that_dies_between_two_steps_of_a_batch_loses_nothing(world: World, tmp_path: Path) -> None:
    """Each engine dies at another point of a batch, the last two in their second batch. A keyed topic ends up equal."""
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "crash_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with start_engine(project, environment=environment) as engine:
        run(engine, orders.pipeline + KEYED)
    with _flow(orders) as flow:
        for point, further in [*((point, 1) for point in POINTS), ("in_write", 2), ("after_write", 2)]:
            number = max(_numbers(project)) + further
            _die(project, {**environment, "HEADGATE_CRASH_AT": f"{point}:{number}"})
            assert max(_numbers(project)) >= number - (point != "after_commit")
    wanted = set(range(int(CHEAP), flow.sent))
    with start_engine(project, environment=environment) as engine:
        came = orders.arrived(wanted, A_START)
        assert came.keys() == wanted, run(engine, "SHOW TASKS;")
        assert eventually(lambda: orders.latest("crash_keyed") == wanted, A_START), run(engine, "SHOW TASKS;")


KEYED = """
CREATE SOURCE crash_state FROM KAFKA CONNECTION kafka (TOPIC 'crash_orders') KEY FORMAT TEXT
  VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE VIEW crash_dear AS SELECT key, id FROM crash_state WHERE price >= 100;
CREATE SINK crash_keyed FROM crash_dear INTO KAFKA CONNECTION kafka (TOPIC 'crash_keyed') KEY (key)
  KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT;
"""


def _die(project: Path, environment: dict[str, str]) -> None:
    """Start an engine that kills itself, and wait for its end. It may die before it answers."""
    with suppress(EngineDidNotStart):
        engine = start_engine(project, environment=environment)
        try:
            assert eventually(lambda: not engine.is_running, A_START), "the engine did not reach its crash point"
        finally:
            engine.kill()


def _numbers(project: Path) -> list[int]:
    """The number of the last committed batch of each task."""
    with SqliteReader(project / ".headgate" / "catalog.db") as reader:
        ledgers = [reader.ledger(task) for task in reader.load().desired]
    return [one.number for one in ledgers if one is not None] or [0]


def test_a_killed_engine_loses_nothing(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "kill_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    moments = random.Random(SEED)
    engine = start_engine(project, environment=environment)
    try:
        run(engine, orders.pipeline)
        with _flow(orders) as flow:
            for _ in range(KILLS):
                _wait_for(moments, project)
                engine.kill()
                engine = start_engine(project, environment=environment)
        wanted = set(range(int(CHEAP), flow.sent))
        came = orders.arrived(wanted, A_START)
        assert wanted - came.keys() == set(), f"lost after kills with seed {SEED}: {run(engine, 'SHOW TASKS;')}"
        assert came.keys() == wanted
    finally:
        engine.kill()


def test_an_engine_told_to_stop_neither_loses_nor_doubles(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "drain_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with _flow(orders) as flow:
        with start_engine(project, environment=environment) as engine:
            run(engine, orders.pipeline)
            assert eventually(lambda: _progress(project) > (0, 0), A_START)
        stopped = _progress(project)
        with start_engine(project, environment=environment):
            assert eventually(lambda: _progress(project) > stopped, A_START)
    with start_engine(project, environment=environment) as engine:
        wanted = set(range(int(CHEAP), flow.sent))
        came = orders.arrived(wanted, A_START)
        # As a service manager does: the signal goes to every process, and Spark ends by it before the engine does.
        process = psutil.Process(engine.pid)
        for one in (*process.children(), process):
            one.terminate()
        assert eventually(lambda: not engine.is_running, A_START)
    assert came.keys() == wanted
    assert set(came.values()) == {1}


class _Flow(threading.Thread):
    """Writes orders, a few hundred a second, until it is told to end. ``sent`` of them are acknowledged."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(daemon=True)
        self.sent = int(CHEAP)
        self._orders = orders
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.1):
            self._orders.put(range(self.sent, self.sent + 20))
            self.sent += 20

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def _flow(orders: Orders) -> Iterator[_Flow]:
    flow = _Flow(orders)
    flow.start()
    try:
        yield flow
    finally:
        flow.end()


def _wait_for(moments: random.Random, project: Path) -> None:
    """A moment at random: mostly soon after a batch, when the next one is under way, sometimes in the midst of a start."""
    if moments.random() < 0.8:
        before = _progress(project)
        assert eventually(lambda: _progress(project) > before, A_START), "the task does not go on"
        time.sleep(moments.uniform(0, 2))
    else:
        time.sleep(moments.uniform(0, 15))


def _progress(project: Path) -> tuple[int, int]:
    """Generation of the only task, and how many of its batches are over."""
    with SqliteReader(project / ".headgate" / "catalog.db") as reader:
        ledgers = [reader.ledger(task) for task in reader.load().desired]
    return max(((one.generation, one.number) for one in ledgers if one is not None), default=(0, 0))
