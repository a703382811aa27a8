"""`make demo`: a whole world in one folder, and records that go through it.

Starts Kafka and the schema registry, registers an Avro schema, produces records framed with its id, reads them with
Spark by that id, and shows what went in beside what came out.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import sys
import time
from pathlib import Path

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from rich.console import Console
from rich.table import Table

from headgate.embedded.jars import fetch
from headgate.embedded.java import find_java
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.runtime.session import open_session

TOPIC = "orders"
ORDER = {
    "type": "record",
    "name": "order",
    "doc": "an order of the shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string", "doc": "what was bought"},
        {"name": "price", "type": "double", "doc": "in EUR"},
    ],
}
ORDERS = [
    {"id": 1, "item": "sluice board", "price": 24.5},
    {"id": 2, "item": "rack and pinion", "price": 310.0},
    {"id": 3, "item": "spillway gauge", "price": 89.9},
]


def main(folder: Path, picture: Path | None) -> None:
    console = Console(record=picture is not None, width=112, highlight=False)
    console.print("[bold]Headgate[/bold]: a world in one folder, and three records through it\n")
    with World.open(folder / "world", progress=lambda line: console.print(f"  [dim]{line}[/dim]")) as world:
        started = time.monotonic()
        kafka, registry = world.kafka(), world.registry()
        console.print(f"Kafka at {kafka}, registry at {registry} ({time.monotonic() - started:.0f} s)")
        schema_id = register(registry)
        console.print(f"registered [bold]{TOPIC}-value[/bold] version 1 as schema id {schema_id}")
        produce(kafka, schema_id)
        console.print(
            f"produced {len(ORDERS)} records, each framed with that id; reading them with Spark ...\n"
        )
        rows = consume(kafka, registry, folder)
    console.print(side_by_side(rows))
    same = [row.asDict() for row in rows] == ORDERS
    console.print(
        "\nwhat came out is what went in" if same else "\n[red]what came out differs from what went in[/red]"
    )
    if picture is not None:
        console.save_svg(str(picture), title="make demo")
    sys.exit(0 if same else 1)


def register(url: str) -> int:
    with RegistryClient([url]) as registry:
        return registry.register(f"{TOPIC}-value", Schema(json.dumps(ORDER)))


def produce(brokers: str, schema_id: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": brokers})
    for order in ORDERS:
        producer.produce(TOPIC, framed(order, schema_id))
    producer.flush(30)


def framed(order: dict[str, object], schema_id: int) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, ORDER, order)
    return struct.pack(">bi", 0, schema_id) + body.getvalue()


def consume(brokers: str, url: str, folder: Path) -> list[object]:
    spark = open_session(fetch("spark"), java=find_java().path, warehouse=folder / "warehouse")
    try:
        return decoded(spark, brokers, url).orderBy("id").collect()
    finally:
        spark.stop()


def decoded(spark: SparkSession, brokers: str, url: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", TOPIC)
    records = reader.load()
    (schema_id,) = (
        row[0]
        for row in records.select(F.expr("conv(hex(substring(value, 2, 4)), 16, 10)")).distinct().collect()
    )
    with RegistryClient([url]) as registry:
        schema = registry.schema_by_id(int(schema_id)).text
    return records.select(from_avro(F.expr("substring(value, 6)"), schema).alias("order")).select("order.*")


def side_by_side(rows: list[object]) -> Table:
    table = Table("went in", "came out")
    for order, row in zip(ORDERS, rows, strict=True):
        table.add_row(json.dumps(order), json.dumps(row.asDict()))  # type: ignore[attr-defined]
    return table


if __name__ == "__main__":
    place = Path(".demo").absolute()
    shutil.rmtree(place, ignore_errors=True)  # every demo starts from nothing
    try:
        main(place, Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    except HeadgateError as error:
        sys.exit(error.diagnostic().render())
