"""Large and deep statements: linear time, no overflow of the stack."""

from __future__ import annotations

import time

import pytest

from headgate.errors import HeadgateError
from headgate.sql.errors import NestedTooDeep, UnclosedBracket
from headgate.sql.materializations import MAX_DEPTH
from headgate.sql.queries import Select
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.statement import Query, print_statement
from headgate.text.errors import UnterminatedString
from tests.sql import golden_files

pytestmark = pytest.mark.unit

MEGABYTE = 1_000_000
FIELDS = "CREATE MATERIALIZATION m FROM r INTO ON DEMAND FIELDS "


@pytest.mark.parametrize("depth", [500, 10_000])
def test_deep_parentheses_of_a_query_are_counted_not_followed(depth: int) -> None:
    body = "SELECT " + "(" * depth + "1" + ")" * depth
    assert parse_statement(body) == Select(Query(body))


@pytest.mark.parametrize("depth", [500, 10_000])
def test_deep_parentheses_that_are_not_closed_point_at_the_innermost(depth: int) -> None:
    with pytest.raises(UnclosedBracket) as caught:
        parse_statement("SELECT " + "(" * depth)
    assert caught.value.span is not None
    assert caught.value.span.start == len("SELECT ") + depth - 1


def test_objects_nest_up_to_a_limit() -> None:
    def nested(depth: int) -> str:
        return FIELDS + "(a OBJECT " * depth + "(b text)" + ")" * depth

    deepest = parse_statement(nested(MAX_DEPTH - 1))
    assert parse_statement(print_statement(deepest)) == deepest
    for depth in (MAX_DEPTH, 10_000):
        with pytest.raises(NestedTooDeep):
            parse_statement(nested(depth))


@pytest.mark.parametrize("opening", ["array<", "record(a ", "map<text, "])
def test_types_nest_up_to_a_limit(opening: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_statement(f"CREATE TYPE t AS (a {opening * 10_000}")
    assert caught.value.code.startswith("SCH-")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(f"c{i}" for i in range(MEGABYTE // 8)),
        "SELECT '" + "x" * MEGABYTE + "'",
        "SELECT " + "(" * (MEGABYTE // 10) + ")" * (MEGABYTE // 10),
        "COMMENT ON VIEW v IS '" + "it''s " * (MEGABYTE // 6) + "'",
        "/* " + "/* */" * (MEGABYTE // 5) + " */ SHOW TABLES",
        "INSERT INTO n VALUES " + ", ".join(["(1, 'a')"] * (MEGABYTE // 50)),
        FIELDS + "(" + ", ".join(f"c{i} text" for i in range(MEGABYTE // 60)) + ")",
        "SHOW TABLES;" * (MEGABYTE // 60),
    ],
    ids=["tokens", "string", "parentheses", "escapes", "comment", "rows", "fields", "statements"],
)
def test_up_to_a_megabyte_is_read_and_printed_in_time_that_grows_with_its_length(text: str) -> None:
    # Generous: the machine may be busy. What is not linear takes minutes.
    started = time.process_time()
    printed = [print_statement(statement) for statement in parse_script(text)]
    assert sum(map(len, printed)) > 0
    assert time.process_time() - started < 8


@pytest.mark.parametrize("text", ["SELECT '" + "''" * MEGABYTE, "SELECT " + "/* */" * 1000 + "'"])
def test_a_megabyte_with_an_error_is_refused_as_quickly(text: str) -> None:
    started = time.process_time()
    with pytest.raises(UnterminatedString):
        parse_script(text)
    assert time.process_time() - started < 4


def test_an_error_never_prints_a_megabyte() -> None:
    text = "SHOW " + "x" * MEGABYTE
    with pytest.raises(HeadgateError) as caught:
        parse_statement(text)
    assert len(caught.value.diagnostic(text).render()) < 2_000


def test_a_statement_is_read_and_printed_in_milliseconds() -> None:
    statements = [case.text for path in golden_files.files() for case in golden_files.read(path) if _good(case)]
    count = sum(len(parse_script(text)) for text in statements)
    started = time.process_time()
    for text in statements:
        for statement in parse_script(text):
            print_statement(statement)
    assert (time.process_time() - started) / count < 0.002


def _good(case: golden_files.Case) -> bool:
    return not case.expected.startswith("error ")
