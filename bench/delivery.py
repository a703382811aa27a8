"""Exactly once beside at least once: the same pipeline in batches of 100,000 records, each delivery in turn.

An engine makes the sinks. Then their tasks are run here, one after the other, with the size of a batch given; an engine would
choose it by itself. A rate counts from the end of the first batch of a sink. The best of three rounds, with the spread of all.

`HEADGATE_BENCH_RECORDS` sets the number of records.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.engines import TIMEOUT, Site, execute, open_site
from bench.figures import Report, Row, Size
from bench.processes import cpu_seconds
from headgate.catalog.objects import DesiredTaskState
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.control.definitions import task_definition
from headgate.embedded.spark import open_spark
from headgate.processes import program_environment
from headgate.runtime.ports import Limit
from headgate.runtime.sink_task import sink_task
from headgate.runtime.task import Task
from headgate.sql.statement import Kind

RATIO = 0.6  # promised
BATCH, ROUNDS, PARTITIONS = 100_000, 3, 4
DELIVERIES = ("at least once", "exactly once")
SOURCE = """
CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW dear AS SELECT sent, id, upper(item) AS what, price FROM orders WHERE price >= 100;
"""
SINK = """
CREATE SINK {name} FROM dear INTO KAFKA CONNECTION kafka (TOPIC '{name}', TOPIC PARTITION COUNT 4)
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (DELIVERY = '{delivery}');
ALTER SINK {name} PAUSE;
"""


@dataclass(frozen=True, slots=True)
class Course:
    """A run to the end of the topic: records a second, and CPU seconds of Python and Spark for a million of them."""

    rate: float
    cost: float


def run(size: Size) -> Report:
    records = int(os.environ.get("HEADGATE_BENCH_RECORDS", "600000" if size == "small" else "2000000"))
    with open_site() as site:
        _fill(site, records)
        _make_sinks(site)
        courses = _courses(site)
    once, least = (
        [courses[f"{delivery.replace(' ', '_')}_{n}"] for n in range(ROUNDS)] for delivery in DELIVERIES[::-1]
    )
    ours, peer = max(once, key=lambda c: c.rate), max(least, key=lambda c: c.rate)
    ratio = ours.rate / peer.rate
    rows = (
        Row(
            f"exactly once, batches of {BATCH:,}, best of {ROUNDS}", f"{ours.rate:,.0f} rows/s ({_spread(once)})",
            f"{peer.rate:,.0f} rows/s at least once ({_spread(least)})", ratio, f"at least {RATIO}", ratio >= RATIO,
        ),
        Row(
            "the same, CPU for a million records", f"{ours.cost:.1f} s", f"{peer.cost:.1f} s at least once",
            ours.cost / peer.cost,
        ),
    )  # fmt: skip
    note = f"{records:,} Avro records in {PARTITIONS} partitions to Avro; CPU of Python and Spark, not of the broker."
    return Report("Delivery", rows, (note,))


def _fill(site: Site, records: int) -> None:
    site.create_topic("orders", PARTITIONS)
    fill = (sys.executable, "-m", "bench.by_hand", "fill", site.brokers, "orders", str(site.register("orders")))
    folder = Path(__file__).parents[1]
    subprocess.run((*fill, str(records)), check=True, timeout=TIMEOUT, env=program_environment(), cwd=folder)


def _make_sinks(site: Site) -> None:
    with site.engine("delivery") as engine:
        execute(engine, SOURCE)
        for number in range(ROUNDS):
            for delivery in DELIVERIES:
                execute(engine, SINK.format(name=f"{delivery.replace(' ', '_')}_{number}", delivery=delivery))


def _courses(site: Site) -> dict[str, Course]:
    """Every sink to the end of the topic, in the order in which they were made."""
    with _spark(site) as session, SqliteStore(site.folder / "delivery" / ".headgate" / "catalog.db") as store:
        connections = Connections(store.keys.reveal, lambda service: site.world.ensure(service)[service])  # type: ignore[index]
        catalog = store.load()
        assert all(wish is DesiredTaskState.PAUSED for wish in catalog.desired.values())
        clients = connections.of(catalog)
        sinks = sorted(catalog.of_kind(Kind.SINK), key=lambda sink: sink.id)
        return {
            sink.name: _course(sink_task(task_definition(catalog, sink), clients, store), session) for sink in sinks
        }


def _course(task: Task, session: SparkSession) -> Course:
    """The first batch starts clients and compiles the plan."""
    task.run_batch(session, Limit(BATCH))
    rows, began, cpu = 0, time.monotonic(), cpu_seconds(os.getpid())
    while (done := task.run_batch(session, Limit(BATCH))) is not None:
        rows += done.rows
    took, spent = time.monotonic() - began, cpu_seconds(os.getpid()) - cpu
    task.close()
    return Course(rows / took, spent / rows * 1e6)


@contextmanager
def _spark(site: Site) -> Iterator[SparkSession]:
    session = open_spark(master="local[8]", warehouse=site.folder / "warehouse")
    try:
        yield session
    finally:
        session.stop()


def _spread(courses: list[Course]) -> str:
    rates = [course.rate for course in courses]
    return f"{min(rates):,.0f}–{max(rates):,.0f}"
