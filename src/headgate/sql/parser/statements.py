"""Which function reads a statement: found by its leading keywords."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from headgate.errors import similar_names
from headgate.sql.ast.statement import ObjectKind, Statement
from headgate.sql.errors import ReplaceNotSupported, UnknownStatement
from headgate.sql.parser import (
    captures,
    collections,
    comments,
    connections,
    databases,
    drop,
    explain,
    insert,
    materializations,
    queries,
    session,
    show,
    sinks,
    sources,
    streams,
    types,
    views,
)
from headgate.sql.parser.alter import Action, alter, change_state, rename
from headgate.sql.parser.kinds import kind
from headgate.text.cursor import Cursor
from headgate.text.lexer import TokenKind, describe

Parse = Callable[[Cursor], Statement]

CREATE: dict[ObjectKind, Parse] = {
    "DATABASE": databases.create_database,
    "SCHEMA": databases.create_schema,
    "SECRET": connections.create_secret,
    "CONNECTION": connections.create_connection,
    "SOURCE": sources.create_source,
    "TYPE": types.create_type,
    "SINK": sinks.create_sink,
    "SINK POLICY": sinks.create_sink_policy,
    "COLLECTION": collections.create_collection,
    "CAPTURE": captures.create_capture,
    "MATERIALIZATION": materializations.create_materialization,
}
CREATE_OR_REPLACE: dict[ObjectKind, Callable[[Cursor, bool], Statement]] = {
    "VIEW": views.create_view,
    "MATERIALIZED VIEW": views.create_materialized_view,
    "STREAM": streams.create_stream,
    "TABLE": streams.create_table,
}
_STREAM_ACTIONS: tuple[Action, ...] = (sources.accept_schema_change, change_state, rename)
ALTER: dict[ObjectKind, tuple[Action, ...]] = {
    "DATABASE": (rename,),
    "SCHEMA": (rename,),
    "SECRET": (connections.alter_secret, rename),
    "CONNECTION": (connections.alter_connection, rename),
    "SOURCE": (sources.accept_schema_change, rename),
    "TYPE": (rename,),
    "VIEW": (rename,),
    "MATERIALIZED VIEW": (change_state, rename),
    "SINK": (sinks.alter_sink_docs, sinks.alter_sink_from, change_state, rename),
    "SINK POLICY": (sinks.alter_sink_policy, rename),
    "STREAM": _STREAM_ACTIONS,
    "TABLE": _STREAM_ACTIONS,
    "COLLECTION": (collections.reset_collection, collections.set_schema, rename),
    "CAPTURE": (change_state, captures.discover_capture, rename),
    "MATERIALIZATION": (materializations.backfill, change_state, materializations.set_fields, rename),
}


def statement(cursor: Cursor) -> Statement:
    """The statement that begins here, with its place. What follows it is left to the caller."""
    first = cursor.token
    parse = STATEMENTS.get(first.word)
    if parse is None:
        words = tuple(word for word in STATEMENTS if word != "(")
        similar = similar_names(first.value, words) if first.kind is TokenKind.WORD else ()
        raise UnknownStatement(describe(first), words, similar).at(first.span)
    found = parse(cursor)
    return dataclasses.replace(found, span=cursor.span_from(first.start))


def _create(cursor: Cursor) -> Statement:
    cursor.expect("CREATE")
    or_replace = cursor.take("OR REPLACE")
    start = cursor.token
    kind_ = kind(cursor)
    replaceable = CREATE_OR_REPLACE.get(kind_)
    if replaceable is not None:
        return replaceable(cursor, or_replace)
    if or_replace:
        raise ReplaceNotSupported(kind_.lower()).at(start.span)
    return CREATE[kind_](cursor)


def _alter(cursor: Cursor) -> Statement:
    cursor.expect("ALTER")
    kind_ = kind(cursor)
    return alter(cursor, kind_, ALTER[kind_])


def _explain(cursor: Cursor) -> Statement:
    return explain.explain(cursor, statement)


STATEMENTS: dict[str, Parse] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": drop.drop,
    "COMMENT": comments.comment_on,
    "INSERT": insert.insert,
    "SELECT": queries.select,
    "WITH": queries.select,
    "VALUES": queries.select,
    "(": queries.select,
    "SUBSCRIBE": queries.subscribe,
    "SHOW": show.show,
    "DESCRIBE": show.describe,
    "EXPLAIN": _explain,
    "VALIDATE": connections.validate_connection,
    "REPLAY": show.replay_quarantine,
    "SET": session.set_,
}
