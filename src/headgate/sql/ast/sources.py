"""CREATE SOURCE, and ALTER SOURCE n ACCEPT SCHEMA CHANGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql.ast.formats import Formats
from headgate.sql.ast.kafka import Kafka
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier

Metadata: TypeAlias = Literal["KEY", "PARTITION", "OFFSET", "TIMESTAMP", "TOPIC", "HEADERS"]


@dataclass(frozen=True, slots=True)
class IncludeMetadata:
    what: Metadata
    alias: Identifier | None = None


@dataclass(frozen=True, slots=True)
class IncludeHeader:
    """One header by its key, as text, or with ``as_bytes`` as it came."""

    header: str
    alias: Identifier
    as_bytes: bool = False


Include: TypeAlias = IncludeMetadata | IncludeHeader


@dataclass(frozen=True, slots=True)
class NoneEnvelope:
    pass


@dataclass(frozen=True, slots=True)
class UpsertEnvelope:
    """``key``: value columns that are the key, instead of the record's own. ``inline_errors_as`` needs ``inline_errors``."""

    key: tuple[Identifier, ...] = ()
    inline_errors: bool = False
    inline_errors_as: Identifier | None = None


@dataclass(frozen=True, slots=True)
class DebeziumEnvelope:
    pass


SourceEnvelope: TypeAlias = NoneEnvelope | UpsertEnvelope | DebeziumEnvelope


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    name: ObjectName
    kafka: Kafka
    formats: Formats
    columns: tuple[Identifier, ...] = ()
    include: tuple[Include, ...] = ()
    envelope: SourceEnvelope | None = None
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AcceptSchemaChange(Statement):
    kind: Literal["SOURCE", "STREAM", "TABLE"]
    name: ObjectName
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False
