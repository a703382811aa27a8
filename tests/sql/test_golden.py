"""Each statement, its printed form, and its errors with carets."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.sql import errors
from headgate.sql.script import parse_script
from headgate.text import errors as text_errors
from headgate.text.errors import SqlError
from tests.sql import golden_files
from tests.sql.strategies import STATEMENTS

pytestmark = pytest.mark.unit

# Not provoked by a script, or by a text that cannot be shown; test_lexer.py and test_limits.py have them.
ELSEWHERE = {"SQL-0106", "SQL-0108", "SQL-0210", "SQL-0211", "SQL-0212", "SQL-0301"}


@pytest.mark.parametrize("path", golden_files.files(), ids=lambda path: path.stem)
def test_statements_are_printed_and_errors_drawn_as_the_file_says(path: Path) -> None:
    if os.environ.get("HEADGATE_REWRITE"):
        golden_files.write(path)
    cases = golden_files.read(path)
    assert [case.found() for case in cases] == [case.expected for case in cases]


@pytest.mark.parametrize("path", golden_files.files(), ids=lambda path: path.stem)
def test_the_printed_form_is_its_own_printed_form(path: Path) -> None:
    printed = [case.expected for case in golden_files.read(path) if not case.expected.startswith("error ")]
    assert [golden_files.Case(text, "").found() for text in printed] == printed


def test_every_statement_is_in_a_golden_file() -> None:
    seen = {type(statement) for text in golden_files.texts() for statement in _statements(text)}
    assert set(STATEMENTS) == seen


def test_every_error_of_the_front_end_is_in_a_golden_file() -> None:
    codes = {
        cls.code
        for cls in {**vars(errors), **vars(text_errors)}.values()
        if isinstance(cls, type) and issubclass(cls, SqlError) and cls.code < "SQL-04"  # the others are of queries
    }
    seen = {code for text in golden_files.texts() if (code := _code(text))}
    assert codes - {""} - ELSEWHERE <= seen


def test_every_error_has_its_own_code() -> None:
    classes = [
        c
        for c in {**vars(errors), **vars(text_errors)}.values()
        if isinstance(c, type) and issubclass(c, SqlError) and c.code
    ]
    assert len({cls.code for cls in classes}) == len(classes)


def _statements(text: str) -> tuple[object, ...]:
    return () if _code(text) else parse_script(text)


def _code(text: str) -> str | None:
    problem = _problem(text)
    return None if problem is None else problem.code


def _problem(text: str) -> HeadgateError | None:
    try:
        parse_script(text)
    except HeadgateError as problem:
        return problem
    return None


@pytest.mark.parametrize("path", golden_files.files(), ids=lambda path: path.stem)
def test_every_error_survives_a_process_border(path: Path) -> None:
    for case in golden_files.read(path):
        problem = _problem(case.text)
        if problem is not None:
            assert pickle.loads(pickle.dumps(problem)).diagnostic(case.text) == problem.diagnostic(case.text)
