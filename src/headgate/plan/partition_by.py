"""PARTITION BY of CREATE STREAM … AS: which columns of the query it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from headgate.plan.reading import ROWKEY
from headgate.resolve.streams import find_name
from headgate.sql.statement import Expression, Query
from headgate.text.cursor import Identifier
from headgate.text.lexer import Token, TokenKind, tokenize

Words: TypeAlias = tuple[tuple[TokenKind, str], ...]


def partition_columns(query: Query, given: Sequence[Expression], names: Sequence[str]) -> tuple[str, ...]:
    """The column of each expression: the one that it names, or the one that the query computes by the same expression.
    ROWKEY stands for any other expression. PARTITION BY NULL gives no columns."""
    written = [_tokens(expression.text) for expression in given]
    if [[token.word for token in tokens] for tokens in written] == [["NULL"]]:
        return ()
    items = dict(_items(query))
    return tuple(_column(tokens, list(names), items) or ROWKEY for tokens in written)


def _column(tokens: Sequence[Token], names: list[str], items: dict[Words, Identifier]) -> str | None:
    if len(tokens) == 1 and (found := find_name(_identifier(tokens[0]), names)) is not None:
        return found
    computed = items.get(_words(tokens))
    return None if computed is None else find_name(computed, names)


def _items(query: Query) -> Iterator[tuple[Words, Identifier]]:
    """The expressions of the first SELECT, as words, with the names of their columns."""
    depth, item, tokens = 0, list[Token](), _tokens(query.text)
    if not tokens or tokens[0].word != "SELECT":
        return
    for token in tokens[1:]:
        depth += (token.word in _OPENING) - (token.word in _CLOSING)
        if depth == 0 and token.word in (",", "FROM"):
            if len(item) > 1 and item[-1].kind in (TokenKind.WORD, TokenKind.QUOTED):
                end = -2 if item[-2].word == "AS" else -1
                yield _words(item[:end]), _identifier(item[-1])
            item = []
            if token.word == "FROM":
                return
        else:
            item.append(token)


_OPENING, _CLOSING = ("(", "["), (")", "]")


def _tokens(text: str) -> list[Token]:
    return [token for token in tokenize(text) if token.kind is not TokenKind.END]


def _words(tokens: Sequence[Token]) -> Words:
    """What two equal expressions have in common, however they are spaced and whatever the case of their words."""
    return tuple((token.kind, token.word or token.value) for token in tokens)


def _identifier(token: Token) -> Identifier:
    return Identifier(token.value, quoted=token.kind is TokenKind.QUOTED)
