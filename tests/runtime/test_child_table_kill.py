"""kill -9 of an engine that writes a table and its child tables, between two steps and at random: every row has its own records, once.

`HEADGATE_KILLS` sets how many times; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from headgate.embedded.world import World
from headgate.serve.client import start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, KILLS, SEED, Step, kill_engines
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 5))]

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}') KEY FORMAT TEXT
  VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE VIEW {name}_nested AS SELECT key, named_struct('item', item, 'price', price) AS about,
  array(named_struct('n', id), named_struct('n', id + 1)) AS lines FROM {name};
CREATE MATERIALIZATION {name} FROM {name}_nested INTO POSTGRES CONNECTION postgres (TABLE '{name}') WITH (NESTED = TABLES);
"""
# Between the rows and the ledger, when the records of all rows are written, and between the commit and the catalog's copy of the ledger.
STEPS = (Step("after_merge"), Step("after_write"))
HELD = """
SELECT count(*), (SELECT count(*) FROM public.{name}_about a JOIN public.{name} USING (key) WHERE a.price::bigint::text = key),
  (SELECT count(*) FROM public.{name}_lines l JOIN public.{name} USING (key) WHERE (l.n - l._index)::text = key)
FROM public.{name}
"""


def test_engines_killed_at_steps_of_a_batch_and_at_random_leave_every_row_with_its_records(
    world: World, tmp_path: Path
) -> None:
    found = world.ensure("kafka", "registry", "postgres")
    orders = Orders(found["kafka"], found["registry"], "child_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, PIPELINE.format(name=orders.topic), project, environment, STEPS)

    def held() -> tuple[int, ...] | None:
        with psycopg.connect(world.postgres()) as connection:
            return connection.execute(HELD.format(name=orders.topic).encode()).fetchone()

    rows = flow.sent - int(CHEAP)
    with start_engine(project, environment=environment) as engine:
        assert eventually(lambda: held() == (rows, rows, 2 * rows), A_START), (
            SEED,
            held(),
            rows,
            run(engine, "SHOW TASKS;"),
        )
