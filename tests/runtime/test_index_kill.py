"""kill -9 of an engine that writes indexes while records flow, between all steps of a batch and at random: every row is one document.

One index is keyed, the other one has the rows of a materialized view that only grows, whose documents have the number of their batch and their
place in it as `_id`. `HEADGATE_KILLS` sets how many times an engine dies; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.connectors.elasticsearch import SearchClient
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.kills import A_START, KILLS, SEED, Flow, Step, in_turn, kill_engines
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(2 * 300 * (KILLS + 3))]

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE MATERIALIZED VIEW {name}_rows AS SELECT id, upper(item) AS what FROM {name} WHERE price >= 100;
CREATE MATERIALIZATION {name}_grows FROM {name}_rows INTO ELASTICSEARCH CONNECTION elasticsearch (INDEX '{name}_grows');
CREATE SOURCE {name}_state FROM KAFKA CONNECTION kafka (TOPIC '{name}') KEY FORMAT TEXT
  VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry ENVELOPE UPSERT;
CREATE VIEW {name}_dear AS SELECT key, id FROM {name}_state WHERE price >= 100;
CREATE MATERIALIZATION {name}_keyed FROM {name}_dear INTO ELASTICSEARCH CONNECTION elasticsearch (INDEX '{name}_keyed');
"""
# When half of a batch is in the index, when all of it is and nobody knows, before anything is, and when the ledger has moved.
STEPS = tuple(
    Step(point, task=f"index_kills_{index}")
    for point, index in (
        ("in_write", "grows"),
        ("after_write", "keyed"),
        ("after_mark", "grows"),
        ("in_write", "keyed"),
        ("after_write", "grows"),
        ("after_commit", "keyed"),
    )
)


def ids(client: SearchClient, index: str) -> list[int]:
    """The order of every document, sorted."""
    try:
        client.call("POST", f"/{index}/_refresh", "refresh the index")
        return sorted(int(str(hit.source["id"])) for hit in client.documents(index))
    except HeadgateError:  # it is not there yet
        return []


def each_is_one_document(url: str, orders: Orders, flow: Flow, engine: EngineProcess) -> None:
    """Both indexes have one document for every order."""
    wanted = list(range(int(CHEAP), flow.sent))
    with SearchClient(url) as client:
        for index in (f"{orders.topic}_grows", f"{orders.topic}_keyed"):
            equal = eventually(lambda index=index: ids(client, index) == wanted, A_START)  # type: ignore[misc]
            assert equal, (SEED, index, len(ids(client, index)), len(wanted), run(engine, "SHOW TASKS;"))


def test_engines_killed_at_steps_of_a_batch_and_at_random_leave_every_row_as_one_document(
    world: World, tmp_path: Path
) -> None:
    found = world.ensure("kafka", "registry", "elasticsearch")
    orders = Orders(found["kafka"], found["registry"], "index_kills")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    flow = kill_engines(orders, PIPELINE.format(name=orders.topic), project, environment, in_turn(STEPS))
    with start_engine(project, environment=environment) as engine:
        each_is_one_document(found["opensearch"], orders, flow, engine)
