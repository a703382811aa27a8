"""What planning a statement gives: changes to the catalog, what must be done outside for them, and what to say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.catalog.changes import Change
from headgate.schema.written import CompatibilityLevel, WrittenSchema
from headgate.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """``connection`` is the id of the connection's object."""

    connection: int
    topic: str
    partitions: int = 1
    replicas: int = -1
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RegisterSchema:
    """Register the schema for the subject; a level that was given is set first, and none is set otherwise."""

    connection: int
    subject: str
    schema: WrittenSchema
    level: CompatibilityLevel | None = None


Effect: TypeAlias = CreateTopic | RegisterSchema


@dataclass(frozen=True, slots=True)
class Planned:
    """A statement ready to be done. ``tag`` is what its success is called; a query has neither changes nor effects."""

    statement: Statement
    tag: str
    changes: tuple[Change, ...] = ()
    effects: tuple[Effect, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: bool = field(default=False)
