"""The pipeline Kafka Avro -> filter and projection -> Kafka Avro, by Headgate and by the job that one would write by hand.

Both run to the end of the same topic, each in a process of its own. Start-up is subtracted by counting from the end of the
first micro-batch to the end of the last. Memory is the most that the engine and its JVM held while they did a tenth of the
records and all of them. Rates are the best of three runs, with the spread of all.

`HEADGATE_BENCH_RECORDS` sets the number of records.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.engines import TIMEOUT, Site, execute, open_site
from bench.figures import Report, Row, Size, wanted_records
from bench.processes import cpu_seconds, memory
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.tasks import TaskStatus
from headgate.processes import program_environment
from headgate.serve.client import EngineProcess

RATE, GROWTH = 1.3, 1.1  # promises
ROUNDS = 3
PARTITIONS = 4

READ = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{topic}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT sent, id, upper(item) AS what, price FROM {name} WHERE price >= 100;
"""
WRITE = """
CREATE SINK {name}_sink FROM {name}_dear INTO KAFKA CONNECTION kafka (TOPIC '{name}_out')
  FORMAT {format} USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
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
    records = wanted_records(size == "small")
    with open_site() as site:
        rows = tuple(Bench(site).rates(records))
    notes = (
        f"{records:,} records in {PARTITIONS} partitions; CPU and memory of the engine's Python and JVM, not of the broker.",
        "By hand: readStream, from_avro with a fixed schema, writeStream; no registry, no ledger, no check of left-over bytes.",
    )
    return Report("Pipelines", rows, notes)


class Bench:
    def __init__(self, site: Site) -> None:
        self._site = site

    def rates(self, records: int) -> Iterator[Row]:
        self.fill("tenth", records // 10)
        self.fill("whole", records)
        runs, tenth = self._by_headgate()
        peers = [self.by_hand("whole", f"whole_by_hand{n}") for n in range(ROUNDS)]
        ours, peer = max(runs, key=lambda c: c.rate), max(peers, key=lambda c: c.rate)
        yield Row(
            f"Kafka Avro -> filter, projection -> Kafka Avro, best of {ROUNDS}", f"{ours.rate:,.0f} rows/s ({spread(runs)})",
            f"{peer.rate:,.0f} rows/s by hand ({spread(peers)})", ours.rate / peer.rate, f"at least {RATE}",
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

    def fill(self, topic: str, records: int) -> None:
        self._site.create_topic(topic, PARTITIONS)
        program("bench.by_hand", "fill", self._site.brokers, topic, str(self._site.register(topic)), str(records))

    def _by_headgate(self) -> tuple[list[Course], Course]:
        """All of the records three times, and before them a tenth, by one engine."""
        with self._site.engine("rates") as engine:
            tenth = self.follow(engine, "tenth", "tenth")
            return [self.follow(engine, "whole", f"whole{n}") for n in range(ROUNDS)], tenth

    def follow(self, engine: EngineProcess, topic: str, name: str, format_: str = "AVRO", comments: str = "") -> Course:
        execute(engine, (READ + comments + WRITE).format(topic=topic, name=name, format=format_))
        course = to_the_end(engine, f"{name}_sink")
        execute(engine, f"DROP SOURCE {name} CASCADE;")
        return course

    def by_hand(self, topic: str, out: str, *, tuned: bool = False) -> Course:
        """``tuned``: with Headgate's client settings instead of the defaults."""
        self._site.create_topic(out, PARTITIONS)
        what = "run-tuned" if tuned else "run"
        checkpoint = str(self._site.folder / f"checkpoint-{out}")
        return printed_course(program("bench.by_hand", what, self._site.brokers, topic, out, checkpoint))


def to_the_end(engine: EngineProcess, task: str) -> Course:
    """Follow the task of this name until it has read all there is."""
    course = Course()
    with SqliteReader(engine.project / ".headgate" / "catalog.db") as reader:
        id_ = next(o.id for o in reader.load().objects.values() if o.name == task)
        deadline = time.monotonic() + TIMEOUT
        while not _over(course, status := _status(reader, id_)):
            assert time.monotonic() < deadline, status
            assert status is None or status.error is None, status
            if status is not None and status.rows > (course.points[-1].rows if course.points else 0):
                course.points.append(Point(status.rows, time.monotonic(), cpu_seconds(engine.pid)))
            course.memory = max(course.memory, memory(engine.pid))
            time.sleep(0.2)
    return course


def printed_course(printed: str) -> Course:
    """What a program has printed of its micro-batches."""
    course, rows = Course(), 0
    for line in printed.splitlines():
        read, at, cpu = json.loads(line)
        rows += int(read)
        course.points.append(Point(rows, at, cpu))
    return course


def program(module: str, *arguments: str) -> str:
    """Run a module of the benchmarks as a program of its own. Returns what it prints."""
    command = (sys.executable, "-m", module, *arguments)
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=None,
        text=True,
        env=_environment(),
        timeout=TIMEOUT,
    )
    return done.stdout


def _environment() -> dict[str, str]:
    given = program_environment()
    return {**given, "PYTHONPATH": os.pathsep.join((given["PYTHONPATH"], str(Path(__file__).parents[1])))}


def spread(runs: list[Course]) -> str:
    return f"{min(run.rate for run in runs):,.0f}–{max(run.rate for run in runs):,.0f}"


def _status(reader: SqliteReader, sink: int) -> TaskStatus | None:
    return next((s for s in reader.statuses() if s.task == sink), None)


def _over(course: Course, status: TaskStatus | None) -> bool:
    return status is not None and status.lag == 0 and bool(course.points) and status.rows == course.points[-1].rows
