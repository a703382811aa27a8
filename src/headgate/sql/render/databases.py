"""Databases and schemas."""

from __future__ import annotations

from headgate.sql.ast.databases import CreateDatabase, CreateSchema
from headgate.sql.render.values import if_not_exists, name, words


def create_database(node: CreateDatabase) -> str:
    return words("CREATE DATABASE", if_not_exists(node.if_not_exists), name(node.name))


def create_schema(node: CreateSchema) -> str:
    return words("CREATE SCHEMA", if_not_exists(node.if_not_exists), name(node.name))
