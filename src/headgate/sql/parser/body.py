"""Where a query or an expression ends. It is not read here, only measured: brackets are counted, so that ten thousand
of them cost no stack."""

from __future__ import annotations

from headgate.sql.ast.names import Expression, Query
from headgate.sql.errors import UnclosedBracket, UnopenedBracket
from headgate.text.cursor import Cursor
from headgate.text.lexer import Token, TokenKind

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_MARKS = _CLOSING | {";", "EMIT"}
_NOTHING: frozenset[str] = frozenset()
_PARTITION = frozenset({"PARTITION"})
_ITEM_ENDS = frozenset({",", ")"})
STARTS = ("SELECT", "WITH", "VALUES", "(")


def query(cursor: Cursor, *, before_partition_by: bool = False) -> Query:
    """The query that begins here and ends with the statement, or before EMIT CHANGES, or before an outer PARTITION BY."""
    if not at_query(cursor):
        raise cursor.unexpected()
    first = _skip(cursor, stop_at=_PARTITION if before_partition_by else _NOTHING)
    span = cursor.span_from(cursor.tokens[first].start)
    return Query(cursor.text[span.start : span.end], span=span)


def at_query(cursor: Cursor) -> bool:
    if cursor.token.word in STARTS:
        return True
    for start in STARTS[:3]:
        cursor.expecting(start)
    return False


def expression(cursor: Cursor) -> Expression:
    """The expression that begins here and ends before a comma, a closing bracket, EMIT CHANGES or the statement's end."""
    first = _skip(cursor, stop_at=_ITEM_ENDS)
    if cursor.index == first:
        cursor.expecting("an expression")
        raise cursor.unexpected()
    span = cursor.span_from(cursor.tokens[first].start)
    return Expression(cursor.text[span.start : span.end], span=span)


def take_emit_changes(cursor: Cursor) -> bool:
    return cursor.take("EMIT CHANGES")


def _skip(cursor: Cursor, stop_at: frozenset[str]) -> int:
    """Step over all that belongs to the body; the index of its first token.

    Outside of brackets it ends with the statement, at EMIT CHANGES and at the given words. One tight loop: a body of
    a megabyte has hundreds of thousands of tokens.
    """
    tokens = cursor.tokens
    first = index = cursor.index
    open_: list[Token] = []
    while True:
        word = tokens[index].word
        if word in _OPENING:
            open_.append(tokens[index])
        elif word in _MARKS or word in stop_at:
            if open_ and word in _CLOSING:
                _close(open_, tokens[index])
            elif _ends(tokens, index, stop_at, open_):
                break
        elif not word and tokens[index].kind is TokenKind.END:
            _refuse_open(open_)
            break
        index += 1
    cursor.index = index
    return first


def _ends(tokens: list[Token], index: int, stop_at: frozenset[str], open_: list[Token]) -> bool:
    """Whether the body ends at this token, which is one of those that may end it."""
    word = tokens[index].word
    if word == ";":
        _refuse_open(open_)
        return True
    if open_:
        return False
    if word in _CLOSING and word not in stop_at:
        raise UnopenedBracket(word).at(tokens[index].span)
    if word == "EMIT":
        return _at_emit_changes(tokens, index)
    return word != "PARTITION" or tokens[index + 1].word == "BY"


def _at_emit_changes(tokens: list[Token], index: int) -> bool:
    """EMIT CHANGES is only the clause where nothing but the statement's end or LIMIT follows; otherwise names."""
    if tokens[index + 1].word != "CHANGES":
        return False
    after = tokens[index + 2]
    return after.kind is TokenKind.END or after.word in (";", "LIMIT")


def _refuse_open(open_: list[Token]) -> None:
    if open_:
        raise UnclosedBracket(open_[-1].word).at(open_[-1].span)


def _close(open_: list[Token], token: Token) -> None:
    opened = open_.pop()
    if _OPENING[opened.word] != token.word:
        raise UnclosedBracket(opened.word).at(opened.span)
