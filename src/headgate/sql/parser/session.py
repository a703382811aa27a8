"""SET of the session's settings."""

from __future__ import annotations

from headgate.errors import similar_names
from headgate.sql.ast.names import ObjectName, object_name
from headgate.sql.ast.session import SetSearchPath
from headgate.sql.errors import UnknownSetting
from headgate.text.cursor import Cursor, Identifier
from headgate.text.errors import EmptyIdentifier
from headgate.text.lexer import TokenKind, shortened

SYNOPSES = {"SET": "SET search_path {= | TO} {DEFAULT | <schema> [, ...]}"}


def set_(cursor: Cursor) -> SetSearchPath:
    cursor.expect("SET")
    if not cursor.at("SEARCH_PATH"):
        _unknown(cursor)
    cursor.step()
    if not cursor.take("="):
        cursor.expect("TO")
    if cursor.take("DEFAULT"):
        return SetSearchPath(())
    path = [_schema(cursor)]
    while cursor.take(","):
        path.append(_schema(cursor))
    return SetSearchPath(tuple(path))


def _schema(cursor: Cursor) -> ObjectName:
    """The name of a schema; as in PostgreSQL, a string is one too."""
    start = cursor.token.start
    text = cursor.take_string()
    if text is None:
        return object_name(cursor, most=2)
    if not text:
        raise EmptyIdentifier().at(cursor.span_from(start))
    return ObjectName((Identifier(text, quoted=True),), span=cursor.span_from(start))


def _unknown(cursor: Cursor) -> None:
    if cursor.token.kind is not TokenKind.WORD:
        cursor.expecting("search_path")
        raise cursor.unexpected()
    name = cursor.token.value
    raise UnknownSetting(shortened(name), similar_names(name, ("search_path",))).at(cursor.token.span)
