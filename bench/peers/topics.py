"""Kafka Avro -> filter and projection -> Kafka Avro with docs: Headgate against Flink SQL.

Both read the same topic, run the same query and write a topic of four partitions with a documented schema. Each run is that of
a fresh process. Flink runs with the client settings that Headgate has, and with Kafka's defaults; Headgate's own defaults are
the former, so it is measured once. CPU seconds are those of all processes of a side and of the broker.

`HEADGATE_BENCH_RECORDS` sets the number of records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from bench.by_hand import DEAR
from bench.engines import Site, execute, open_site
from bench.figures import Report, Row, Size, load_note, wanted_records
from bench.peers import flink
from bench.peers.children import PeerFailed
from bench.peers.watching import tasks_run, watch
from bench.pipeline import PARTITIONS, READ, Bench, Course, program, spread
from bench.sinks import COMMENTS
from headgate.registry.client import RegisteredSchema, RegistryClient
from headgate.runtime.source import READER
from headgate.runtime.targets.kafka import WRITER

EQUAL, DEFAULTS, CPU = 1.0, 1.2, 1.1  # promises
DOCS = {"what": "the goods, in capitals", "price": "in EUR"}  # as in COMMENTS
WRITE = f"""
CREATE SINK {{name}} FROM {{name}}_orders_dear
  INTO KAFKA CONNECTION kafka (TOPIC '{{name}}', TOPIC PARTITION COUNT {PARTITIONS})
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""
ORDERS = "id BIGINT NOT NULL, item STRING NOT NULL, price DOUBLE NOT NULL, sent DOUBLE NOT NULL"
DEAR_ORDERS = "sent DOUBLE NOT NULL, id BIGINT NOT NULL, what STRING NOT NULL, price DOUBLE NOT NULL"
QUERY = "INSERT INTO dear SELECT sent, id, UPPER(item) AS what, price FROM orders WHERE price >= 100;\n"
SIDES = ("headgate", "flink_equal", "flink_defaults")


def run(size: Size) -> Report:
    records = wanted_records(size == "small")
    flink.class_path()  # a download is nobody's start
    with open_site() as site:
        courses = Topics(site, records).courses(1 if size == "small" else 3)
    notes = (
        f"{records:,} records in {PARTITIONS} partitions, from 10 % to 100 % of the output; the rows of every output were checked.",
        f"Flink without checkpoints, {flink.SETTINGS['parallelism.default']} tasks in parallel. CPU of all processes of a side and of the broker.",
        load_note(),
    )
    return Report(
        "Kafka Avro -> filter, projection -> Kafka Avro with docs, against Flink SQL", tuple(rows(courses)), notes
    )


def rows(courses: Mapping[str, list[Course]]) -> Iterator[Row]:
    ours, equal, defaults = (courses[side] for side in SIDES)
    yield compared("with the same client settings", ours, equal, EQUAL)
    yield compared("each with its defaults", ours, defaults, DEFAULTS)
    yield per_cpu_second("with the same client settings", ours, equal, CPU)
    yield per_cpu_second("each with its defaults", ours, defaults, CPU)


def compared(what: str, ours: list[Course], peers: list[Course], promise: float, peer_name: str = "Flink") -> Row:
    """The best runs of both sides."""
    mine, theirs = (max(course.rate for course in runs) for runs in (ours, peers))
    return Row(
        what, f"{mine:,.0f} rows/s ({spread(ours)})", f"{theirs:,.0f} rows/s {peer_name} ({spread(peers)})", mine / theirs,
        f"at least {promise}", mine / theirs >= promise,
    )  # fmt: skip


def per_cpu_second(
    what: str, ours: list[Course], peers: list[Course], promise: float | None, peer_name: str = "Flink"
) -> Row:
    """The cheapest runs of both sides."""
    mine, theirs = (1e6 / min(course.cost for course in runs) for runs in (ours, peers))
    kept = None if promise is None else mine / theirs >= promise
    return Row(
        f"{what}: rows per CPU second", f"{mine:,.0f}", f"{theirs:,.0f} {peer_name}", mine / theirs,
        "–" if promise is None else f"at least {promise}", kept,
    )  # fmt: skip


def expected_rows(records: int) -> int:
    """How many orders cost a hundred or more: nine hundred of each thousand, whose first hundred are cheap."""
    return records // 1000 * 900 + max(0, records % 1000 - 100)


class Topics:
    def __init__(self, site: Site, records: int) -> None:
        self._site = site
        self._records = records
        self._admin = AdminClient(
            {"bootstrap.servers": site.brokers, "log_level": 4}
        )  # without what it says when it is closed
        self._broker = next(one.pid for one in site.world.status().services if one.service == "kafka")

    def courses(self, rounds: int) -> dict[str, list[Course]]:
        """The sides take turns, so that what else the machine does falls on all of them."""
        Bench(self._site).fill("orders", self._records)
        found: dict[str, list[Course]] = {side: [] for side in SIDES}
        for number in range(rounds):
            for side in SIDES:
                out = f"{side}_{number}"
                found[side].append(
                    self._headgate(out) if side == "headgate" else self._flink(out, side == "flink_equal")
                )
                self._check(out)
                self._admin.delete_topics([out])[out].result(30)
        return found

    def _headgate(self, out: str) -> Course:
        with self._site.engine(out) as engine:
            name = f"{out}_orders"
            read = READ.format(name=name, topic="orders") + COMMENTS.format(name=name)
            execute(engine, read + WRITE.format(name=out))
            return self._watch("Headgate", out, engine.pid, lambda: tasks_run(engine))

    def _flink(self, out: str, equal: bool) -> Course:
        self._site.create_topic(out, PARTITIONS)
        script = flink_script(self._site.brokers, self._site.registry, out, equal=equal)
        with flink.running(self._site.folder / out, script) as child:
            return self._watch("Flink", out, child.pid, child.is_running)

    def _watch(self, name: str, out: str, pid: int, running: Callable[[], bool]) -> Course:
        assert self._broker is not None
        total = expected_rows(self._records)
        return watch(name, total, lambda: self._count(out), (pid, self._broker), running)

    def _count(self, topic: str) -> int:
        """The records that were ever written to the topic."""
        latest = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}
        return sum(one.result(30).offset for one in self._admin.list_offsets(latest).values())

    def _check(self, out: str) -> None:
        """Raises PeerFailed if the output has other rows than it must have, or a schema without docs."""
        with RegistryClient([self._site.registry]) as registry:
            schema = registry.latest(f"{out}-value")
        check_docs(out, schema)
        arguments = (self._site.brokers, out, str(schema.schema_id), schema.schema.text, str(self._records))
        found, expected = program("bench.peers.rows", *arguments).splitlines()
        if found != expected:
            raise PeerFailed(f"{out} holds other rows than it must: {found} instead of {expected}")


def check_docs(out: str, schema: RegisteredSchema) -> None:
    fields: list[dict[str, Any]] = json.loads(schema.schema.text)["fields"]
    found = {field["name"]: field.get("doc") for field in fields if field["name"] in DOCS}
    if found != DOCS:
        raise PeerFailed(f"the schema of {out} has other docs than it must: {found}")


def flink_script(brokers: str, registry: str, out: str, *, equal: bool) -> str:
    """``equal``: with Headgate's client settings instead of the defaults."""
    consumer, producer = (client_settings(READER), client_settings(WRITER)) if equal else ({}, {})
    avro = {"value.format": "avro-confluent", "value.avro-confluent.url": registry}
    written = {"value.avro-confluent.subject": f"{out}-value", "value.avro-confluent.schema": documented(DEAR)}
    source = {**flink.topic("orders", brokers, consumer), **flink.BOUNDED, **avro}
    sink = {**flink.topic(out, brokers, producer), **avro, **written}
    return flink.table("orders", ORDERS, source) + flink.table("dear", DEAR_ORDERS, sink) + QUERY


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Those of Spark's options that are settings of Kafka's clients."""
    return {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}


def documented(schema: str) -> str:
    record = json.loads(schema)
    fields = [field | ({"doc": DOCS[field["name"]]} if field["name"] in DOCS else {}) for field in record["fields"]]
    return json.dumps({**record, "doc": "orders of a hundred and more", "fields": fields})
