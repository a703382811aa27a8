"""CREATE and ALTER COLLECTION."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.sql.errors import RepeatedClause
from headgate.sql.objects import Target
from headgate.sql.options import ChangeOptions, OnError, Options, option, print_with_options, with_options
from headgate.sql.queries import read_query, take_emit_changes
from headgate.sql.statement import (
    Alter,
    Create,
    Kind,
    Query,
    clauses,
    if_not_exists,
    object_name,
    print_string,
    print_strings,
    strings,
    words,
)
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class CollectionOptions(Options):
    owner: ClassVar[str] = "the collection"
    on_error: OnError = option("HALT", aliases=("ON INVALID",))
    complexity_limit: int | None = option()


@dataclass(frozen=True, slots=True)
class CreateCollection(Create):
    """``key`` and ``partition_by`` are JSON pointers. ``schema`` is both the write and the read schema.

    With a query it is a derivation.
    """

    kind = Kind.COLLECTION
    key: tuple[str, ...]
    schema: str | None = None
    write_schema: str | None = None
    read_schema: str | None = None
    partition_by: tuple[str, ...] = ()
    with_options: CollectionOptions = CollectionOptions()
    query: Query | None = None

    def sql(self) -> str:
        return clauses(
            self.head(),
            f"KEY {print_strings(self.key)}",
            f"SCHEMA {print_string(self.schema)}" if self.schema is not None else "",
            f"WRITE SCHEMA {print_string(self.write_schema)}" if self.write_schema is not None else "",
            f"READ SCHEMA {print_string(self.read_schema)}" if self.read_schema is not None else "",
            f"PARTITION BY {print_strings(self.partition_by)}" if self.partition_by else "",
            print_with_options(self.with_options),
            f"AS\n{self.query.text}" if self.query is not None else "",
        )


@dataclass(frozen=True, slots=True)
class ResetCollection(Alter):
    """Empties the collection and starts it again. A key or partitioning that is not named stays."""

    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    with_options: ChangeOptions = ChangeOptions()

    def sql(self) -> str:
        return words(
            f"{self.head()} RESET",
            f"KEY {print_strings(self.key)}" if self.key else "",
            f"PARTITION BY {print_strings(self.partition_by)}" if self.partition_by else "",
            print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class SetCollectionSchema(Alter):
    write_schema: str | None = None
    read_schema: str | None = None
    with_options: ChangeOptions = ChangeOptions()

    def sql(self) -> str:
        return words(
            f"{self.head()} SET",
            f"WRITE SCHEMA {print_string(self.write_schema)}" if self.write_schema is not None else "",
            f"READ SCHEMA {print_string(self.read_schema)}" if self.read_schema is not None else "",
            print_with_options(self.with_options),
        )


OPTION_LISTS: dict[str, type[Options]] = {"collection option": CollectionOptions}
SYNOPSES = {
    "CREATE COLLECTION": (
        "CREATE COLLECTION [IF NOT EXISTS] <name> KEY (<pointer> [, ...])"
        " [SCHEMA <string> | WRITE SCHEMA <string> READ SCHEMA <string>] [PARTITION BY (<pointer> [, ...])]"
        " [WITH (<collection option> [, ...])] [AS <query> [EMIT CHANGES]]"
    ),
    "ALTER COLLECTION": (
        "ALTER COLLECTION [IF EXISTS] <name> {RESET [KEY (<pointer> [, ...])] [PARTITION BY (<pointer> [, ...])]"
        " [WITH (<change option>)]"
        " | SET {WRITE SCHEMA <string> | READ SCHEMA <string>} [WITH (<change option>)] | RENAME TO <new name>}"
    ),
}


def create_collection(cursor: Cursor) -> CreateCollection:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("KEY")
    key = strings(cursor)
    schema = cursor.string() if cursor.take("SCHEMA") else None
    write, read = (None, None) if schema is not None else _schemas(cursor)
    partition_by = strings(cursor) if cursor.take("PARTITION BY") else ()
    options = with_options(cursor, CollectionOptions)
    query = read_query(cursor) if cursor.take("AS") else None
    if query is not None:
        take_emit_changes(cursor)
    return CreateCollection(name, key, schema, write, read, partition_by, options, query, if_not_exists=exists)


def _schemas(cursor: Cursor) -> tuple[str | None, str | None]:
    """``[WRITE SCHEMA '…'] [READ SCHEMA '…']`` in any order."""
    found: dict[str, str] = {}
    while True:
        start = cursor.token
        which = cursor.choose("WRITE SCHEMA", "READ SCHEMA")
        if which is None:
            return found.get("WRITE SCHEMA"), found.get("READ SCHEMA")
        if which in found:
            raise RepeatedClause(which).at(start.span)
        found[which] = cursor.string()


def reset_collection(cursor: Cursor, target: Target) -> ResetCollection | None:
    if not cursor.take("RESET"):
        return None
    key = strings(cursor) if cursor.take("KEY") else ()
    partition_by = strings(cursor) if cursor.take("PARTITION BY") else ()
    change = with_options(cursor, ChangeOptions)
    return ResetCollection(target.kind, target.name, key, partition_by, change, if_exists=target.if_exists)


def set_schema(cursor: Cursor, target: Target) -> SetCollectionSchema | None:
    if not cursor.take("SET"):
        return None
    write, read = _schemas(cursor)
    if write is None and read is None:
        raise cursor.unexpected()
    change = with_options(cursor, ChangeOptions)
    return SetCollectionSchema(target.kind, target.name, write, read, change, if_exists=target.if_exists)
