"""Materializations: a topic of JSON into a table of PostgreSQL and an index of OpenSearch, and rows on demand.

| part | ours | peers |
|---|---|---|
| `table` | a topic with a key, merged into a table of 12 columns | the Spark job that one would write by hand, with COPY and a merge; psycopg's multi-row VALUES from memory |
| `index` | the same topic into an index | `parallel_bulk` of the client, from memory, with its own settings |
| `lookup` | a row of a stored view by its key, over gRPC | the row of a Delta table in a warm session of Spark |

Rates into tables and indexes are those of `bench.pipeline`, from the end of the first batch to the end of the last.
`HEADGATE_BENCH_PARTS` names the parts that are measured, and `HEADGATE_BENCH_RECORDS` sets the number of records.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import grpc
import orjson
import psycopg
from confluent_kafka import Producer
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from opensearchpy import OpenSearch
from opensearchpy.helpers import parallel_bulk

from bench.engines import Site, execute, open_site
from bench.figures import Report, Row, Size, load_note, shown, wanted_parts
from bench.pipeline import PARTITIONS, Bench, Course, printed_course, program, spread, to_the_end
from bench.rows_by_hand import NAMES, TABLE, merge_statement
from headgate.plan.on_demand_messages import SHARED_SERVICE, shared_files
from headgate.serve.client import EngineProcess

VALUES, BY_HAND, BULK, LOOKUP, GROWTH = 3.0, 0.8, 0.9, 3.0, 1.1  # promises
PARTS = ("table", "index", "lookup")
AT_ONCE = 1000  # rows of one INSERT
LOOKUPS, WARM = 30, 10

SOURCE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{topic}')
  KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS id ENVELOPE UPSERT;
"""
SCALARS = """id string, number i64 FROM '/data/number', name string FROM '/data/name', city string FROM '/data/city',
  price f64 FROM '/data/price', score f64 FROM '/data/score', amount decimal(12,2) FROM '/data/amount',
  active boolean FROM '/data/active', at timestamptz FROM '/data/at', day date FROM '/data/day',
  note string FROM '/data/note' NULL"""
FIELDS = f"FIELDS ({SCALARS}, tags ARRAY<string> FROM '/data/tags')"
STORED = """
CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'lookup')
  KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry INCLUDE KEY AS key ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW stored AS SELECT key, id, item, price FROM orders;
CREATE MATERIALIZATION stored_rows FROM stored INTO ON DEMAND;
"""


def run(size: Size) -> Report:
    records, rounds = (300_000, 1) if size == "small" else (1_000_000, 2)
    with open_site() as site:
        rows = tuple(Materializations(site, records, rounds).measure(wanted_parts(PARTS)))
    notes = (
        f"{records:,} documents of 12 fields in {PARTITIONS} partitions; a tenth of them for VALUES, a fifth for indexes.",
        "By hand: readStream, from_json, COPY of CSV into a temporary table, INSERT … ON CONFLICT; no check of any value, no ledger.",
        load_note(),
    )
    return Report("Materializations", rows, notes)


class Materializations:
    def __init__(self, site: Site, records: int, rounds: int) -> None:
        self._site = site
        self._records = records
        self._rounds = rounds

    def measure(self, parts: Sequence[str]) -> Iterator[Row]:
        if "table" in parts:
            fill(self._site, "tenth", documents(self._records // 10))
            fill(self._site, "whole", documents(self._records))
            yield from self._table()
        if "index" in parts:
            fill(self._site, "fifth", documents(self._records // 5))
            yield from self._index()
        if "lookup" in parts:
            yield self._lookup()

    # Tables

    def _table(self) -> Iterator[Row]:
        address = self._site.world.postgres()
        with self._site.engine("tables") as engine:
            tenth = self._into_table(engine, "tenth", "tenth")
            runs = [self._into_table(engine, "whole", f"whole{n}") for n in range(self._rounds)]
        peers = [self._by_hand(address, f"by_hand{n}") for n in range(self._rounds)]
        values = _by_values(address, documents(self._records // 10))
        ours, peer = max(runs, key=_rate), max(peers, key=_rate)
        what = f"JSON topic -> PostgreSQL, best of {self._rounds}"
        yield _at_least(what, runs, ours.rate, f"{values:,.0f} rows/s multi-row VALUES", values, VALUES)
        yield _at_least(
            "the same", runs, ours.rate, f"{peer.rate:,.0f} rows/s by hand ({spread(peers)})", peer.rate, BY_HAND
        )
        yield Row(
            "the same, CPU for a million rows",
            f"{ours.cost:.1f} s",
            f"{peer.cost:.1f} s by hand",
            ours.cost / peer.cost,
        )
        most = max(run.memory for run in runs)
        growth = most / tenth.memory
        yield Row(
            "memory with ten times the rows", f"{most / 2**20:,.0f} MB", f"{tenth.memory / 2**20:,.0f} MB at 1x",
            growth, f"at most {GROWTH}", growth <= GROWTH,
        )  # fmt: skip

    def _into_table(self, engine: EngineProcess, topic: str, name: str) -> Course:
        into = f"INTO POSTGRES CONNECTION postgres (TABLE '{name}')"
        return self._written(engine, topic, name, into)

    def _written(self, engine: EngineProcess, topic: str, name: str, into: str) -> Course:
        execute(engine, SOURCE.format(name=name, topic=topic))
        execute(engine, f"CREATE MATERIALIZATION {name}_rows FROM {name} {into} {FIELDS};")
        course = to_the_end(engine, f"{name}_rows")
        execute(engine, f"DROP SOURCE {name} CASCADE;")
        return course

    def _by_hand(self, address: str, name: str) -> Course:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(TABLE.format(name).encode())
        checkpoint = str(self._site.folder / f"checkpoint-{name}")
        return printed_course(
            program("bench.rows_by_hand", "table", self._site.brokers, "whole", address, name, checkpoint)
        )

    # Indexes

    def _index(self) -> Iterator[Row]:
        url = self._site.world.elasticsearch()
        with self._site.engine("indexes") as engine, OpenSearch(url, timeout=60) as client:
            runs = [self._into_index(engine, f"index{n}") for n in range(self._rounds)]
            mapping = client.indices.get_mapping(index="index0")
            properties = next(iter(mapping.values()))["mappings"]["properties"]
            bulks = [
                _by_bulk(client, f"bulk{n}", properties, list(documents(self._records // 5)))
                for n in range(self._rounds)
            ]
        ours, peer = max(runs, key=_rate), max(bulks)
        told = f"{peer:,.0f} documents/s parallel_bulk ({min(bulks):,.0f}–{peer:,.0f})"
        yield _at_least(f"JSON topic -> OpenSearch, best of {self._rounds}", runs, ours.rate, told, peer, BULK)

    def _into_index(self, engine: EngineProcess, name: str) -> Course:
        return self._written(engine, "fifth", name, f"INTO ELASTICSEARCH CONNECTION elasticsearch (INDEX '{name}')")

    # On demand

    def _lookup(self) -> Row:
        Bench(self._site).fill("lookup", self._records)
        keys = [str(self._records * n // (LOOKUPS + WARM)) for n in range(LOOKUPS + WARM)]
        with self._site.engine("lookups") as engine:
            execute(engine, STORED)
            to_the_end(engine, "stored")
            ours = _lookups(engine, keys)
        printed = program(
            "bench.rows_by_hand", "lookup", self._site.brokers, "lookup", str(self._site.folder / "delta"), *keys
        )
        ours, peer = ours[WARM:], [float(line) for line in printed.splitlines()][WARM:]
        mine, theirs = statistics.median(ours), statistics.median(peer)
        ratio = mine / theirs
        return Row(
            f"a row of {self._records:,} by its key, over gRPC, median of {LOOKUPS}", f"{shown(mine)} (up to {shown(max(ours))})",
            f"{shown(theirs)} by hand (up to {shown(max(peer))})", ratio, f"at most {LOOKUP}", ratio <= LOOKUP,
        )  # fmt: skip


def _rate(course: Course) -> float:
    return course.rate


def _at_least(what: str, runs: list[Course], ours: float, told: str, peer: float, promise: float) -> Row:
    ratio = ours / peer
    return Row(what, f"{ours:,.0f} rows/s ({spread(runs)})", told, ratio, f"at least {promise}", ratio >= promise)


def documents(count: int) -> Iterator[dict[str, Any]]:
    """The same in every run."""
    for n in range(count):
        yield {
            "id": str(n), "number": n, "name": f"name of number {n}", "city": f"city {n % 1000}", "price": n % 10_000 / 4,
            "score": n / 7, "amount": n % 100_000 / 100, "active": n % 3 == 0,
            "at": f"2026-11-{n % 28 + 1:02}T10:{n % 60:02}:00.123456Z", "day": f"2026-{n % 12 + 1:02}-17",
            "note": None if n % 5 == 0 else "a remark that somebody has made", "tags": ["a", f"tag {n % 50}"],
        }  # fmt: skip


def fill(site: Site, topic: str, rows: Iterable[dict[str, Any]]) -> None:
    site.create_topic(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": site.brokers, "linger.ms": 20, "batch.size": 512 << 10})
    for document in rows:
        while True:
            try:
                producer.produce(topic, orjson.dumps(document), key=document["id"])
                break
            except BufferError:
                producer.poll(1)
    assert producer.flush(60) == 0


def _by_values(address: str, rows: Iterator[dict[str, Any]]) -> float:
    """Rows a second with which psycopg's multi-row VALUES are merged into a table, from memory."""
    values = [tuple(row.values()) for row in rows]
    one = "(" + ", ".join(["%s"] * len(NAMES)) + ")"
    sets = merge_statement("by_values").partition("ON CONFLICT")[2]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLE.format("by_values").encode())
        began = time.monotonic()
        with connection.transaction():
            for start in range(0, len(values), AT_ONCE):
                part = values[start : start + AT_ONCE]
                query = f"INSERT INTO by_values VALUES {', '.join([one] * len(part))} ON CONFLICT {sets}"
                connection.execute(query.encode(), [value for row in part for value in row])
        return len(values) / (time.monotonic() - began)


def _by_bulk(client: OpenSearch, index: str, properties: object, rows: Sequence[dict[str, Any]]) -> float:
    """Documents a second, with as many threads and as large chunks as the client takes by itself."""
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    client.indices.create(
        index=index, body={"settings": settings, "mappings": {"dynamic": "strict", "properties": properties}}
    )
    actions = ({"_index": index, "_id": row["id"], "_source": row} for row in rows)
    began = time.monotonic()
    for good, answer in parallel_bulk(client, actions):
        assert good, answer
    return len(rows) / (time.monotonic() - began)


def _lookups(engine: EngineProcess, keys: Sequence[str]) -> list[float]:
    """The seconds of each look-up, with one connection."""
    pool = DescriptorPool()
    for file in shared_files():
        pool.Add(file)
    method = pool.FindServiceByName(SHARED_SERVICE).methods_by_name["JsonRows"]
    request, answer = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    client = engine.client
    metadata = (("authorization", f"Bearer {client.token}"),)
    taken = []
    with grpc.insecure_channel(client.grpc, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call: Callable[..., Any] = channel.unary_stream(
            f"/{SHARED_SERVICE}/JsonRows",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        for key in keys:
            began = time.monotonic()
            rows = list(call(request(materialization="stored_rows", key=key), metadata=metadata, timeout=120))
            taken.append(time.monotonic() - began)
            assert [json.loads(row.fields["key"]) for row in rows] == [key]
    return taken
