"""CREATE TYPE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate.schema.render import print_type
from headgate.schema.types import Text, Type
from headgate.sql.errors import MapKeyNotText
from headgate.sql.statement import (
    Create,
    Kind,
    block,
    column_type,
    if_not_exists,
    object_name,
    print_identifier,
    words,
)
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class TypeField:
    name: Identifier
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class RecordBody:
    fields: tuple[TypeField, ...]


@dataclass(frozen=True, slots=True)
class ListBody:
    element: Type


@dataclass(frozen=True, slots=True)
class MapBody:
    """A map. Its keys are always text."""

    value: Type


@dataclass(frozen=True, slots=True)
class OtherBody:
    """Another name for a type that is written out: an enum, a decimal, an array."""

    type: Type


TypeBody: TypeAlias = RecordBody | ListBody | MapBody | OtherBody


@dataclass(frozen=True, slots=True)
class CreateType(Create):
    kind = Kind.TYPE
    body: TypeBody

    def sql(self) -> str:
        return words(self.head(), "AS", _print_body(self.body))


SYNOPSES = {
    "CREATE TYPE": (
        "CREATE TYPE [IF NOT EXISTS] <name> AS {(<column> <type> [NOT NULL] [, ...])"
        " | LIST (ELEMENT TYPE = <type>) | MAP ([KEY TYPE = text,] VALUE TYPE = <type>) | <type>}"
    ),
    "ALTER TYPE": "ALTER TYPE [IF EXISTS] <name> RENAME TO <new name>",
}


def create_type(cursor: Cursor) -> CreateType:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("AS")
    return CreateType(name, _body(cursor), if_not_exists=exists)


def _body(cursor: Cursor) -> TypeBody:
    if cursor.take("("):
        return _record(cursor)
    if cursor.at("LIST", "("):
        cursor.expect("LIST (")
        element = _named_type(cursor, "ELEMENT TYPE")
        cursor.expect(")")
        return ListBody(element)
    if cursor.at("MAP", "("):
        cursor.expect("MAP (")
        return _map(cursor)
    return OtherBody(column_type(cursor))


def _record(cursor: Cursor) -> RecordBody:
    fields = [_field(cursor)]
    while cursor.take(","):
        fields.append(_field(cursor))
    cursor.expect(")")
    return RecordBody(tuple(fields))


def _field(cursor: Cursor) -> TypeField:
    name = cursor.identifier()
    type_ = column_type(cursor)
    return TypeField(name, type_, not cursor.take("NOT NULL"))


def _map(cursor: Cursor) -> MapBody:
    if cursor.at("KEY", "TYPE"):
        start = cursor.token.start
        if _named_type(cursor, "KEY TYPE") != Text():
            raise MapKeyNotText().at(cursor.span_from(start))
        cursor.expect(",")
    value = _named_type(cursor, "VALUE TYPE")
    cursor.expect(")")
    return MapBody(value)


def _named_type(cursor: Cursor, name: str) -> Type:
    cursor.expect(name)
    cursor.take("=")
    return column_type(cursor)


def print_full_type(node: Type) -> str:
    """Print a type with its names and docs, so that reading it gives the same type."""
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
