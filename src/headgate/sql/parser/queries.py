"""Queries as statements, and SUBSCRIBE."""

from __future__ import annotations

from headgate.sql.ast.names import object_name
from headgate.sql.ast.queries import Select, Subscribe
from headgate.sql.parser import body
from headgate.text.cursor import Cursor

SYNOPSES = {
    "SELECT": "<query> [EMIT CHANGES [LIMIT <number>]]",
    "SUBSCRIBE": "SUBSCRIBE [TO] <name>",
}


def select(cursor: Cursor) -> Select:
    query = body.query(cursor)
    emit = body.take_emit_changes(cursor)
    return Select(query, emit, cursor.whole_number() if emit and cursor.take("LIMIT") else None)


def subscribe(cursor: Cursor) -> Subscribe:
    cursor.expect("SUBSCRIBE")
    if cursor.at("TO") and cursor.at_name(1):
        cursor.step()
    return Subscribe(object_name(cursor))
