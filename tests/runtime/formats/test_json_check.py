"""What is JSON and what is not, and what is said of it."""

from __future__ import annotations

import pytest

from headgate.runtime.formats.json_check import problem_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("text", [b"null", b" 1 ", b"-0", b"1e400", b"[" * 150 + b"]" * 150, b'"\\u0000"'])
def test_json_has_nothing_wrong(text: bytes) -> None:
    assert problem_of(text) is None


@pytest.mark.parametrize(
    "text", [b"NaN", b"[Infinity]", b'{"a": -Infinity}', b"", b"1 2", b"01", b'"\\ud800"']
)
def test_what_only_some_parsers_take_is_no_json(text: bytes) -> None:
    assert str(problem_of(text)).startswith("it is not JSON at line 1 column ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": 1, "\\u0061": 2}', "it has a member twice"),
        (b'"\xff"', "it is not valid UTF-8"),
        (b"[" * 300 + b"]" * 300, "it is nested too deeply"),
    ],
)
def test_the_reason_is_the_true_one(text: bytes, reason: str) -> None:
    assert problem_of(text) == reason
