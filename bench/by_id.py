"""Decoding Avro by the schema id that each record names, read from a topic, with its key and metadata.

The peer reads a topic of the same records with `from_avro` and one schema, as one writes it by hand: the same topic where
there is one id; where there are many, which one schema cannot read, a topic in which all are written with the last. It has
Spark's own settings; and, to see what decoding alone costs, once more those of our sessions, with which Spark reads topics
quicker. All are batch reads in one JVM, in turn, from the topic until every column is there.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from bench.decoding import AVRO, ID, finish, key, order
from bench.figures import Report, Row, Size
from bench.processes import cpu_seconds
from bench.topics import PARTITIONS, Topics, open_topics
from headgate.plan.definitions import Origin, SourceColumn
from headgate.plan.source import METADATA, SourcePlan
from headgate.runtime.decode import Decoder
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding, TextEncoding, fields_of
from headgate.schema.types import Text
from headgate.schema.written import SchemaFormat, WrittenSchema

RATIO = 0.91  # promised: a cost of at most 10 %
WARM = 3  # rounds for Java's compiler
OURS = ("spark.sql.sources.useV1SourceList", "spark.sql.types.framework.enabled")  # what reading goes by
MANY, WIDENED = 20, 10  # schemas, and the first of them in which a number is wider


def run(size: Size) -> Report:
    records, rounds = (200_000, 1) if size == "small" else (2_000_000, 7)
    with open_topics() as topics:
        rows = _rows(topics, records, rounds)
    note = f"{records:,} orders in {PARTITIONS} partitions; Python and the JVM, not the broker; the median of {rounds} rounds after {WARM}, in turn."
    return Report("Decoding by schema id", tuple(rows), (note,))


def _rows(topics: Topics, records: int, rounds: int) -> list[Row]:
    orders = topics.session.range(records, numPartitions=PARTITIONS).select(*order())
    one, many, last = "orders-1", "orders-many", "orders-last"
    topics.fill(one, _written(orders, 1))
    topics.fill(many, _written(orders, MANY))
    topics.fill(last, _written(orders, MANY, only_last=True))
    works = {}
    for ids, peer in ((1, one), (MANY, last)):
        works[f"by id, {ids}"] = _by_id(topics.read(one if ids == 1 else many), ids)
        works[f"fixed, {ids}"] = _fixed(topics.read(peer), ids)
        works[f"bare, {ids}"] = partial(_bare, topics, peer, ids)
    cpu: dict[str, list[float]] = {name: [] for name in works}
    wall: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(WARM + rounds):
        for name, work in works.items():
            began, at = cpu_seconds(), time.monotonic()
            work()
            if turn >= WARM:
                cpu[name].append(cpu_seconds() - began)
                wall[name].append(time.monotonic() - at)
    return [*_compared(cpu, records, "a CPU second"), *_compared(wall, records, "a second")]


def _compared(taken: dict[str, list[float]], records: int, unit: str) -> list[Row]:
    rate = {name: records / statistics.median(seconds) for name, seconds in taken.items()}
    rows = []
    for ids in (1, MANY):
        ours, bare, same = rate[f"by id, {ids}"], rate[f"bare, {ids}"], rate[f"fixed, {ids}"]
        what = f"{ids} schema id{'s' if ids > 1 else ''}, key and metadata"
        mine = f"{ours:,.0f} {unit}"
        rows.append(
            Row(
                what,
                mine,
                f"{bare:,.0f} bare from_avro",
                ours / bare,
                f"at least {RATIO}",
                ours / bare >= RATIO,
            )
        )
        rows.append(Row(what, mine, f"{same:,.0f} from_avro with our settings", ours / same))
    return rows


def _bare(topics: Topics, topic: str, ids: int) -> None:
    """With the settings that a session of Spark has by itself."""
    conf = topics.session.conf
    ours = {name: conf.get(name) or "" for name in OURS}
    for name in OURS:
        conf.unset(name)
    try:
        _fixed(topics.read(topic, bare=True), ids)()
    finally:
        for name, value in ours.items():
            conf.set(name, value)


def _versions(ids: int) -> list[str]:
    """So many schemas of the orders, no two alike. Each has a field less at its end than the next, up to five of them;
    `pieces` was an int, then a long; and docs and defaults come and go."""
    versions = []
    for n in range(ids):
        schema = json.loads(AVRO)
        schema["doc"] = f"version {n}"
        if n >= WIDENED:
            schema["fields"][3]["type"] = ["null", "long"]
        for number in range(min(n // 4, 5)):
            schema["fields"].append({"name": f"note{number}", "type": ["null", "string"], "default": None})
        schema["fields"][1]["default"] = f"item of version {n}"
        versions.append(json.dumps(schema))
    return versions


def _written(orders: DataFrame, ids: int, *, only_last: bool = False) -> DataFrame:
    """Records with so many schema ids, each written with the schema of its id."""
    bodies, number = F.lit(None).cast("binary"), F.lit(ids - 1) if only_last else F.col("id") % ids
    for n, version in enumerate(_versions(ids)):
        names = [field["name"] for field in json.loads(version)["fields"]]
        fields = [_written_as(name, n).alias(name) for name in names]
        bodies = F.when(number == n, to_avro(F.struct(*fields), version)).otherwise(bodies)
    frame = F.concat(F.lit(b"\x00\x00\x00\x00"), F.unhex(F.lpad(F.hex(F.lit(ID) + number), 2, "0")))
    return orders.select(key(), F.concat(frame, bodies).alias("value"))


def _written_as(name: str, version: int) -> Column:
    if name.startswith("note"):
        return F.concat(F.lit("note "), F.col("id") % 9)
    return F.col(name).cast("bigint") if name == "pieces" and version >= WIDENED else F.col(name)


def _by_id(raw: DataFrame, ids: int) -> Callable[[], None]:
    """Every id has a schema of its own; all but the first are newer than the source's, which followed them all."""
    known = {ID + n: WrittenSchema(text, (), ID + n) for n, text in enumerate(_versions(ids))}
    side = SchemaEncoding(SchemaFormat.AVRO, tuple(known.values()))
    fields = [SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields_of(side) or ()]
    columns = (
        SourceColumn("key", Text(), True, Origin("key")),
        *fields,
        *(SourceColumn(w.lower(), METADATA[w].type, False, Origin("metadata", w)) for w in ("PARTITION", "OFFSET")),
    )
    plan = SourcePlan("orders", columns, side, TextEncoding(), "NONE", "HALT", "FOLLOW")
    decoder = Decoder(plan, value=WriterSchemas(known, newer=frozenset(list(known)[1:])))

    def work() -> None:
        finish(decoder.columns(decoder.accepted(decoder.decode(raw))))

    return work


def _fixed(raw: DataFrame, ids: int) -> Callable[[], None]:
    """What one writes by hand for one schema, the last: of the same number of records, all written with it."""
    last = _versions(ids)[-1]

    def work() -> None:
        decoded = raw.select(
            F.col("key").cast("string").alias("key"),
            from_avro(F.expr("substring(value, 6)"), last, {"mode": "FAILFAST"}).alias("o"),
            "partition",
            "offset",
        )
        finish(decoded.select("key", "o.*", "partition", "offset"))

    return work
