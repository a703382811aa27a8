"""Tokens and their places."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.errors import HeadgateError, Span
from headgate.sql.script import decode_source
from headgate.text.errors import (
    InvalidEscape,
    InvalidUtf8,
    NulCharacter,
    SqlError,
    UnexpectedCharacter,
    UnterminatedComment,
    UnterminatedDollarQuote,
    UnterminatedIdentifier,
    UnterminatedString,
)
from headgate.text.lexer import TokenKind, tokenize

pytestmark = pytest.mark.unit


def values(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.value) for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('"a""b"', "QUOTED", 'a"b'),
        ("`a``b`", "QUOTED", "a`b"),
        ("''", "STRING", ""),
        ("'it''s'", "STRING", "it's"),
        ("'back\\slash'", "STRING", "back\\slash"),
        (r"E'\b\f\n\r\t\\\'\q'", "STRING", "\b\f\n\r\t\\'q"),
        (r"e'\x41\101\u00e9\U0001F600'", "STRING", "AAé😀"),
        (r"E'\ud83d\ude00'", "STRING", "😀"),
        ("$$it's$$", "STRING", "it's"),
        ("$a$ $$ $b$ $a$", "STRING", " $$ $b$ "),
        ("$ä$x$ä$", "STRING", "x"),
        ("1", "NUMBER", "1"),
        ("1.5e-3", "NUMBER", "1.5e-3"),
        (".5", "NUMBER", ".5"),
        ("10L", "NUMBER", "10L"),
        ("a$1_ü", "WORD", "a$1_ü"),
        ("->>", "SYMBOL", "->>"),
        ("$12", "SYMBOL", "$12"),
    ],
)
def test_a_token_has_its_kind_and_content(text: str, kind: str, value: str) -> None:
    assert values(text) == [(kind, value)]


def test_blanks_and_nested_comments_are_no_tokens() -> None:
    assert values("a -- b\n/* c /* d */ ' */ e\t\r\n\f\v") == [("WORD", "a"), ("WORD", "e")]


def test_operators_are_split_at_the_longest() -> None:
    assert [v for _, v in values("a::b->c->>d=>e<=>f||g!=h")] == [
        "a",
        "::",
        "b",
        "->",
        "c",
        "->>",
        "d",
        "=>",
        "e",
        "<=>",
        "f",
        "||",
        "g",
        "!=",
        "h",
    ]


def test_keywords_are_folded_in_ascii_only() -> None:
    assert [token.word for token in tokenize("Select ın claß")] == ["SELECT", "ın", "claß", ""]


@pytest.mark.parametrize(
    ("text", "problem", "start", "end"),
    [
        ("a 'b''", UnterminatedString, 2, 3),
        (r"a E'b\'", UnterminatedString, 2, 4),
        ('a "b""', UnterminatedIdentifier, 2, 3),
        ("a `b", UnterminatedIdentifier, 2, 3),
        ("a /* b /* c */", UnterminatedComment, 2, 4),
        ("a $x$ b $y$", UnterminatedDollarQuote, 2, 5),
        ("a\u00a0b", UnexpectedCharacter, 1, 2),
        ("a \\ b", UnexpectedCharacter, 2, 3),
        ("a $ b", UnexpectedCharacter, 2, 3),
        ("a\ud800", UnexpectedCharacter, 1, 2),
        ("'a\x00b'", NulCharacter, 2, 3),
        (r"E'ab\u12'", InvalidEscape, 4, 6),
        (r"E'\000'", InvalidEscape, 2, 6),
        (r"E'\UFFFFFFFF'", InvalidEscape, 2, 12),
        (r"E'\ud800x'", InvalidEscape, 2, 8),
    ],
)
def test_an_error_points_at_what_is_wrong(text: str, problem: type[SqlError], start: int, end: int) -> None:
    with pytest.raises(problem) as caught:
        tokenize(text)
    assert caught.value.span == Span(start, end)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_tokens_lie_in_order_and_between_them_is_nothing_but_blanks_and_comments(text: str) -> None:
    try:
        tokens = tokenize(text)
    except HeadgateError as problem:
        _assert_within(problem.span, text)
        return
    end = 0
    for token in tokens:
        between = text[end : token.start]
        assert between.strip(" \t\r\n\f\v") == "" or "--" in between or "/*" in between
        assert token.kind is TokenKind.END or token.end > token.start
        end = token.end
    assert end == len(text)


def _assert_within(span: Span | None, text: str) -> None:
    assert span is not None
    assert 0 <= span.start < span.end <= len(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_any_text_can_be_quoted(text: str) -> None:
    assert values("'" + text.replace("'", "''") + "'") == [("STRING", text)]


def test_bytes_are_decoded_and_a_byte_order_mark_is_left_out() -> None:
    assert decode_source("\ufeffSELECT 'ä'".encode()) == "SELECT 'ä'"


@pytest.mark.parametrize(("source", "offset"), [(b"ab\xffc", 2), (b"\xef\xbb\xbfab\xc3", 5), (b"\xed\xa0\x80", 0)])
def test_invalid_utf8_is_refused_with_the_place_of_the_byte(source: bytes, offset: int) -> None:
    with pytest.raises(InvalidUtf8) as caught:
        decode_source(source)
    assert caught.value.offset == offset
