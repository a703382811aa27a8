"""CREATE STREAM and CREATE TABLE, with columns or AS SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql.ast.names import Expression, ObjectName, Query
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier

StreamKind: TypeAlias = Literal["STREAM", "TABLE"]
ColumnRole: TypeAlias = Literal["KEY", "PRIMARY KEY", "HEADERS", "HEADER"]


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """``header`` is the header's key where the role is HEADER."""

    name: Identifier
    type: Type
    role: ColumnRole | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class CreateStream(Statement):
    kind: StreamKind
    name: ObjectName
    columns: tuple[StreamColumn, ...] = ()
    properties: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateStreamAs(Statement):
    kind: StreamKind
    name: ObjectName
    query: Query
    properties: tuple[Option, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
