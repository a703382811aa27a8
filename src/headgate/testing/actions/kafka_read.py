"""The records of a topic from its start, read on as more come."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from headgate.testing.actions.kafka_topics import kafka_errors, partitions
from headgate.testing.errors import ServiceFailed, StepFailed
from headgate.testing.patience import Deadline
from headgate.testing.stage import Stage


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as it lies in the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class TopicReader:
    """Reads committed records only. ``records`` is all that was read; within a partition in order."""

    def __init__(self, topic: str, consumer: Consumer, count: int) -> None:
        self.topic = topic
        self.partitions = count
        self.records: list[Raw] = []
        self._consumer = consumer
        self._at_end: set[int] = set()

    def read_to_end(self, deadline: Deadline) -> None:
        """What is there now. Raises StepFailed when the end is not reached in time."""
        while len(self._at_end) < self.partitions:
            if deadline.is_over:
                raise StepFailed(f'could not read topic "{self.topic}" to its end in time')
            self._read(min(0.5, deadline.left))

    def read_more(self, seconds: float) -> bool:
        """Whether more came within so many seconds; returns as soon as it did."""
        before, until = len(self.records), time.monotonic() + seconds
        while len(self.records) == before and time.monotonic() < until:
            self._read(max(0.0, until - time.monotonic()))
        return len(self.records) > before

    def _read(self, seconds: float) -> None:
        with kafka_errors():
            first = self._consumer.poll(seconds)
            if first is None:
                return
            for message in (first, *self._consumer.consume(5000, timeout=0)):
                self._take(message)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self.records.append(_raw(message))
            self._at_end.discard(self.records[-1].partition)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._at_end.add(_number(message.partition()))
        elif not error.retriable():
            raise ServiceFailed("kafka", error.str())


def _raw(message: Message) -> Raw:
    headers = tuple((str(pair[0]), _bytes(pair[1])) for pair in message.headers() or ())
    place = _number(message.partition()), _number(message.offset())
    return Raw(*place, _bytes(message.key()), _bytes(message.value()), headers)


def _number(told: int | None) -> int:
    return -1 if told is None else told


def _bytes(told: str | bytes | None) -> bytes | None:
    """The library's annotations allow text, which it never gives to a consumer without a deserializer."""
    return told.encode() if isinstance(told, str) else told


@contextmanager
def open_topic(topic: str, stage: Stage) -> Iterator[TopicReader]:
    count = partitions(topic, stage)
    consumer = Consumer(
        {
            "bootstrap.servers": stage.kafka,
            "group.id": f"headgate-test-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            "retry.backoff.ms": 20,
            "log_level": 0,
        }
    )
    try:
        with kafka_errors():
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(count)])
        yield TopicReader(topic, consumer, count)
    finally:
        consumer.close()
