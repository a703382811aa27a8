"""CREATE TYPE."""

from __future__ import annotations

from headgate.schema.types import Text, Type
from headgate.sql.ast.names import object_name
from headgate.sql.ast.types import CreateType, ListBody, MapBody, OtherBody, RecordBody, TypeBody, TypeField
from headgate.sql.errors import MapKeyNotText
from headgate.sql.parser.clauses import column_type, if_not_exists
from headgate.text.cursor import Cursor

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
    return CreateType(name, _body(cursor), exists)


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
