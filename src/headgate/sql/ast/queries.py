"""Statements that return rows of relations: SELECT and SUBSCRIBE."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName, Query
from headgate.sql.ast.statement import Statement


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """A query, run once; with ``emit_changes``, followed for ever or until ``limit`` changes have come."""

    query: Query
    emit_changes: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Subscribe(Statement):
    relation: ObjectName
