"""Engines and brokers are killed while records flow: a reader of committed records sees each row once.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from headgate.connectors.errors import BrokerUnreachable
from headgate.embedded.world import World
from headgate.runtime.ports import Batch
from headgate.runtime.targets.kafka_transactions import KafkaTransactions
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually, open_world
from tests.runtime.kills import A_START, KILLS, SEED, Flow, Step, flowing, in_turn, kill_engines, progress
from tests.runtime.once_topics import Once, Pair, batch, write
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 4))]

# In the transaction, between its commit and the catalog's copy of the ledger, before both, behind both, and in a second one.
STEPS = (Step("in_write"), Step("after_write"), Step("after_mark"), Step("after_commit"), Step("in_write", 2))


@pytest.fixture(scope="module")
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose broker may be killed: nobody else uses it."""
    yield from open_world(tmp_path_factory)


def exact_orders(world: World, topic: str) -> Orders:
    found = world.ensure("kafka", "registry")
    return Orders(found["kafka"], found["registry"], topic, delivery="exactly once")


def each_once(orders: Orders, flow: Flow, engine: EngineProcess) -> None:
    """All orders have arrived, and none of them twice."""
    wanted = set(range(int(CHEAP), flow.sent))
    came = orders.arrived(wanted, A_START)
    assert wanted - came.keys() == set(), f"lost with seed {SEED}: {run(engine, 'SHOW TASKS;')}"
    assert orders.counted() == Counter(wanted), f"doubled with seed {SEED}"


def _goes_on(project: Path, engine: EngineProcess) -> None:
    """Wait until another batch is committed."""
    before = progress(project)
    assert eventually(lambda: progress(project) > before, A_START), run(engine, "SHOW TASKS;")


def test_engines_killed_at_steps_of_a_batch_and_at_random_double_nothing(world: World, tmp_path: Path) -> None:
    orders = exact_orders(world, "once_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, orders.pipeline, project, environment, in_turn(STEPS))
    with start_engine(project, environment=environment) as engine:
        each_once(orders, flow, engine)


def test_brokers_killed_at_random_moments_double_nothing(own_world: World, tmp_path: Path) -> None:
    orders = exact_orders(own_world, "once_brokers")
    moments = random.Random(SEED)
    project = tmp_path / "project"
    with start_engine(project, environment={"HEADGATE_WORLD": str(own_world.folder)}) as engine:
        run(engine, orders.pipeline)
        with flowing(orders) as flow:
            for _ in range(KILLS):
                _goes_on(project, engine)
                time.sleep(moments.uniform(0, 2))
                own_world.stop_hard("kafka")
                time.sleep(moments.uniform(0, 5))
                own_world.start("kafka")
        each_once(orders, flow, engine)


def test_a_broker_that_dies_between_the_rows_and_the_commit_neither_loses_nor_doubles(
    own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = Once(own_world.ensure("kafka")["kafka"], "once_mid_transaction").create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 1), ("a", "1"))
    produce, deaths = KafkaTransactions._produce_rows, iter([True])

    def die_behind_the_rows(self: KafkaTransactions, producer: Producer, rows: pa.Table) -> None:
        produce(self, producer, rows)
        producer.flush(10)
        if next(deaths, False):
            own_world.stop_hard("kafka")
            threading.Timer(2.0, own_world.start, ["kafka"]).start()

    monkeypatch.setattr(KafkaTransactions, "_produce_rows", die_behind_the_rows)
    assert eventually(lambda: _wrote(target, batch(2, 1, 2), ("b", "2")), A_START)
    write(target, batch(3, 2, 3), ("c", "3"))
    assert once.held() == [("a", "1"), ("b", "2"), ("c", "3")]
    once.close()


def _wrote(target: KafkaTransactions, batch_: Batch, pair: Pair) -> bool:
    """Try a batch as a task does: after an outage it begins anew. False while the broker is away."""
    try:
        target.begin(1)
        write(target, batch_, pair)
    except BrokerUnreachable:
        return False
    return True
