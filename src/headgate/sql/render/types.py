"""Types."""

from __future__ import annotations

from typing import assert_never

from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.sql.ast.names import block, print_identifier, print_if_not_exists, print_name, words
from headgate.sql.ast.types import CreateType, ListBody, MapBody, OtherBody, RecordBody, TypeBody, TypeField


def print_create_type(node: CreateType) -> str:
    return words(
        "CREATE TYPE",
        print_if_not_exists(node.if_not_exists),
        print_name(node.name),
        "AS",
        _print_body(node.body),
    )


def print_full_type(node: Type) -> str:
    """A type as it stands in a statement: with all that it says, so that nothing is lost on the way back."""
    return print_type(node, full=True)


def _print_body(node: TypeBody) -> str:
    match node:
        case RecordBody(fields):
            return block([_print_field(field) for field in fields])
        case ListBody(element):
            return f"LIST (ELEMENT TYPE = {print_full_type(element)})"
        case MapBody(value):
            return f"MAP (VALUE TYPE = {print_full_type(value)})"
        case OtherBody(other):
            return print_full_type(other)
        case _:
            assert_never(node)


def _print_field(node: TypeField) -> str:
    return words(print_identifier(node.name), print_full_type(node.type), "" if node.nullable else "NOT NULL")
