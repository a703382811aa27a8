"""``KAFKA { CONNECTION k (…) | BROKER 'h:p' TOPIC 't' }``: the topic that a source, sink or capture reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar, assert_never

from headgate.sql import options as o
from headgate.sql import statement as s
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class ReadOptions(o.Options):
    """How a topic is read. ``seed_offset`` holds the offsets that START OFFSET and START TIMESTAMP meant at creation."""

    owner: ClassVar[str] = "the topic"
    topic: str | None = o.option()
    start_offset: o.Offsets | None = o.option()
    start_timestamp: o.Timestamp | None = o.option()
    seed_offset: tuple[int, ...] | None = o.option()


@dataclass(frozen=True, slots=True)
class WriteOptions(o.Options):
    """How a topic is written, and how it is created if it does not exist."""

    owner: ClassVar[str] = "the topic"
    topic: str | None = o.option()
    partition_by: s.Expression | None = o.option()
    topic_partition_count: int | None = o.option()
    topic_replication_factor: int | None = o.option()
    topic_config: o.Map | None = o.option()
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = o.option()


TopicOptions = TypeVar("TopicOptions", ReadOptions, WriteOptions)


@dataclass(frozen=True, slots=True)
class KafkaConnection(Generic[TopicOptions]):
    """``KAFKA CONNECTION k (TOPIC 't', …)``."""

    connection: s.ObjectName = field(metadata=s.names(s.Kind.CONNECTION))
    options: TopicOptions


@dataclass(frozen=True, slots=True)
class KafkaBroker(Generic[TopicOptions]):
    """``KAFKA BROKER 'h:p' TOPIC 't' [(…)]``, without a connection object."""

    broker: str
    topic: str
    options: TopicOptions


Kafka: TypeAlias = KafkaConnection[TopicOptions] | KafkaBroker[TopicOptions]

OPTION_LISTS: dict[str, type[o.Options]] = {"read option": ReadOptions, "write option": WriteOptions}


def kafka(cursor: Cursor, cls: type[TopicOptions]) -> Kafka[TopicOptions]:
    """Read what follows the word KAFKA."""
    if cursor.take("CONNECTION"):
        return KafkaConnection(s.object_name(cursor), o.options(cursor, cls))
    cursor.expect("BROKER")
    broker = cursor.string()
    cursor.expect("TOPIC")
    topic = cursor.string()
    return KafkaBroker(broker, topic, o.options(cursor, cls) if cursor.at("(") else cls())


def given_topic(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str | None:
    """The topic that is named; None if a connection is given without one."""
    return kafka.options.topic if isinstance(kafka, KafkaConnection) else kafka.topic


def print_kafka(node: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {s.print_name(connection)} {o.print_options(given)}"
        case KafkaBroker(broker, topic, given):
            return s.words(
                f"KAFKA BROKER {s.print_string(broker)} TOPIC {s.print_string(topic)}",
                o.print_options(given),
            )
        case _:
            assert_never(node)
