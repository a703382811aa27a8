"""`make demo`: a whole world in one folder, and a SQL script that runs in it.

Starts Kafka and the schema registry, registers an Avro schema, produces records framed with its id, and runs
`demo.sql`: a source, a view and a sink. Then it shows what went in beside what came out of the sink's topic, kills
the engine, produces one more record, and shows that the sink goes on.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import struct
import sys
import time
from pathlib import Path

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from rich.console import Console
from rich.table import Table

from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.serve.client import EngineClient, start_engine
from headgate.serve.protocol import Done, Failed, Rows

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
LATE = {"id": 4, "item": "trash rack", "price": 120.0}
EXPECTED = [[2, "RACK AND PINION", 310.0], [3, "SPILLWAY GAUGE", 89.9], [4, "TRASH RACK", 120.0]]
PATIENCE = 180.0


def main(project: Path, picture: Path | None) -> int:
    console = Console(record=picture is not None, width=100, highlight=False)
    console.print("[bold]Headgate[/bold]: a world in one folder, and a SQL script that runs in it\n")
    folder = project / ".headgate" / "world"
    with World.open(folder, progress=lambda line: console.print(f"  [dim]{line}[/dim]")) as world:
        kafka, registry = world.kafka(), world.registry()
        console.print(f"Kafka at {kafka}, registry at {registry}")
        schema_id = register(registry)
        console.print(
            f"registered [bold]{TOPIC}-value[/bold] as schema id {schema_id}, producing {len(ORDERS)} records\n"
        )
        create_topic(kafka)
        produce(kafka, schema_id, ORDERS)
        with start_engine(project) as engine:
            script = (Path(__file__).parent / "demo.sql").read_text()
            console.print(script, style="cyan")
            for tag in run(engine.client, script):
                console.print(f"  [dim]{tag}[/dim]")
            wait_for(engine.client, 2)
            console.print("\nkill -9 the engine, and produce one more record while it is gone")
            engine.kill()
        produce(kafka, schema_id, [LATE])
        with start_engine(project) as engine:
            rows = wait_for(engine.client, 3)
    console.print(side_by_side(rows))
    good = [list(row) for row in rows] == EXPECTED
    console.print("\nlost 0, doubled 0" if good else "\n[red]what came out is not what was expected[/red]")
    if picture is not None:
        svg = console.export_svg(title="make demo")
        picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))  # whose fonts lie elsewhere
    return 0 if good else 1


def register(url: str) -> int:
    with RegistryClient([url]) as registry:
        return registry.register(f"{TOPIC}-value", Schema(json.dumps(ORDER)))


def create_topic(brokers: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)


def produce(brokers: str, schema_id: int, orders: list[dict[str, object]]) -> None:
    producer = Producer({"bootstrap.servers": brokers})
    for order in orders:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, ORDER, order)
        producer.produce(TOPIC, struct.pack(">bi", 0, schema_id) + body.getvalue())
    producer.flush(30)


def run(client: EngineClient, sql: str) -> list[str]:
    tags = []
    for event in client.run(sql):
        if isinstance(event, Failed):
            sys.exit(event.diagnostic.render())
        if isinstance(event, Done):
            tags.append(event.tag)
    return tags


def wait_for(client: EngineClient, count: int) -> list[tuple[object, ...]]:
    """The rows of the sink's topic, once there are so many."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found: list[tuple[object, ...]] = []
        for event in client.run("SELECT id, item, price FROM dear_orders ORDER BY id, offset;"):
            if isinstance(event, Rows):
                found.extend(event.rows)
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(1)


def side_by_side(rows: list[tuple[object, ...]]) -> Table:
    table = Table("went in", "came out")
    came = {row[0]: row for row in rows}
    for order in [*ORDERS, LATE]:
        out = came.get(order["id"])
        table.add_row(json.dumps(order), json.dumps(out) if out else "[dim]not dear[/dim]")
    return table


if __name__ == "__main__":
    place = Path(".demo").absolute()
    shutil.rmtree(place, ignore_errors=True)  # every demo starts from nothing
    place.mkdir()
    try:
        sys.exit(main(place, Path(sys.argv[1]) if len(sys.argv) > 1 else None))
    except HeadgateError as error:
        sys.exit(error.diagnostic().render())
