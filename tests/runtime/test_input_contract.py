"""The contract of `Input`, for every implementation: one in memory, and a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Protocol, cast

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headgate.catalog.positions import KafkaPosition, Position, Positions, lag, reaches
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.connectors.options import ConnectionOptions
from headgate.embedded.world import World
from headgate.plan.definitions import SourceDefinition
from headgate.runtime.errors import TopicReplaced
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Input, Limit
from tests.runtime.memory_ports import BAD, NO_SESSION, MemoryInput, Topic, rows_of
from tests.runtime.test_decode import plan

_names = count()


class Harness(Protocol):
    """One kind of input over a topic of two partitions, and how to write to it and read from it."""

    input: Input
    session: SparkSession

    def put(self, values: Sequence[int]) -> None:
        """Append a record for each value. BAD cannot be decoded."""

    def values(self, start: Position, end: Position) -> list[int]:
        """The values that the input reads between two positions, sorted."""


class Memory:
    session = NO_SESSION

    def __init__(self) -> None:
        self._topic = Topic()
        self.input: Input = MemoryInput(self._topic)

    def put(self, values: Sequence[int]) -> None:
        for value in values:
            self._topic.put("ba"[value % 2], value)

    def values(self, start: Position, end: Position) -> list[int]:
        rows = rows_of(self.input.read(NO_SESSION, start, end))
        return sorted(value for _, value in rows if value is not None)


class Kafka:
    def __init__(self, session: SparkSession, brokers: str) -> None:
        self.session = session
        self.topic = f"input_contract_{next(_names)}"
        self.cluster = KafkaCluster(ConnectionOptions("kafka", (("BROKER", (brokers,)),)))
        self.cluster.create_topic(self.topic, NewTopicOptions(2))
        clients = cast("Clients", SimpleNamespace(kafka=lambda _: self.cluster))
        source = SourceDefinition(1, "s", self.topic, 3, plan("WITH (ON ERROR = QUARANTINE)"))
        self.input: Input = KafkaInput(source, clients, 2, 'sink "out"', brokers, "headgate-2")
        self._producer = Producer({"bootstrap.servers": brokers, "log_level": 0})

    def put(self, values: Sequence[int]) -> None:
        for value in values:
            text = b"\xff" if value == BAD else str(value).encode()
            self._producer.produce(self.topic, text, partition=value % 2)
        self._producer.flush(30)

    def values(self, start: Position, end: Position) -> list[int]:
        found = self.input.read(self.session, start, end).rows.select("text").collect()
        return sorted(int(row["text"]) for row in found)


@pytest.fixture(
    params=[
        pytest.param(Memory, marks=pytest.mark.unit),
        pytest.param(Kafka, marks=[pytest.mark.e2e, pytest.mark.timeout(600)]),
    ]
)
def harness(request: pytest.FixtureRequest) -> Harness:
    if request.param is Memory:
        return Memory()
    session: SparkSession = request.getfixturevalue("session")
    world: World = request.getfixturevalue("world")
    return Kafka(session, world.ensure("kafka")["kafka"])


def end_of(
    harness: Harness, start: Position, rows: int = 1000, mark: Position | None = None, seen: Position | None = None
) -> Position:  # fmt: skip
    return harness.input.choose_end(harness.session, start, Limit(rows), seen, mark)


def of(position: Position) -> Positions:
    return {1: position}


def test_an_empty_topic_gives_an_empty_batch(harness: Harness) -> None:
    start = harness.input.begin()
    harness.input.check(start)
    assert lag(of(start), of(end_of(harness, start))) == 0


def test_every_record_is_read_once_whatever_the_batches(harness: Harness) -> None:
    harness.put(range(20))
    start, read = harness.input.begin(), list[int]()
    while lag(of(start), of(end := end_of(harness, start, rows=6))):
        assert lag(of(start), of(end)) <= 6 + 2
        read += harness.values(start, end)
        harness.input.release(end)
        harness.input.check(end)
        start = end
    assert sorted(read) == list(range(20))


def test_the_same_range_gives_the_same_rows(harness: Harness) -> None:
    harness.put(range(5))
    start = harness.input.begin()
    end = end_of(harness, start)
    harness.put(range(5, 9))
    assert harness.values(start, end) == harness.values(start, end) == list(range(5))
    assert harness.values(end, end_of(harness, end)) == list(range(5, 9))


def test_a_batch_reaches_an_open_mark_beyond_its_limit(harness: Harness) -> None:
    harness.put(range(10))
    start = harness.input.begin()
    mark = end_of(harness, start)
    harness.put(range(10, 12))
    end = end_of(harness, start, rows=2, mark=mark)
    assert reaches(of(end), of(mark))
    assert harness.values(start, end)[:10] == list(range(10))


def test_records_that_cannot_be_decoded_are_rejected_with_their_positions(harness: Harness) -> None:
    harness.put([0, 1, BAD, 2])
    start = harness.input.begin()
    end = end_of(harness, start)
    assert harness.values(start, end) == [0, 1, 2]
    rejected = harness.input.rejected()
    assert [(q.partition, q.offset) for q in rejected.records] == [(1, 1)]
    harness.put([4])
    later = end_of(harness, end)
    assert harness.values(end, later) == [4]
    assert list(harness.input.rejected().records) == []


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_topic_that_was_made_again_is_refused(session: SparkSession, world: World) -> None:
    kafka = Kafka(session, world.ensure("kafka")["kafka"])
    start = kafka.input.begin()
    assert isinstance(start, KafkaPosition)
    other = KafkaPosition(start.topic, "another", start.offsets)
    with pytest.raises(TopicReplaced):
        kafka.input.check(other)
    with pytest.raises(TopicReplaced):
        end_of(kafka, start, seen=other)
