"""Collections."""

from __future__ import annotations

from headgate.sql.ast.collections import CreateCollection, ResetCollection, SetCollectionSchema
from headgate.sql.ast.names import (
    clauses,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    print_strings,
    words,
)
from headgate.sql.render.values import print_with_options


def print_create_collection(node: CreateCollection) -> str:
    return clauses(
        words("CREATE COLLECTION", print_if_not_exists(node.if_not_exists), print_name(node.name)),
        f"KEY {print_strings(node.key)}",
        f"SCHEMA {print_string(node.schema)}" if node.schema is not None else "",
        f"WRITE SCHEMA {print_string(node.write_schema)}" if node.write_schema is not None else "",
        f"READ SCHEMA {print_string(node.read_schema)}" if node.read_schema is not None else "",
        f"PARTITION BY {print_strings(node.partition_by)}" if node.partition_by else "",
        print_with_options(node.with_options),
        f"AS\n{node.query.text}" if node.query is not None else "",
    )


def print_reset_collection(node: ResetCollection) -> str:
    return words(
        words("ALTER COLLECTION", print_if_exists(node.if_exists), print_name(node.name), "RESET"),
        f"KEY {print_strings(node.key)}" if node.key else "",
        f"PARTITION BY {print_strings(node.partition_by)}" if node.partition_by else "",
        print_with_options(node.with_options),
    )


def print_set_collection_schema(node: SetCollectionSchema) -> str:
    return words(
        words("ALTER COLLECTION", print_if_exists(node.if_exists), print_name(node.name), "SET"),
        f"WRITE SCHEMA {print_string(node.write_schema)}" if node.write_schema is not None else "",
        f"READ SCHEMA {print_string(node.read_schema)}" if node.read_schema is not None else "",
        print_with_options(node.with_options),
    )
