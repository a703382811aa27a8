"""Writes single records to a cluster, as INSERT does. Spark writes the records of sinks."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

FLUSH_TIMEOUT = 30.0  # seconds that the broker has to acknowledge all records of a call
_SETTINGS: Mapping[str, Any] = {
    "enable.idempotence": True, "linger.ms": 1, "message.timeout.ms": 20_000,
    # Choose the same partition for a key as Kafka's own clients and Spark do.
    "partitioner": "murmur2_random",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """``time`` is in milliseconds since 1970; None stands for the present time. The client takes 0 for that, too."""

    topic: str
    key: bytes | None
    value: bytes | None
    time: int | None = None


class RecordProducer:
    """A producer that stays open. The first record of a new producer takes up to a second, later ones take a few milliseconds."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._producer = Producer({**settings, **_SETTINGS})
        self._guard = threading.Lock()

    def write(self, records: Sequence[Record]) -> None:
        """Write the records, and return when the broker has acknowledged all of them. Raises KafkaException for the first failure."""
        failures: list[KafkaError] = []

        def acknowledged(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(error)

        with self._guard:
            for record in records:
                self._produce(record, acknowledged)
            left = self._producer.flush(FLUSH_TIMEOUT)
        if failures:
            raise KafkaException(failures[0])
        if left:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _produce(self, record: Record, acknowledged: Any) -> None:
        time: dict[str, Any] = {} if record.time is None else {"timestamp": record.time}
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, on_delivery=acknowledged, **time)
                return
            except BufferError:  # its queue is full
                self._producer.poll(0.1)
