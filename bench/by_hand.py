"""The Spark job that somebody would write by hand for the same pipeline; a program of its own, with its own session.

`python -m bench.by_hand fill BROKERS TOPIC SCHEMA_ID RECORDS`   writes orders into a topic, in the registry's frame
`python -m bench.by_hand run BROKERS TOPIC OUT CHECKPOINT`       reads them to the end, filters, projects, writes

`python -m bench.by_hand groups BROKERS TOPIC GROUPS CHECKPOINT`  counts and sums them by group; prints the seconds it took
`python -m bench.by_hand parquet BROKERS TOPIC FOLDER`           writes the last of each key as Parquet; prints the bytes

`run-tuned` does the same with Headgate's client settings. `run` prints a line of JSON when a micro-batch is over: its rows, the clock, and the CPU seconds of JVM and Python so far.
The schema is fixed when the job is written, every malformed record fails it, and nothing is looked up.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.streaming.query import StreamingQuery

from bench.processes import cpu_seconds
from headgate.embedded.spark import open_spark
from headgate.runtime.source import READER
from headgate.runtime.targets.kafka import WRITER

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
Settings = dict[str, str]
PER_BATCH = 500_000  # as Headgate's own limit


def fill(session: SparkSession, brokers: str, topic: str, schema_id: int, records: int) -> None:
    value = F.concat(frame(schema_id), to_avro(F.struct("id", "item", "price", "sent"), ORDER))
    rows = orders(session, records).select(F.col("id").cast("string").alias("key"), value.alias("value"))
    rows.write.mode("append").format("kafka").options(**{"kafka.bootstrap.servers": brokers, "topic": topic}).save()


def orders(session: SparkSession, records: int) -> DataFrame:
    """The same in every run."""
    return session.range(0, records, 1, 8).select(
        F.col("id"),
        F.concat(F.lit("item number "), F.col("id").cast("string")).alias("item"),
        (F.col("id") % 1000).cast("double").alias("price"),
        F.lit(0.0).alias("sent"),
    )


def run(
    session: SparkSession,
    brokers: str,
    topic: str,
    out: str,
    checkpoint: str,
    settings: tuple[Settings, Settings] = ({}, {}),
) -> None:
    """``settings`` are those of the reader and of the writer."""
    dear = _orders(session, brokers, topic, settings[0]).where("price >= 100")
    dear = dear.select("sent", "id", F.upper("item").alias("what"), "price")
    written = dear.select(F.concat(frame(1), to_avro(F.struct("*"), DEAR)).alias("value"))
    writer = written.writeStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    writer = (
        writer.options(**settings[1])
        .option("topic", out)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
    )
    print_progress(writer.start())


def print_progress(query: StreamingQuery) -> None:
    """A line for every micro-batch, until the query ends. Raises what it failed with."""
    told = 0
    while query.isActive or told < len(query.recentProgress):
        for progress in query.recentProgress[told:]:
            told += 1
            print(json.dumps([progress.numInputRows, time.monotonic(), cpu_seconds()]), flush=True)
        time.sleep(0.05)
    query.awaitTermination()


def _orders(session: SparkSession, brokers: str, topic: str, settings: Settings) -> DataFrame:
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).options(**settings)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    records = reader.option("maxOffsetsPerTrigger", str(PER_BATCH)).load()
    return records.select(_decoded("o")).select("o.*")


def _decoded(name: str) -> Column:
    return from_avro(F.expr("substring(value, 6)"), ORDER, {"mode": "FAILFAST"}).alias(name)


def groups(session: SparkSession, brokers: str, topic: str, count: int, checkpoint: str) -> None:
    """A partition of the state for each core is what suits a machine of few cores best; the default are 200."""
    session.conf.set("spark.sql.shuffle.partitions", str(os.cpu_count()))
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    session.conf.set("spark.sql.streaming.stateStore.providerClass", store)
    session.range(1).count()  # the session is warm, as ours is
    began = time.monotonic()
    orders = _orders(session, brokers, topic, READER)
    grouped = orders.groupBy((F.col("id") % count).alias("g")).agg(F.count("*").alias("n"), F.sum("id").alias("total"))
    writer = grouped.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    print(time.monotonic() - began, flush=True)


def parquet(session: SparkSession, brokers: str, topic: str, folder: str) -> None:
    """In one file, as a view of this size is compacted."""
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", brokers).options(**READER)
    records = reader.option("subscribe", topic).load()
    last = records.groupBy("key").agg(F.max_by("value", F.struct("timestamp", "offset")).alias("value"))
    rows = last.select(F.col("key").cast("string").alias("k"), _decoded("o")).select("k", "o.*")
    rows.coalesce(1).write.parquet(folder)
    print(sum(file.stat().st_size for file in Path(folder).glob("*.parquet")), flush=True)


def frame(schema_id: int) -> Column:
    return F.lit(b"\x00" + schema_id.to_bytes(4, "big"))


def main(what: str, *arguments: str) -> None:
    session = open_spark(application=f"by hand: {what}")
    try:
        if what == "fill":
            brokers, topic, schema_id, records = arguments
            fill(session, brokers, topic, int(schema_id), int(records))
        elif what == "groups":
            brokers, topic, count, checkpoint = arguments
            groups(session, brokers, topic, int(count), checkpoint)
        elif what == "parquet":
            parquet(session, *arguments)
        else:
            brokers, topic, out, checkpoint = arguments
            run(session, brokers, topic, out, checkpoint, (READER, WRITER) if what == "run-tuned" else ({}, {}))
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
