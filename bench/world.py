"""The embedded world from nothing to usable, Kafka beside the same broker started by hand.

Kafka is measured from the call that asks for it in an empty folder to the first record that the broker acknowledged.
By hand means what its documentation says: format the folder, then `java kafka.Kafka` with the same properties and
jars and no other options, and a client that asks until it is answered. The rounds of both alternate.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.figures import Report, Row, Size, shown
from bench.processes import cpu_seconds
from headgate.embedded.host import LOOPBACK, choose_port
from headgate.embedded.jars import fetch, find_java
from headgate.embedded.service import ServiceName, configuration
from headgate.embedded.world import World

PATIENCE = 120.0
OTHERS: tuple[ServiceName, ...] = ("registry", "postgres", "opensearch")


@dataclass(frozen=True, slots=True)
class Start:
    """How long it took, and what it cost: seconds of CPU of all processes that were started for it."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{shown(self.wall)} ({shown(self.cpu)} CPU)"


def run(size: Size) -> Report:
    rounds, others = (1, OTHERS[:1]) if size == "small" else (3, OTHERS)
    fetch("kafka")  # a download is nobody's start
    ours: list[Start] = []
    peer: list[Start] = []
    for _ in range(rounds):
        ours.append(_in_folder(_embedded))
        peer.append(_in_folder(_by_hand))
    rows = [_row("Kafka, new folder: to the first acknowledged record", _best(ours), _best(peer))]
    if size == "full":
        again = _best([_in_folder(_second_start) for _ in range(rounds)])
        rows.append(_row("Kafka, folder with data: the same", again, None))
    for service in others:
        found = _best([_in_folder(lambda folder, one=service: _service(folder, one)) for _ in range(rounds)])  # type: ignore[misc]
        rows.append(_row(f"{service}, new folder: to its first answer", found, None))
    notes = (
        "The best of the rounds by wall time, with the CPU time of all processes started for it: on a machine that does "
        "other things too, the ratio of the CPU times says more than that of the wall times.",
        f"Kafka's CPU time, ours over by hand: {_best(ours).cpu / _best(peer).cpu:.2f}.",
    )
    return Report("The embedded world", tuple(rows), notes)


def _row(what: str, ours: Start, peer: Start | None) -> Row:
    ratio = None if peer is None else ours.wall / peer.wall
    return Row(what, str(ours), "–" if peer is None else f"{peer} by hand", ratio)


def _best(starts: list[Start]) -> Start:
    return min(starts, key=lambda start: start.wall)


def _in_folder(measure: Callable[[Path], Start]) -> Start:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL and OpenSearch run as another user when we are root
        return measure(Path(folder))


@contextmanager
def _world(folder: Path) -> Iterator[World]:
    with World.open(folder / "world", idle_timeout=1.0) as world:
        try:
            yield world
        finally:
            world.shut_down()


def _embedded(folder: Path) -> Start:
    began = time.monotonic()
    with _world(folder) as world:
        _first_record(world.kafka())
        return Start(time.monotonic() - began, cpu_seconds(world.status().pid, ended=True))


def _second_start(folder: Path) -> Start:
    with _world(folder) as world:
        _first_record(world.kafka())
    return _embedded(folder)


def _service(folder: Path, service: ServiceName) -> Start:
    began = time.monotonic()
    with _world(folder) as world:
        world.address(service)
        return Start(time.monotonic() - began, cpu_seconds(world.status().pid, ended=True))


def _by_hand(folder: Path) -> Start:
    java = [str(find_java().path), "-cp", os.pathsep.join(map(str, fetch("kafka")))]
    began = time.monotonic()
    port, controller = choose_port(None), choose_port(None)
    (folder / "server.properties").write_text(
        configuration("kafka.properties").format(host=LOOPBACK, port=port, controller=controller)
    )
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    format_ = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config=server.properties"]
    with (folder / "log").open("wb") as log:
        before = os.times()
        subprocess.run([*java, *format_], cwd=folder, stdout=log, stderr=log, check=True)
        after = os.times()
        formatting = after.children_user + after.children_system - before.children_user - before.children_system
        with subprocess.Popen(
            [*java, "kafka.Kafka", "server.properties"], cwd=folder, stdout=log, stderr=log
        ) as broker:
            try:
                _first_record(f"{LOOPBACK}:{port}")
                return Start(time.monotonic() - began, formatting + cpu_seconds(broker.pid, ended=True))
            finally:
                broker.terminate()
                with suppress(subprocess.TimeoutExpired):
                    broker.wait(timeout=30)
                broker.kill()


def _first_record(brokers: str) -> None:
    """Make a topic as soon as somebody lets us, and wait for one record's acknowledgement."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": brokers, "log_level": 0}
    deadline = time.monotonic() + PATIENCE
    admin = AdminClient(settings)
    while True:
        try:
            admin.create_topics([NewTopic("first", 1, 1)], request_timeout=5)["first"].result()
            break
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                break
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    acknowledged: list[object] = []
    producer = Producer({**settings, "acks": "all", "linger.ms": 0})
    producer.produce("first", b"record", on_delivery=lambda error, _: acknowledged.append(error))
    producer.flush(PATIENCE)
    if acknowledged != [None]:
        raise AssertionError(f"the record was not acknowledged: {acknowledged}")
