"""``KAFKA { CONNECTION k (…) | BROKER 'h:p' TOPIC 't' }``: the topic that a source, sink or capture reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar, assert_never

from headgate.sql.options import Map, Offsets, Options, Timestamp, option, options, print_options
from headgate.sql.statement import (
    Expression,
    Kind,
    ObjectName,
    names,
    object_name,
    print_name,
    print_string,
    words,
)
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class ReadOptions(Options):
    """How a topic is read. ``seed_offset`` holds the offsets that START OFFSET and START TIMESTAMP meant at creation."""

    owner: ClassVar[str] = "the topic"
    topic: str | None = option()
    start_offset: Offsets | None = option()
    start_timestamp: Timestamp | None = option()
    seed_offset: tuple[int, ...] | None = option()


@dataclass(frozen=True, slots=True)
class WriteOptions(Options):
    """How a topic is written, and how it is created if it does not exist."""

    owner: ClassVar[str] = "the topic"
    topic: str | None = option()
    partition_by: Expression | None = option()
    topic_partition_count: int | None = option()
    topic_replication_factor: int | None = option()
    topic_config: Map | None = option()
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = option()


TopicOptions = TypeVar("TopicOptions", ReadOptions, WriteOptions)


@dataclass(frozen=True, slots=True)
class KafkaConnection(Generic[TopicOptions]):
    """``KAFKA CONNECTION k (TOPIC 't', …)``."""

    connection: ObjectName = field(metadata=names(Kind.CONNECTION))
    options: TopicOptions


@dataclass(frozen=True, slots=True)
class KafkaBroker(Generic[TopicOptions]):
    """``KAFKA BROKER 'h:p' TOPIC 't' [(…)]``, without a connection object."""

    broker: str
    topic: str
    options: TopicOptions


Kafka: TypeAlias = KafkaConnection[TopicOptions] | KafkaBroker[TopicOptions]

OPTION_LISTS: dict[str, type[Options]] = {"read option": ReadOptions, "write option": WriteOptions}


def kafka(cursor: Cursor, cls: type[TopicOptions]) -> Kafka[TopicOptions]:
    """Read what follows the word KAFKA."""
    if cursor.take("CONNECTION"):
        return KafkaConnection(object_name(cursor), options(cursor, cls))
    cursor.expect("BROKER")
    broker = cursor.string()
    cursor.expect("TOPIC")
    topic = cursor.string()
    return KafkaBroker(broker, topic, options(cursor, cls) if cursor.at("(") else cls())


def given_topic(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str | None:
    """The topic that is named; None if a connection is given without one."""
    return kafka.options.topic if isinstance(kafka, KafkaConnection) else kafka.topic


def print_kafka(node: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {print_name(connection)} {print_options(given)}"
        case KafkaBroker(broker, topic, given):
            return words(
                f"KAFKA BROKER {print_string(broker)} TOPIC {print_string(topic)}",
                print_options(given),
            )
        case _:
            assert_never(node)
