"""CREATE TYPE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.schema.types import Type
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class TypeField:
    name: Identifier
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class RecordBody:
    fields: tuple[TypeField, ...]


@dataclass(frozen=True, slots=True)
class ListBody:
    element: Type


@dataclass(frozen=True, slots=True)
class MapBody:
    """The keys are always text."""

    value: Type


@dataclass(frozen=True, slots=True)
class OtherBody:
    """Another name for a type that is written out: an enum, a decimal, an array."""

    type: Type


TypeBody: TypeAlias = RecordBody | ListBody | MapBody | OtherBody


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    name: ObjectName
    body: TypeBody
    if_not_exists: bool = False
