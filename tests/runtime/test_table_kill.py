"""kill -9 of an engine that writes tables while records flow, between all steps of a batch and at random: every row is there once.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

import random
from itertools import cycle, islice
from pathlib import Path

import psycopg
import pytest

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run
from tests.runtime.test_kill import A_START, KILLS, SEED, _die, _Flow, _flow, _numbers, _wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT id, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE MATERIALIZATION {name} FROM {name}_dear INTO POSTGRES CONNECTION postgres (TABLE '{name}');
"""
# After the rows are computed, between the merge and the ledger, between the ledger and the commit, and between the commit and the
# catalog's copy of the ledger.
POINTS = (("after_merge", 1), ("before_commit", 1), ("after_write", 1), ("after_collect", 2), ("after_commit", 1))


def each_once(world: World, name: str, flow: _Flow, engine: EngineProcess) -> None:
    """The table has every order once."""
    wanted = flow.sent - int(CHEAP)
    query = f'SELECT count(*), count(DISTINCT id), min(id), max(id) FROM public."{name}"'

    def held() -> tuple[object, ...] | None:
        with psycopg.connect(world.postgres()) as connection:
            return connection.execute(query.encode()).fetchone()

    expected = (wanted, wanted, int(CHEAP), flow.sent - 1)
    assert eventually(lambda: held() == expected, A_START), (SEED, held(), expected, run(engine, "SHOW TASKS;"))


def test_an_engine_that_dies_at_any_step_of_a_batch_doubles_and_loses_no_row(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry", "postgres")
    orders = Orders(found["kafka"], found["registry"], "table_steps")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with start_engine(project, environment=environment) as engine:
        run(engine, PIPELINE.format(name=orders.topic))
    with _flow(orders) as flow:
        ahead = 0  # batches that the table has and the catalog does not know of
        for point, further in islice(cycle(POINTS), max(3, KILLS)):
            number = max(_numbers(project)) + ahead + further
            _die(project, {**environment, "HEADGATE_CRASH_AT": f"{point}:{number}"})
            ahead = int(point == "after_write")
    with start_engine(project, environment=environment) as engine:
        each_once(world, orders.topic, flow, engine)


def test_engines_killed_at_random_moments_double_and_lose_no_row(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry", "postgres")
    orders = Orders(found["kafka"], found["registry"], "table_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    moments = random.Random(SEED)
    engine = start_engine(project, environment=environment)
    try:
        run(engine, PIPELINE.format(name=orders.topic))
        with _flow(orders) as flow:
            for _ in range(KILLS):
                _wait_for(moments, project)
                engine.kill()
                engine = start_engine(project, environment=environment)
        each_once(world, orders.topic, flow, engine)
    finally:
        engine.kill()
