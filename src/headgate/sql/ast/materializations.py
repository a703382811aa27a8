"""CREATE and ALTER MATERIALIZATION."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.schema.types import Type
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """Options: TABLE."""

    connection: ObjectName
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class ElasticsearchTarget:
    """Options: INDEX."""

    connection: ObjectName
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class OnDemandTarget:
    pass


MaterializationTarget: TypeAlias = PostgresTarget | ElasticsearchTarget | OnDemandTarget


@dataclass(frozen=True, slots=True)
class ObjectType:
    """``OBJECT (…)``: fields that may have pointers, native types and objects of their own."""

    fields: tuple[MaterializedField, ...]


@dataclass(frozen=True, slots=True)
class MaterializedField:
    """``pointer``: where in the row the value is, by default under the field's name. ``native``: the target's own type."""

    name: Identifier
    type: Type | ObjectType
    pointer: str | None = None
    nullable: bool = False
    required: bool = False
    native: str | None = None


@dataclass(frozen=True, slots=True)
class FieldList:
    fields: tuple[MaterializedField, ...]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer."""

    text: str


@dataclass(frozen=True, slots=True)
class RecommendedFields:
    """Every column; records to all their leaves, or to ``depth``. What is excluded is a column or a pointer."""

    depth: int | None = None
    exclude: tuple[ObjectName | Pointer, ...] = ()


Fields: TypeAlias = FieldList | RecommendedFields


@dataclass(frozen=True, slots=True)
class CreateMaterialization(Statement):
    name: ObjectName
    relation: ObjectName
    target: MaterializationTarget
    fields: Fields | None = None
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class BackfillMaterialization(Statement):
    name: ObjectName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetMaterializationFields(Statement):
    name: ObjectName
    fields: Fields
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False
