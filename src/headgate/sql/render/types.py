"""Types."""

from __future__ import annotations

from typing import assert_never

from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.sql.ast.types import CreateType, ListBody, MapBody, OtherBody, RecordBody, TypeBody, TypeField
from headgate.sql.render.values import block, identifier, if_not_exists, name, words


def create_type(node: CreateType) -> str:
    return words("CREATE TYPE", if_not_exists(node.if_not_exists), name(node.name), "AS", _body(node.body))


def type_(node: Type) -> str:
    """A type as it stands in a statement: with all that it says, so that nothing is lost on the way back."""
    return print_type(node, full=True)


def _body(node: TypeBody) -> str:
    match node:
        case RecordBody(fields):
            return block([_field(field) for field in fields])
        case ListBody(element):
            return f"LIST (ELEMENT TYPE = {type_(element)})"
        case MapBody(value):
            return f"MAP (VALUE TYPE = {type_(value)})"
        case OtherBody(other):
            return type_(other)
        case _:
            assert_never(node)


def _field(node: TypeField) -> str:
    return words(identifier(node.name), type_(node.type), "" if node.nullable else "NOT NULL")
