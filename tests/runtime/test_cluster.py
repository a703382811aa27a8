"""The same pipeline on a cluster: a master and two workers, on this machine, with its Python and its disk.

`HEADGATE_CLUSTER_ROUNDS` sets how many times records follow those of the start.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headgate.embedded.host import LOOPBACK
from headgate.embedded.world import World
from headgate.serve.client import start_engine
from tests.runtime.cluster import standalone_cluster
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run
from tools.run_tests import SHORT_LIVED

ROUNDS = int(os.environ.get("HEADGATE_CLUSTER_ROUNDS", "1"))

# Four JVMs start one after the other on two cores.
pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(420 + 60 * ROUNDS)]

SETTINGS = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.executor.memory": "512m",
    **SHORT_LIVED,
}


def test_a_pipeline_runs_on_a_cluster_of_two_workers(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "cluster_orders")
    orders.put(range(1000))
    with standalone_cluster(tmp_path / "spark") as master:
        set_ = {"HEADGATE_SPARK_MASTER": master, "HEADGATE_SPARK_SETTINGS": json.dumps(SETTINGS)}
        project = tmp_path / "project"
        with start_engine(project, environment={**set_, "HEADGATE_WORLD": str(world.folder)}) as engine:
            assert run(engine, orders.pipeline) == []
            wanted = set(range(int(CHEAP), 1000))
            assert orders.arrived(wanted, 120).keys() == wanted, run(engine, "SHOW TASKS;")
            for start in range(1000, 1000 + 100 * ROUNDS, 100):
                orders.put(range(start, start + 100))
                wanted |= set(range(start, start + 100))
                assert orders.arrived(wanted, 60).keys() == wanted, run(engine, "SHOW TASKS;")
            assert run(engine, "SELECT count(*) FROM cluster_orders_dear;") == [(len(wanted),)]
        workers = sorted((tmp_path / "spark").glob("worker-*"))
        assert [bool(list(one.glob("apps/app-*/*/stderr"))) for one in workers] == [True, True]
