"""What somebody would write by hand in place of a materialization; a program of its own, with its own session of Spark.

`python -m bench.rows_by_hand table BROKERS TOPIC POSTGRES TABLE CHECKPOINT`   the topic to the end, by COPY and a merge
`python -m bench.rows_by_hand lookup BROKERS TOPIC FOLDER KEY …`               the topic as a Delta table, and rows of it by key

`table` prints a line of JSON when a micro-batch is over, as `bench.by_hand` does. `lookup` prints the seconds of each key. The
schema is fixed when the job is written, a value that does not fit becomes NULL without a word, and a batch that is repeated after
a crash is written twice.
"""

from __future__ import annotations

import io
import json
import sys
import time

import psycopg
import pyarrow.csv
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.avro.functions import from_avro

from bench.by_hand import ORDER, print_progress
from headgate.embedded.spark import open_spark
from headgate.runtime.source import READER

PER_BATCH = 200_000  # as Headgate's own limit for a table
TEXTS = "number bigint, name string, city string, price double, score double, amount decimal(12,2), active boolean"
DOCUMENT = f"{TEXTS}, at timestamp, day date, note string, tags array<string>"
NAMES = ("id", "number", "name", "city", "price", "score", "amount", "active", "at", "day", "note", "tags")
SCALARS = """id text PRIMARY KEY, number bigint NOT NULL, name text NOT NULL, city text NOT NULL,
  price double precision NOT NULL, score double precision NOT NULL, amount numeric(12,2) NOT NULL, active boolean NOT NULL,
  at timestamptz NOT NULL, day date NOT NULL, note text"""
TABLE = f"CREATE TABLE {{}} ({SCALARS}, tags text[] NOT NULL)"
MERGE = """
INSERT INTO {table} SELECT DISTINCT ON (id) {names} FROM stage ORDER BY id, hg_offset DESC
ON CONFLICT (id) DO UPDATE SET {sets}
"""


def merge_statement(table: str) -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in NAMES[1:])
    return MERGE.format(table=table, names=", ".join(NAMES), sets=sets)


def table(session: SparkSession, brokers: str, topic: str, address: str, name: str, checkpoint: str) -> None:
    reader = session.readStream.format("kafka").options(**READER).option("kafka.bootstrap.servers", brokers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    records = reader.option("maxOffsetsPerTrigger", str(PER_BATCH)).load()
    document = F.from_json(F.col("value").cast("string"), DOCUMENT).alias("d")
    rows = records.select(F.col("key").cast("string").alias("id"), document, F.col("offset").alias("hg_offset"))
    quoted = F.transform(F.col("d.tags"), lambda one: F.concat(F.lit('"'), one, F.lit('"')))
    tags = F.concat(F.lit("{"), F.array_join(quoted, ","), F.lit("}"))
    ready = rows.select("id", *[f"d.{one}" for one in NAMES[1:-1]], tags.alias("tags"), "hg_offset")
    with psycopg.connect(address, autocommit=True) as connection:

        def write(batch: DataFrame, _: int) -> None:
            body = io.BytesIO()
            pyarrow.csv.write_csv(batch.toArrow(), body, pyarrow.csv.WriteOptions(include_header=False))
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute(f"CREATE TEMP TABLE stage (LIKE {name}, hg_offset bigint) ON COMMIT DROP".encode())
                with cursor.copy("COPY stage FROM STDIN (FORMAT csv)") as copy:
                    copy.write(body.getbuffer())
                cursor.execute(merge_statement(name).encode())

        writer = ready.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        print_progress(writer.trigger(availableNow=True).start())


def lookup(session: SparkSession, brokers: str, topic: str, folder: str, *keys: str) -> None:
    """A table sorted by its key, so that the files that cannot have a key are skipped."""
    reader = session.read.format("kafka").options(**READER).option("kafka.bootstrap.servers", brokers)
    order = from_avro(F.expr("substring(value, 6)"), ORDER, {"mode": "FAILFAST"}).alias("o")
    rows = reader.option("subscribe", topic).load().select(F.col("key").cast("string").alias("key"), order)
    rows = rows.select("key", "o.id", "o.item", "o.price").repartitionByRange(8, "key").sortWithinPartitions("key")
    rows.write.format("delta").save(folder)
    for key in keys:
        began = time.monotonic()
        found = session.read.format("delta").load(folder).where(F.col("key") == key).collect()
        print(json.dumps(time.monotonic() - began), flush=True)
        assert len(found) == 1, (key, found)


def main(what: str, *arguments: str) -> None:
    session = open_spark(application=f"by hand: {what}")
    try:
        if what == "table":
            brokers, topic, address, name, checkpoint = arguments
            table(session, brokers, topic, address, name, checkpoint)
        else:
            lookup(session, *arguments)
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
