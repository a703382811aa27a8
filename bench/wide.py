"""Records of 2,000 fields beside records of 200: planning must grow with the number of fields, not faster.

A user's view, through an engine: the time of `SELECT *` over fifty records, the time from sending a record to having it behind
a sink, and the same for the first record with a new field. The best of some rounds after one to warm up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import fastavro
from confluent_kafka import Producer

from bench.engines import Receiver, Site, execute, framed, open_site, wait_until_running
from bench.figures import Report, Row, Size, shown
from bench.processes import cpu_seconds
from headgate.serve.client import EngineProcess

FEW, MANY, RECORDS = 200, 2000, 50
SECONDS = 5.0  # promised for many fields on an otherwise idle machine
KINDS: Sequence[tuple[object, object]] = (
    ("long", 7),
    (["null", "string"], "a text"),
    ("double", 1.5),
    ("boolean", True),
)
PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE SINK {name}_sink FROM {name} INTO KAFKA CONNECTION kafka (TOPIC '{name}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""


def run(size: Size) -> Report:
    rounds = 1 if size == "small" else 5
    with open_site() as site, site.engine("wide") as engine:
        few, many = (Wide(site, engine, count) for count in (FEW, MANY))
        works: dict[str, Callable[[Wide], object]] = {
            "SELECT *": Wide.select, "a record through a sink": Wide.send, "a record with a new field": Wide.send_with_new_field
        }  # fmt: skip
        rows = [row for what, work in works.items() for row in _rows(what, work, few, many, engine, rounds)]
        few.close()
        many.close()
    note = f"{RECORDS} records; best of {rounds} rounds after one. CPU is that of the engine and its JVMs."
    return Report("Wide records", tuple(rows), (note,))


def _rows(
    what: str, work: Callable[[Wide], object], few: Wide, many: Wide, engine: EngineProcess, rounds: int
) -> tuple[Row, Row]:
    (less, less_cpu), (more, more_cpu) = (_best(lambda one=one: work(one), engine, rounds) for one in (few, many))  # type: ignore[misc]
    promised = f"under {SECONDS:g} s"
    return (
        Row(
            f"{what}, {MANY:,} fields", shown(more), f"{shown(less)} with {FEW}", more / less, promised, more < SECONDS
        ),
        Row("the same, CPU time", shown(more_cpu), f"{shown(less_cpu)} with {FEW}", more_cpu / max(less_cpu, 1e-3)),
    )


def _best(work: Callable[[], object], engine: EngineProcess, rounds: int) -> tuple[float, float]:
    """Seconds and CPU seconds, each the least of all rounds."""
    work()
    wall, cpu = float("inf"), float("inf")
    for _ in range(rounds):
        at, began = time.monotonic(), cpu_seconds(engine.pid)
        work()
        wall, cpu = min(wall, time.monotonic() - at), min(cpu, cpu_seconds(engine.pid) - began)
    return wall, cpu


class Wide:
    """A source with so many fields, and a sink over it."""

    def __init__(self, site: Site, engine: EngineProcess, count: int) -> None:
        self._site = site
        self._engine = engine
        self._name = f"wide{count}"
        # The time comes first, where a receiver looks for it.
        self._fields = [{"name": "sent", "type": "double"}]
        self._fields += [{"name": f"f{n}", "type": KINDS[n % len(KINDS)][0]} for n in range(count)]  # type: ignore[dict-item]
        self._row: dict[str, object] = {f"f{n}": KINDS[n % len(KINDS)][1] for n in range(count)}
        self._producer = Producer({"bootstrap.servers": site.brokers, "linger.ms": 0})
        for topic in (self._name, f"{self._name}_out"):
            site.create_topic(topic)
        self._register()
        self._receiver = Receiver(site.brokers, [f"{self._name}_out"])
        self._receiver.start()
        self._put(RECORDS)
        execute(engine, PIPELINE.format(name=self._name))
        wait_until_running(engine, 1)

    def _register(self) -> None:
        schema = {"type": "record", "name": "wide", "fields": self._fields}
        self._id = self._site.register(self._name, json.dumps(schema))
        self._schema = fastavro.parse_schema(schema)

    def _put(self, records: int) -> None:
        for _ in range(records):
            self._producer.produce(self._name, framed(self._id, self._schema, {"sent": time.time(), **self._row}))
        self._producer.flush(30)

    def close(self) -> None:
        self._receiver.finish(0)

    def select(self) -> None:
        execute(self._engine, f"SELECT * FROM {self._name};")

    def send(self) -> None:
        seen = len(self._receiver.seen)
        self._put(1)
        while len(self._receiver.seen) == seen:
            time.sleep(0.01)

    def send_with_new_field(self) -> None:
        name = f"new{len(self._fields)}"
        self._fields.append({"name": name, "type": ["null", "string"], "default": None})  # type: ignore[dict-item]
        self._row[name] = "new"
        self._register()
        self.send()
