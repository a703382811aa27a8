"""INSERT INTO."""

from __future__ import annotations

from headgate.sql.ast.insert import InsertQuery, InsertValues
from headgate.sql.ast.names import Expression, object_name
from headgate.sql.parser import body
from headgate.text.cursor import Cursor, Identifier

RULES = {"row": "(<expression> [, ...])"}
SYNOPSES = {
    "INSERT VALUES": "INSERT INTO <name> [(<column> [, ...])] VALUES <row> [, ...]",
    "INSERT SELECT": "INSERT INTO <name> [(<column> [, ...])] <query> [EMIT CHANGES]",
}


def insert(cursor: Cursor) -> InsertValues | InsertQuery:
    cursor.expect("INSERT INTO")
    relation = object_name(cursor)
    columns = _columns(cursor)
    if cursor.take("VALUES"):
        rows = [_row(cursor)]
        while cursor.take(","):
            rows.append(_row(cursor))
        return InsertValues(relation, tuple(rows), columns)
    query = body.query(cursor)
    body.take_emit_changes(cursor)
    return InsertQuery(relation, query, columns)


def _columns(cursor: Cursor) -> tuple[Identifier, ...]:
    """A parenthesis before a name holds columns; otherwise it belongs to the query."""
    if cursor.at("(") and cursor.at_name(1):
        return cursor.identifiers()
    cursor.expecting("(")
    return ()


def _row(cursor: Cursor) -> tuple[Expression, ...]:
    cursor.expect("(")
    values = [body.expression(cursor)]
    while cursor.take(","):
        values.append(body.expression(cursor))
    cursor.expect(")")
    return tuple(values)
