"""Databases and schemas."""

from __future__ import annotations

from headgate.sql.ast.databases import CreateDatabase, CreateSchema
from headgate.sql.ast.names import print_if_not_exists, print_name, words


def print_create_database(node: CreateDatabase) -> str:
    return words("CREATE DATABASE", print_if_not_exists(node.if_not_exists), print_name(node.name))


def print_create_schema(node: CreateSchema) -> str:
    return words("CREATE SCHEMA", print_if_not_exists(node.if_not_exists), print_name(node.name))
