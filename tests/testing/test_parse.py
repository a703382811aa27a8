"""Every kind of line, and every mistake, with its place."""

from __future__ import annotations

import pytest

from headgate.errors import Diagnostic
from headgate.testing.actions import check_call
from headgate.testing.parse import (
    ActionCall,
    Argument,
    Block,
    Fails,
    Prints,
    Spec,
    SpecFaults,
    Step,
    Succeeds,
    parse_spec,
)

pytestmark = pytest.mark.unit


def _parse(text: str) -> Spec:
    return parse_spec("a.spec", text, check_call)


def _one(text: str) -> Step:
    [step] = _parse(text).steps
    return step


def _faults(text: str) -> list[tuple[int, Diagnostic]]:
    with pytest.raises(SpecFaults) as caught:
        _parse(text)
    return [(fault.line, fault.error.diagnostic()) for fault in caught.value.faults]


def test_comments_and_empty_lines_stand_between_steps() -> None:
    assert _parse("# one\n\n  \n# two\n").steps == ()


def test_a_statement_that_succeeds_has_the_rows_up_to_an_empty_line() -> None:
    assert _one("# first\n> SELECT 1;\n1\n# no comment\n\n# a comment\n") == Succeeds(
        2, "SELECT 1;", Block(3, ("1", "# no comment"))
    )


def test_a_statement_spans_lines_until_its_semicolon_and_may_have_empty_ones() -> None:
    text = "> CREATE VIEW v AS\n\n  SELECT ';' AS \"a;b\" -- ;\n  FROM $$x;\ny$$ /* ; */;\n1 2\n"
    step = _one(text)
    assert isinstance(step, Succeeds)
    assert step.sql.startswith("CREATE VIEW v AS\n\n  SELECT ';'")
    assert step.sql.endswith("y$$ /* ; */;")
    assert step.block == Block(6, ("1 2",))


def test_variables_do_not_hide_the_end_of_a_statement() -> None:
    step = _one("> SELECT * FROM t_${seed}\nWHERE a = '${x};\n';\n1\n")
    assert isinstance(step, Succeeds)
    assert step.sql == "SELECT * FROM t_${seed}\nWHERE a = '${x};\n';"


def test_a_comment_behind_the_semicolon_belongs_to_the_statement() -> None:
    assert _one("> SELECT 1; -- so be it\n1\n") == Succeeds(1, "SELECT 1; -- so be it", Block(2, ("1",)))


def test_a_literal_that_is_never_closed_ends_at_its_first_semicolon() -> None:
    steps = _parse("! SELECT 'abc;\ncode: SQL-0002\n\n> SELECT 'x';\n").steps
    assert steps == (
        Fails(1, "SELECT 'abc;", Block(2, ("code: SQL-0002",))),
        Succeeds(4, "SELECT 'x';", Block(5)),
    )


def test_a_statement_that_must_fail_has_checks() -> None:
    assert _one("! SELECT nope FROM t;\ncontains: nope\nhint: price\ndetail: d\ncode: PLN-0001\n") == Fails(
        1, "SELECT nope FROM t;", Block(2, ("contains: nope", "hint: price", "detail: d", "code: PLN-0001"))
    )


def test_a_statement_that_prints_has_its_text() -> None:
    assert _one("? EXPLAIN SELECT 1;\nfilter\n  ...\n") == Prints(1, "EXPLAIN SELECT 1;", Block(2, ("filter", "  ...")))


def test_an_action_has_words_and_a_body() -> None:
    text = """$ kafka-ingest topic=t-${seed} format=json headers='{"h": "v w"}' timestamp=5\n{"a": 1}\n\n"""
    assert _one(text) == ActionCall(
        1,
        "kafka-ingest",
        (
            Argument("t-${seed}", "topic"),
            Argument("json", "format"),
            Argument('{"h": "v w"}', "headers"),
            Argument("5", "timestamp"),
        ),
        Block(2, ('{"a": 1}',)),
    )


def test_positional_words_keep_their_equals_signs() -> None:
    step = _one('$ http GET /api/rows?limit=5&a=b token="a \\"b\\""\n')
    assert isinstance(step, ActionCall)
    assert step.arguments == (Argument("GET"), Argument("/api/rows?limit=5&a=b"), Argument('a "b"', "token"))


def test_json_without_quotes_is_one_word() -> None:
    step = _one("""$ kafka-ingest topic=t headers=[["h", "a ] b"], ["h", "w"]] repeat=2\n1\n""")
    assert isinstance(step, ActionCall)
    assert [word.value for word in step.arguments] == ["t", '[["h", "a ] b"], ["h", "w"]]', "2"]


def test_formats_stand_on_the_first_line_after_comments() -> None:
    spec = _parse("# matrix\n\nformat: avro, json_sr,protobuf\n\n> SELECT 1;\n")
    assert spec.formats == ("avro", "json_sr", "protobuf")
    assert [step.line for step in spec.steps] == [5]


def test_lines_of_windows_are_read_too() -> None:
    assert _one("> SELECT 1;\r\n1\r\n\r\n") == Succeeds(1, "SELECT 1;", Block(2, ("1",)))


@pytest.mark.parametrize(
    ("text", "line", "code", "message", "hint"),
    [
        ("\nSELECT 1;\n", 2, "CLI-0401", 'begins with "S"', "one of > ! ? $"),
        ("> SELECT 1\n\n> SELECT 2;\n", 1, "CLI-0401", "no end", "semicolon"),
        ("! SELECT 1;\nmentions: x\n", 2, "CLI-0401", "is no check", "contains:"),
        (
            "# c\n\n$ kafka-injest topic=t\n1\n",
            3,
            "CLI-0402",
            '"kafka-injest" does not exist',
            '"kafka-ingest"',
        ),
        ("$ kafka-ingest topic=t fromat=json\n1\n", 1, "CLI-0403", 'no option "fromat"', '"format"'),
        ("$ kafka-ingest format=json\n1\n", 1, "CLI-0404", 'lacks its option "topic"', ""),
        ("$ registry-publish subject=s type=avro\n\n", 1, "CLI-0404", "lacks its body", ""),
        ("$ kafka-create-topic topic=t\nstray\n", 1, "CLI-0404", "takes no body", ""),
        ("$ down\n", 1, "CLI-0404", "one argument", ""),
        ("$ http GET\n", 1, "CLI-0404", "2 arguments", ""),
        ('$ set a="b\n', 1, "CLI-0401", "not closed", '\\"'),
        ("$\n", 1, "CLI-0401", "no name", ""),
        ("format: avro, orc\n", 1, "CLI-0401", '"orc"', "protobuf"),
        ("> SELECT 1;\n\nformat: avro\n", 3, "CLI-0401", "below the first step", "first line"),
    ],
)
def test_a_mistake_is_reported_with_its_line(text: str, line: int, code: str, message: str, hint: str) -> None:
    [(found, diagnostic)] = _faults(text)
    assert (found, diagnostic.code) == (line, code)
    assert message in diagnostic.message
    assert hint in (diagnostic.hint or "")


def test_all_mistakes_of_a_file_are_reported_at_once() -> None:
    assert [line for line, _ in _faults("$ dwon kafka\n\n> SELECT 1;\n\n$ up\n")] == [1, 5]
