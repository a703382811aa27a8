"""Scripts, single statements, and names."""

from __future__ import annotations

import pytest

from headgate.errors import HeadgateError, Span
from headgate.sql.errors import EmptyStatement, SeveralStatements
from headgate.sql.grammar import all_rules, all_synopses
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.show import Describe
from headgate.sql.statement import Kind, ObjectName, print_statement
from headgate.sql.subscribe import Subscribe
from headgate.sql.views import CreateView
from headgate.text.cursor import RESERVED, Identifier

pytestmark = pytest.mark.unit

SCRIPT = "SHOW TABLES;\n-- a ; b\nSELECT ';' ;; /* ; */\nDESCRIBE t"


def keywords() -> set[str]:
    texts = [*all_synopses().values(), *all_rules().values(), *(kind.words for kind in Kind)]
    return {
        word
        for text in texts
        for word in text.replace("(", " ").replace("{", " ").split()
        if word.isalpha() and word.isupper()
    }


def test_a_script_is_split_at_semicolons_outside_of_strings_and_comments() -> None:
    found = parse_script(SCRIPT)
    assert [print_statement(statement) for statement in found] == [
        "SHOW TABLES;",
        "SELECT ';';",
        "DESCRIBE t;",
    ]
    assert [SCRIPT[s.span.start : s.span.end] for s in found] == ["SHOW TABLES", "SELECT ';'", "DESCRIBE t"]


def test_an_error_in_a_script_points_at_its_line() -> None:
    text = "SHOW TABLES;\n\nSHOW\n  TABLS;"
    with pytest.raises(HeadgateError) as caught:
        parse_script(text)
    assert caught.value.diagnostic(text).line == 4
    assert caught.value.diagnostic(text).column == 3


def test_one_statement_may_end_with_semicolons() -> None:
    assert parse_statement("SUBSCRIBE TO v ;; -- done") == Subscribe(ObjectName((Identifier("v"),)))


@pytest.mark.parametrize("text", ["", " -- nothing", ";"])
def test_no_statement_where_one_is_needed_is_an_error(text: str) -> None:
    with pytest.raises(EmptyStatement):
        parse_statement(text)


def test_two_statements_where_one_is_needed_are_an_error() -> None:
    with pytest.raises(SeveralStatements) as caught:
        parse_statement("SHOW TABLES; SHOW VIEWS")
    assert caught.value.span == Span(13, 17)


def test_a_query_body_is_an_exact_slice_of_the_text() -> None:
    text = "CREATE VIEW v AS\n  SELECT  a, -- one\n  'b;'  FROM t -- end\n;"
    found = parse_statement(text)
    assert isinstance(found, CreateView)
    assert found.query.text == "SELECT  a, -- one\n  'b;'  FROM t"
    assert text[found.query.span.start : found.query.span.end] == found.query.text


def test_names_keep_their_case_and_their_quotes() -> None:
    found = parse_statement('DESCRIBE Db."Sch".`Tbl`')
    parts = (Identifier("Db"), Identifier("Sch", quoted=True), Identifier("Tbl", quoted=True))
    assert found == Describe(ObjectName(parts))
    assert found != parse_statement("DESCRIBE Db.Sch.Tbl")


@pytest.mark.parametrize("quote", ['"', "`"])
def test_every_keyword_can_be_a_name_when_quoted(quote: str) -> None:
    for word in sorted(keywords() | RESERVED):
        name = f"{quote}{word}{quote}"
        text = f"CREATE SOURCE {name}.{name} ({name}) FROM KAFKA CONNECTION {name} (TOPIC 't') FORMAT TEXT INCLUDE KEY AS {name}"
        assert parse_statement(print_statement(parse_statement(text))) == parse_statement(text)


def test_every_keyword_but_the_reserved_ones_can_be_a_name_without_quotes() -> None:
    for word in sorted(keywords() - RESERVED):
        text = (
            f"CREATE SOURCE {word} ({word}) FROM KAFKA CONNECTION {word} (TOPIC 't') FORMAT TEXT INCLUDE KEY AS {word}"
        )
        assert parse_statement(text).span == Span(0, len(text))
