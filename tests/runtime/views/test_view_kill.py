"""kill -9 of an engine between all steps of a batch of materialized views, and at random: no row is lost or counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, KILLS, Flow, Step, in_turn, kill_engines
from tests.runtime.orders import Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]

# In Delta's commit, between it and the catalog's copy of the ledger, before anything is computed, and behind both.
STEPS = (Step("in_write"), Step("after_write"), Step("after_mark"), Step("after_commit"))

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE MATERIALIZED VIEW {name}_groups AS SELECT id % 10 AS rest, count(*) AS n, sum(id) AS total FROM {name} GROUP BY id % 10;
CREATE MATERIALIZED VIEW {name}_all AS SELECT sum(n) AS n, sum(total) AS total FROM {name}_groups;
"""


def test_engines_killed_at_steps_of_a_batch_and_at_random_count_every_row_once(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "view_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, PIPELINE.format(name=orders.topic), project, environment, in_turn(STEPS))
    with start_engine(project, environment=environment) as engine:
        counts_each_once(orders, flow, engine)


def counts_each_once(orders: Orders, flow: Flow, engine: EngineProcess) -> None:
    """The views equal their queries over all orders that were acknowledged."""
    sent = range(100, flow.sent)
    groups = {(rest, len(ids), sum(ids)) for rest in range(10) if (ids := [id_ for id_ in sent if id_ % 10 == rest])}
    whole = [(len(sent), sum(sent))]

    def equal() -> bool:
        held = run(engine, f"SELECT rest, n, total FROM {orders.topic}_groups;")
        return set(held) == groups and run(engine, f"SELECT n, total FROM {orders.topic}_all;") == whole

    assert eventually(equal, A_START), run(engine, f"SELECT * FROM {orders.topic}_all; SHOW TASKS;")
