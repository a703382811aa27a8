"""Many small tasks: what they cost while nothing happens, and how long a record takes from topic to topic.

A latency is the time from sending a record to the moment when a consumer of the output has it. For forty tasks it is told
twice: in the first half minute, in which Java still compiles what an engine then runs for days, and in the half minute
after two more. The last rows show what a schema change of one task and a large SELECT do to the other tasks.

`HEADGATE_BENCH_PARTS` names the parts to measure, with commas: idle, one, keyed, forty, change, select, many.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Producer

from bench.by_hand import ORDER
from bench.engines import (
    Latency,
    Receiver,
    Site,
    cores_while,
    execute,
    framed,
    latencies,
    open_site,
    send_orders,
    statuses,
    wait_until_running,
)
from bench.figures import Report, Row, Size, load_note, wanted_parts
from headgate.serve.client import EngineProcess
from headgate.serve.protocol import Rows

ROUNDS = 3
# What was promised: cores, seconds, batches a second, ratios.
IDLE_CORES, ONE_P50, KEYED_P50, FORTY_P50, FORTY_BATCHES, MANY_P50, BEGIN = 0.05, 0.4, 0.6, 4.0, 10.0, 2.0, 20.0
BESIDE_CHANGE, BESIDE_SELECT = 1.3, 2.0
PARTS = ("idle", "one", "keyed", "forty", "change", "select", "many")

APPEND = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT sent, id, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE SINK {name}_sink FROM {name}_dear INTO KAFKA CONNECTION kafka (TOPIC '{name}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""
KEYED = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry INCLUDE KEY AS k ENVELOPE UPSERT;
CREATE VIEW {name}_dear AS SELECT sent, k, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE SINK {name}_sink FROM {name}_dear INTO KAFKA CONNECTION kafka (TOPIC '{name}_out') KEY (k)
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry{options};
"""
LARGE = "SELECT id, repeat('x', 1000) AS filler FROM range(0, 1500000, 1, 1)"


def run(size: Size) -> Report:
    with open_site() as site:
        rows = tuple(Tasks(site, small=size == "small").rows(wanted_parts(PARTS)))
    return Report("Tasks", rows, (load_note(),))


class Tasks:
    def __init__(self, site: Site, *, small: bool) -> None:
        self._site = site
        self._idle, self._busy, self._many = (5, 4, 10) if small else (50, 40, 200)
        self._seconds, self._warm = (5.0, 5.0) if small else (30.0, 120.0)
        self._rounds = 1 if small else ROUNDS

    def rows(self, parts: Sequence[str]) -> Iterator[Row]:
        few = {
            "idle": self._nothing,
            "one": self._one,
            "forty": self._forty,
            "change": self._change,
            "select": self._select,
        }
        if wanted := [part for name, part in few.items() if name in parts]:
            topics = self._site.topics("small", self._idle)
            with self._site.engine("few") as engine:
                execute(engine, "".join(APPEND.format(name=name) for name in topics))
                wait_until_running(engine, self._idle)
                time.sleep(15)  # the first, empty batches
                for part in wanted:
                    yield from part(engine, topics)
        if "keyed" in parts:
            yield from self._keyed()
        if "many" in parts:
            yield from self._two_hundred()

    def _nothing(self, engine: EngineProcess, topics: dict[str, int]) -> Iterator[Row]:
        cores = cores_while(engine.pid, lambda: time.sleep(self._seconds))
        promised = f"under {IDLE_CORES} cores"
        yield Row(
            f"{len(topics)} tasks with nothing to do", f"{cores:.3f} cores", promised=promised, kept=cores < IDLE_CORES
        )

    def _one(self, engine: EngineProcess, topics: dict[str, int]) -> Iterator[Row]:
        yield from self._alone("one task, 100 records a second", dict(list(topics.items())[:1]), ONE_P50)

    def _keyed(self) -> Iterator[Row]:
        topics = self._site.topics("keyed", 1)
        key_id = self._site.register("keyed0", '"long"', "key")
        with self._site.engine("keyed") as engine:
            execute(engine, KEYED.format(name="keyed0", options=" WITH (LATENCY = 'micro-batch')"))
            wait_until_running(engine, 1)
            yield from self._alone("the same with an upsert source and sink", topics, KEYED_P50, key_id)

    def _alone(self, what: str, topics: dict[str, int], promised: float, key_id: int | None = None) -> Iterator[Row]:
        """The best of the rounds, after one to warm up."""
        rounds = []
        for _ in range(self._rounds + 1):
            keys = None if key_id is None else 50
            rounds.append(Spread.of(latencies(self._site, topics, self._seconds, every=0.01, keys=keys, key_id=key_id)))
        best, worst = min(rounds[1:]), max(rounds[1:])
        yield Row(
            f"{what}: p50, best of {self._rounds}", f"{best[0] * 1e3:.0f} ms ({best[0] * 1e3:.0f}–{worst[0] * 1e3:.0f})",
            promised=f"under {promised * 1e3:.0f} ms", kept=best[0] < promised,
        )  # fmt: skip
        yield Row("the same, p95", f"{best[1] * 1e3:.0f} ms")

    def _forty(self, engine: EngineProcess, topics: dict[str, int]) -> Iterator[Row]:
        busy = dict(list(topics.items())[: self._busy])
        found: list[Latency] = []
        before, began = _batches(engine), time.monotonic()
        cores = cores_while(
            engine.pid,
            lambda: found.extend(latencies(self._site, busy, self._seconds + self._warm, every=1 / len(busy))),
        )
        per_second = (_batches(engine) - before) / (time.monotonic() - began)
        last = Spread.of([each for each in found if each.sent >= self._warm])
        first = Spread.of([each for each in found if each.sent < self._seconds])
        what = f"{len(busy)} tasks, a record a second each: p50"
        yield Row(what, f"{last[0]:.2f} s", promised=f"under {FORTY_P50:g} s", kept=last[0] < FORTY_P50)
        yield Row("the same, p95", f"{last[1]:.2f} s")
        yield Row(f"the same, p50 of the first {self._seconds:.0f} s", f"{first[0]:.2f} s")
        promised = f"at least {FORTY_BATCHES:.0f}"
        yield Row(
            "the same, batches a second", f"{per_second:.1f}", promised=promised, kept=per_second >= FORTY_BATCHES
        )
        yield Row("the same, cores used", f"{cores:.2f} cores")

    def _change(self, engine: EngineProcess, topics: dict[str, int]) -> Iterator[Row]:
        """Ten tasks with a record a second each; one more gets records with a new field. The first change of an engine is told by
        itself: Java then runs code for the first time that it has compiled by the next one."""
        names = list(topics)[-1:]
        others = {name: topics[name] for name in list(topics)[: min(10, len(topics) - 1)]}
        changes = self._rounds + 1
        receiver = Receiver(self._site.brokers, [f"{name}_out" for name in others])
        receiver.start()
        span = 10.0
        sender = threading.Thread(
            target=send_orders,
            args=(self._site.brokers, others, (2 * span + 5) * changes + 20),
            kwargs={"every": 1 / len(others)},
        )
        sender.start()
        time.sleep(15)
        at = []
        for number in range(changes):
            time.sleep(span + 5)
            at.append(time.time())
            self._send_new_version(names[0], number + 1)
            time.sleep(span)
        sender.join()
        receiver.finish(20)
        what = f"p95 of {len(others)} tasks in the 10 s around a schema change of another"
        before, after = _around(receiver.seen, at[1:], span)
        ratio = after / before
        yield Row(
            f"{what}, {changes - 1} times", f"{after:.2f} s", f"{before:.2f} s before it", ratio,
            f"at most {BESIDE_CHANGE}", ratio <= BESIDE_CHANGE,
        )  # fmt: skip
        before, after = _around(receiver.seen, at[:1], span)
        yield Row(
            "the same around the first change of the engine",
            f"{after:.2f} s",
            f"{before:.2f} s before it",
            after / before,
        )

    def _send_new_version(self, topic: str, number: int) -> None:
        order = json.loads(ORDER)
        order["fields"] += [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(number)]
        id_ = self._site.register(topic, json.dumps(order))
        producer = Producer({"bootstrap.servers": self._site.brokers})
        row = {"id": 1, "item": "one", "price": 200.0, "sent": time.time(), **{f"f{n}": "new" for n in range(number)}}
        producer.produce(topic, framed(id_, order, row))
        producer.flush(30)

    def _select(self, engine: EngineProcess, topics: dict[str, int]) -> Iterator[Row]:
        """Ten tasks with a record a second each, alone, and while somebody reads an answer of 1.5 GB to its end."""
        busy = dict(list(topics.items())[:10])
        alone = Spread.of(latencies(self._site, busy, self._seconds, every=1 / len(busy)))
        read: list[int] = []

        def select() -> None:
            rows = 0
            for event in engine.client.run(LARGE):
                rows += len(event.rows) if isinstance(event, Rows) else 0
            read.append(rows)

        reader = threading.Thread(target=select)
        reader.start()
        beside = Spread.of(latencies(self._site, busy, self._seconds, every=1 / len(busy)))
        reader.join(600)
        ratio = beside[0] / alone[0]
        yield Row(
            f"p50 of {len(busy)} tasks beside a SELECT of 1.5 GB ({(read or [0])[0]:,} rows read)", f"{beside[0]:.2f} s",
            f"{alone[0]:.2f} s without", ratio, f"at most {BESIDE_SELECT}", ratio <= BESIDE_SELECT,
        )  # fmt: skip

    def _two_hundred(self) -> Iterator[Row]:
        topics = self._site.topics("many", self._many)
        with self._site.engine("many") as engine:
            execute(engine, "".join(APPEND.format(name=name) for name in topics))
            wait_until_running(engine, self._many)
        began = time.monotonic()
        with self._site.engine("many") as engine:
            started = time.monotonic()
            wait_until_running(engine, self._many)
            took = time.monotonic() - started
            yield Row(
                f"{self._many} tasks know their positions after the start of the engine", f"{took:.1f} s",
                f"{started - began:.1f} s until it answers", None, f"under {BEGIN:.0f} s", took < BEGIN,
            )  # fmt: skip
            latencies(self._site, topics, self._seconds * 2, every=60 / self._many)
            found = Spread.of(latencies(self._site, topics, self._seconds * 2, every=60 / self._many))
            promised = f"under {MANY_P50:g} s"
            yield Row(
                f"{self._many} tasks, a record a minute each: p50", f"{found[0]:.2f} s", promised=promised, kept=found[0] < MANY_P50
            )  # fmt: skip
            yield Row("the same, p95", f"{found[1]:.2f} s")


class Spread(tuple[float, float]):
    """The p50 and the p95 of some latencies, in seconds."""

    @staticmethod
    def of(found: Sequence[Latency]) -> Spread:
        times = [each.took for each in found]
        return Spread((statistics.median(times), statistics.quantiles(times, n=20)[-1]))


def _around(seen: Sequence[tuple[float, float]], at: Sequence[float], span: float) -> tuple[float, float]:
    """The p95 of what was sent in the seconds before each moment, and of what was sent around it."""
    before = [had - sent for sent, had in seen for moment in at if moment - span - 5 <= sent < moment - 5]
    around = [had - sent for sent, had in seen for moment in at if moment - span / 2 <= sent < moment + span / 2]
    return statistics.quantiles(before, n=20)[-1], statistics.quantiles(around, n=20)[-1]


def _batches(engine: EngineProcess) -> int:
    return sum(status.batches for status in statuses(engine))
