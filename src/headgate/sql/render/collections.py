"""Collections."""

from __future__ import annotations

from headgate.sql.ast.collections import CreateCollection, ResetCollection, SetCollectionSchema
from headgate.sql.render.values import (
    clauses,
    if_exists,
    if_not_exists,
    name,
    string,
    strings,
    with_options,
    words,
)


def create_collection(node: CreateCollection) -> str:
    return clauses(
        words("CREATE COLLECTION", if_not_exists(node.if_not_exists), name(node.name)),
        f"KEY {strings(node.key)}",
        f"SCHEMA {string(node.schema)}" if node.schema is not None else "",
        f"WRITE SCHEMA {string(node.write_schema)}" if node.write_schema is not None else "",
        f"READ SCHEMA {string(node.read_schema)}" if node.read_schema is not None else "",
        f"PARTITION BY {strings(node.partition_by)}" if node.partition_by else "",
        with_options(node.with_options),
        f"AS\n{node.query.text}" if node.query is not None else "",
    )


def reset_collection(node: ResetCollection) -> str:
    return words(
        words("ALTER COLLECTION", if_exists(node.if_exists), name(node.name), "RESET"),
        f"KEY {strings(node.key)}" if node.key else "",
        f"PARTITION BY {strings(node.partition_by)}" if node.partition_by else "",
        with_options(node.with_options),
    )


def set_collection_schema(node: SetCollectionSchema) -> str:
    return words(
        words("ALTER COLLECTION", if_exists(node.if_exists), name(node.name), "SET"),
        f"WRITE SCHEMA {string(node.write_schema)}" if node.write_schema is not None else "",
        f"READ SCHEMA {string(node.read_schema)}" if node.read_schema is not None else "",
        with_options(node.with_options),
    )
