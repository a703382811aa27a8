"""Patterns of FORMAT REGEX: their groups, and what is no pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from headgate.plan.encodings import encodings
from headgate.plan.errors import CsvWithoutColumns, DelimiterNotOneCharacter, FormatColumnTwice, PatternWithoutGroups
from headgate.schema.encodings import CsvEncoding, Encoding, RegexEncoding
from headgate.schema.errors import MalformedPattern
from headgate.schema.formats.regex import group_pattern, read_pattern
from headgate.sql.script import parse_statement
from headgate.sql.sources import CreateSource
from tests.laws import examples

pytestmark = pytest.mark.unit


def side(format_: str) -> Encoding:
    statement = parse_statement(f"CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') FORMAT {format_}")
    assert isinstance(statement, CreateSource)
    return encodings(statement.formats)[0]


@pytest.mark.parametrize(
    ("pattern", "java", "names"),
    [
        (r"(?<id_name>a)(?P<b>c)(d)", r"(a)(c)(d)", ("id_name", "b", None)),
        (
            r"(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i:g)(?i)(h)",
            r"(?:a)(?=b)(?!c)(?<=d)(?<!e)(?>f)(?i:g)(?i)(h)",
            (None,),
        ),
        (r"\((a)\)[(]\Q((\E[[a-z]&&[^(]]", r"\((a)\)[(]\Q((\E[[a-z]&&[^(]]", (None,)),
        (r"(?<q>['\"]).*\k<q>(?P=q)\1", r"(['\"]).*\1\1\1", ("q",)),
        (r"(\p{L}+)\h\R\z", r"(\p{L}+)\h\R\z", (None,)),
        (r"(a{2,3})[]x](b)", r"(a{2,3})[]x](b)", (None, None)),
    ],
)
def test_groups_are_found_and_named(pattern: str, java: str, names: tuple[str | None, ...]) -> None:
    found = read_pattern(pattern)
    assert (found.java, found.names) == (java, names)


@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "[a", "a{,3}", "a{x}", "*a", "(?#x)(a)", "(?(1)a|b)", r"(a)\2", r"(?P=n)", "a\\", "[z-a]", "(?x) (a)", r"(a)\U", "a**"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(MalformedPattern):
        read_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "unsure"),
    [("(a)(b)+", ()), ("(a)?", (1,)), ("(a)|(b)", (1, 2)), ("(?:(a)(b?))*", (1, 2)), ("((a)|b)", (1, 2)), ("(?!(a))(b)", (1,)), ("(a){0,2}", (1,))],
)  # fmt: skip
def test_groups_that_may_be_left_out_are_marked(pattern: str, unsure: tuple[int, ...]) -> None:
    assert tuple(n for n, mark in enumerate(group_pattern(pattern).marks, 1) if mark is not None) == unsure


PIECES = st.sampled_from(["(a)", "(b)?", "(a|b)", "(?:(a)|b)", "(a*)", "((a)|(b))*", ".", "b", "(?:a(b)?)+"])


@given(st.lists(PIECES, min_size=1, max_size=4).map("".join), st.text("ab", min_size=1, max_size=5))
@examples(400)
def test_marks_tell_which_groups_took_part(pattern: str, text: str) -> None:
    """Python's engine and Java's agree on such patterns; that Java does too is tested with Spark."""
    plain, told = re.compile(pattern).search(text), group_pattern(pattern)
    found = re.compile(told.java).search(text)
    assert (plain is None) == (found is None)
    if plain is None or found is None:
        return
    for number, (group, marks) in enumerate(zip(told.groups, told.marks, strict=True), 1):
        assert found[group] == plain[number]
        took_part = marks is None or any(found[mark] for mark in marks)
        assert took_part == (plain[number] is not None)


def test_columns_of_csv_are_numbered_or_named() -> None:
    assert side("CSV WITH 2 COLUMNS") == CsvEncoding(("column1", "column2"))
    assert side("CSV WITH HEADER (a, \"B\") DELIMITED BY '|'") == CsvEncoding(("a", "B"), "|")
    assert side("REGEX '(?<n>x)(y)'") == RegexEncoding("(x)(y)", ("n", "column2"))


def test_what_is_wrong_with_a_format_is_told() -> None:
    for format_, error in (
        ("CSV", CsvWithoutColumns),
        ("CSV WITH 0 COLUMNS", CsvWithoutColumns),
        ("CSV WITH HEADER (a, a)", FormatColumnTwice),
        ("CSV WITH 2 COLUMNS DELIMITED BY ''", DelimiterNotOneCharacter),
        ("CSV WITH 2 COLUMNS DELIMITED BY '\"'", DelimiterNotOneCharacter),
        ("REGEX 'a'", PatternWithoutGroups),
        ("REGEX '(?<column2>a)(b)'", FormatColumnTwice),
        ("REGEX '('", MalformedPattern),
    ):
        with pytest.raises(error):
            side(format_)
