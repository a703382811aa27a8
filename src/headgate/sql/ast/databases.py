"""CREATE DATABASE and CREATE SCHEMA."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement


@dataclass(frozen=True, slots=True)
class CreateDatabase(Statement):
    name: ObjectName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchema(Statement):
    name: ObjectName
    if_not_exists: bool = False
