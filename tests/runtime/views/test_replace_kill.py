"""kill -9 of an engine while CREATE OR REPLACE fills a materialized view beside its old rows: no row is lost or counted twice."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from headgate.crash_points import VARIABLE
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, committed
from tests.runtime.orders import Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(4 * A_START)]

CREATED = """
CREATE SOURCE replaced_orders FROM KAFKA CONNECTION kafka (TOPIC 'replaced_orders')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE MATERIALIZED VIEW groups AS SELECT id % 10 AS rest, count(*) AS n, sum(id) AS total FROM replaced_orders GROUP BY id % 10;
CREATE MATERIALIZED VIEW whole AS SELECT sum(n) AS n, sum(total) AS total FROM groups;
"""
# The view is paused, so that the next batch of its task is one of the new query.
REPLACED = """
ALTER MATERIALIZED VIEW groups PAUSE;
CREATE OR REPLACE MATERIALIZED VIEW groups AS
  SELECT id % 7 AS rest, count(*) AS n, sum(2 * id) AS total FROM replaced_orders GROUP BY id % 7;
"""
FIRST, SECOND, THIRD = range(100), range(100, 150), range(150, 170)


def test_an_engine_that_dies_while_a_view_is_filled_anew_counts_every_row_once(world: World, tmp_path: Path) -> None:
    """It dies behind the first commit of the new rows, and before the catalog shows them."""
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "replaced_orders")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    orders.put(FIRST)
    with start_engine(project, environment=environment) as engine:
        run(engine, CREATED)
        holds(engine, sums(FIRST, 10, 1))
        run(engine, REPLACED)
        orders.put(SECOND)
        engine.kill()
    groups, number = committed(project)["groups"]
    with start_engine(project, environment={**environment, VARIABLE: f"{groups}@after_write:1"}) as engine:
        with suppress(HeadgateError):  # it may die before it answers
            run(engine, "ALTER MATERIALIZED VIEW groups RESUME;")
        assert eventually(lambda: not engine.is_running, A_START), "the engine did not reach its crash point"
    assert committed(project)["groups"] == (groups, number)
    orders.put(THIRD)
    with start_engine(project, environment=environment) as engine:
        holds(engine, sums(range(THIRD.stop), 7, 2))


def sums(sent: range, divisor: int, factor: int) -> list[tuple[object, ...]]:
    """The rows of the view over these orders."""
    groups = [[n for n in sent if n % divisor == rest] for rest in range(divisor)]
    return [(rest, len(ids), factor * sum(ids)) for rest, ids in enumerate(groups)]


def holds(engine: EngineProcess, groups: list[tuple[object, ...]]) -> None:
    """Wait until the view has these rows, and the view over it their sums."""
    counts, totals = ([row[at] for row in groups] for at in (1, 2))

    def equal() -> bool:
        held = run(engine, "SELECT rest, n, total FROM groups ORDER BY rest;")
        return held == groups and run(engine, "SELECT n, total FROM whole;") == [(sum(counts), sum(totals))]  # type: ignore[arg-type]

    assert eventually(equal, A_START), run(engine, "SELECT * FROM groups; SELECT * FROM whole; SHOW TASKS;")
