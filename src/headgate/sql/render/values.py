"""Names, literals, options and lists of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from headgate.schema.names import force_quotes, quote_literal
from headgate.sql.ast.names import Expression, ObjectName
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
from headgate.text.cursor import Identifier

_LINE = 80  # a list that is longer gets a line for each item


def identifier(node: Identifier) -> str:
    # A sink called policy must not be read as a sink policy.
    return force_quotes(node.name) if node.quoted or node.name.upper() == "POLICY" else node.name


def name(node: ObjectName) -> str:
    return ".".join([identifier(part) for part in node.parts])


def identifiers(nodes: Iterable[Identifier]) -> str:
    return "(" + ", ".join([identifier(node) for node in nodes]) + ")"


def string(text: str) -> str:
    return quote_literal(text)


def strings(texts: Iterable[str]) -> str:
    return "(" + ", ".join([string(text) for text in texts]) + ")"


def value(node: Value) -> str:
    match node:
        case StringLiteral(text):
            return string(text)
        case NumberLiteral(text) | Choice(text) | Expression(text):
            return text
        case BooleanLiteral(truth):
            return "TRUE" if truth else "FALSE"
        case SecretReference(secret):
            return f"SECRET {name(secret)}"
        case ListLiteral(items):
            return "(" + ", ".join([value(item) for item in items]) + ")"
        case MapLiteral(entries):
            return map_(entries)
        case _:
            assert_never(node)


def map_(entries: Iterable[tuple[str, str]]) -> str:
    return "MAP[" + ", ".join([f"{string(key)} => {string(text)}" for key, text in entries]) + "]"


def option(node: Option) -> str:
    return f"{node.name} = {value(node.value)}"


def block(items: Iterable[str]) -> str:
    """Items in parentheses: on one line if they fit, otherwise each on its own."""
    listed = list(items)
    line = ", ".join(listed)
    if len(line) <= _LINE and "\n" not in line:
        return f"({line})"
    indented = ",\n".join([f"    {item}" for item in listed])
    return f"(\n{indented}\n)"


def options(nodes: Iterable[Option]) -> str:
    return block([option(node) for node in nodes])


def with_options(nodes: tuple[Option, ...]) -> str:
    """``WITH (…)``, or nothing."""
    return f"WITH {options(nodes)}" if nodes else ""


def clauses(*lines: str) -> str:
    """The clauses of a statement, one per line; those that are empty are left out."""
    return "\n".join([line for line in lines if line])


def words(*parts: str) -> str:
    """The words of one clause; those that are empty are left out."""
    return " ".join([part for part in parts if part])


def if_not_exists(flag: bool) -> str:
    return "IF NOT EXISTS" if flag else ""


def if_exists(flag: bool) -> str:
    return "IF EXISTS" if flag else ""
