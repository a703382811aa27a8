"""Sinks in real time: what their ends repeat, bad records, new schemas, slots, and what is left behind."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fastavro
import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.catalog.positions import KafkaPosition
from headgate.catalog.store.reader import SqliteReader
from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineProcess, start_engine
from tests.embedded.world_fixtures import eventually
from tests.runtime.statements import run

A_WHILE = 240.0  # seconds on a machine that does much else

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}') KEY FORMAT TEXT
  VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
  INCLUDE KEY AS id ENVELOPE UPSERT WITH (ON ERROR = {policy});
CREATE VIEW {name}_all AS SELECT * FROM {name};
CREATE SINK {name}_sink FROM {name}_all INTO KAFKA CONNECTION kafka (TOPIC '{name}_out') KEY (id)
  KEY FORMAT TEXT VALUE FORMAT JSON;
"""


DISABLED = "SELECT state FROM headgate_catalog.tasks WHERE name = 'rt_ends_sink';"


class Items:
    """A topic of items, each with a number, and the topic that a sink in real time writes of them."""

    def __init__(self, world: World, name: str, partitions: int = 2) -> None:
        found = world.ensure("kafka", "registry")
        self.name = name
        self.sent = 0
        self._brokers, self._registry = found["kafka"], found["registry"]
        self._id, self._schema = 0, {}  # type: ignore[var-annotated]
        self.change_schema()
        admin = AdminClient({"bootstrap.servers": self._brokers})
        admin.create_topics([NewTopic(name, partitions)])[name].result(30)
        self._producer = Producer({"bootstrap.servers": self._brokers, "linger.ms": 1, "log_level": 0})

    def create(self, engine: EngineProcess, policy: str = "QUARANTINE") -> None:
        run(engine, PIPELINE.format(name=self.name, policy=policy))

    def change_schema(self, *fields: str) -> None:
        """Items have these further fields from now on."""
        added = [{"name": name, "type": ["null", "long"], "default": None} for name in fields]
        self._schema = {"type": "record", "name": "item", "fields": [{"name": "n", "type": "long"}, *added]}
        with RegistryClient([self._registry]) as client:
            self._id = client.register(f"{self.name}-value", Schema(json.dumps(self._schema)))

    def put(self, count: int, pause: float = 0.0) -> None:
        """Write further items, each with a key of its own. They are acknowledged on return."""
        for n in range(self.sent, self.sent + count):
            row = {field["name"]: n for field in self._schema["fields"]}
            body = io.BytesIO()
            body.write(b"\x00" + self._id.to_bytes(4, "big"))
            fastavro.schemaless_writer(body, self._schema, row)
            self._producer.produce(self.name, body.getvalue(), key=str(n))
            self._producer.poll(0)
            time.sleep(pause)
        self._producer.flush(30)
        self.sent += count

    def put_bad(self, key: str) -> None:
        self._producer.produce(self.name, b"\xff", key=key)
        self._producer.flush(30)

    def arrived(self) -> list[tuple[int, dict[str, object] | None]]:
        """The numbers and values of all records of the output."""
        settings = {
            "bootstrap.servers": self._brokers,
            "group.id": "look",
            "enable.partition.eof": True,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(f"{self.name}_out", 0, 0)])
            found: list[tuple[int, dict[str, object] | None]] = []
            while True:
                for message in consumer.consume(1000, 5.0):
                    if message.error() is not None:
                        return found
                    value = message.value()
                    found.append((int(message.key() or b"-1"), None if value is None else json.loads(value)))
        finally:
            consumer.close()

    def counts(self) -> Counter[int]:
        """How often each item came out."""
        return Counter(number for number, _ in self.arrived())

    def all_arrived(self) -> bool:
        return self.counts().keys() >= set(range(self.sent))


def is_live(engine: EngineProcess, name: str) -> bool:
    return notice(engine, name).startswith("real time")


def notice(engine: EngineProcess, name: str) -> str:
    with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
        names = {id_: reader.load().get(id_).name for id_ in reader.load().desired}
        found = {names[status.task]: status.notice or "" for status in reader.statuses() if status.task in names}
    return found.get(name, "")


def _threads(engine: EngineProcess) -> int:
    """The threads of Spark and the other children of an engine."""
    return sum(child.num_threads() for child in psutil.Process(engine.pid).children())


def ledger_rows(engine: EngineProcess) -> int:
    """How many records the only task has read, by its ledger."""
    with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
        (ledger,) = [reader.ledger(task) for task in reader.load().desired]
    assert ledger is not None
    (position,) = ledger.positions.values()
    assert isinstance(position, KafkaPosition)
    return sum(position.offsets)


@pytest.fixture(scope="module")
def engine(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    world.ensure("kafka", "registry")
    folder = tmp_path_factory.mktemp("real_time") / "project"
    with start_engine(folder, environment={"HEADGATE_WORLD": str(world.folder)}) as engine:
        yield engine


def test_ends_that_were_meant_repeat_nothing_and_leave_nothing_behind(engine: EngineProcess, world: World) -> None:
    items = Items(world, "rt_ends")
    items.create(engine)
    assert eventually(lambda: is_live(engine, "rt_ends_sink"), A_WHILE), notice(engine, "rt_ends_sink")
    threads = 0
    for _ in range(4):
        items.put(50, pause=0.002)
        run(engine, "ALTER SINK rt_ends_sink PAUSE;")
        assert eventually(lambda: run(engine, DISABLED) == [("disabled",)], A_WHILE)
        items.put(10)
        run(engine, "ALTER SINK rt_ends_sink RESUME;")
        assert eventually(lambda: is_live(engine, "rt_ends_sink"), A_WHILE), notice(engine, "rt_ends_sink")
        threads = threads or _threads(engine)
    items.put(1)
    assert eventually(items.all_arrived, A_WHILE), run(engine, "SHOW TASKS;")
    assert set(items.counts().values()) == {1}
    assert len(list((engine.project / ".headgate" / "real_time").iterdir())) == 1
    # Spark closes clients and threads that nobody uses after a minute.
    assert eventually(lambda: _threads(engine) < threads + 40, A_WHILE), (threads, _threads(engine))
    run(engine, "DROP SINK rt_ends_sink;")
    assert eventually(lambda: not list((engine.project / ".headgate" / "real_time").iterdir()), A_WHILE)


def test_a_new_schema_in_flight_repeats_nothing_and_loses_no_field(engine: EngineProcess, world: World) -> None:
    items = Items(world, "rt_change")
    items.create(engine)
    assert eventually(lambda: is_live(engine, "rt_change_sink"), A_WHILE), notice(engine, "rt_change_sink")
    items.put(50, pause=0.002)
    items.change_schema("extra")
    items.put(50, pause=0.002)
    assert eventually(items.all_arrived, A_WHILE), run(engine, "SHOW TASKS;")
    assert set(items.counts().values()) == {1}
    values = dict(items.arrived())
    assert all((values[n] or {})["extra"] == n for n in range(50, 100))
    run(engine, "DROP SINK rt_change_sink;")


@pytest.mark.parametrize("policy", ["QUARANTINE", "SKIP"])
def test_a_bad_record_is_left_out_and_those_behind_it_go_on(engine: EngineProcess, world: World, policy: str) -> None:
    items = Items(world, f"rt_{policy.lower()}")
    items.create(engine, policy)
    assert eventually(lambda: is_live(engine, f"{items.name}_sink"), A_WHILE), notice(engine, f"{items.name}_sink")
    items.put(20)
    items.put_bad("bad")
    items.put(20)
    assert eventually(items.all_arrived, A_WHILE), run(engine, "SHOW TASKS;")
    assert set(items.counts().values()) == {1}
    skipped = f"SELECT skipped FROM headgate_catalog.tasks WHERE name = '{items.name}_sink';"
    assert eventually(lambda: run(engine, skipped) == [(1,)], A_WHILE)
    kept = run(engine, f"SELECT count(*) FROM headgate_catalog.quarantine WHERE task = '{items.name}_sink';")
    assert kept == [(1 if policy == "QUARANTINE" else 0,)]
    assert eventually(lambda: is_live(engine, f"{items.name}_sink"), A_WHILE)
    run(engine, f"DROP SINK {items.name}_sink;")


def test_a_bad_record_halts_the_task_and_nothing_before_it_is_repeated(engine: EngineProcess, world: World) -> None:
    items = Items(world, "rt_halt", partitions=1)
    items.create(engine, "HALT")
    assert eventually(lambda: is_live(engine, "rt_halt_sink"), A_WHILE), notice(engine, "rt_halt_sink")
    items.put(20)
    items.put_bad("bad")
    state = "SELECT state, contains(error, 'partition 0 offset 20') FROM headgate_catalog.tasks WHERE name = 'rt_halt_sink';"
    assert eventually(lambda: run(engine, state) == [("halted", True)], A_WHILE), run(engine, "SHOW TASKS;")
    assert items.counts() == Counter(range(20))
    run(engine, "DROP SINK rt_halt_sink;")


def test_a_task_without_slots_runs_in_micro_batches_and_says_so(world: World, tmp_path: Path) -> None:
    environment = {"HEADGATE_WORLD": str(world.folder), "HEADGATE_SPARK_REAL_TIME": "3"}
    first, second = Items(world, "rt_slots_a", 2), Items(world, "rt_slots_b", 2)
    with start_engine(tmp_path / "project", environment=environment) as engine:
        first.create(engine)
        assert eventually(lambda: is_live(engine, "rt_slots_a_sink"), A_WHILE), notice(engine, "rt_slots_a_sink")
        second.create(engine)
        said = "micro-batch: it needs 2 slots of Spark, and 1 of 3 are free"
        assert eventually(lambda: notice(engine, "rt_slots_b_sink") == said, A_WHILE), notice(engine, "rt_slots_b_sink")
        for items in (first, second):
            items.put(30)
            assert eventually(items.all_arrived, A_WHILE), run(engine, "SHOW TASKS;")


def test_a_crash_repeats_only_what_came_since_the_ledger(world: World, tmp_path: Path) -> None:
    items = Items(world, "rt_crash")
    environment = {"HEADGATE_WORLD": str(world.folder)}
    engine = start_engine(tmp_path / "project", environment=environment)
    try:
        items.create(engine)
        assert eventually(lambda: is_live(engine, "rt_crash_sink"), A_WHILE), notice(engine, "rt_crash_sink")
        items.put(40)
        assert eventually(lambda: ledger_rows(engine) == 40, A_WHILE), "the ledger does not follow an idle task"
        items.put(40)
        assert eventually(items.all_arrived, A_WHILE)
        engine.kill()
        settled = ledger_rows(engine)
        engine = start_engine(tmp_path / "project", environment=environment)
        items.put(40)
        assert eventually(items.all_arrived, A_WHILE), run(engine, "SHOW TASKS;")
        counts = items.counts()
        assert counts.keys() == set(range(120))
        assert sum(counts.values()) - 120 <= 80 - settled
        assert all(counts[n] == 1 for n in range(40))
    finally:
        engine.kill()
