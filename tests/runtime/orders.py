"""Orders in a topic, the pipeline that picks some of them, and what arrives at its end."""

from __future__ import annotations

import io
import json
import struct
import time
from collections import Counter

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema

ORDER: dict[str, object] = {
    "type": "record",
    "name": "order",
    "doc": "an order",
    "fields": [
        {"name": "id", "type": "long", "doc": "number of the order"},
        {"name": "item", "type": "string", "doc": "what was bought"},
        {"name": "price", "type": "double", "doc": "in EUR"},
    ],
}
CHEAP = 100.0  # what the pipeline leaves out

PIPELINE = """
CREATE SOURCE {name} FROM KAFKA CONNECTION kafka (TOPIC '{name}')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
CREATE VIEW {name}_dear AS SELECT id, upper(item) AS what, price FROM {name} WHERE price >= 100;
CREATE SINK {name}_sink FROM {name}_dear INTO KAFKA CONNECTION kafka (TOPIC '{name}_out')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry WITH (DELIVERY = '{delivery}');
"""


class Orders:
    """A topic of orders. Order n costs n, and its key is n in decimal digits."""

    def __init__(
        self, brokers: str, registry: str, topic: str, partitions: int = 2, delivery: str = "at least once"
    ) -> None:
        self.topic = topic
        self.out = f"{topic}_out"
        self.pipeline = PIPELINE.format(name=topic, delivery=delivery)
        self._brokers = brokers
        self._schema = fastavro.parse_schema(ORDER)
        with RegistryClient([registry]) as client:
            self._frame = struct.pack(">bi", 0, client.register(f"{topic}-value", Schema(json.dumps(ORDER))))
        admin = AdminClient({"bootstrap.servers": brokers})
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(30)
        once = {"enable.idempotence": True}  # a broker that dies must not make it repeat an order
        self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "log_level": 0, **once})

    def put(self, numbers: range) -> None:
        """Write these orders, acknowledged on return."""
        for n in numbers:
            body = io.BytesIO()
            body.write(self._frame)
            fastavro.schemaless_writer(body, self._schema, {"id": n, "item": f"item {n}", "price": float(n)})
            self._producer.produce(self.topic, body.getvalue(), key=str(n))
            self._producer.poll(0)
        self._producer.flush(30)

    def arrived(self, wanted: set[int], patience: float) -> Counter[int]:
        """How often each order came out, once all those wanted are among them or the time is over."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._brokers,
                "group.id": "look",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        try:
            return self._read(consumer, wanted, patience)
        finally:
            consumer.close()

    def counted(self) -> Counter[int]:
        """How often each order is in the output now, for a reader of committed records."""
        settings = {"bootstrap.servers": self._brokers, "group.id": "look", "log_level": 0}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
        found: Counter[int] = Counter()
        try:
            partitions = consumer.list_topics(self.out, 30).topics[self.out].partitions
            consumer.assign([TopicPartition(self.out, p, 0) for p in partitions])
            left = len(partitions)
            while left:
                for message in consumer.consume(1000, 5.0):
                    if message.error() is None:
                        found[self._number(message.value() or b"")] += 1
                    else:
                        left -= 1  # the end of a partition
            return found
        finally:
            consumer.close()

    def latest(self, topic: str) -> set[int]:
        """The numbers of the orders whose key is not deleted in a keyed topic of JSON."""
        settings = {"bootstrap.servers": self._brokers, "group.id": "look", "log_level": 0}
        consumer = Consumer({**settings, "enable.partition.eof": True})
        values: dict[bytes, bytes | None] = {}
        try:
            partitions = consumer.list_topics(topic, 30).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            left = len(partitions)
            while left:
                for message in consumer.consume(1000, 5.0):
                    if message.error() is None:
                        values[message.key() or b""] = message.value()
                    else:
                        left -= 1  # the end of a partition
            return {json.loads(value)["id"] for value in values.values() if value is not None}
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, wanted: set[int], patience: float) -> Counter[int]:
        partitions = consumer.list_topics(self.out, 30).topics[self.out].partitions
        consumer.assign([TopicPartition(self.out, p, 0) for p in partitions])
        found: Counter[int] = Counter()
        missing = set(wanted)
        deadline = time.monotonic() + patience
        while missing and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    number = self._number(message.value() or b"")
                    found[number] += 1
                    missing.discard(number)
        return found

    def _number(self, value: bytes) -> int:
        """`id` is the first field of what the sink writes, a union of null and long."""
        body = io.BytesIO(value[5:])
        read = fastavro.schemaless_reader(body, {"type": "record", "name": "first", "fields": [_ID]}, None)
        assert isinstance(read, dict)
        return int(read["id"])


_ID = {"name": "id", "type": "long"}
