"""kill -9 of an engine between all steps of a batch of materialized views, and at random: no row is lost or counted twice."""

from __future__ import annotations

import random
from itertools import cycle, islice
from pathlib import Path

import pytest

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import Orders
from tests.runtime.statements import run
from tests.runtime.test_kill import A_START, KILLS, SEED, _die, _Flow, _flow, _numbers, _wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]

# Before anything is computed, before Delta's commit, between it and the catalog's copy of the ledger, and behind both.
POINTS = (("after_mark", 1), ("in_write", 1), ("after_write", 1), ("after_commit", 1))

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE MATERIALIZED VIEW {name}_groups AS SELECT id % 10 AS rest, count(*) AS n, sum(id) AS total FROM {name} GROUP BY id % 10;
CREATE MATERIALIZED VIEW {name}_all AS SELECT sum(n) AS n, sum(total) AS total FROM {name}_groups;
"""


def test_an_engine_that_dies_at_any_step_of_a_batch_counts_every_row_once(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "view_steps")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with start_engine(project, environment=environment) as engine:
        run(engine, PIPELINE.format(name=orders.topic))
    with _flow(orders) as flow:
        for point, further in islice(cycle(POINTS), max(len(POINTS), KILLS)):
            number = max(_numbers(project)) + 1 + further  # a commit that the catalog does not know of may be one ahead
            _die(project, {**environment, "HEADGATE_CRASH_AT": f"{point}:{number}"})
    with start_engine(project, environment=environment) as engine:
        counts_each_once(orders, flow, engine)


def test_engines_killed_at_random_moments_count_every_row_once(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "view_kills")
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
        counts_each_once(orders, flow, engine)
    finally:
        engine.kill()


def counts_each_once(orders: Orders, flow: _Flow, engine: EngineProcess) -> None:
    """The views equal their queries over all orders that were acknowledged."""
    sent = range(100, flow.sent)
    groups = {(rest, len(ids), sum(ids)) for rest in range(10) if (ids := [id_ for id_ in sent if id_ % 10 == rest])}
    whole = [(len(sent), sum(sent))]

    def equal() -> bool:
        held = run(engine, f"SELECT rest, n, total FROM {orders.topic}_groups;")
        return set(held) == groups and run(engine, f"SELECT n, total FROM {orders.topic}_all;") == whole

    assert eventually(equal, A_START), run(engine, f"SELECT * FROM {orders.topic}_all; SHOW TASKS;")
