"""Secrets taken out of statements and their text, before either is logged, stored as history or shown in an error."""

from __future__ import annotations

import dataclasses
import re

from headgate.sql.ast.connections import (
    AlterConnection,
    AlterSecret,
    CreateConnection,
    CreateSecret,
    SecretText,
)
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option, StringLiteral
from headgate.sql.errors import SqlError
from headgate.sql.lexer import tokenize
from headgate.sql.parser.connections import CONNECTION_OPTIONS
from headgate.sql.tokens import Token, TokenKind

REDACTED = "********"

_SENSITIVE = frozenset(
    rule.name for table in CONNECTION_OPTIONS.values() for rule in table.rules if rule.sensitive
)
_LAST_WORDS = frozenset(name.split(" ")[-1] for name in _SENSITIVE)
_USERINFO = re.compile(r"(?<=://)[^/@\s]*(?=@)")
_MAY_HOLD_SECRETS = re.compile(r"\b(?:secret|password|connection)\b", re.IGNORECASE)
_HIDDEN = re.compile(r"[^\n]")


def redacted(statement: Statement) -> Statement:
    """The statement without the secrets that are written out in it. Names of secrets stay."""
    match statement:
        case CreateSecret(value=SecretText()) | AlterSecret(value=SecretText()):
            return dataclasses.replace(statement, value=SecretText(REDACTED))
        case CreateConnection():
            return dataclasses.replace(statement, options=_redacted_options(statement.options))
        case AlterConnection():
            return dataclasses.replace(statement, set_options=_redacted_options(statement.set_options))
        case _:
            return statement


def redacted_text(text: str) -> str:
    """The text of a script with its secrets starred out, character by character, so that all places still hold.

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
    for token in _strings_of_secrets(tokens):
        parts += [text[end : token.start], _masked(text[token.start : token.end])]
        end = token.end
    return "".join([*parts, text[end:]])


def _redacted_options(options: tuple[Option, ...]) -> tuple[Option, ...]:
    return tuple(_redacted_option(option) for option in options)


def _redacted_option(option: Option) -> Option:
    match option:
        case Option(name, StringLiteral()) if name in _SENSITIVE:
            return Option(name, StringLiteral(REDACTED))
        case Option("URL" as name, StringLiteral(url)):
            return Option(name, StringLiteral(_USERINFO.sub(REDACTED, url)))
        case _:
            return option


def _strings_of_secrets(tokens: list[Token]) -> list[Token]:
    """String tokens in CREATE and ALTER SECRET, and in CONNECTION statements those after a sensitive option or URL."""
    found: list[Token] = []
    first = 0
    for index, token in enumerate(tokens):
        if token.word == ";":
            first = index + 1
        elif token.kind is TokenKind.STRING:
            subject = tokens[first + 1].word if first + 1 < len(tokens) else ""
            before = tokens[index - 2] if tokens[index - 1].word == "=" else tokens[index - 1]
            if subject == "SECRET" or (subject == "CONNECTION" and before.word in (_LAST_WORDS | {"URL"})):
                found.append(token)
    return found


def _masked(literal: str) -> str:
    """The literal with only its quotes left; of a URL, only what is before the @ is hidden."""
    if "://" in literal:
        return _USERINFO.sub(lambda found: "*" * len(found[0]), literal)
    return literal[0] + _HIDDEN.sub("*", literal[1:-1]) + literal[-1]
