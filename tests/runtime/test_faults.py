"""Faults that a spec cannot make: a wrong password, a topic that is replaced, a second engine, a dead Spark, a full disk.

After each, what the user is told, and that the output is complete by key and holds nothing twice.
"""

from __future__ import annotations

import resource
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.world import World
from headgate.processes import program_environment
from headgate.registry.server.requests import User, Users
from headgate.serve.client import HEADGATE, EngineProcess, start_engine
from headgate.serve.errors import EngineDidNotStart
from headgate.serve.protocol import Failed
from tests.connectors.brokers import REASON, refusing_broker
from tests.embedded.world_fixtures import eventually
from tests.registry.running import registry
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

PATIENCE = 300.0  # seconds for what takes ten on a machine that does nothing else

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def engine(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    project = tmp_path_factory.mktemp("faults")
    with start_engine(project, environment={"HEADGATE_WORLD": str(world.folder)}) as started:
        yield started


@pytest.fixture
def orders(world: World, engine: EngineProcess, request: pytest.FixtureRequest) -> Iterator[Orders]:
    """A pipeline that has let its first orders through."""
    found = world.ensure("kafka", "registry")
    flowing = Orders(found["kafka"], found["registry"], f"faults_{request.node.name[5:20]}")
    run(engine, flowing.pipeline)
    flowing.put(range(100, 150))
    assert set(flowing.arrived(set(range(100, 150)), PATIENCE)) == set(range(100, 150))
    yield flowing
    run(engine, f"DROP SOURCE {flowing.topic} CASCADE;")


def refused(engine: EngineProcess, sql: str) -> str:
    """What the engine says to a statement that must fail."""
    last = list(engine.client.run(sql))[-1]
    assert isinstance(last, Failed), last
    return last.diagnostic.render()


def state(engine: EngineProcess, orders: Orders) -> tuple[object, str]:
    """State and error of the pipeline's task. Without Spark, which may be what is in trouble."""
    [(found, error)] = [row[2:4] for row in run(engine, "SHOW TASKS;") if row[0] == f"{orders.topic}_sink"]
    return found, str(error or "")


def comes_to(engine: EngineProcess, orders: Orders, wanted: str, *texts: str) -> None:
    def holds() -> bool:
        found, error = state(engine, orders)
        return found == wanted and all(text in error for text in texts)

    assert eventually(holds, PATIENCE), state(engine, orders)


def complete(orders: Orders, last: int, *, once: bool = True) -> None:
    wanted = set(range(int(CHEAP), last))
    came = orders.arrived(wanted, PATIENCE)
    assert came.keys() == wanted
    assert not once or set(came.values()) == {1}


def test_a_wrong_password_is_told_and_a_right_one_takes_its_place(engine: EngineProcess, tmp_path: Path) -> None:
    users = Users({"ann": User("ann", "swordfish")})
    create = "CREATE CONNECTION guarded TO CONFLUENT SCHEMA REGISTRY (URL '{}', USERNAME 'ann', PASSWORD SECRET word);"
    run(engine, "CREATE SECRET word AS 'hunter2';")
    with registry(tmp_path, users) as url:
        told = refused(engine, create.format(url))
        assert told.startswith(f'error REG-0232: the registry at {url} does not accept user "ann"')
        assert "hint: Check the user name and the password" in told
        assert "hunter2" not in told
        run(engine, "ALTER SECRET word AS 'swordfish';")
        run(engine, create.format(url))
        run(engine, "ALTER SECRET word AS 'hunter2';")
        assert "REG-0232" in refused(engine, "VALIDATE CONNECTION guarded;")
    run(engine, "DROP CONNECTION guarded; DROP SECRET word;")


def test_a_broker_that_refuses_the_login_is_not_taken_for_one_that_is_away(engine: EngineProcess) -> None:
    with refusing_broker() as broker:
        told = refused(
            engine,
            "CREATE SECRET word AS 'hunter2'; CREATE CONNECTION k TO KAFKA (BROKER '" + broker + "', "
            "SECURITY PROTOCOL = 'SASL_PLAINTEXT', SASL MECHANISMS = 'PLAIN', SASL USERNAME = 'ann', "
            "SASL PASSWORD = SECRET word);",
        )
    assert told.startswith(f"error CON-0202: Kafka at {broker} refused the login")
    assert REASON in told
    assert "hint: Check SECURITY PROTOCOL, SASL MECHANISMS, SASL USERNAME and SASL PASSWORD" in told
    assert "hunter2" not in told
    assert run(engine, "SHOW SECRETS;") == []


def test_records_that_were_deleted_unread_halt_their_task(engine: EngineProcess, world: World, orders: Orders) -> None:
    admin = AdminClient({"bootstrap.servers": world.ensure("kafka")["kafka"], "log_level": 0})
    run(engine, f"ALTER SINK {orders.topic}_sink PAUSE;")
    orders.put(range(150, 200))
    deleted = [TopicPartition(orders.topic, partition, -1) for partition in range(2)]
    for future in admin.delete_records(deleted).values():
        future.result(30)
    run(engine, f"ALTER SINK {orders.topic}_sink RESUME;")
    comes_to(engine, orders, "halted", "RUN-0103", "were deleted before they were read", "retention")


def test_a_topic_made_again_halts_its_task_alone(engine: EngineProcess, world: World, orders: Orders) -> None:
    kafka = world.ensure("kafka")["kafka"]
    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    other = Orders(kafka, world.ensure("registry")["registry"], "faults_other")
    run(engine, other.pipeline)
    admin.delete_topics([orders.topic])[orders.topic].result(30)
    comes_to(engine, orders, "starting", "CON-0203", f'topic "{orders.topic}" does not exist')
    assert eventually(lambda: orders.topic not in admin.list_topics(timeout=30).topics)
    admin.create_topics([NewTopic(orders.topic, 2)])[orders.topic].result(30)
    orders.put(range(150, 400))
    comes_to(
        engine,
        orders,
        "halted",
        "RUN-0102",
        "was deleted and created again",
        f'hint: Drop sink "{orders.topic}_sink"',
    )
    other.put(range(100, 300))
    complete(other, 300)
    again = orders.pipeline[orders.pipeline.index("CREATE SINK") :]
    run(engine, f"DROP SINK {orders.topic}_sink; {again}")
    complete(orders, 400)
    run(engine, f"DROP SOURCE {other.topic} CASCADE;")


def test_a_full_disk_stops_a_task_for_as_long_as_it_is_full(engine: EngineProcess, orders: Orders) -> None:
    """The catalog's disk: no file of the engine's process may grow."""
    with no_room(engine.pid):
        orders.put(range(150, 200))
        comes_to(engine, orders, "starting", "CAT-0303", "catalog.db", "no space left")
        told = refused(engine, "CREATE TYPE t AS (a integer);")
        assert "CAT-0303" in told
        assert "hint: Make room on the disk" in told
    orders.put(range(200, 250))
    # A batch whose output is written when there is no room for its ledger is written again: at least once.
    complete(orders, 250, once=False)
    comes_to(engine, orders, "running")
    assert run(engine, "SHOW TYPES;") == []


def test_a_full_disk_of_spark_stops_a_task_for_as_long_as_it_is_full(engine: EngineProcess, orders: Orders) -> None:
    """A large batch is written to Spark's own disk before the first record is sent."""
    run(engine, f"ALTER SINK {orders.topic}_sink PAUSE;")
    orders.put(range(150, 15_000))
    with no_room(spark_of(engine).pid):
        run(engine, f"ALTER SINK {orders.topic}_sink RESUME;")
        comes_to(engine, orders, "starting", "RUN-0304", "no space left")
    complete(orders, 15_000)
    comes_to(engine, orders, "running")


def test_spark_may_die_under_the_engine(engine: EngineProcess, orders: Orders) -> None:
    spark = spark_of(engine)
    spark.kill()
    assert eventually(lambda: spark_of(engine).pid != spark.pid, PATIENCE)  # though there is nothing to do
    orders.put(range(150, 250))
    engine.wait_until_ready()
    complete_by_key(orders, 250)
    assert spark_of(engine).pid != spark.pid
    comes_to(engine, orders, "running")


def complete_by_key(orders: Orders, last: int) -> None:
    wanted = set(range(int(CHEAP), last))
    assert orders.arrived(wanted, PATIENCE).keys() == wanted


def spark_of(engine: EngineProcess) -> psutil.Process:
    """The JVM of the engine's tasks, once there is one. The one that runs queries is a child of its own process."""
    found: list[psutil.Process] = []

    def there() -> bool:
        children = psutil.Process(engine.pid).children()
        found[:] = [c for c in children if c.name() == "java" and c.status() != psutil.STATUS_ZOMBIE]
        return bool(found)

    assert eventually(there, PATIENCE)
    return found[0]


@contextmanager
def no_room(pid: int) -> Iterator[None]:
    """No file of the process can grow meanwhile, as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_a_second_engine_waits_its_turn(world: World, tmp_path: Path) -> None:
    """Refused while the first lives. It takes over from one that is stopped, which ends itself when it wakes, and from one
    that is dead. For a moment two engines work on the same sinks; the one that delivers exactly once gets each row once."""
    found = world.ensure("kafka", "registry")
    orders = Orders(found["kafka"], found["registry"], "faults_engines")
    exact = copy(orders)
    exact.out = "faults_exact"
    project, environment = tmp_path / "project", {"HEADGATE_WORLD": str(world.folder)}
    first = start_engine(project, environment=environment)
    try:
        run(first, orders.pipeline + EXACT)
        orders.put(range(100, 150))
        complete(orders, 150)
        assert second_engine(project, environment) == (13, first.pid)
        orders.put(range(150, 3000))
        stopped = stop_processes(first)
        with take_over(project, environment) as second:
            complete_by_key(orders, 3000)
            for process in stopped:
                with suppress(psutil.NoSuchProcess):  # the second engine has killed the Spark of the first
                    process.resume()
            assert psutil.wait_procs(stopped, PATIENCE)[1] == []
            assert any(code in first.log.read_text() for code in ("CAT-0402", "CAT-0403"))
            assert second.client.is_healthy()
            orders.put(range(3000, 3050))
            came = orders.arrived(set(range(100, 3050)), PATIENCE)
            assert came.keys() == set(range(100, 3050))
            assert {came[order] for order in range(3000, 3050)} == {1}  # only one engine writes
            second.kill()
            orders.put(range(3050, 3100))
            with start_engine(project, environment=environment):
                complete_by_key(orders, 3100)
                complete_by_key(exact, 3100)
        assert exact.counted() == Counter(range(100, 3100))
    finally:
        first.kill()


EXACT = """
CREATE SINK faults_exact FROM faults_engines_dear INTO KAFKA CONNECTION kafka (TOPIC 'faults_exact')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (DELIVERY = 'exactly once');
"""


def stop_processes(engine: EngineProcess) -> list[psutil.Process]:
    """Stop an engine and its Spark at any moment, as a machine that is suspended does."""
    process = psutil.Process(engine.pid)
    stopped = [process, *(child for child in process.children() if child.name() == "java")]
    for one in stopped:
        one.suspend()
    return stopped


@contextmanager
def take_over(project: Path, environment: dict[str, str]) -> Iterator[EngineProcess]:
    """A second engine, as soon as the first has been silent for long enough."""
    started: list[EngineProcess] = []

    def starts() -> bool:
        try:
            started.append(start_engine(project, environment=environment))
        except EngineDidNotStart as refused:
            if "CAT-0401" not in "".join(refused.last):
                raise
        return bool(started)

    assert eventually(starts, PATIENCE)
    try:
        yield started[0]
    finally:
        started[0].stop()


def second_engine(project: Path, environment: dict[str, str]) -> tuple[int, int]:
    """Exit status of one more engine for the project, and the process that it says holds the catalog."""
    ended = subprocess.run(
        (*HEADGATE, "serve", "--project", str(project), "--port", "0"),
        capture_output=True, text=True, timeout=PATIENCE, check=False, env=program_environment(environment),
    )  # fmt: skip
    assert "error CAT-0401: could not open catalog" in ended.stderr, ended.stderr
    assert "hint: Send statements to that engine, or stop it first." in ended.stderr
    return ended.returncode, int(ended.stderr.partition("process ")[2].split()[0])
