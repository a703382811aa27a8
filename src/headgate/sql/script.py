"""The doors of the front end: bytes and text in, statements out."""

from __future__ import annotations

from headgate.errors import Span
from headgate.sql.ast.statement import Statement
from headgate.sql.errors import EmptyStatement, SeveralStatements
from headgate.sql.parser.statements import statement
from headgate.text.cursor import Cursor
from headgate.text.errors import InvalidUtf8
from headgate.text.lexer import Token, TokenKind, tokenize


def decode_source(source: bytes) -> str:
    """The text of a file or request in UTF-8; a byte order mark at its start is not part of it."""
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        # Python counts from behind the byte order mark.
        mark = 3 if source.startswith(b"\xef\xbb\xbf") else 0
        raise InvalidUtf8(mark + problem.start) from problem


def parse_script(text: str) -> tuple[Statement, ...]:
    """All statements of a script, in order. The first error ends it and points at its place in the whole script."""
    cursor = Cursor(text, tokenize(text))
    found: list[Statement] = []
    while True:
        while cursor.take(";"):
            pass
        if cursor.token.kind is TokenKind.END:
            return tuple(found)
        found.append(_one(cursor))


def parse_statement(text: str) -> Statement:
    """The one statement of the text; a semicolon after it may be left out."""
    cursor = Cursor(text, tokenize(text))
    if cursor.at_end():
        raise EmptyStatement().at(cursor.token.span)
    found = _one(cursor)
    while cursor.take(";"):
        pass
    if cursor.token.kind is not TokenKind.END:
        raise SeveralStatements().at(cursor.token.span)
    return found


def statement_spans(text: str) -> tuple[Span, ...]:
    """Where the statements of a script are, without their semicolons and without reading them: for shells and editors."""
    spans: list[Span] = []
    first: Token | None = None
    last: Token | None = None
    for token in tokenize(text):
        if token.word == ";" or token.kind is TokenKind.END:
            if first is not None and last is not None:
                spans.append(Span(first.start, last.end))
            first = None
        else:
            first, last = first or token, token
    return tuple(spans)


def _one(cursor: Cursor) -> Statement:
    found = statement(cursor)
    if not cursor.at_end():
        raise cursor.unexpected()
    return found
