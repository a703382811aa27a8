"""Fields inside JSON documents: found by pointers, cast exactly, and told by path where they do not fit."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from headgate.runtime.json_fields import JsonField, values_of
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit

pytestmark = pytest.mark.unit


def value(document: str, type_: t.Type, *tokens: str, nullable: bool = False, as_text: bool = False) -> object:
    (found,) = values_of(document, [JsonField(tokens or ("a",), type_, nullable, as_text)])
    return found


def failure(document: str | None, type_: t.Type, *tokens: str, nullable: bool = False) -> ValueDoesNotFit:
    with pytest.raises(ValueDoesNotFit) as raised:
        values_of(document, [JsonField(tokens or ("a",), type_, nullable)])
    return raised.value


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("1", t.Bigint(), 1),
        ("1.0", t.Bigint(), 1),
        ("1e3", t.Bigint(), 1000),
        ("9223372036854775807", t.Bigint(), 2**63 - 1),
        ("-9223372036854775808.0", t.Bigint(), -(2**63)),
        ("9007199254740993", t.Bigint(), 9007199254740993),
        ("9007199254740993", t.Text(), "9007199254740993"),
        ("1.10", t.Text(), "1.10"),
        ("true", t.Text(), "true"),
        ("1.10", t.Decimal(10, 2), Decimal("1.10")),
        ("0.1", t.Double(), 0.1),
        ("-0.0", t.Double(), -0.0),
        ("5e-324", t.Double(), 5e-324),
        ('"x"', t.Text(), "x"),
        ("false", t.Boolean(), False),
        ('"2026-11-15"', t.Date(), dt.date(2026, 11, 15)),
        ("[1, 2.0]", t.Array(t.Bigint()), [1, 2]),
        ("[1.50, true]", t.Array(t.Text()), ["1.50", "true"]),
    ],
)
def test_a_value_keeps_what_the_text_says(text: str, type_: t.Type, expected: object) -> None:
    found = value(f'{{"a": {text}}}', type_)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1.5", t.Bigint()),
        ("9223372036854775808", t.Bigint()),
        ("1e999999999", t.Bigint()),
        ("2147483648", t.Integer()),
        ("1e400", t.Double()),
        ('"1"', t.Bigint()),
        ('"1"', t.Double()),
        ("1", t.Boolean()),
        ('"true"', t.Boolean()),
        ("1.005", t.Decimal(8, 2)),
        ('{"b": 1}', t.Text()),
        ("[1]", t.Text()),
        ("1", t.Array(t.Bigint())),
        ('[1, "x"]', t.Array(t.Bigint())),
        ('"a\\u0000b"', t.Text()),
        ('["a\\u0000b"]', t.Array(t.Text())),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_its_path(text: str, type_: t.Type) -> None:
    error = failure(f'{{"a": {text}}}', type_)
    assert error.path.startswith("$.a")


@pytest.mark.parametrize("document", ['{"a": null}', "{}", "[]", "1", None])
def test_a_missing_value_is_null_where_that_is_allowed(document: str | None) -> None:
    assert values_of(document, [JsonField(("a",), t.Bigint(), nullable=True)]) == [None]
    assert failure(document, t.Bigint()).reason == "it is missing or null"


def test_a_value_may_be_missing_with_the_object_around_it() -> None:
    field = JsonField(("o", "x"), t.Bigint(), nullable=False, optional=(("o",),))
    assert values_of('{"o": null}', [field]) == [None]
    assert values_of("{}", [field]) == [None]
    with pytest.raises(ValueDoesNotFit):
        values_of('{"o": {}}', [field])


def test_pointers_lead_through_objects_and_arrays() -> None:
    assert value('{"a": [{"b/c": 7}]}', t.Bigint(), "a", "0", "b/c") == 7
    assert value('{"a": [1]}', t.Bigint(), "a", "1", nullable=True) is None


def test_json_keeps_every_digit_and_refuses_what_the_database_has_not() -> None:
    assert (
        value('{"a": {"x": 1.10, "y": 12345678901234567890}}', t.Json(), as_text=True)
        == '{"x":1.10,"y":12345678901234567890}'
    )
    assert value('{"a": "\\\\u0000"}', t.Json(), as_text=True) == '"\\\\u0000"'
    with pytest.raises(ValueDoesNotFit):
        value('{"a": "\\u0000"}', t.Json(), as_text=True)


def test_a_text_that_is_not_json_is_told() -> None:
    assert failure('{"a": 1} x', t.Bigint()).reason == "it is not JSON"


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_whole_number_of_64_bits_survives(number: int) -> None:
    assert value(f'{{"a": {number}}}', t.Bigint()) == number
    assert value(f'{{"a": {number}}}', t.Text()) == str(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_double_survives(number: float) -> None:
    assert value(json.dumps({"a": number}), t.Double()) == number


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_every_text_without_nul_survives(text: str) -> None:
    assert value(json.dumps({"a": text}), t.Text()) == text
