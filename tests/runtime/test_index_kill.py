"""kill -9 of an engine that writes indexes while records flow, between all steps of a batch: every row is one document.

One index is keyed, the other one has the rows of a materialized view that only grows, whose documents have the number of their batch and their
place in it as `_id`. `HEADGATE_KILLS` sets how many times an engine dies.
"""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

import pytest

from headgate.catalog.store.sqlite import SqliteReader
from headgate.connectors.elasticsearch import SearchClient
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.serve.client import start_engine
from headgate.sql.statement import Kind
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run
from tests.runtime.test_kill import A_START, KILLS, _die, _flow

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
POINTS = ("in_write", "after_write", "after_mark", "after_commit")


def batches(project: Path) -> int:
    """How many batches of the index that is behind are committed."""
    with SqliteReader(project / ".headgate" / "catalog.db") as reader:
        tasks = [one.id for one in reader.load().of_kind(Kind.MATERIALIZATION)]
        ledgers = [reader.ledger(task) for task in tasks]
    return min(0 if one is None else one.number for one in ledgers)


def ids(client: SearchClient, index: str) -> list[int]:
    """The order of every document, sorted."""
    try:
        client.call("POST", f"/{index}/_refresh", "refresh the index")
        return sorted(int(str(hit.source["id"])) for hit in client.documents(index))
    except HeadgateError:  # it is not there yet
        return []


def test_an_engine_that_dies_at_any_step_of_a_batch_leaves_every_row_as_one_document(
    world: World, tmp_path: Path
) -> None:
    found = world.ensure("kafka", "registry", "elasticsearch")
    orders = Orders(found["kafka"], found["registry"], "index_steps")
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    with start_engine(project, environment=environment) as engine:
        run(engine, PIPELINE.format(name=orders.topic))
    with _flow(orders) as flow:
        for point in islice(cycle(POINTS), max(2, KILLS)):
            _die(project, {**environment, "HEADGATE_CRASH_AT": f"{point}:{batches(project) + 1}"})
    wanted = list(range(int(CHEAP), flow.sent))
    with SearchClient(found["opensearch"]) as client, start_engine(project, environment=environment) as engine:
        for index in (f"{orders.topic}_grows", f"{orders.topic}_keyed"):
            equal = eventually(lambda index=index: ids(client, index) == wanted, A_START)  # type: ignore[misc]
            assert equal, (index, len(ids(client, index)), len(wanted), run(engine, "SHOW TASKS;"))
