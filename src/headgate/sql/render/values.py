"""Names, literals, options and lists of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from headgate.sql.ast.names import Expression, block, print_name, print_string
from headgate.sql.ast.values import (
    BooleanLiteral,
    Choice,
    ListLiteral,
    MapLiteral,
    NumberLiteral,
    Option,
    SecretReference,
    StringLiteral,
    Value,
)


def print_value(node: Value) -> str:
    match node:
        case StringLiteral(text):
            return print_string(text)
        case NumberLiteral(text) | Choice(text) | Expression(text):
            return text
        case BooleanLiteral(truth):
            return "TRUE" if truth else "FALSE"
        case SecretReference(secret):
            return f"SECRET {print_name(secret)}"
        case ListLiteral(items):
            return "(" + ", ".join([print_value(item) for item in items]) + ")"
        case MapLiteral(entries):
            return print_map(entries)
        case _:
            assert_never(node)


def print_map(entries: Iterable[tuple[str, str]]) -> str:
    return "MAP[" + ", ".join([f"{print_string(key)} => {print_string(text)}" for key, text in entries]) + "]"


def print_option(node: Option) -> str:
    return f"{node.name} = {print_value(node.value)}"


def print_options(nodes: Iterable[Option]) -> str:
    return block([print_option(node) for node in nodes])


def print_with_options(nodes: tuple[Option, ...]) -> str:
    """``WITH (…)``, or nothing."""
    return f"WITH {print_options(nodes)}" if nodes else ""
