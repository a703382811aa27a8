"""INSERT INTO."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import Expression, ObjectName, Query
from headgate.sql.ast.statement import Statement
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    relation: ObjectName
    rows: tuple[tuple[Expression, ...], ...]
    columns: tuple[Identifier, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertQuery(Statement):
    relation: ObjectName
    query: Query
    columns: tuple[Identifier, ...] = ()
