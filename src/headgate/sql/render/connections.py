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
from headgate.sql.ast.names import (
    block,
    clauses,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.render.values import print_options, print_with_options


def print_create_secret(node: CreateSecret) -> str:
    return words(
        "CREATE SECRET",
        print_if_not_exists(node.if_not_exists),
        print_name(node.name),
        _print_secret_value(node.value),
    )


def print_alter_secret(node: AlterSecret) -> str:
    return words(
        "ALTER SECRET",
        print_if_exists(node.if_exists),
        print_name(node.name),
        _print_secret_value(node.value),
    )


def _print_secret_value(node: SecretValue) -> str:
    match node:
        case SecretText(text):
            return f"AS {print_string(text)}"
        case SecretFromEnv(variable):
            return f"FROM ENV {print_string(variable)}"
        case SecretFromFile(path):
            return f"FROM FILE {print_string(path)}"
        case _:
            assert_never(node)


def print_create_connection(node: CreateConnection) -> str:
    return clauses(
        words("CREATE CONNECTION", print_if_not_exists(node.if_not_exists), print_name(node.name)),
        f"TO {node.kind} {print_options(node.options)}",
        print_with_options(node.with_options),
    )


def print_alter_connection(node: AlterConnection) -> str:
    return clauses(
        words("ALTER CONNECTION", print_if_exists(node.if_exists), print_name(node.name)),
        f"SET {print_options(node.set_options)}" if node.set_options else "",
        f"RESET {block(node.reset_options)}" if node.reset_options else "",
        print_with_options(node.with_options),
    )


def print_validate_connection(node: ValidateConnection) -> str:
    return f"VALIDATE CONNECTION {print_name(node.name)}"
