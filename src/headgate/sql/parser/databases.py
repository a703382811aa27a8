"""CREATE DATABASE and CREATE SCHEMA."""

from __future__ import annotations

from headgate.sql.ast.databases import CreateDatabase, CreateSchema
from headgate.sql.ast.names import object_name
from headgate.sql.parser.clauses import if_not_exists
from headgate.text.cursor import Cursor

SYNOPSES = {
    "CREATE DATABASE": "CREATE DATABASE [IF NOT EXISTS] <database>",
    "CREATE SCHEMA": "CREATE SCHEMA [IF NOT EXISTS] <schema>",
    "ALTER DATABASE": "ALTER DATABASE [IF EXISTS] <database> RENAME TO <new name>",
    "ALTER SCHEMA": "ALTER SCHEMA [IF EXISTS] <schema> RENAME TO <new name>",
}


def create_database(cursor: Cursor) -> CreateDatabase:
    exists = if_not_exists(cursor)
    return CreateDatabase(object_name(cursor, most=1), exists)


def create_schema(cursor: Cursor) -> CreateSchema:
    exists = if_not_exists(cursor)
    return CreateSchema(object_name(cursor, most=2), exists)
