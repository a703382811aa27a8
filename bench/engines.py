"""A world with engines for benchmarks, producers that say when they sent, and a consumer that says when it had."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import fastavro
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.by_hand import ORDER
from bench.processes import cpu_seconds
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.tasks import TaskStatus
from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineProcess, start_engine
from headgate.serve.protocol import Failed

TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with an embedded world, in which engines are started."""

    folder: Path
    world: World
    brokers: str
    registry: str

    @contextmanager
    def engine(self, name: str, **settings: str) -> Iterator[EngineProcess]:
        """``settings`` are further variables of its environment."""
        environment = {"HEADGATE_WORLD": str(self.world.folder), **settings}
        with start_engine(self.folder / name, environment=environment) as engine:
            yield engine

    def create_topic(self, name: str, partitions: int = 1) -> None:
        admin = AdminClient({"bootstrap.servers": self.brokers})
        admin.create_topics([NewTopic(name, partitions)])[name].result(30)

    def topics(self, prefix: str, count: int) -> dict[str, int]:
        """New topics for orders and for the output, and the id of the schema of orders in each."""
        names = [f"{prefix}{number}" for number in range(count)]
        for name in names:
            self.create_topic(name)
            self.create_topic(f"{name}_out")
        return {name: self.register(name) for name in names}

    def register(self, topic: str, schema: str = ORDER, side: str = "value") -> int:
        with RegistryClient([self.registry]) as client:
            return client.register(f"{topic}-{side}", Schema(schema))


@contextmanager
def open_site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with World.open(Path(folder) / "world", idle_timeout=1.0) as world:
            try:
                found = world.ensure("kafka", "registry")
                yield Site(Path(folder), world, found["kafka"], found["registry"])
            finally:
                world.shut_down()


def execute(engine: EngineProcess, sql: str) -> None:
    for event in engine.client.run(sql):
        assert not isinstance(event, Failed), event.diagnostic.render()


def statuses(engine: EngineProcess) -> tuple[TaskStatus, ...]:
    with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
        return tuple(reader.statuses())


def wait_until_running(engine: EngineProcess, tasks: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while sum(status.state == "running" for status in statuses(engine)) < tasks:
        assert time.monotonic() < deadline, statuses(engine)
        time.sleep(0.2)


def cores_while(pid: int, work: Callable[[], None]) -> float:
    cpu, began = cpu_seconds(pid), time.monotonic()
    work()
    return (cpu_seconds(pid) - cpu) / (time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Latency:
    """When a record was sent, in seconds since the measurement began, and how long it took until it was had."""

    sent: float
    took: float


def latencies(
    site: Site,
    topics: Mapping[str, int],
    seconds: float,
    *,
    every: float,
    keys: int | None = None,
    key_id: int | None = None,
) -> list[Latency]:
    """Send orders to the topics in turn, one every ``every`` seconds, and wait for them in ``<topic>_out``. What was sent in
    the first five seconds is left out."""
    receiver = Receiver(site.brokers, [f"{topic}_out" for topic in topics])
    receiver.start()
    send_orders(site.brokers, topics, seconds + 5, every=every, keys=keys, key_id=key_id)
    receiver.finish(20)
    first = min(sent for sent, _ in receiver.seen) + 5
    return [Latency(sent - first, had - sent) for sent, had in receiver.seen if sent >= first]


def send_orders(
    brokers: str,
    topics: Mapping[str, int],
    seconds: float,
    *,
    every: float,
    keys: int | None = None,
    key_id: int | None = None,
) -> None:
    """``keys`` is the number of different keys, None for a key of its own for each record; ``key_id`` frames keys as Avro."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})
    schema = fastavro.parse_schema(json.loads(ORDER))
    began = time.monotonic()
    number = 0
    while time.monotonic() - began < seconds:
        for topic, schema_id in topics.items():
            id_ = number if keys is None else number % keys
            order = {"id": id_, "item": "one", "price": 200.0, "sent": time.time()}
            key = str(id_).encode() if key_id is None else framed(key_id, "long", id_)
            producer.produce(topic, framed(schema_id, schema, order), key=key)
            producer.poll(0)
            number += 1
            time.sleep(max(0.0, began + number * every - time.monotonic()))
    producer.flush(30)


def framed(schema_id: int, schema: object, value: object) -> bytes:
    """A value as Avro behind the frame of a registry."""
    body = io.BytesIO()
    body.write(b"\x00" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(body, schema, value)  # type: ignore[arg-type]
    return body.getvalue()


def next_messages(consumer: Consumer) -> list[Message]:
    """The messages that are there, as soon as there is one. `consume` alone would wait for its time-out unless it gets as many
    as it may."""
    first = consumer.poll(0.1)
    return [] if first is None else [first, *consumer.consume(1000, 0)]


class Receiver(threading.Thread):
    """Reads topics from their ends on, and notes for every record when it was sent and when it came."""

    def __init__(self, brokers: str, topics: list[str]) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[float, float]] = []
        self._consumer = Consumer({"bootstrap.servers": brokers, "group.id": "bench", "fetch.wait.max.ms": 10})
        ends = {topic: self._consumer.get_watermark_offsets(TopicPartition(topic, 0))[1] for topic in topics}
        self._consumer.assign([TopicPartition(topic, 0, end) for topic, end in ends.items()])
        self._until: float | None = None

    def run(self) -> None:
        while self._until is None or time.monotonic() < self._until:
            for message in next_messages(self._consumer):
                if message.error() is None and message.value() is not None:
                    (sent,) = struct.unpack_from("<d", message.value() or b"", 5)  # the first field
                    self.seen.append((sent, time.time()))

    def finish(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.join()
        self._consumer.close()
