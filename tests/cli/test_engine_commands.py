"""Commands that start engines: `serve`, `sql` without an engine, and `run --once` through a real world."""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.cli.commands import ENGINE_WAS_TEMPORARY, LAZY_SPARK
from headgate.embedded.world import World
from headgate.processes import program_environment
from headgate.serve.client import HEADGATE, EngineAddress, start_engine

pytestmark = pytest.mark.e2e

NO_WORLD = {"HEADGATE_WORLD": "false"}


def _headgate(
    project: Path, *arguments: str, environment: Mapping[str, str] = NO_WORLD
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*HEADGATE, *arguments, "--project", str(project)),
        capture_output=True, text=True, env=program_environment(environment), timeout=280, check=False,
    )  # fmt: skip


def test_a_second_engine_is_refused_with_who_holds_the_catalog(tmp_path: Path) -> None:
    with start_engine(tmp_path, environment={**NO_WORLD, **LAZY_SPARK}) as engine:
        result = _headgate(tmp_path, "serve")
        assert result.returncode == 13
        assert result.stderr.startswith("error CAT-0401")
        assert f"process {engine.pid} " in result.stderr
        assert "Traceback" not in result.stderr
        assert _headgate(tmp_path, "sql", "-c", "SHOW TASKS").returncode == 0


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_engine_stops_in_order_after_a_signal(tmp_path: Path, sent: signal.Signals) -> None:
    with start_engine(tmp_path, environment={**NO_WORLD, **LAZY_SPARK}) as engine:
        process = psutil.Process(engine.pid)
        process.send_signal(sent)
        assert process.wait(60) == 0
    assert EngineAddress.read(tmp_path) is None
    log = engine.log.read_text()
    assert "stopping" in log
    assert "Traceback" not in log


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with start_engine(tmp_path, environment={**NO_WORLD, **LAZY_SPARK}) as engine:
        port = engine.client.url.rpartition(":")[2]
        result = _headgate(tmp_path / "other", "serve", "--port", port)
    assert (result.returncode, result.stderr.startswith("error CLI-0204")) == (18, True)


def test_without_an_engine_one_is_started_for_the_command_with_a_notice(tmp_path: Path) -> None:
    made = _headgate(tmp_path, "sql", "-c", "CREATE VIEW v AS SELECT 1 AS a")
    assert (made.returncode, made.stdout) == (0, "CREATE VIEW\n")
    assert made.stderr == f"notice: {ENGINE_WAS_TEMPORARY}\n"
    assert EngineAddress.read(tmp_path) is None
    looked = _headgate(tmp_path, "sql", "-c", "SHOW VIEWS; SHOW CONNECTIONS", "--output", "json")
    views, connections = map(json.loads, looked.stdout.splitlines())
    assert (views["rows"][0][0], connections["rows"], looked.stderr) == ("v", [], "")


def test_run_once_processes_existing_records_and_ends(world: World, tmp_path: Path) -> None:
    broker = world.kafka()
    topic = f"lines-{uuid.uuid4().hex[:8]}"
    _fill(broker, topic, 100)
    script = tmp_path / "script.sql"
    script.write_text(
        f"CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC '{topic}') FORMAT TEXT;\n"
        "CREATE VIEW loud AS SELECT upper(text) AS text FROM lines;\n"
        f"CREATE SINK louder FROM loud INTO KAFKA CONNECTION kafka (TOPIC '{topic}-loud') FORMAT TEXT;\n"
    )
    result = _headgate(tmp_path, "run", str(script), "--once", environment={"HEADGATE_WORLD": str(world.folder)})
    assert result.returncode == 0, result.stderr
    assert "APPLY: 3 created" in result.stdout
    assert "sink louder: running, 100 rows, lag 0" in result.stderr
    assert _values(broker, f"{topic}-loud", 100) == {f"LINE {n}" for n in range(100)}


def test_run_without_a_task_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text("CREATE VIEW v AS SELECT 1 AS a")
    result = _headgate(tmp_path, "run", str(tmp_path / "script.sql"))
    assert (result.returncode, "error CLI-0302" in result.stderr) == (18, True)


def _fill(broker: str, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker})  # kept: its answers come only while it lives
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": broker})
    for number in range(count):
        producer.produce(topic, f"line {number}".encode())
    assert producer.flush(30) == 0


def _values(broker: str, topic: str, count: int) -> set[str]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return {(message.value() or b"").decode() for message in consumer.consume(count, 30)}
    finally:
        consumer.close()
