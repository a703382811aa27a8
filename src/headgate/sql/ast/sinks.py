"""CREATE and ALTER SINK, CREATE and ALTER SINK POLICY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql.ast.formats import DocOn, DocTarget, Formats, RegistryKind
from headgate.sql.ast.kafka import Kafka
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier

SinkEnvelope: TypeAlias = Literal["UPSERT", "DEBEZIUM", "NONE"]
Documented: TypeAlias = Literal["FIELDS", "TYPES"]


@dataclass(frozen=True, slots=True)
class SinkKey:
    columns: tuple[Identifier, ...]
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class CreateSink(Statement):
    """Without a name it is called after its relation."""

    name: ObjectName | None
    relation: ObjectName
    kafka: Kafka
    formats: Formats
    key: SinkKey | None = None
    headers: Identifier | None = None
    envelope: SinkEnvelope | None = None
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddDoc:
    doc: DocOn


@dataclass(frozen=True, slots=True)
class DropDoc:
    target: DocTarget


@dataclass(frozen=True, slots=True)
class RefreshDocs:
    pass


DocChange: TypeAlias = AddDoc | DropDoc | RefreshDocs


@dataclass(frozen=True, slots=True)
class AlterSinkDocs(Statement):
    name: ObjectName
    format: RegistryKind
    changes: tuple[DocChange, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSinkFrom(Statement):
    name: ObjectName
    relation: ObjectName
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """Where a policy holds; without one, everywhere in the current database."""

    kind: Literal["SCHEMA", "DATABASE"]
    name: ObjectName


@dataclass(frozen=True, slots=True)
class CreateSinkPolicy(Statement):
    name: ObjectName
    format: RegistryKind
    requires: tuple[Documented, ...]
    scope: PolicyScope | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSinkPolicy(Statement):
    """Replaces what the policy requires."""

    name: ObjectName
    format: RegistryKind
    requires: tuple[Documented, ...]
    if_exists: bool = False
