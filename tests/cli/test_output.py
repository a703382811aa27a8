from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headgate.cli.main import exit_status
from headgate.cli.output import PAGE_ROWS, print_answer, print_diagnostic
from headgate.errors import Diagnostic, ErrorGroup, InternalError
from headgate.serve.errors import EngineNotRunning
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, Notice, Progress, Rows
from headgate.sql.errors import EmptyStatement

pytestmark = pytest.mark.unit

WRONG = Diagnostic("CAT-0101", 'view "v" does not exist', hint='Did you mean "w"?', line=1, column=3, excerpt="1 | v")
NUMBERS = Columns((Column("n", "bigint"), Column("s", "text")))


def _events(*events: Event) -> Iterator[Event]:
    yield from events


def test_a_result_is_a_table_with_its_count(capsys: pytest.CaptureFixture[str]) -> None:
    answered = print_answer(_events(NUMBERS, Rows(((1, "a"), (10, None))), Done("SELECT 2")), "table")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["n   s", "--  ------", " 1  a", "10  <null>", "(2 rows)", ""]
    assert (shown.err, answered.status, answered.changed) == ("", 0, False)


def test_a_result_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(_events(NUMBERS, Done("SELECT 0")), "table")
    assert capsys.readouterr().out.splitlines() == ["n  s", "-  -", "(0 rows)", ""]


def test_a_long_result_is_printed_page_by_page_under_one_header(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(tuple((n, "x") for n in range(PAGE_ROWS)))
    print_answer(_events(NUMBERS, rows, rows, Rows(((1, "y"),)), Done("SELECT")), "table")
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("n ") for line in lines) == 1
    assert lines[-2] == f"({2 * PAGE_ROWS + 1} rows)"


def test_tags_go_out_and_notices_and_errors_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    events = _events(Notice("look here"), Done("CREATE VIEW"), Progress("half", 3), Failed(WRONG))
    answered = print_answer(events, "table")
    shown = capsys.readouterr()
    assert shown.out == "CREATE VIEW\n"
    assert shown.err.splitlines() == ["notice: look here", *WRONG.render().splitlines()]
    assert (answered.status, answered.changed) == (13, True)


def test_control_characters_in_data_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    row = (1, "\x1b]0;title\x07\x9b31m\ttab\nline")
    print_answer(_events(NUMBERS, Rows((row,)), Done("SELECT 1")), "table")
    out = capsys.readouterr().out
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in out)
    assert "\\x1b]0;title\\x07\\x9b31m\\x09tab" in out


def test_json_is_one_document_per_statement(capsys: pytest.CaptureFixture[str]) -> None:
    events = _events(Notice("a"), Done("CREATE VIEW"), NUMBERS, Rows(((1, "é"),)), Rows(((2, None),)), Done("SELECT 2"))
    print_answer(events, "json")
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"notices": ["a"], "tag": "CREATE VIEW"}
    assert second == {
        "columns": [{"name": "n", "type": "bigint"}, {"name": "s", "type": "text"}],
        "rows": [[1, "é"], [2, None]],
        "notices": [],
        "tag": "SELECT 2",
    }


def test_json_of_a_result_that_breaks_off_is_whole_and_has_the_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answered = print_answer(_events(NUMBERS, Rows(((1, "a"),)), Failed(WRONG)), "json")
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["error"]["code"], answered.status) == ([[1, "a"]], "CAT-0101", 13)


def test_an_error_before_any_answer_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_diagnostic(WRONG, "json")
    assert json.loads(capsys.readouterr().out)["error"]["message"] == 'view "v" does not exist'


def test_the_exit_status_tells_the_family() -> None:
    assert exit_status(EmptyStatement()) == 10
    assert exit_status(EngineNotRunning("p")) == 18
    assert exit_status(InternalError("x")) == 1
    assert exit_status(ErrorGroup((EmptyStatement(), EngineNotRunning("p")))) == 10
