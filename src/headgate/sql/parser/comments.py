"""COMMENT ON."""

from __future__ import annotations

from headgate.sql.ast.comments import CommentOn
from headgate.sql.ast.names import column_name, object_name
from headgate.sql.parser.kinds import kind
from headgate.text.cursor import Cursor

SYNOPSES = {"COMMENT ON": "COMMENT ON {COLUMN <name>.<column> | <kind> <name>} IS {<string> | NULL}"}


def comment_on(cursor: Cursor) -> CommentOn:
    cursor.expect("COMMENT ON")
    if cursor.take("COLUMN"):
        column = column_name(cursor)
        return CommentOn("COLUMN", column, _comment(cursor))
    kind_ = kind(cursor)
    name = object_name(cursor)
    return CommentOn(kind_, name, _comment(cursor))


def _comment(cursor: Cursor) -> str | None:
    cursor.expect("IS")
    return None if cursor.take("NULL") else cursor.string()
