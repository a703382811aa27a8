"""The same pipeline on a cluster: a master and two workers, on this machine, with its Python and its disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.embedded.host import LOOPBACK
from headgate.embedded.world import World
from headgate.serve.process import started_engine
from tests.runtime.cluster import standalone_cluster
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]  # four JVMs start one after the other on two cores

SETTINGS = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.executor.memory": "512m",
}


def test_a_pipeline_runs_on_a_cluster_of_two_workers(world: World, tmp_path: Path) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "cluster_orders")
    orders.put(range(1000))
    with standalone_cluster(tmp_path / "spark") as master:
        set_ = {"HEADGATE_SPARK_MASTER": master, "HEADGATE_SPARK_SETTINGS": json.dumps(SETTINGS)}
        project = tmp_path / "project"
        with started_engine(project, environment={**set_, "HEADGATE_WORLD": str(world.folder)}) as engine:
            assert run(engine, orders.pipeline) == []
            wanted = set(range(int(CHEAP), 1000))
            assert orders.arrived(wanted, 120).keys() == wanted, run(engine, "SHOW TASKS;")
            orders.put(range(1000, 1100))
            wanted |= set(range(1000, 1100))
            assert orders.arrived(wanted, 60).keys() == wanted, run(engine, "SHOW TASKS;")
            assert run(engine, "SELECT count(*) FROM cluster_orders_dear;") == [(1000,)]
        workers = sorted((tmp_path / "spark").glob("worker-*"))
        assert [bool(list(one.glob("apps/app-*/*/stderr"))) for one in workers] == [True, True]
