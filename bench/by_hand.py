"""The Spark job that somebody would write by hand for the same pipeline; a program of its own, with its own session.

`python -m bench.by_hand fill BROKERS TOPIC SCHEMA_ID RECORDS`   writes orders into a topic, in the registry's frame
`python -m bench.by_hand run BROKERS TOPIC OUT CHECKPOINT`       reads them to the end, filters, projects, writes

`run` prints a line of JSON when a micro-batch is over: its rows, the clock, and the CPU seconds of JVM and Python so far.
The schema is fixed when the job is written, every malformed record fails it, and nothing is looked up.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import Column, SparkSession, functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from bench.processes import cpu_seconds
from headgate.embedded.spark import open_spark

ORDER = json.dumps(
    {
        "type": "record",
        "name": "order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "item", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "sent", "type": "double"},
        ],
    }
)
DEAR = json.dumps(
    {
        "type": "record",
        "name": "dear",
        "fields": [
            {"name": "sent", "type": "double"},
            {"name": "id", "type": "long"},
            {"name": "what", "type": "string"},
            {"name": "price", "type": "double"},
        ],
    }
)
PER_BATCH = 500_000  # as Headgate's own limit


def fill(session: SparkSession, brokers: str, topic: str, schema_id: int, records: int) -> None:
    order = F.struct(
        F.col("id"),
        F.concat(F.lit("item number "), F.col("id").cast("string")).alias("item"),
        (F.col("id") % 1000).cast("double").alias("price"),
        F.lit(0.0).alias("sent"),
    )
    value = F.concat(_frame(schema_id), to_avro(order, ORDER))
    rows = session.range(0, records, 1, 8).select(F.col("id").cast("string").alias("key"), value.alias("value"))
    rows.write.mode("append").format("kafka").options(**{"kafka.bootstrap.servers": brokers, "topic": topic}).save()


def run(session: SparkSession, brokers: str, topic: str, out: str, checkpoint: str) -> None:
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    records = reader.option("maxOffsetsPerTrigger", str(PER_BATCH)).load()
    orders = records.select(from_avro(F.expr("substring(value, 6)"), ORDER, {"mode": "FAILFAST"}).alias("o"))
    dear = orders.select("o.*").where("price >= 100")
    dear = dear.select("sent", "id", F.upper("item").alias("what"), "price")
    written = dear.select(F.concat(_frame(1), to_avro(F.struct("*"), DEAR)).alias("value"))
    writer = written.writeStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    writer = writer.option("topic", out).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query, told = writer.start(), 0
    while query.isActive or told < len(query.recentProgress):
        for progress in query.recentProgress[told:]:
            told += 1
            print(json.dumps([progress.numInputRows, time.monotonic(), cpu_seconds()]), flush=True)
        time.sleep(0.05)


def _frame(schema_id: int) -> Column:
    return F.lit(b"\x00" + schema_id.to_bytes(4, "big"))


def main(what: str, *arguments: str) -> None:
    session = open_spark(application=f"by hand: {what}")
    try:
        if what == "fill":
            brokers, topic, schema_id, records = arguments
            fill(session, brokers, topic, int(schema_id), int(records))
        else:
            run(session, *arguments)
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
