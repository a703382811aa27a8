"""Where on Kafka something is read from or written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.values import Option


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """``KAFKA CONNECTION k (TOPIC 't', …)``."""

    connection: ObjectName
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """``KAFKA BROKER 'h:p' TOPIC 't' [(…)]``: without an object for the connection."""

    broker: str
    topic: str
    options: tuple[Option, ...] = ()


Kafka: TypeAlias = KafkaConnection | KafkaBroker
