"""kill -9 of an engine that writes tables while records flow, between all steps of a batch and at random: every row is there once.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from headgate.embedded.world import World
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, KILLS, SEED, Flow, Step, in_turn, kill_engines
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT id, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE MATERIALIZATION {name} FROM {name}_dear INTO POSTGRES CONNECTION postgres (TABLE '{name}');
"""
# Between the merge and the ledger, between the ledger and the commit, between the commit and the catalog's copy of the ledger, after
# the rows are computed, and behind all of it.
STEPS = (
    Step("after_merge"),
    Step("before_commit"),
    Step("after_write"),
    Step("after_collect", 2),
    Step("after_commit"),
)


def each_once(world: World, name: str, flow: Flow, engine: EngineProcess) -> None:
    """The table has every order once."""
    wanted = flow.sent - int(CHEAP)
    query = f'SELECT count(*), count(DISTINCT id), min(id), max(id) FROM public."{name}"'

    def held() -> tuple[object, ...] | None:
        with psycopg.connect(world.postgres()) as connection:
            return connection.execute(query.encode()).fetchone()

    expected = (wanted, wanted, int(CHEAP), flow.sent - 1)
    assert eventually(lambda: held() == expected, A_START), (SEED, held(), expected, run(engine, "SHOW TASKS;"))


def test_engines_killed_at_steps_of_a_batch_and_at_random_double_and_lose_no_row(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry", "postgres")
    orders = Orders(found["kafka"], found["registry"], "table_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, PIPELINE.format(name=orders.topic), project, environment, in_turn(STEPS))
    with start_engine(project, environment=environment) as engine:
        each_once(world, orders.topic, flow, engine)
