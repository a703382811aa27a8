"""SELECT * over a few records of 2,000 fields, beside records of 200: planning must grow with the number of fields, not faster.

What is taken is the time from the raw records to all rows, as the query process takes it: the columns of the source are made
anew, the query is analysed and run, and its rows are made ready for the answer.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.avro.functions import to_avro

from bench.figures import Report, Row, Size, shown
from bench.processes import cpu_seconds
from headgate.embedded.spark import open_spark
from headgate.plan.definitions import Origin, SourceColumn
from headgate.plan.source import SourcePlan
from headgate.runtime.decode import Decoder
from headgate.runtime.formats.side import WriterSchemas
from headgate.runtime.values import with_text_times
from headgate.schema.encodings import SchemaEncoding, fields_of
from headgate.schema.written import SchemaFormat, WrittenSchema

FEW, MANY, RECORDS = 200, 2000, 50
SECONDS = 5.0  # promised for many fields, in an otherwise idle machine
ID = 7
FRAME = b"\x00" + ID.to_bytes(4, "big")
KINDS = ("long", ["null", "string"], "double", "boolean")


def run(size: Size) -> Report:
    rounds = 1 if size == "small" else 5
    session = open_spark(master="local[2]")
    try:
        with tempfile.TemporaryDirectory() as folder:
            works = {count: _work(session, count, f"{folder}/{count}") for count in (FEW, MANY)}
            taken = {count: _best(work, rounds) for count, work in works.items()}
    finally:
        session.stop()
    (few, few_cpu), (many, many_cpu) = taken[FEW], taken[MANY]
    kept = many < SECONDS
    rows = (
        Row(f"SELECT *, {MANY:,} fields", shown(many), f"{shown(few)} with {FEW}", many / few, f"under {SECONDS:g} s", kept),
        Row("the same, CPU time", shown(many_cpu), f"{shown(few_cpu)} with {FEW}", many_cpu / few_cpu),
    )  # fmt: skip
    note = f"{RECORDS} records; Python and the JVM; the best of {rounds} rounds after one, from raw records to the rows of an answer."
    return Report("Wide records", rows, (note,))


def _best(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds and CPU seconds, each the least of all rounds."""
    work()
    wall, cpu = float("inf"), float("inf")
    for _ in range(rounds):
        at, began = time.monotonic(), cpu_seconds()
        work()
        wall, cpu = min(wall, time.monotonic() - at), min(cpu, cpu_seconds() - began)
    return wall, cpu


def _work(session: SparkSession, count: int, path: str) -> Callable[[], object]:
    members = [{"name": f"f{number}", "type": KINDS[number % len(KINDS)]} for number in range(count)]
    schema = WrittenSchema(json.dumps({"type": "record", "name": "wide", "fields": members}), (), ID)
    _fill(session, count, schema.text, path)
    raw = session.read.parquet(path)
    side = SchemaEncoding(SchemaFormat.AVRO, (schema,))
    columns = tuple(SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields_of(side) or ())
    plan = SourcePlan("wide", columns, side, None, "NONE", "HALT", "PIN")

    def select() -> object:
        decoder = Decoder(plan, value=WriterSchemas({ID: schema}))
        return with_text_times(decoder.columns(decoder.accepted(decoder.decode(raw)))).toArrow()

    return select


def _fill(session: SparkSession, count: int, schema: str, path: str) -> None:
    """Records as Spark's Kafka reader gives them."""
    made = (F.col("id"), F.lit("a text"), F.lit(1.5), F.lit(True))
    body = to_avro(F.struct(*[made[number % len(made)].alias(f"f{number}") for number in range(count)]), schema)
    records: DataFrame = session.range(RECORDS, numPartitions=2).select(
        F.lit("wide").alias("topic"),
        F.lit(0).alias("partition"),
        F.col("id").alias("offset"),
        F.current_timestamp().alias("timestamp"),
        F.lit(None).cast("binary").alias("key"),
        F.concat(F.lit(FRAME), body).alias("value"),
    )
    records.write.parquet(path)
