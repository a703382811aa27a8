"""What is dropped is gone: after many objects and schema changes an engine holds what it held after the first ten.

`HEADGATE_CYCLES` sets how many cycles there are.
"""

from __future__ import annotations

import copy
import io
import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import fastavro
import psutil
import pytest
from confluent_kafka import Producer

from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import ORDER, Orders
from tests.runtime.statements import run

CYCLES = int(os.environ.get("HEADGATE_CYCLES", "15"))
SETTLED = 10  # cycles after which an engine has all its threads, connections and caches
LONG = 300.0  # seconds; no step takes so long unless it fails

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(600 + 60 * CYCLES)]


@dataclass(frozen=True)
class Held:
    """What an engine and its Spark hold. ``heap`` is in bytes, after a collection of garbage."""

    threads: int
    spark_threads: int
    files: int
    spark_files: int
    sessions: int
    heap: int


def held(engine: EngineProcess) -> Held:
    spark = _spark(engine)
    histogram = subprocess.run(
        [str(Path(spark.exe()).with_name("jcmd")), str(spark.pid), "GC.class_histogram"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [line.split() for line in histogram.splitlines() if line[:1] == " " or line.startswith("Total")]
    instances = {row[3]: int(row[1]) for row in rows if len(row) > 3 and row[1].isdigit()}
    (total,) = [row for row in rows if row[0] == "Total"]
    return Held(*_counted(engine), instances["org.apache.spark.sql.classic.SparkSession"], int(total[2]))


def _spark(engine: EngineProcess) -> psutil.Process:
    (spark,) = [child for child in psutil.Process(engine.pid).children() if child.name() == "java"]
    return spark


def _counted(engine: EngineProcess) -> tuple[int, int, int, int]:
    """What the system counts: threads and files of the engine and of its Spark."""
    process, spark = psutil.Process(engine.pid), _spark(engine)
    return process.num_threads(), spark.num_threads(), process.num_fds(), spark.num_fds()


def grew(before: Held, after: Held) -> dict[str, tuple[int, int]]:
    """What grew by more than comes and goes by itself: idle connections, collectors' threads, Spark's own caches."""
    margins = {
        "threads": 6,
        "spark_threads": 12,
        "files": 12,
        "spark_files": 20,
        "sessions": 3,
        "heap": 12 * 2**20,
    }
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in margins}
    return {name: pair for name, pair in pairs.items() if pair[1] - pair[0] > margins[name]}


@pytest.fixture(scope="module")
def engine(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    project = tmp_path_factory.mktemp("leaks")
    with start_engine(project, environment={"HEADGATE_WORLD": str(world.folder)}) as started:
        yield started


def repeat(
    engine: EngineProcess, cycle: Callable[[int], None], may_grow: frozenset[str] = frozenset()
) -> tuple[Held, Held]:
    """What is held after the first cycles and after all of them."""
    for number in range(SETTLED):
        cycle(number)
    before = held(engine)
    for number in range(SETTLED, CYCLES):
        cycle(number)
    # Spark closes Kafka clients that nobody uses after a minute. To look into the heap is dear, so that it is done only then.
    eventually(lambda: not grew(before, Held(*_counted(engine), before.sessions, before.heap)), LONG)
    eventually(lambda: grew(before, held(engine)).keys() <= may_grow, LONG)
    return before, held(engine)


def test_dropped_objects_leave_nothing_behind(engine: EngineProcess, world: World) -> None:
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "leak_orders")
    orders.put(range(100, 105))

    def cycle(_: int) -> None:
        run(engine, orders.pipeline)
        assert eventually(lambda: running(engine, f"{orders.topic}_sink"), LONG), run(engine, "SHOW TASKS;")
        run(engine, f"DROP SOURCE {orders.topic} CASCADE;")

    before, after = repeat(engine, cycle)
    assert grew(before, after) == {}, (before, after)


def running(engine: EngineProcess, sink: str) -> bool:
    """Whether the task has written a batch and has nothing left to read."""
    columns = {str(row[0]): row for row in run(engine, "SHOW TASKS;")}
    return sink in columns and columns[sink][2] == "running"


def test_followed_schema_changes_leave_nothing_behind(engine: EngineProcess, world: World) -> None:
    """Every change adds a column, so the heap may grow with the plan, but nothing else may."""
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "leak_schemas")
    run(engine, orders.pipeline)
    orders.put(range(100, 101))
    producer = Producer({"bootstrap.servers": found["kafka"], "log_level": 0})
    schema = copy.deepcopy(ORDER)
    fields = schema["fields"]
    assert isinstance(fields, list)

    with RegistryClient([found["registry"]]) as registry:

        def cycle(number: int) -> None:
            fields.append({"name": f"extra{number}", "type": "long", "default": 0, "doc": "one more"})
            id_ = registry.register(f"{orders.topic}-value", Schema(json.dumps(schema)))
            body = io.BytesIO(struct.pack(">bi", 0, id_))
            body.seek(5)
            order = 101 + number
            record = {"id": order, "item": "x", "price": float(order)} | {f["name"]: 1 for f in fields[3:]}
            fastavro.schemaless_writer(body, fastavro.parse_schema(copy.deepcopy(schema)), record)
            producer.produce(orders.topic, body.getvalue(), key=str(order))
            producer.flush(30)
            wanted = set(range(100, order + 1))
            assert orders.arrived(wanted, LONG).keys() == wanted

        before, after = repeat(engine, cycle, may_grow=frozenset({"heap"}))
    assert grew(before, after).keys() <= {"heap"}, (before, after)
