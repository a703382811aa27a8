"""``KAFKA { CONNECTION k (…) | BROKER 'h:p' TOPIC 't' }``: the topic that a source, sink or capture reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate.sql.options import Option, OptionRule, OptionTable, ValueKind, options, print_options
from headgate.sql.statement import ObjectName, object_name, print_name, print_string, words
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """``KAFKA CONNECTION k (TOPIC 't', …)``."""

    connection: ObjectName
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """``KAFKA BROKER 'h:p' TOPIC 't' [(…)]``, without a connection object."""

    broker: str
    topic: str
    options: tuple[Option, ...] = ()


Kafka: TypeAlias = KafkaConnection | KafkaBroker


_TOPIC = OptionRule("TOPIC", ValueKind.STRING)

READ_OPTIONS = OptionTable(
    "the topic",
    (
        _TOPIC,
        OptionRule("START OFFSET", ValueKind.OFFSETS),
        OptionRule("START TIMESTAMP", ValueKind.TIMESTAMP),
        OptionRule("SEED OFFSET", ValueKind.SEED_OFFSETS),
    ),
)
WRITE_OPTIONS = OptionTable(
    "the topic",
    (
        _TOPIC,
        OptionRule("PARTITION BY", ValueKind.EXPRESSION),
        OptionRule("TOPIC PARTITION COUNT", ValueKind.INTEGER),
        OptionRule("TOPIC REPLICATION FACTOR", ValueKind.INTEGER),
        OptionRule("TOPIC CONFIG", ValueKind.MAP),
        OptionRule("COMPRESSION TYPE", ValueKind.STRING, ("none", "gzip", "snappy", "lz4", "zstd")),
    ),
)

TABLES = {"read option": READ_OPTIONS, "write option": WRITE_OPTIONS}


def kafka(cursor: Cursor, table: OptionTable) -> Kafka:
    """Read what follows the word KAFKA."""
    if cursor.take("CONNECTION"):
        return KafkaConnection(object_name(cursor), options(cursor, table))
    cursor.expect("BROKER")
    broker = cursor.string()
    cursor.expect("TOPIC")
    topic = cursor.string()
    return KafkaBroker(broker, topic, options(cursor, table) if cursor.at("(") else ())


def print_kafka(node: Kafka) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {print_name(connection)} {print_options(given)}"
        case KafkaBroker(broker, topic, given):
            return words(
                f"KAFKA BROKER {print_string(broker)} TOPIC {print_string(topic)}",
                print_options(given) if given else "",
            )
        case _:
            assert_never(node)
