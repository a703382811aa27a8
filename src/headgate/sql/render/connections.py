"""Secrets and connections."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.connections import (
    AlterConnection,
    AlterSecret,
    CreateConnection,
    CreateSecret,
    SecretFromEnv,
    SecretFromFile,
    SecretText,
    SecretValue,
    ValidateConnection,
)
from headgate.sql.render.values import (
    block,
    clauses,
    if_exists,
    if_not_exists,
    name,
    options,
    string,
    with_options,
    words,
)


def create_secret(node: CreateSecret) -> str:
    return words(
        "CREATE SECRET", if_not_exists(node.if_not_exists), name(node.name), _secret_value(node.value)
    )


def alter_secret(node: AlterSecret) -> str:
    return words("ALTER SECRET", if_exists(node.if_exists), name(node.name), _secret_value(node.value))


def _secret_value(node: SecretValue) -> str:
    match node:
        case SecretText(text):
            return f"AS {string(text)}"
        case SecretFromEnv(variable):
            return f"FROM ENV {string(variable)}"
        case SecretFromFile(path):
            return f"FROM FILE {string(path)}"
        case _:
            assert_never(node)


def create_connection(node: CreateConnection) -> str:
    return clauses(
        words("CREATE CONNECTION", if_not_exists(node.if_not_exists), name(node.name)),
        f"TO {node.kind} {options(node.options)}",
        with_options(node.with_options),
    )


def alter_connection(node: AlterConnection) -> str:
    return clauses(
        words("ALTER CONNECTION", if_exists(node.if_exists), name(node.name)),
        f"SET {options(node.set_options)}" if node.set_options else "",
        f"RESET {block(node.reset_options)}" if node.reset_options else "",
        with_options(node.with_options),
    )


def validate_connection(node: ValidateConnection) -> str:
    return f"VALIDATE CONNECTION {name(node.name)}"
