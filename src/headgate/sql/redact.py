"""Remove secrets from statements and their text before they are logged, stored as history or shown in an error.

What may be a secret is hidden, also where the statement is wrong: a misspelt PASWORD, a password without quotes.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from typing import TypeVar, cast

from headgate.sql.connections import (
    CONNECTION_OPTIONS,
    AlterConnection,
    AlterSecret,
    CreateConnection,
    CreateSecret,
    SecretText,
)
from headgate.sql.options import Option, StringLiteral
from headgate.sql.statement import Expression, Query
from headgate.text.errors import SqlError
from headgate.text.lexer import Token, TokenKind, tokenize

REDACTED = "********"

_RULES = [rule for table in CONNECTION_OPTIONS.values() for rule in table.rules]
_SENSITIVE = frozenset(rule.name for rule in _RULES if rule.sensitive)
_SENSITIVE_WORDS = frozenset(name.split(" ")[-1] for name in _SENSITIVE)
_HARMLESS_WORDS = frozenset(
    name.split(" ")[-1] for rule in _RULES if not rule.sensitive for name in (rule.name, *rule.aliases)
)
_USERINFO = re.compile(r"(?<=://)[^/\s'\"]*(?=@)")
# In a connection's URL a password may hold a slash that nobody wrote as %2F, and may stand behind the question mark.
_CREDENTIALS = re.compile(
    r"(?<=://)[^?\s'\"]*(?=@)|(?<=password=)[^&\s'\"]+|(?<=secret=)[^&\s'\"]+", re.IGNORECASE
)
_MAY_HOLD_SECRETS = re.compile(r"\b(?:secret|password|connection)\b|://", re.IGNORECASE)
_HIDDEN = re.compile(r"[^\n]")
_ACTIONS = frozenset({"CREATE", "ALTER", "REPLACE"})

Node = TypeVar("Node")


def redacted(statement: Node) -> Node:
    """The statement without the secrets in it. Names of secrets stay."""
    return cast(Node, _redacted(statement))


def _redacted(node: object) -> object:
    match node:
        case CreateSecret(value=SecretText()) | AlterSecret(value=SecretText()):
            return dataclasses.replace(node, value=SecretText(REDACTED))
        case CreateConnection():
            return dataclasses.replace(node, options=_redacted_options(node.options))
        case AlterConnection():
            return dataclasses.replace(node, set_options=_redacted_options(node.set_options))
        case str():
            return _USERINFO.sub(REDACTED, node)
        case tuple():
            return tuple(_redacted(item) for item in node)
        case Query() | Expression():
            return node
        case _ if dataclasses.is_dataclass(node) and not isinstance(node, type):
            return _redacted_fields(node)
        case _:
            return node


def _redacted_fields(node: object) -> object:
    changed = {}
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        new = _redacted(value)
        if field.init and new != value:
            changed[field.name] = new
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def _redacted_options(options: tuple[Option, ...]) -> tuple[Option, ...]:
    return tuple(_redacted_option(option) for option in options)


def _redacted_option(option: Option) -> Option:
    match option:
        case Option(name, StringLiteral()) if name in _SENSITIVE:
            return Option(name, StringLiteral(REDACTED))
        case Option(name, StringLiteral(value)):
            return Option(name, StringLiteral(_CREDENTIALS.sub(REDACTED, value)))
        case _:
            return option


def redacted_text(text: str) -> str:
    """The text of a script with every character of a secret replaced by a star, so that all offsets still hold.

    In text that cannot be split into tokens, everything from the first quote on is hidden if it may hold a secret.
    """
    if not _MAY_HOLD_SECRETS.search(text):
        return text
    try:
        tokens = tokenize(text)
    except SqlError:
        start = min((at for at in map(text.find, "'$") if at >= 0), default=len(text))
        return text[:start] + _HIDDEN.sub("*", text[start:])
    parts: list[str] = []
    end = 0
    for start, stop, shown in _replacements(text, tokens):
        parts += [text[end:start], shown]
        end = stop
    return "".join([*parts, text[end:]])


def _replacements(text: str, tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Spans of secrets in order, each with a replacement of the same length."""
    for statement in _statements(tokens):
        subject = _subject(statement)
        after_as = False
        for index, token in enumerate(statement):
            written = text[token.start : token.end]
            if subject == "SECRET":
                secret = after_as or token.kind is TokenKind.STRING
                after_as = after_as or token.word in ("AS", "=")
            else:
                secret = subject == "CONNECTION" and _may_be_secret(statement, index)
            if secret and token.kind is not TokenKind.SYMBOL:
                yield token.start, token.end, _masked(written)
            elif token.kind is TokenKind.STRING and "://" in written:
                pattern = _CREDENTIALS if subject == "CONNECTION" else _USERINFO
                yield token.start, token.end, pattern.sub(lambda found: "*" * len(found[0]), written)


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
    found: list[Token] = []
    for token in tokens:
        if token.word == ";" or token.kind is TokenKind.END:
            yield found
            found = []
        else:
            found.append(token)


def _subject(statement: list[Token]) -> str:
    """SECRET or CONNECTION if the statement creates or changes one, also behind EXPLAIN CHANGE."""
    for before, token in itertools.pairwise(statement[:6]):
        if before.word in _ACTIONS and token.word in ("SECRET", "CONNECTION"):
            return token.word
    return ""


def _may_be_secret(statement: list[Token], index: int) -> bool:
    """Whether a token is secret: every string except the value of a harmless option, and any token after a sensitive one."""
    token, option = statement[index], _option_before(statement, index)
    if token.kind is TokenKind.STRING:
        return option not in _HARMLESS_WORDS
    return option in _SENSITIVE_WORDS and token.word != "SECRET"


def _option_before(statement: list[Token], index: int) -> str:
    """The last word of the option whose value is here: before =, and for BROKERS before a list."""
    at = index - 1
    while at > 0 and (statement[at].kind is TokenKind.STRING or statement[at].word == ","):
        at -= 1
    in_list = at < index - 1
    if at > 0 and statement[at].word in ("=", "("):
        at -= 1
    if at > 0 and statement[at].word == "=":
        at -= 1
    word = statement[at].word.replace("_", " ").rpartition(" ")[2] if at >= 0 else ""
    return word if not in_list or word == "BROKERS" else ""


def _masked(literal: str) -> str:
    """The literal with only its quotes left."""
    if literal[0] in "'\"`$":
        return literal[0] + _HIDDEN.sub("*", literal[1:-1]) + literal[-1]
    return _HIDDEN.sub("*", literal)
