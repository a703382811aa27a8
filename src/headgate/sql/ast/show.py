"""SHOW and DESCRIBE, and REPLAY QUARANTINE, which acts on what SHOW QUARANTINE shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import ObjectKind, Statement

Listing: TypeAlias = Literal[
    "DATABASES", "SCHEMAS", "SECRETS", "CONNECTIONS", "SOURCES", "TYPES", "VIEWS", "MATERIALIZED VIEWS", "SINKS",
    "SINK POLICIES", "STREAMS", "TABLES", "COLLECTIONS", "CAPTURES", "MATERIALIZATIONS", "OBJECTS", "COMMENTS",
    "DEPENDENCIES", "TASKS", "EVENTS", "HISTORY", "QUARANTINE",
]  # fmt: skip
CollectionSchema: TypeAlias = Literal["WRITE", "READ", "INFERRED"]


@dataclass(frozen=True, slots=True)
class ShowObjects(Statement):
    """``within``: only those of this schema. ``subject``: only what belongs to this object. ``like``: a pattern of names."""

    what: Listing
    within: ObjectName | None = None
    subject: ObjectName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate(Statement):
    kind: ObjectKind
    name: ObjectName


@dataclass(frozen=True, slots=True)
class ShowLineage(Statement):
    name: ObjectName
    kind: ObjectKind | None = None


@dataclass(frozen=True, slots=True)
class ShowCollectionSchema(Statement):
    which: CollectionSchema
    name: ObjectName


@dataclass(frozen=True, slots=True)
class ShowSchemaHistory(Statement):
    name: ObjectName
    kind: ObjectKind | None = None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    name: ObjectName
    kind: ObjectKind | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ReplayQuarantine(Statement):
    name: ObjectName
    kind: ObjectKind | None = None
