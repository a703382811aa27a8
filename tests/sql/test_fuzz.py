"""Mutated real statements: whatever is done to them, only our own errors come out.

HEADGATE_FUZZ sets how many texts are tried; the seed is printed when one fails.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, strategies as st

from headgate.catalog.store.codec import from_json, to_json
from headgate.errors import HeadgateError
from headgate.sql.redact import redacted_text
from headgate.sql.script import parse_script
from headgate.sql.statement import print_statement
from headgate.text.lexer import tokenize
from tests.sql import golden_files

pytestmark = pytest.mark.unit

COUNT = int(os.environ.get("HEADGATE_FUZZ", "2000"))
CHARACTERS = "'\"`$;()[]{}<>=,.-/*\\ \n\t0aE_é\u00a0\x00\ud800😀"


def mutated(source: random.Random, text: str, words: list[str]) -> str:
    """The text with one to four changes to its characters or its tokens."""
    for _ in range(source.randint(1, 4)):
        change = source.choice([_characters, _characters, _tokens])
        text = change(source, text, words)
    return text


def _characters(source: random.Random, text: str, words: list[str]) -> str:
    at = source.randint(0, len(text))
    until = min(len(text), at + source.randint(0, 3))
    match source.randint(0, 3):
        case 0:
            return text[:at] + text[until:]
        case 1:
            return text[:at] + source.choice(CHARACTERS) + text[until:]
        case 2:
            return text[:at] + text[at:until] * 2 + text[until:]
        case _:
            return text[:at] + chr(source.randint(1, 0x2FFF)) + text[at:]


def _tokens(source: random.Random, text: str, words: list[str]) -> str:
    parts = text.split(" ")
    first, second = source.randrange(len(parts)), source.randrange(len(parts))
    match source.randint(0, 3):
        case 0:
            del parts[first]
        case 1:
            parts.insert(first, parts[second])
        case 2:
            parts[first], parts[second] = parts[second], parts[first]
        case _:
            parts[first] = source.choice(words)
    return " ".join(parts)


def check(text: str) -> None:
    """Read it, and if it can be read, print and store it and read that too. Nothing but our own errors may come."""
    try:
        statements = parse_script(text)
    except HeadgateError as problem:
        _check_error(problem, text)
        return
    for statement in statements:
        again = parse_script(print_statement(statement))
        # A name "policy" gains quotes; everything else is read back as it was.
        assert again == (statement,) or "policy" in text.lower()
        assert [print_statement(one) for one in again] == [print_statement(statement)]
        assert print_statement(from_json(to_json(statement))) == print_statement(statement)


def _check_error(problem: HeadgateError, text: str) -> None:
    assert problem.span is not None
    assert 0 <= problem.span.start <= problem.span.end <= len(text)
    assert problem.diagnostic(redacted_text(text)).render().startswith(f"error {problem.code}: ")


@pytest.mark.timeout(300 + COUNT // 300)
def test_mutated_statements_raise_only_our_own_errors() -> None:
    corpus = golden_files.texts()
    words = sorted({token.value for text in corpus if _has_tokens(text) for token in tokenize(text)})
    seed = random.randrange(2**32)
    source = random.Random(seed)
    for number in range(COUNT):
        text = mutated(source, source.choice(corpus), words)
        try:
            check(text)
        except Exception as problem:
            raise AssertionError(f"seed {seed}, text {number}: {text!r}") from problem


def _has_tokens(text: str) -> bool:
    try:
        return bool(tokenize(text))
    except HeadgateError:
        return False


@given(st.text())
def test_any_text_raises_only_our_own_errors(text: str) -> None:
    check(text)
