"""CREATE and ALTER COLLECTION."""

from __future__ import annotations

from headgate.sql.ast.collections import CreateCollection, ResetCollection, SetCollectionSchema
from headgate.sql.ast.names import object_name
from headgate.sql.errors import RepeatedClause
from headgate.sql.parser import body
from headgate.sql.parser.alter import Target
from headgate.sql.parser.clauses import CHANGE_OPTIONS, ON_ERROR, if_not_exists, strings
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind
from headgate.sql.parser.values import with_options
from headgate.text.cursor import Cursor

COLLECTION_OPTIONS = OptionTable(
    "the collection", (ON_ERROR, OptionRule("COMPLEXITY LIMIT", ValueKind.INTEGER))
)

TABLES = {"collection option": COLLECTION_OPTIONS}
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
    options = with_options(cursor, COLLECTION_OPTIONS)
    query = body.query(cursor) if cursor.take("AS") else None
    if query is not None:
        body.take_emit_changes(cursor)
    return CreateCollection(name, key, schema, write, read, partition_by, options, query, exists)


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
    options = with_options(cursor, CHANGE_OPTIONS)
    return ResetCollection(target.name, key, partition_by, options, target.if_exists)


def set_schema(cursor: Cursor, target: Target) -> SetCollectionSchema | None:
    if not cursor.take("SET"):
        return None
    write, read = _schemas(cursor)
    if write is None and read is None:
        raise cursor.unexpected()
    return SetCollectionSchema(
        target.name, write, read, with_options(cursor, CHANGE_OPTIONS), target.if_exists
    )
