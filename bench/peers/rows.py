"""What a topic of expensive orders holds, beside what it must hold; a program of its own, with its own session of Spark.

`python -m bench.peers.rows BROKERS TOPIC SCHEMA_ID SCHEMA RECORDS` prints two lines of JSON: the number and a sum of hashes of
the rows in the topic, and of the rows that `bench.by_hand fill` and the query give for so many records. Two topics that agree
in both have the same rows, each as often.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.avro.functions import from_avro

from bench.by_hand import frame, orders
from headgate.embedded.spark import open_spark
from headgate.runtime.source import READER

COLUMNS = ("sent", "id", "what", "price")


def written(session: SparkSession, brokers: str, topic: str, schema_id: int, schema: str) -> DataFrame:
    """Records with another schema are left out, so that their number is wrong."""
    reader = session.read.format("kafka").options(**READER).option("kafka.bootstrap.servers", brokers)
    records = reader.option("subscribe", topic).load().where(F.substring("value", 1, 5) == frame(schema_id))
    row = from_avro(F.expr("substring(value, 6)"), schema, {"mode": "FAILFAST"}).alias("row")
    return records.select(row).select("row.*")


def expected(session: SparkSession, records: int) -> DataFrame:
    return orders(session, records).where("price >= 100").withColumn("what", F.upper("item"))


def summary(rows: DataFrame) -> str:
    one = F.xxhash64(*COLUMNS).cast("decimal(38, 0)")
    (found,) = rows.agg(F.count("*"), F.sum(one).cast("string")).collect()
    return json.dumps(list(found))


def main(brokers: str, topic: str, schema_id: str, schema: str, records: str) -> None:
    session = open_spark(application="rows")
    try:
        print(summary(written(session, brokers, topic, int(schema_id), schema)))
        print(summary(expected(session, int(records))))
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
