"""CREATE and ALTER COLLECTION."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName, Query
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option


@dataclass(frozen=True, slots=True)
class CreateCollection(Statement):
    """``key`` and ``partition_by`` are JSON pointers. ``schema`` is both write and read schema. With a query, a derivation."""

    name: ObjectName
    key: tuple[str, ...]
    schema: str | None = None
    write_schema: str | None = None
    read_schema: str | None = None
    partition_by: tuple[str, ...] = ()
    with_options: tuple[Option, ...] = ()
    query: Query | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ResetCollection(Statement):
    """Starts the collection over; a key or partitions that are not named stay."""

    name: ObjectName
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetCollectionSchema(Statement):
    name: ObjectName
    write_schema: str | None = None
    read_schema: str | None = None
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False
