"""Topics that are written in transactions, without Spark: rows are Arrow tables where the target expects DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import DataFrame

from headgate.catalog.positions import KafkaPosition, Positions
from headgate.catalog.tasks import ProgressSlot
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.connectors.options import ConnectionOptions
from headgate.plan.definitions import RecordEncoding, SinkDefinition
from headgate.runtime.ports import Batch
from headgate.runtime.targets.kafka_progress import ProgressTopic
from headgate.runtime.targets.kafka_transactions import KafkaTransactions
from headgate.schema.types import Field, Record, Text

TASK = 9
Pair = tuple[str | None, str | None]
"""Key and value of a record."""


def cluster_at(brokers: str) -> KafkaCluster:
    return KafkaCluster(ConnectionOptions("kafka", (("BROKER", (brokers,)),)))


class Frame:
    """Stands for a DataFrame of records."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        return list(self._table.schema.names)

    def select(self, *names: str) -> Frame:
        return Frame(self._table.select(list(names)))

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._table


def frame(pairs: Sequence[Pair]) -> DataFrame:
    keys, values = ([None if pair[i] is None else str(pair[i]).encode() for pair in pairs] for i in (0, 1))
    return cast(
        DataFrame, Frame(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
    )


class Once:
    """A topic with one partition, and targets that write to it as engines would."""

    def __init__(self, brokers: str, name: str, slot: int = 0, project: str = "once") -> None:
        self.brokers, self.name = brokers, name
        self.cluster = cluster_at(brokers)
        self.slot = ProgressSlot(project, slot)
        self.opened: list[KafkaTransactions] = []

    def create(self, *config: tuple[str, str]) -> Once:
        self.cluster.create_topic(self.name, NewTopicOptions(1, config=config))
        return self

    @property
    def sink(self) -> SinkDefinition:
        value = RecordEncoding("TEXT", ("value",), Record((Field("value", Text(), nullable=True),)))
        return SinkDefinition(self.name, 1, self.name, 1, value, None, "NONE", delivery="exactly once")

    def progress(self, timeout: float = 60.0) -> ProgressTopic:
        return ProgressTopic(self.cluster, self.slot, f"uuid of {self.name}", self.name, timeout)

    def open(self, timeout: float = 60.0) -> KafkaTransactions:
        target = KafkaTransactions(self.sink, self.cluster, TASK, self.progress(timeout))
        self.opened.append(target)
        return target

    def held(self) -> list[Pair]:
        """The committed records, in order."""
        return read_committed(self.brokers, self.name)

    def close(self) -> None:
        for target in self.opened:
            target.close()


def read_committed(brokers: str, topic: str) -> list[Pair]:
    settings = {"bootstrap.servers": brokers, "group.id": "look", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "fetch.wait.max.ms": 10})
    found: list[Pair] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is None:
                found.append((_text(message.key()), _text(message.value())))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()


def _text(side: str | bytes | None) -> str | None:
    return side.decode() if isinstance(side, bytes) else side


def at(offset: int) -> Positions:
    return {7: KafkaPosition("orders", "id", (offset,))}


def batch(number: int, start: int, end: int, epoch: int = 1) -> Batch:
    return Batch(TASK, 1, number, epoch, at(start), at(end), "d", datetime(2026, 1, 1, tzinfo=UTC))


def write(target: KafkaTransactions, batch_: Batch, *pairs: Pair) -> None:
    target.write_records(frame(pairs), batch_)
