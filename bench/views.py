"""Materialized views: how quickly one is filled, what a small change of a large input costs, and what it takes on the disk.

A time of a small change is from the moment before its records are sent to the moment when the catalog says that the view has
them; the best of some rounds after one to warm up. `batch` is the time of the view's batch alone, without sending and landing.
Where only the number of old rows matters and not where they came from, they are made by `range`, which is quicker than a topic:
the view then reads them in its first batch, and never again.

`HEADGATE_BENCH_PARTS` names the parts to measure, with commas: groups, merged, upsert, join, keyed, select, batches, disk.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import fastavro
from confluent_kafka import Producer

from bench.by_hand import ORDER
from bench.engines import TIMEOUT, Site, execute, framed, open_site
from bench.figures import Report, Row, Size, load_note, wanted_parts
from bench.pipeline import PARTITIONS, program
from headgate.catalog.positions import KafkaPosition, LogPosition
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.tasks import Ledger, TaskStatus
from headgate.serve.client import EngineProcess

# What was promised: ratios, and seconds on a quiet machine.
GROUPED, MERGED, MERGED_GROWTH, UPSERT, JOINED, KEYED, SELECT, DISK = 0.8, 2.0, 1.2, 5.0, 1 / 3, 3.0, 1.5, 3.0
BATCH_GROWTH = 1.2  # of the cost of a late batch; the promise says that it does not grow
CHANGED = 1_000  # records of a small change
PARTS = ("groups", "merged", "upsert", "join", "keyed", "select", "batches", "disk")


@dataclass(frozen=True, slots=True)
class Amounts:
    """How large everything is. The cost of ``averaged`` batches up to number ``late`` is compared with that of as many up to number
    ``early``. 2,000 batches would take a quarter of an hour, and what grows with their number is folded away every 50."""

    grouped: int
    groups: int
    merged: tuple[int, int]
    keyed: int
    small_keyed: int
    averaged: int
    early: int
    late: int
    rounds: int


FULL = Amounts(10_000_000, 100_000, (5_000_000, 50_000_000), 5_000_000, 1_000_000, 50, 100, 500, 5)
SMALL = Amounts(100_000, 1_000, (50_000, 500_000), 20_000, 5_000, 5, 6, 20, 1)

SOURCE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
"""
UPSERTS = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry INCLUDE KEY AS k ENVELOPE UPSERT;
"""
GROUPS = """
CREATE MATERIALIZED VIEW {name} AS
  SELECT id % {groups} AS g, count(*) AS n, sum(id) AS total FROM {rows} GROUP BY id % {groups};
"""
# The second is the same query. Its condition is always true, and a subquery is not kept by its changes.
JOINS = """
CREATE MATERIALIZED VIEW names AS SELECT id, id % 1000 AS kind FROM range(0, {rows});
CREATE MATERIALIZED VIEW joined AS
  SELECT n.kind, count(*) AS n, sum(o.id) AS total FROM upserts AS o JOIN names AS n ON n.id = o.id GROUP BY n.kind;
CREATE MATERIALIZED VIEW anew AS
  SELECT n.kind, count(*) AS n, sum(o.id) AS total FROM upserts AS o JOIN names AS n ON n.id = o.id
  WHERE (SELECT true) GROUP BY n.kind;
"""
KEYED_JOIN = """
CREATE MATERIALIZED VIEW met AS SELECT l.k, l.price, r.item FROM left_side AS l JOIN right_side AS r ON l.k = r.k;
"""


def run(size: Size) -> Report:
    amounts = SMALL if size == "small" else FULL
    with open_site() as site, site.engine("views") as engine:
        rows = tuple(Views(site, engine, amounts).rows(wanted_parts(PARTS)))
    notes = (
        f"{amounts.keyed:,} rows of an upsert source, {CHANGED:,} of them changed; {amounts.groups:,} groups.",
        "By hand: readStream, from_avro, groupBy, the RocksDB state store, and a sink that writes nothing.",
        f"Batches are compared up to number {amounts.late:,}; `range` makes the old rows of merged groups.",
        load_note(),
    )
    return Report("Materialized views", rows, notes)


class Views:
    def __init__(self, site: Site, engine: EngineProcess, amounts: Amounts) -> None:
        self._site = site
        self._engine = engine
        self._amounts = amounts
        self._producer = Producer({"bootstrap.servers": site.brokers, "linger.ms": 5})
        self._schema = fastavro.parse_schema(json.loads(ORDER))
        self._ids: dict[str, int] = {}
        self._sent: Counter[str] = Counter()  # records in each topic
        self._reader = SqliteReader(engine.project / ".headgate" / "catalog.db")

    def rows(self, parts: Sequence[str]) -> Iterator[Row]:
        execute(self._engine, "SELECT 1;")
        every: dict[str, Callable[[], Iterator[Row]]] = {
            "groups": self._groups, "merged": self._merged, "upsert": self._upsert, "join": self._join,
            "keyed": self._keyed, "select": self._select, "batches": self._batches, "disk": self._disk,
        }  # fmt: skip
        # These read what another part has made.
        if {"upsert", "join", "select", "disk"} & set(parts):
            self._land()
        for name, part in every.items():
            if name in parts:
                yield from part()

    # groups over an append source

    def _groups(self) -> Iterator[Row]:
        amounts = self._amounts
        self._fill("orders", amounts.grouped)
        execute(self._engine, SOURCE.format(name="orders"))
        began = time.monotonic()
        execute(self._engine, GROUPS.format(name="per_group", groups=amounts.groups, rows="orders"))
        self._wait("per_group")
        ours = amounts.grouped / (time.monotonic() - began)
        seconds = program(
            "bench.by_hand",
            "groups",
            self._site.brokers,
            "orders",
            str(amounts.groups),
            str(self._site.folder / "state"),
        )
        peer = amounts.grouped / float(seconds)
        yield Row(
            f"GROUP BY over {amounts.grouped:,} records into {amounts.groups:,} groups, from CREATE on",
            f"{ours:,.0f} rows/s", f"{peer:,.0f} rows/s by hand", ours / peer, f"at least {GROUPED}", ours / peer >= GROUPED,
        )  # fmt: skip
        execute(self._engine, "DROP SOURCE orders CASCADE;")

    def _merged(self) -> Iterator[Row]:
        """A change of merged groups must not cost more if there are more old rows."""
        found = []
        for name, rows in zip(("some", "many"), self._amounts.merged, strict=True):
            self._create(name)
            below = f"(SELECT id FROM range(0, {rows}) UNION ALL SELECT id FROM {name}) AS t"
            execute(self._engine, SOURCE.format(name=name))
            execute(self._engine, GROUPS.format(name=f"{name}_groups", groups=self._amounts.groups, rows=below))
            self._wait(f"{name}_groups")
            found.append(self._change(name, f"{name}_groups"))
            execute(self._engine, f"DROP SOURCE {name} CASCADE;")
        some, many = found
        few, more = self._amounts.merged
        yield _timed(f"{CHANGED:,} records appended under count and sum over {few:,}", some, MERGED)
        ratio = many.seconds / some.seconds
        yield Row(
            f"the same over {more:,}", str(many), f"{some} over {few:,}", ratio, f"at most {MERGED_GROWTH}", ratio <= MERGED_GROWTH
        )  # fmt: skip

    # an upsert source, its stored copy, and what is made from that

    def _land(self) -> None:
        self._fill("upserts", self._amounts.keyed)
        execute(self._engine, UPSERTS.format(name="upserts"))
        execute(self._engine, GROUPS.format(name="sums", groups=self._amounts.groups, rows="upserts"))
        self._wait("upserts_rows", "sums")

    def _upsert(self) -> Iterator[Row]:
        took = self._change("upserts", "upserts_rows", "sums")
        yield _timed(f"{CHANGED:,} of {self._amounts.keyed:,} rows of an upsert source, to its groups", took, UPSERT)

    def _join(self) -> Iterator[Row]:
        execute(self._engine, JOINS.format(rows=self._amounts.keyed))
        self._wait("names", "joined", "anew")
        execute(self._engine, "ALTER MATERIALIZED VIEW sums PAUSE;")
        found = {}
        for name, other in (("joined", "anew"), ("anew", "joined")):
            execute(self._engine, f"ALTER MATERIALIZED VIEW {other} PAUSE;")
            found[name] = self._change("upserts", "upserts_rows", name)
            execute(self._engine, f"ALTER MATERIALIZED VIEW {other} RESUME;")
            self._wait(other)
        ours, peer = found["joined"], found["anew"]
        ratio = ours.batch / peer.batch
        yield Row(
            f"the join of two inputs of {self._amounts.keyed:,} rows, grouped, {CHANGED:,} rows changed: its batch",
            f"{ours.batch:.2f} s", f"{peer.batch:.2f} s computed anew", ratio, f"at most {JOINED:.2f}", ratio <= JOINED,
        )  # fmt: skip
        execute(self._engine, "DROP MATERIALIZED VIEW names CASCADE; ALTER MATERIALIZED VIEW sums RESUME;")

    def _keyed(self) -> Iterator[Row]:
        rows = self._amounts.small_keyed
        for name in ("left_side", "right_side"):
            self._fill(name, rows)
            execute(self._engine, UPSERTS.format(name=name))
        execute(self._engine, KEYED_JOIN)
        self._wait("left_side_rows", "right_side_rows", "met")
        took = self._change("left_side", "left_side_rows", "met", rows=rows)
        yield Row(
            f"the join of two keyed inputs of {rows:,} rows, {CHANGED:,} updates: its batch", f"{took.batch:.2f} s",
            f"{took.seconds:.2f} s with landing", took.batch / took.seconds, f"under {KEYED:g} s", took.batch < KEYED,
        )  # fmt: skip
        execute(self._engine, "DROP SOURCE left_side CASCADE; DROP SOURCE right_side CASCADE;")

    def _select(self) -> Iterator[Row]:
        """One key from the stored rows, and from the topic, which must be read as a whole."""
        key = self._amounts.keyed // 2
        times = []
        for relation in ("upserts_rows", "upserts"):
            sql = f"SELECT price FROM {relation} WHERE k = '{key}';"
            execute(self._engine, sql)
            times.append(min(self._seconds(sql) for _ in range(self._amounts.rounds)))
        ours, peer = times
        yield Row(
            f"SELECT of one key from a view of {self._amounts.keyed:,} rows", f"{ours:.2f} s", f"{peer:.2f} s from the topic",
            ours / peer, f"under {SELECT:g} s", ours < SELECT,
        )  # fmt: skip

    def _disk(self) -> Iterator[Row]:
        """Last, so that the view has had its batches."""
        plain = int(
            program("bench.by_hand", "parquet", self._site.brokers, "upserts", str(self._site.folder / "plain"))
        )
        status = self._status("upserts_rows")
        assert status.stored_bytes is not None
        ratio = status.stored_bytes / plain
        large = plain > 100 << 20
        yield Row(
            f"disk of a view of {self._amounts.keyed:,} rows", f"{status.stored_bytes / 2**20:,.0f} MB",
            f"{plain / 2**20:,.0f} MB as plain Parquet", ratio, f"at most {DISK:g} above 100 MB", ratio <= DISK if large else None,
        )  # fmt: skip

    # many batches

    def _batches(self) -> Iterator[Row]:
        """Batches of ten records into a hundred groups, one after the other."""
        self._create("drops")
        execute(self._engine, SOURCE.format(name="drops"))
        execute(self._engine, GROUPS.format(name="dropped", groups=100, rows="drops"))
        self._wait("dropped")
        early, late = (self._cost_until(number) for number in (self._amounts.early, self._amounts.late))
        ratio = late / early
        yield Row(
            f"a batch of ten records around number {self._amounts.late:,}", f"{late * 1e3:.0f} ms",
            f"{early * 1e3:.0f} ms around {self._amounts.early}", ratio, f"at most {BATCH_GROWTH}", ratio <= BATCH_GROWTH,
        )  # fmt: skip

    def _cost_until(self, number: int) -> float:
        """The mean time of the last batches up to this one; in a full run there is one compaction among them."""
        begun = None
        while (batch := self._number("dropped")) < number:
            if begun is None and batch >= number - self._amounts.averaged:
                begun = self._status("dropped")
            self._send("drops", range(10))
            self._wait("dropped")
        assert begun is not None
        ended = self._status("dropped")
        return (ended.batch_seconds - begun.batch_seconds) / (ended.batches - begun.batches)

    def _number(self, view: str) -> int:
        ledger = self._ledger(view)
        return 0 if ledger is None else ledger.number

    # what the parts share

    def _fill(self, topic: str, records: int) -> None:
        self._create(topic)
        program("bench.by_hand", "fill", self._site.brokers, topic, str(self._ids[topic]), str(records))
        self._sent[topic] += records

    def _create(self, topic: str) -> None:
        self._site.create_topic(topic, PARTITIONS)
        self._ids[topic] = self._site.register(topic)

    def _send(self, topic: str, ids: range) -> None:
        schema_id = self._ids[topic]
        for id_ in ids:
            order = {"id": id_, "item": f"item number {id_}", "price": time.time(), "sent": time.time()}
            self._producer.produce(topic, framed(schema_id, self._schema, order), key=str(id_).encode())
        self._producer.flush(30)
        self._sent[topic] += len(ids)

    def _change(self, topic: str, *views: str, rows: int | None = None) -> Took:
        """Send a small change. How long it takes until the views, the last of which is measured, have it."""
        step = (rows or self._amounts.keyed) // CHANGED
        best = Took(float("inf"), float("inf"))
        for number in range(self._amounts.rounds + 1):
            before, began = self._status(views[-1]), time.monotonic()
            self._send(topic, range(number % step, step * CHANGED, step))
            self._wait(*views)
            took, after = time.monotonic() - began, self._status(views[-1])
            if number > 0:
                best = Took(min(best.seconds, took), min(best.batch, after.batch_seconds - before.batch_seconds))
        return best

    def _wait(self, *views: str) -> None:
        """Wait until the views have all that was sent and all that the views below them have."""
        deadline = time.monotonic() + TIMEOUT
        while not all(self._has_all(view) for view in views):
            assert time.monotonic() < deadline, self._statuses()
            assert not any(status.error for status in self._statuses()), self._statuses()
            time.sleep(0.02)

    def _has_all(self, view: str) -> bool:
        """Whether the ledger of a view, which moves with its rows, is at the ends of what it reads."""
        ledger = self._ledger(view)
        if ledger is None or ledger.number == 0:
            return False
        for position in ledger.positions.values():
            match position:
                case KafkaPosition(topic=topic, offsets=offsets) if sum(offsets) < self._sent[topic]:
                    return False
                case LogPosition(relation=below, number=number):
                    above = self._reader.ledger(below)
                    if above is None or number < above.number:
                        return False
        return True

    def _ledger(self, view: str) -> Ledger | None:
        return self._reader.ledger(self._task(view))

    def _task(self, view: str) -> int:
        return next(entry.id for entry in self._reader.load().objects.values() if entry.name == view)

    def _statuses(self) -> tuple[TaskStatus, ...]:
        return self._reader.statuses()

    def _status(self, view: str) -> TaskStatus:
        """The status of a view after its last batch. It is stored a little later than the ledger."""
        task, deadline = self._task(view), time.monotonic() + TIMEOUT
        while True:
            ledger = self._reader.ledger(task)
            found = next((status for status in self._statuses() if status.task == task), None)
            if found is not None and ledger is not None and found.batch == ledger.number:
                return found
            assert time.monotonic() < deadline, self._statuses()
            time.sleep(0.05)

    def _seconds(self, sql: str) -> float:
        began = time.monotonic()
        execute(self._engine, sql)
        return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds from sending to having, and those of the view's batch."""

    seconds: float
    batch: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s (batch {self.batch:.2f} s)"


def _timed(what: str, took: Took, promised: float) -> Row:
    return Row(what, str(took), promised=f"under {promised:g} s", kept=took.seconds < promised)
