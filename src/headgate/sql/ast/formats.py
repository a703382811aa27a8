"""Formats of topics and files: how bytes become rows and rows bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier

Side: TypeAlias = Literal["KEY", "VALUE"]
RegistryKind: TypeAlias = Literal["AVRO", "PROTOBUF", "JSON SCHEMA"]


@dataclass(frozen=True, slots=True)
class TextFormat:
    pass


@dataclass(frozen=True, slots=True)
class BytesFormat:
    pass


@dataclass(frozen=True, slots=True)
class JsonFormat:
    pass


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """``columns``: so many, without names. ``header``: named columns. Neither: the file's own header line."""

    columns: int | None = None
    header: tuple[Identifier, ...] | None = None
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class RegexFormat:
    pattern: str


@dataclass(frozen=True, slots=True)
class AvroInline:
    """A schema in the statement. Options: CONFLUENT WIRE FORMAT."""

    schema: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtobufInline:
    message: str
    schema: str


@dataclass(frozen=True, slots=True)
class LatestStrategy:
    pass


@dataclass(frozen=True, slots=True)
class IdStrategy:
    id: int


@dataclass(frozen=True, slots=True)
class InlineStrategy:
    schema: str


@dataclass(frozen=True, slots=True)
class SchemaStrategy:
    """``KEY|VALUE STRATEGY``: which of a subject's schemas is the reader's."""

    side: Side
    strategy: LatestStrategy | IdStrategy | InlineStrategy


@dataclass(frozen=True, slots=True)
class SeedSchema:
    """A registry's answer, frozen: ``SEED KEY SCHEMA ID 3 '…'``; references by name, those needed by others first."""

    side: Side
    id: int
    schema: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DocTarget:
    """What ``[KEY|VALUE] DOC ON TYPE|COLUMN name`` speaks of. Without a side: both schemas."""

    side: Side | None
    on: Literal["TYPE", "COLUMN"]
    name: ObjectName


@dataclass(frozen=True, slots=True)
class DocOn:
    target: DocTarget
    doc: str


FormatOption: TypeAlias = Option | DocOn | SchemaStrategy | SeedSchema


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    url: str


@dataclass(frozen=True, slots=True)
class RegistryFormat:
    """Schemas in a registry: a connection, or the address of one. ``message``: of several in one Protobuf file."""

    kind: RegistryKind
    registry: ObjectName | RegistryUrl
    options: tuple[FormatOption, ...] = ()
    message: str | None = None


Format: TypeAlias = (
    TextFormat
    | BytesFormat
    | JsonFormat
    | CsvFormat
    | RegexFormat
    | AvroInline
    | ProtobufInline
    | RegistryFormat
)


@dataclass(frozen=True, slots=True)
class Formats:
    """``FORMAT f`` (without a key) or ``KEY FORMAT f VALUE FORMAT f``."""

    value: Format
    key: Format | None = None
