"""CREATE and ALTER CAPTURE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.sql.ast.formats import Format, Formats
from headgate.sql.ast.kafka import Kafka
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option


@dataclass(frozen=True, slots=True)
class CaptureKafka:
    kafka: Kafka
    formats: Formats


@dataclass(frozen=True, slots=True)
class CapturePostgres:
    """Options: TABLES or SCHEMAS."""

    connection: ObjectName
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    path: str
    format: Format


@dataclass(frozen=True, slots=True)
class CaptureHttp:
    path: str


CaptureOrigin: TypeAlias = CaptureKafka | CapturePostgres | CaptureFiles | CaptureHttp


@dataclass(frozen=True, slots=True)
class IntoCollection:
    name: ObjectName


@dataclass(frozen=True, slots=True)
class Binding:
    stream: str
    collection: ObjectName


@dataclass(frozen=True, slots=True)
class IntoBindings:
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class IntoSchema:
    """One collection per stream of the origin, by its name."""

    name: ObjectName


CaptureTarget: TypeAlias = IntoCollection | IntoBindings | IntoSchema


@dataclass(frozen=True, slots=True)
class CreateCapture(Statement):
    name: ObjectName
    origin: CaptureOrigin
    target: CaptureTarget
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DiscoverCapture(Statement):
    name: ObjectName
    if_exists: bool = False
