"""EXPLAIN, EXPLAIN … SCHEMA and EXPLAIN CHANGE."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from headgate.sql.ast.explain import (
    Explain,
    ExplainChange,
    ExplainObject,
    ExplainSchema,
    ExplainSubjectChange,
)
from headgate.sql.ast.names import object_name
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.ast.statement import Statement
from headgate.sql.errors import NotExplainable
from headgate.sql.parser.body import STARTS
from headgate.sql.parser.formats import side
from headgate.sql.parser.kinds import kind
from headgate.sql.parser.sinks import create_sink
from headgate.text.cursor import Cursor

SYNOPSES = {
    "EXPLAIN": "EXPLAIN {<query> | <create statement> | <insert statement> | <kind> <name>}",
    "EXPLAIN SCHEMA": "EXPLAIN {KEY | VALUE} SCHEMA [AS JSON] FOR {SINK <name> | <create sink statement>}",
    "EXPLAIN CHANGE": (
        "EXPLAIN CHANGE {<alter statement> | <create or replace statement> | SUBJECT <string> TO <string>}"
    ),
}

ParseStatement = Callable[[Cursor], Statement]


def explain(cursor: Cursor, statement: ParseStatement) -> Statement:
    """``statement`` reads what is explained, where that is a statement."""
    cursor.expect("EXPLAIN")
    if cursor.at("KEY", "SCHEMA") or cursor.at("VALUE", "SCHEMA"):
        return _schema(cursor)
    if cursor.take("CHANGE"):
        return _change(cursor, statement)
    if cursor.token.word in (*STARTS, "CREATE", "INSERT"):
        return Explain(statement(cursor))
    for start in ("SELECT", "CREATE", "INSERT", "KEY SCHEMA", "VALUE SCHEMA"):
        cursor.expecting(start)
    return ExplainObject(kind(cursor), object_name(cursor))


def _schema(cursor: Cursor) -> ExplainSchema:
    of = side(cursor)
    cursor.expect("SCHEMA")
    cursor.take("AS JSON")
    cursor.expect("FOR")
    if cursor.take("SINK"):
        return ExplainSchema(of, object_name(cursor))
    return ExplainSchema(of, _create_sink(cursor))


def _create_sink(cursor: Cursor) -> CreateSink:
    start = cursor.token.start
    cursor.expect("CREATE SINK")
    sink = create_sink(cursor)
    return dataclasses.replace(sink, span=cursor.span_from(start))


def _change(cursor: Cursor, statement: ParseStatement) -> Statement:
    if cursor.take("SUBJECT"):
        subject = cursor.string()
        cursor.expect("TO")
        return ExplainSubjectChange(subject, cursor.string())
    first = cursor.token
    if not (cursor.at("ALTER") or cursor.at("CREATE", "OR", "REPLACE")):
        expected = "an ALTER, a CREATE OR REPLACE or SUBJECT"
        raise NotExplainable("EXPLAIN CHANGE", expected).at(first.span)
    return ExplainChange(statement(cursor))
