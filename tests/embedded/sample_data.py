"""One value in each service, to be found again later: a record, a schema, a row and a document."""

from __future__ import annotations

import httpx
import psycopg
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.embedded.world import World

TOPIC = SUBJECT = INDEX = TABLE = "planets"
SCHEMA = '{"type": "record", "name": "planet", "fields": [{"name": "name", "type": "string"}]}'


def write(world: World) -> None:
    _write_record(world.kafka())
    _write_schema(world.registry())
    _write_row(world.postgres())
    _write_document(world.elasticsearch())


def read(world: World) -> dict[str, object]:
    """The values as they are now. They equal ``SAMPLE`` if nothing was lost."""
    return {
        "kafka": records(world.kafka()),
        "registry": schema(world.registry()),
        "postgres": rows(world.postgres()),
        "opensearch": document(world.elasticsearch()),
    }


SAMPLE: dict[str, object] = {
    "kafka": [b"venus"],
    "registry": SCHEMA,
    "postgres": [("venus",)],
    "opensearch": "venus",
}


def create_topic(brokers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)


def _write_record(brokers: str) -> None:
    create_topic(brokers, TOPIC)
    producer = Producer({"bootstrap.servers": brokers})
    failed: list[object] = []
    producer.produce(TOPIC, b"venus", on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(30) == 0
    assert not failed


def records(brokers: str) -> list[bytes]:
    """All values of the topic, read from its beginning to its end, with offsets committed as a group does it."""
    settings = {
        "bootstrap.servers": brokers,
        "group.id": "look",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    found: list[bytes] = []
    try:
        while (message := consumer.poll(60)) is not None:
            if (error := message.error()) is None:
                found.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise AssertionError(error.str())
    finally:
        consumer.close()
    raise AssertionError("the end of the topic was not reached")


def _write_schema(url: str) -> None:
    answer = httpx.post(f"{url}/subjects/{SUBJECT}/versions", json={"schema": SCHEMA}, timeout=10)
    assert answer.status_code == 200, answer.text


def schema(url: str) -> str:
    return str(httpx.get(f"{url}/subjects/{SUBJECT}/versions/latest", timeout=10).json()["schema"])


def _write_row(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE {TABLE} (name text)")
        connection.execute(f"INSERT INTO {TABLE} VALUES ('venus')")


def rows(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(f"SELECT name FROM {TABLE}").fetchall()


def _write_document(url: str) -> None:
    mapping = {
        "dynamic": "strict",
        "properties": {"name": {"type": "keyword"}, "more": {"type": "flat_object"}},
    }
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    made = httpx.put(f"{url}/{INDEX}", json={"settings": settings, "mappings": mapping}, timeout=30)
    assert made.status_code == 200, made.text
    put = httpx.put(f"{url}/{INDEX}/_doc/2?refresh=true", json={"name": "venus"}, timeout=30)
    assert put.status_code == 201, put.text


def document(url: str) -> str:
    return str(httpx.get(f"{url}/{INDEX}/_doc/2", timeout=30).json()["_source"]["name"])
