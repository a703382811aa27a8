"""The pipeline Kafka Avro -> filter and projection -> Kafka Avro, by Headgate and by the job that one would write by hand.

Rate: both run to the end of the same topic, each in a process of its own. Start-up is subtracted by counting from the
end of the first micro-batch to the end of the last. Memory is the most that the engine and its JVM held while they
did a tenth of the records and all of them. Rates are the best of three runs, with the spread of all.

Then fifty tasks that have nothing to do, one task with a hundred records a second, and forty with a record a second each,
from the moment of sending to the moment when a consumer of the output has it: in the first half minute, in which Java still
compiles what an engine then runs for days, and in the half minute after two more.

`HEADGATE_BENCH_RECORDS` sets the number of records, `HEADGATE_BENCH_PARTS=latency` leaves the rates out.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.by_hand import ORDER
from bench.figures import Report, Row, Size
from bench.processes import cpu_seconds, memory
from headgate.catalog.store.sqlite import SqliteReader
from headgate.catalog.tasks import TaskStatus
from headgate.embedded.world import World
from headgate.processes import program_environment
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineProcess, start_engine
from headgate.serve.protocol import Failed

RATE, CORES, LATENCY, GROWTH = 1.3, 0.05, 4.0, 1.1  # promises
ALONE, BATCHES = (
    0.4,
    10.0,
)  # p50 in seconds of one task with 100 records a second; batches a second of many tasks
ROUNDS = 3
PATIENCE = 600.0
PARTITIONS = 4

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{topic}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT sent, id, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE SINK {name}_sink FROM {name}_dear INTO KAFKA CONNECTION kafka (TOPIC '{name}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""


@dataclass(frozen=True, slots=True)
class Point:
    """At the end of a batch: records so far, clock, CPU seconds so far."""

    rows: int
    at: float
    cpu: float


@dataclass(slots=True)
class Course:
    """A run to the end of a topic."""

    points: list[Point] = field(default_factory=list)
    memory: int = 0  # bytes, the most seen

    @property
    def rate(self) -> float:
        """Records a second, from the end of the first batch to the end of the last."""
        return (self.points[-1].rows - self.points[0].rows) / (self.points[-1].at - self.points[0].at)

    @property
    def cost(self) -> float:
        """CPU seconds for a million records, likewise."""
        rows = self.points[-1].rows - self.points[0].rows
        return (self.points[-1].cpu - self.points[0].cpu) / rows * 1e6


def run(size: Size) -> Report:
    small = size == "small"
    records = int(os.environ.get("HEADGATE_BENCH_RECORDS", "1200000" if small else "10000000"))
    idle, busy, seconds, warm = (5, 4, 10.0, 10.0) if small else (50, 40, 30.0, 120.0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with World.open(Path(folder) / "world", idle_timeout=1.0) as world:
            try:
                bench = Bench(Path(folder), world)
                rates = () if os.environ.get("HEADGATE_BENCH_PARTS") == "latency" else bench.rates(records)
                rows = (*rates, *bench.many(idle, busy, seconds, warm))
            finally:
                world.shut_down()
    notes = (
        f"{records:,} records in {PARTITIONS} partitions; CPU and memory of the engine's Python and JVM, not of the broker.",
        "By hand: readStream, from_avro with a fixed schema, writeStream; no registry, no ledger, no check of left-over bytes.",
    )
    return Report("Pipelines", rows, notes)


class Bench:
    def __init__(self, folder: Path, world: World) -> None:
        self._folder = folder
        self._world = world
        found = world.ensure("kafka", "registry")
        self._brokers, self._registry = found["kafka"], found["registry"]

    # a full topic

    def rates(self, records: int) -> Iterator[Row]:
        self._fill("tenth", records // 10)
        self._fill("whole", records)
        runs, tenth = self._by_headgate()
        peers = [self._by_hand("whole", f"whole_by_hand{n}") for n in range(ROUNDS)]
        ours, peer = max(runs, key=lambda c: c.rate), max(peers, key=lambda c: c.rate)
        yield Row(
            f"Kafka Avro -> filter, projection -> Kafka Avro, best of {ROUNDS}", f"{ours.rate:,.0f} rows/s ({_spread(runs)})",
            f"{peer.rate:,.0f} rows/s by hand ({_spread(peers)})", ours.rate / peer.rate, f"at least {RATE}",
            ours.rate / peer.rate >= RATE,
        )  # fmt: skip
        yield Row(
            "the same, CPU for a million records", f"{ours.cost:.1f} s", f"{peer.cost:.1f} s by hand", ours.cost / peer.cost
        )  # fmt: skip
        growth = ours.memory / tenth.memory
        yield Row(
            "memory with ten times the records", f"{ours.memory / 2**20:,.0f} MB", f"{tenth.memory / 2**20:,.0f} MB at 1x",
            growth, f"at most {GROWTH}", growth <= GROWTH,
        )  # fmt: skip

    def _fill(self, topic: str, records: int) -> None:
        self._topic(topic, PARTITIONS)
        _by_hand("fill", self._brokers, topic, str(self._register(topic)), str(records))

    def _by_headgate(self) -> tuple[list[Course], Course]:
        """All of the records three times, and before them a tenth, by one engine."""
        with self._engine("rates") as engine:
            tenth = self._follow(engine, "tenth", "tenth")
            return [self._follow(engine, "whole", f"whole{n}") for n in range(ROUNDS)], tenth

    def _follow(self, engine: EngineProcess, topic: str, name: str) -> Course:
        execute(engine, PIPELINE.format(topic=topic, name=name))
        course = Course()
        with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
            sink = next(o.id for o in reader.load().objects.values() if o.name == f"{name}_sink")
            deadline = time.monotonic() + PATIENCE
            while not _over(course, status := _status(reader, sink)):
                assert time.monotonic() < deadline, status
                assert status is None or status.error is None, status
                if status is not None and status.rows > (course.points[-1].rows if course.points else 0):
                    course.points.append(Point(status.rows, time.monotonic(), cpu_seconds(engine.pid)))
                course.memory = max(course.memory, memory(engine.pid))
                time.sleep(0.2)
        execute(engine, f"DROP SOURCE {name} CASCADE;")
        return course

    def _by_hand(self, topic: str, out: str) -> Course:
        self._topic(out, PARTITIONS)
        told = _by_hand("run", self._brokers, topic, out, str(self._folder / "by-hand"))
        course, rows = Course(), 0
        for line in told.splitlines():
            read, at, cpu = json.loads(line)
            rows += int(read)
            course.points.append(Point(rows, at, cpu))
        return course

    # many small ones

    def many(self, idle: int, busy: int, seconds: float, warm: float) -> Iterator[Row]:
        topics = [f"small{n}" for n in range(idle)]
        for topic in topics:
            self._topic(topic, 1)
            self._topic(f"{topic}_out", 1)
        ids = [self._register(topic) for topic in topics]
        with self._engine("many") as engine:
            execute(engine, "".join(PIPELINE.format(topic=topic, name=topic) for topic in topics))
            self._all_run(engine, idle)
            cores = self._cores(engine, seconds)
            yield Row(
                f"{idle} tasks with nothing to do", f"{cores:.2f} cores", promised=f"under {CORES} cores", kept=cores < CORES
            )  # fmt: skip
            yield from self._alone(engine, {topics[0]: ids[0]}, seconds)
            before, began = _batches(engine), time.monotonic()
            seen, cores = self._latencies(engine, dict(zip(topics[:busy], ids, strict=False)), seconds + warm)
            per_second = (_batches(engine) - before) / (time.monotonic() - began)
            first = [had for sent, had in seen if sent < seconds]
            times = [had for sent, had in seen if sent >= warm]
            p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            yield Row(
                f"{busy} tasks, a record a second each: p50 of {len(times):,}", f"{p50:.2f} s",
                promised=f"under {LATENCY:.0f} s", kept=p50 < LATENCY,
            )  # fmt: skip
            yield Row("the same, p95", f"{p95:.2f} s")
            yield Row(f"the same, p50 of the first {seconds:.0f} s", f"{statistics.median(first):.2f} s")
            yield Row(
                "the same, batches a second", f"{per_second:.1f}", promised=f"at least {BATCHES:.0f}",
                kept=per_second >= BATCHES,
            )  # fmt: skip
            yield Row("the same, cores used", f"{cores:.2f} cores")

    def _alone(self, engine: EngineProcess, topic: dict[str, int], seconds: float) -> Iterator[Row]:
        """A hundred records a second through one task: the best of three rounds, after one to warm up."""
        rounds = []
        for _ in range(ROUNDS + 1):
            seen, _cores = self._latencies(engine, topic, seconds, per_second=100.0)
            times = [had for _, had in seen]
            rounds.append((statistics.median(times), statistics.quantiles(times, n=20)[-1]))
        p50, p95 = min(rounds[1:])
        spread = f"{min(rounds[1:])[0] * 1e3:.0f}–{max(rounds[1:])[0] * 1e3:.0f}"
        yield Row(
            f"one task, 100 records a second: p50, best of {ROUNDS}", f"{p50 * 1e3:.0f} ms ({spread})",
            promised=f"under {ALONE * 1e3:.0f} ms", kept=p50 < ALONE,
        )  # fmt: skip
        yield Row("the same, p95", f"{p95 * 1e3:.0f} ms")

    def _all_run(self, engine: EngineProcess, tasks: int) -> None:
        with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
            deadline = time.monotonic() + PATIENCE
            while sum(s.state == "running" for s in reader.statuses()) < tasks:
                assert time.monotonic() < deadline, reader.statuses()
                time.sleep(0.5)
        time.sleep(15)  # the first, empty batches

    def _cores(self, engine: EngineProcess, seconds: float) -> float:
        return _cores_while(engine.pid, lambda: time.sleep(seconds))

    def _latencies(
        self, engine: EngineProcess, topics: dict[str, int], seconds: float, per_second: float | None = None
    ) -> tuple[list[tuple[float, float]], float]:
        """When records were sent, counted from five seconds after the first, and how long it took until they were had."""
        receiver = Receiver(self._brokers, [f"{topic}_out" for topic in topics])
        receiver.start()
        cores = _cores_while(engine.pid, lambda: self._send(topics, seconds + 5, per_second))
        receiver.finish(20)
        first = min(sent for sent, _ in receiver.seen) + 5
        return [(sent - first, had - sent) for sent, had in receiver.seen if sent >= first], cores

    def _send(self, topics: dict[str, int], seconds: float, per_second: float | None) -> None:
        """Send to the topics in turn; None means one record a second to each."""
        producer = Producer({"bootstrap.servers": self._brokers, "linger.ms": 0})
        schema = fastavro.parse_schema(json.loads(ORDER))
        began = time.monotonic()
        pause = 1 / (per_second or len(topics))
        number = 0
        while time.monotonic() - began < seconds:
            for topic, schema_id in topics.items():
                body = io.BytesIO(b"\x00" + schema_id.to_bytes(4, "big"))
                body.seek(5)
                order = {"id": number, "item": "one", "price": 200.0, "sent": time.time()}
                fastavro.schemaless_writer(body, schema, order)
                producer.produce(topic, body.getvalue(), key=str(number))
                producer.poll(0)
                number += 1
                time.sleep(max(0.0, began + number * pause - time.monotonic()))
        producer.flush(30)

    # the world

    @contextmanager
    def _engine(self, name: str) -> Iterator[EngineProcess]:
        environment = {"HEADGATE_WORLD": str(self._world.folder)}
        with start_engine(self._folder / name, environment=environment) as engine:
            yield engine

    def _topic(self, name: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self._brokers})
        admin.create_topics([NewTopic(name, partitions)])[name].result(30)

    def _register(self, topic: str) -> int:
        with RegistryClient([self._registry]) as client:
            return client.register(f"{topic}-value", Schema(ORDER))


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
            for message in self._consumer.consume(100, 0.1):
                if message.error() is None:
                    (sent,) = struct.unpack_from("<d", message.value() or b"", 5)  # the first field
                    self.seen.append((sent, time.time()))

    def finish(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.join()
        self._consumer.close()


def _by_hand(*arguments: str) -> str:
    command = (sys.executable, "-m", "bench.by_hand", *arguments)
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=None,
        text=True,
        env=_environment(),
        timeout=PATIENCE,
    )
    return done.stdout


def _environment() -> dict[str, str]:
    given = program_environment()
    return {**given, "PYTHONPATH": os.pathsep.join((given["PYTHONPATH"], str(Path(__file__).parents[1])))}


def execute(engine: EngineProcess, sql: str) -> None:
    for event in engine.client.run(sql):
        assert not isinstance(event, Failed), event.diagnostic.render()


def _batches(engine: EngineProcess) -> int:
    with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
        return sum(status.batches for status in reader.statuses())


def _spread(runs: list[Course]) -> str:
    return f"{min(run.rate for run in runs):,.0f}–{max(run.rate for run in runs):,.0f}"


def _status(reader: SqliteReader, sink: int) -> TaskStatus | None:
    return next((s for s in reader.statuses() if s.task == sink), None)


def _over(course: Course, status: TaskStatus | None) -> bool:
    return status is not None and status.lag == 0 and bool(course.points) and status.rows == course.points[-1].rows


def _cores_while(pid: int, work: Callable[[], None]) -> float:
    cpu, began = cpu_seconds(pid), time.monotonic()
    work()
    return (cpu_seconds(pid) - cpu) / (time.monotonic() - began)
