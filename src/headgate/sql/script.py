"""The entry of this package: bytes and text in, statements out.

The first words of a statement say which function reads it; the tables below hold those functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from headgate.errors import similar_names
from headgate.sql import (
    captures,
    connections,
    materializations,
    objects,
    queries,
    show,
    sinks,
    sources,
    streams,
    subscribe,
    views,
)
from headgate.sql.errors import EmptyStatement, ReplaceNotSupported, SeveralStatements, UnknownStatement
from headgate.sql.statement import Kind, Statement
from headgate.text.cursor import Cursor
from headgate.text.errors import InvalidUtf8
from headgate.text.lexer import TokenKind, describe_token, tokenize


def decode_source(source: bytes) -> str:
    """Decode a file or request in UTF-8. A byte order mark at its start is dropped."""
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        # Python counts the offset from after the byte order mark.
        mark = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        raise InvalidUtf8(mark + problem.start) from problem


def parse_script(text: str) -> tuple[Statement, ...]:
    """Read all statements of a script, in order. Raises the first error; its span is in the whole script."""
    cursor = Cursor(text, tokenize(text))
    found: list[Statement] = []
    while True:
        while cursor.take(";"):
            pass
        if cursor.token.kind is TokenKind.END:
            return tuple(found)
        found.append(_one_statement(cursor))


def parse_statement(text: str) -> Statement:
    """Read the one statement of the text. The semicolon after it is optional."""
    cursor = Cursor(text, tokenize(text))
    if cursor.at_end():
        raise EmptyStatement().at(cursor.token.span)
    found = _one_statement(cursor)
    while cursor.take(";"):
        pass
    if cursor.token.kind is not TokenKind.END:
        raise SeveralStatements().at(cursor.token.span)
    return found


def _one_statement(cursor: Cursor) -> Statement:
    """Read a statement that must end with a semicolon or with the text."""
    found = read_statement(cursor)
    if not cursor.at_end():
        raise cursor.unexpected()
    return found


Parse = Callable[[Cursor], Statement]

# What follows CREATE and the kind.
CREATE: dict[Kind, Parse] = {
    Kind.DATABASE: objects.create_database,
    Kind.SCHEMA: objects.create_schema,
    Kind.SECRET: connections.create_secret,
    Kind.CONNECTION: connections.create_connection,
    Kind.SOURCE: sources.create_source,
    Kind.TYPE: objects.create_type,
    Kind.SINK: sinks.create_sink,
    Kind.SINK_POLICY: sinks.create_sink_policy,
    Kind.COLLECTION: captures.create_collection,
    Kind.CAPTURE: captures.create_capture,
    Kind.MATERIALIZATION: materializations.create_materialization,
}
# The kinds that can be replaced. Their functions get whether OR REPLACE was written.
CREATE_OR_REPLACE: dict[Kind, Callable[[Cursor, bool], Statement]] = {
    Kind.VIEW: views.create_view,
    Kind.MATERIALIZED_VIEW: views.create_materialized_view,
    Kind.STREAM: streams.create_stream,
    Kind.TABLE: streams.create_table,
}
_STREAM_ACTIONS: tuple[objects.Action, ...] = (sources.accept_schema_change, objects.change_state, objects.rename)
# The actions are tried in this order, and an error lists them in this order.
ALTER: dict[Kind, tuple[objects.Action, ...]] = {
    Kind.DATABASE: (objects.rename,),
    Kind.SCHEMA: (objects.rename,),
    Kind.SECRET: (connections.alter_secret, objects.rename),
    Kind.CONNECTION: (connections.alter_connection, objects.rename),
    Kind.SOURCE: (sources.accept_schema_change, sources.rename_column, objects.rename),
    Kind.TYPE: (objects.rename,),
    Kind.VIEW: (objects.rename,),
    Kind.MATERIALIZED_VIEW: (objects.change_state, objects.rename),
    Kind.SINK: (sinks.alter_sink_docs, sinks.alter_sink_from, objects.change_state, objects.rename),
    Kind.SINK_POLICY: (sinks.alter_sink_policy, objects.rename),
    Kind.STREAM: _STREAM_ACTIONS,
    Kind.TABLE: _STREAM_ACTIONS,
    Kind.COLLECTION: (captures.reset_collection, captures.set_schema, objects.rename),
    Kind.CAPTURE: (objects.change_state, captures.discover_capture, objects.rename),
    Kind.MATERIALIZATION: (
        materializations.backfill,
        objects.change_state,
        materializations.set_fields,
        objects.rename,
    ),
}


def read_statement(cursor: Cursor) -> Statement:
    """Read the statement that begins here and set its span. The caller checks what follows it."""
    first = cursor.token
    parse = STATEMENTS.get(first.word)
    if parse is None:
        words = tuple(word for word in STATEMENTS if word != "(")
        similar = similar_names(first.value, words) if first.kind is TokenKind.WORD else ()
        raise UnknownStatement(describe_token(first), words, similar).at(first.span)
    found = parse(cursor)
    return dataclasses.replace(found, span=cursor.span_from(first.start))


def _create(cursor: Cursor) -> Statement:
    """Read CREATE and go on by the kind."""
    cursor.expect("CREATE")
    or_replace = cursor.take("OR REPLACE")
    start = cursor.token
    kind_ = objects.kind(cursor)
    replaceable = CREATE_OR_REPLACE.get(kind_)
    if replaceable is not None:
        return replaceable(cursor, or_replace)
    if or_replace:
        raise ReplaceNotSupported(kind_.value).at(start.span)
    return CREATE[kind_](cursor)


def _alter(cursor: Cursor) -> Statement:
    """Read ALTER and go on by the kind."""
    cursor.expect("ALTER")
    kind_ = objects.kind(cursor)
    return objects.alter(cursor, kind_, ALTER[kind_])


def _explain(cursor: Cursor) -> Statement:
    return show.explain(cursor, read_statement)


# By the first word. A query may begin with four of them.
STATEMENTS: dict[str, Parse] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": objects.drop,
    "COMMENT": objects.comment_on,
    "INSERT": queries.insert,
    "SELECT": queries.select,
    "WITH": queries.select,
    "VALUES": queries.select,
    "(": queries.select,
    "SUBSCRIBE": subscribe.subscribe,
    "SHOW": show.show,
    "DESCRIBE": show.describe,
    "EXPLAIN": _explain,
    "VALIDATE": connections.validate_connection,
    "REPLAY": show.replay_quarantine,
    "SET": queries.set_,
}
