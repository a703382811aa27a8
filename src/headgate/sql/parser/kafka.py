"""``KAFKA { CONNECTION k (…) | BROKER 'h:p' TOPIC 't' }``, for sources, sinks and captures."""

from __future__ import annotations

from headgate.sql.ast.kafka import Kafka, KafkaBroker, KafkaConnection
from headgate.sql.ast.names import object_name
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind
from headgate.sql.parser.values import options
from headgate.text.cursor import Cursor

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
    """What follows the word KAFKA."""
    if cursor.take("CONNECTION"):
        return KafkaConnection(object_name(cursor), options(cursor, table))
    cursor.expect("BROKER")
    broker = cursor.string()
    cursor.expect("TOPIC")
    topic = cursor.string()
    return KafkaBroker(broker, topic, options(cursor, table) if cursor.at("(") else ())
