"""Real time: how long a record takes from topic to topic, beside micro-batches in the same run, and what a schema change costs.

A latency is the time from sending a record to the moment when a consumer of the output has it. Forty tasks are measured
after two minutes, when Java has compiled what they run. A schema change comes while a hundred records a second flow; the
delay is the longest latency of the five seconds around it, and every record must have come out once.

`HEADGATE_BENCH_PARTS` names the parts to measure, with commas: one, forty, change.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.by_hand import ORDER
from bench.engines import (
    Latency,
    Site,
    execute,
    framed,
    latencies,
    next_messages,
    open_site,
    statuses,
    wait_until_running,
)
from bench.figures import Report, Row, Size, load_note, wanted_parts
from bench.tasks import KEYED
from headgate.serve.client import EngineProcess

PARTS = ("one", "forty", "change")
P50, P99, CORES, DELAY = 0.010, 0.100, 0.5, 1.0  # what was promised: seconds, and cores of the JVM
TIMEOUT = 600.0

CHANGING = KEYED.replace("sent, k, upper(item) AS what, price", "*")


def run(size: Size) -> Report:
    with open_site() as site:
        rows = tuple(RealTime(site, small=size == "small").rows(wanted_parts(PARTS)))
    return Report("Real time", rows, (load_note(),))


class RealTime:
    def __init__(self, site: Site, *, small: bool) -> None:
        self._site = site
        self._busy, self._seconds, self._warm = (4, 5.0, 5.0) if small else (40, 60.0, 120.0)
        self._changes = 1 if small else 3

    def rows(self, parts: Sequence[str]) -> Iterator[Row]:
        measured = {"one": self._one, "forty": self._forty, "change": self._change}
        for name, part in measured.items():
            if name in parts:
                yield from part()

    def _start(self, engine: EngineProcess, topics: dict[str, int], latency: str, sql: str = KEYED) -> int:
        key_ids = {self._site.register(name, '"long"', "key") for name in topics}  # one schema has one id
        options = f" WITH (LATENCY = '{latency}')"
        execute(engine, "".join(sql.format(name=name, options=options) for name in topics))
        wait_until_running(engine, len(topics))
        if latency == "real time":
            wait_until_live(engine, len(topics))
        return key_ids.pop()

    def _one(self) -> Iterator[Row]:
        found = {}
        for latency in ("micro-batch", "real time"):
            topics = self._site.topics(f"one_{latency[:4].strip()}", 1)
            with self._site.engine(f"one {latency}", HEADGATE_SPARK_REAL_TIME="48") as engine:
                key_id = self._start(engine, topics, latency)
                latencies(self._site, topics, self._warm / 4, every=0.001, keys=50, key_id=key_id)
                found[latency] = latencies(self._site, topics, self._seconds, every=0.001, keys=50, key_id=key_id)
        yield from _compared("one task, 1,000 records a second", found["real time"], found["micro-batch"])

    def _forty(self) -> Iterator[Row]:
        found, cores = {}, {}
        for latency in ("micro-batch", "real time"):
            topics = self._site.topics(f"forty_{latency[:4].strip()}", self._busy)
            with self._site.engine(f"forty {latency}", HEADGATE_SPARK_REAL_TIME="48") as engine:
                key_id = self._start(engine, topics, latency)
                every = 1 / len(topics)
                latencies(self._site, topics, self._warm, every=every, keys=50, key_id=key_id)
                jvm, began = _jvm_seconds(engine), time.monotonic()
                found[latency] = latencies(self._site, topics, self._seconds, every=every, keys=50, key_id=key_id)
                cores[latency] = (_jvm_seconds(engine) - jvm) / (time.monotonic() - began)
        what = f"{self._busy} tasks, a record a second each"
        yield from _compared(what, found["real time"], found["micro-batch"])
        ours, peer = cores["real time"], cores["micro-batch"]
        yield Row(
            f"{what}: cores of the JVM", f"{ours:.2f}", f"{peer:.2f}", ours / peer, f"under {CORES}", ours < CORES
        )

    def _change(self) -> Iterator[Row]:
        """The sink writes all columns, so that its own schema changes too."""
        topics = self._site.topics("change", 1)
        with self._site.engine("change", HEADGATE_SPARK_REAL_TIME="48") as engine:
            key_id = self._start(engine, topics, "real time", CHANGING)
            delays, repeated, lost = [], 0, 0
            for number in range(self._changes):
                flow = _Flow(self._site, "change0", key_id, number)
                flow.run(5.0)
                delays.append(flow.longest)
                repeated, lost = repeated + flow.repeated, lost + flow.lost
                wait_until_live(engine, 1)
        worst = max(delays)
        yield Row(
            f"a schema change in flight, {self._changes} times: longest latency", f"{worst:.2f} s",
            promised=f"at most {DELAY:g} s", kept=worst <= DELAY,
        )  # fmt: skip
        yield Row("the same, each", ", ".join(f"{delay:.2f} s" for delay in delays))
        yield Row("the same, records repeated", str(repeated), promised="none", kept=repeated == 0)
        yield Row("the same, records lost", str(lost), promised="none", kept=lost == 0)


class _Flow:
    """A hundred records a second through a schema change, each with a key of its own."""

    def __init__(self, site: Site, topic: str, key_id: int, number: int) -> None:
        self._site, self._topic, self._key_id, self._number = site, topic, key_id, number
        self.longest, self.repeated, self.lost = 0.0, 0, 0

    def run(self, seconds: float) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._site.brokers, "group.id": "change", "fetch.wait.max.ms": 10, "log_level": 0}
        )
        out = TopicPartition(f"{self._topic}_out", 0)
        consumer.assign([TopicPartition(out.topic, 0, consumer.get_watermark_offsets(out)[1])])
        sent: dict[bytes, float] = {}
        had: list[tuple[bytes, float]] = []
        sender = threading.Thread(target=self._send, args=(seconds, sent))
        sender.start()
        deadline = time.monotonic() + seconds + 15
        while time.monotonic() < deadline:
            messages = next_messages(consumer)
            had += [(message.key() or b"", time.time()) for message in messages if message.error() is None]
        sender.join()
        consumer.close()
        # The key of the output is framed with the id of another subject than that of the input.
        times = {key[5:]: moment for key, moment in reversed(had)}
        self.longest = max(times[key] - moment for key, moment in sent.items() if key in times)
        self.repeated = sum(count - 1 for count in Counter(key for key, _ in had).values())
        self.lost = len(sent.keys() - times.keys())

    def _send(self, seconds: float, sent: dict[bytes, float]) -> None:
        producer = Producer({"bootstrap.servers": self._site.brokers, "linger.ms": 0})
        schema, began, id_ = (
            self._schema(self._number),
            time.monotonic(),
            self._site.register(self._topic, json.dumps(self._schema(self._number))),
        )
        changed = False
        for n in range(int(seconds * 100)):
            if not changed and time.monotonic() - began > seconds / 2:
                changed, schema = True, self._schema(self._number + 1)
                id_ = self._site.register(self._topic, json.dumps(schema))
            row = {"id": n, "item": "one", "price": 200.0, "sent": time.time()}
            row |= {str(field["name"]): "new" for field in schema["fields"][4:]}
            key = framed(self._key_id, "long", self._number * 1_000_000 + n)
            sent[key[5:]] = time.time()
            producer.produce(self._topic, framed(id_, schema, row), key=key)
            producer.poll(0)
            time.sleep(max(0.0, began + n * 0.01 - time.monotonic()))
        producer.flush(30)

    @staticmethod
    def _schema(number: int) -> dict[str, list[dict[str, object]]]:
        order: dict[str, list[dict[str, object]]] = json.loads(ORDER)
        order["fields"] += [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(number)]
        return order


def wait_until_live(engine: EngineProcess, tasks: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while sum((status.notice or "").startswith("real time") for status in statuses(engine)) < tasks:
        assert time.monotonic() < deadline, statuses(engine)
        time.sleep(0.1)


def _compared(what: str, live: Sequence[Latency], batches: Sequence[Latency]) -> Iterator[Row]:
    for name, percentile, promised in (("p50", 50, P50), ("p99", 99, P99)):
        ours, peer = (
            statistics.quantiles([one.took for one in each], n=100)[percentile - 1] for each in (live, batches)
        )
        yield Row(
            f"{what}: {name}", f"{ours * 1e3:.1f} ms", f"{peer * 1e3:.0f} ms in micro-batches", ours / peer,
            f"under {promised * 1e3:.0f} ms", ours < promised,
        )  # fmt: skip


def _jvm_seconds(engine: EngineProcess) -> float:
    """CPU seconds of the JVM that runs the tasks: the engine's own child. That of queries belongs to another process."""
    jvms = [child for child in psutil.Process(engine.pid).children() if child.name() == "java"]
    return sum(sum(jvm.cpu_times()[:2]) for jvm in jvms)
