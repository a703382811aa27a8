"""CREATE VIEW and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName, Query
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    name: ObjectName
    query: Query
    columns: tuple[Identifier, ...] = ()
    with_options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    name: ObjectName
    query: Query
    columns: tuple[Identifier, ...] = ()
    assert_not_null: tuple[Identifier, ...] = ()
    with_options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
