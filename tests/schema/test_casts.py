"""JSON values to values of a type: exact or refused, and never shown."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid

import pytest
from hypothesis import given, strategies as st

from headgate.schema.errors import UnresolvedType, ValueDoesNotFit
from headgate.schema.evolve.merge import widen
from headgate.schema.parse import parse_type
from headgate.schema.types import Array, Field, Map, Record, Type
from headgate.schema.values import dumps, from_json, to_json
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.values import is_value, to_text, widen_value

pytestmark = pytest.mark.unit

D = decimal.Decimal
TYPES = s.types(max_leaves=3)


@st.composite
def _typed_values(draw: st.DrawFn) -> tuple[Type, object]:
    type_ = draw(TYPES)
    return type_, draw(s.values_of(type_))


@examples(30)
@given(_typed_values())
def test_every_value_made_for_a_type_is_one_of_it(both: tuple[Type, object]) -> None:
    assert is_value(both[1], both[0])


@examples(30)
@given(_typed_values())
def test_a_value_written_as_json_text_and_read_is_the_same_value(both: tuple[Type, object]) -> None:
    type_, value = both
    parsed = json.loads(dumps(to_json(value, type_)), parse_float=D)
    read = from_json(parsed, type_)
    assert is_value(read, type_)
    assert to_json(read, type_) == to_json(value, type_)


@examples(30)
@given(s.json_values(), TYPES)
def test_a_cast_gives_a_value_of_the_type_or_our_own_error(value: object, type_: Type) -> None:
    try:
        made = from_json(value, type_)
    except ValueDoesNotFit as error:
        assert error.path.startswith("$")  # noqa: PT017
    else:
        assert is_value(made, type_)


WIDENED = [
    ("integer", "bigint", 1, 1),
    ("bigint", "decimal(21,2)", 7, D("7.00")),
    ("array<boolean>", "array<text>", [True, None], ["true", None]),
    ("map<text, date>", "map<text, text>", {"k": dt.date(2024, 1, 2)}, {"k": "2024-01-02"}),
    ("record(a integer)", "record(a text, b date)", {"a": 1}, {"a": "1", "b": None}),
    ("record(a integer, b text)", "json", {"a": 1, "b": "x"}, '{"a":1,"b":"x"}'),
    ("text", "json", "x", '"x"'),
    ("enum default 'a' ('a')", "text", "a", "a"),
    ("bytes(2)", "bytes", b"ab", b"ab"),
]


@pytest.mark.parametrize(("old", "new", "value", "made"), WIDENED)
def test_a_value_is_widened_at_any_depth(old: str, new: str, value: object, made: object) -> None:
    assert widen_value(value, parse_type(old), parse_type(new)) == made


BEYOND_DECIMAL = {("decimal(38,18)", f"it has too many digits {side}") for side in ("before", "after")}


@examples(30)
@given(st.data())
def test_a_value_fits_whatever_its_type_is_widened_to(data: st.DataObject) -> None:
    wrap = data.draw(st.sampled_from([lambda t: t, Array, Map, lambda t: Record((Field("f", t),))]))
    a, b = wrap(data.draw(TYPES)), wrap(data.draw(TYPES))
    value = data.draw(s.values_of(a))
    bound = widen(a, b)
    try:
        made = widen_value(value, a, bound)
    except ValueDoesNotFit as error:
        # A double with more digits than the decimal that stands for it and a bigint: refused, never rounded.
        assert (error.expected, error.reason.split(" the ")[0]) in BEYOND_DECIMAL  # noqa: PT017
    else:
        assert is_value(made, bound)


FITS = [
    ("boolean", True, True),
    ("integer", 2**31 - 1, 2**31 - 1),
    ("bigint", 1.0, 1),
    ("bigint", D("1.0"), 1),
    ("bigint", D("1e3"), 1000),
    ("bigint", -(2**63), -(2**63)),
    ("bigint", D("9223372036854775807"), 2**63 - 1),
    ("double", 1, 1.0),
    ("double", D("0.1"), 0.1),
    ("real", 0.5, 0.5),
    ("decimal(5,2)", 1, D("1.00")),
    ("decimal(5,2)", 1.1, D("1.10")),
    ("decimal(5,2)", "999.99", D("999.99")),
    ("decimal(5,2)", D("1.2300"), D("1.23")),
    ("decimal(2,2)", D("0.12"), D("0.12")),
    ("text", "", ""),
    ("bytes", "AP8=", b"\x00\xff"),
    ("bytes(2)", "AP8=", b"\x00\xff"),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("time", "23:59:59.5", dt.time(23, 59, 59, 500000)),
    ("timestamp", "2024-01-02T03:04:05", dt.datetime(2024, 1, 2, 3, 4, 5)),
    ("timestamptz", "2024-01-02T03:04:05.000001000+02:00", dt.datetime(2024, 1, 2, 1, 4, 5, 1, tzinfo=dt.UTC)),
    ("timestamptz", "2024-01-02t03:04:05z", dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    ("uuid", "00000000-0000-0000-0000-0000000000AB", uuid.UUID(int=0xAB)),
    ("json", {"a": [1, D("1.10"), None]}, '{"a":[1,1.10,null]}'),
    ("json", "x", '"x"'),
    ("enum('a', 'b')", "b", "b"),
    ("enum default 'a' ('a', 'b')", "new", "a"),
    ("array<integer>", [1, None, 2.0], [1, None, 2]),
    ("map<text, boolean>", {"k": True}, {"k": True}),
    ("record(a integer, b text)", {"a": 1, "other": []}, {"a": 1, "b": None}),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "made"), FITS)
def test_fits(type_: str, value: object, made: object) -> None:
    assert from_json(value, parse_type(type_)) == made


MISFITS = [
    ("boolean", 1, "$ does not fit boolean, found integer"),
    ("boolean", "true", "$ does not fit boolean, found string"),
    ("integer", True, "$ does not fit integer, found boolean"),
    ("integer", 2**31, "$ does not fit integer, found integer: it is out of range"),
    ("bigint", 1.5, "$ does not fit bigint, found number: it has a fraction"),
    ("bigint", 2**63, "$ does not fit bigint, found integer: it is out of range"),
    ("bigint", D("1e999999"), "$ does not fit bigint, found number: it is out of range"),
    ("bigint", float("nan"), "$ does not fit bigint, found number: it is out of range"),
    ("bigint", "1", "$ does not fit bigint, found string"),
    ("double", D("1e400"), "$ does not fit double, found number: it is not finite"),
    ("double", 10**400, "$ does not fit double, found integer: it is not finite"),
    ("double", float("inf"), "$ does not fit double, found number: it is not finite"),
    ("real", 1e39, "$ does not fit real, found number: it is not finite"),
    ("decimal(5,2)", 1000, "$ does not fit decimal(5,2), found integer: it has too many digits before the point"),
    ("decimal(5,2)", D("0.001"), "$ does not fit decimal(5,2), found number: it has too many digits after the point"),
    ("decimal(5,2)", "1_0", "$ does not fit decimal(5,2), found string: it is not a number"),
    ("decimal(5,2)", float("nan"), "$ does not fit decimal(5,2), found number: it is not finite"),
    ("decimal(38,0)", D("1e99999"), "$ does not fit decimal(38,0), found number: it has too many digits before the point"),
    ("text", 1, "$ does not fit text, found integer"),
    ("text", "\ud800", "$ does not fit text, found string: it holds half of a surrogate pair"),
    ("bytes", "?", "$ does not fit bytes, found string: it is not base64"),
    ("bytes(3)", "AP8=", "$ does not fit bytes(3), found string: it has another length"),
    ("date", "2024-02-30", "$ does not fit date, found string: there is no such moment"),
    ("date", "20240229", "$ does not fit date, found string: it is not written as ISO 8601 has it"),
    ("time", "23:59:60", "$ does not fit time, found string: there is no such moment"),
    ("timestamp", "2024-01-02T03:04:05Z", "$ does not fit timestamp, found string: it has a time zone"),
    ("timestamptz", "2024-01-02T03:04:05", "$ does not fit timestamptz, found string: it has no time zone"),
    ("timestamptz", "0001-01-01T00:00:00+10:00", "$ does not fit timestamptz, found string: there is no such moment"),
    ("timestamp", "2024-01-02T03:04:05.0000001", "$ does not fit timestamp, found string: it is finer than microseconds"),
    ("uuid", "{00000000-0000-0000-0000-0000000000AB}", "$ does not fit uuid, found string: it is not a uuid"),
    ("enum('a')", "b", "$ does not fit enum('a'), found string: it is not one of the symbols"),
    ("json", {"a": float("nan")}, "$ does not fit json, found object: it is not finite"),
    ("array<integer not null>", [1, None], "$[1] does not fit integer not null, found null"),
    ("record(a array<record(b integer)>)", {"a": [{}, {"b": "x"}]}, "$.a[1].b does not fit integer, found string"),
    ("record(a integer not null)", {}, "$.a does not fit integer not null, found nothing"),
    ("map<text, integer>", {"k": "x"}, "${} does not fit integer, found string"),
    ("record(a integer)", [], "$ does not fit record(a integer), found array"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "message"), MISFITS)
def test_does_not_fit(type_: str, value: object, message: str) -> None:
    with pytest.raises(ValueDoesNotFit) as raised:
        from_json(value, parse_type(type_))
    assert raised.value.message() == f"value at {message}"


def test_a_json_value_nested_beyond_reason_is_refused() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueDoesNotFit, match="nested too deeply"):
        from_json(deep, parse_type("json"))


def test_a_type_of_the_catalog_must_be_resolved_first() -> None:
    with pytest.raises(UnresolvedType):
        from_json({"p": {}}, parse_type("record(p point)"))


TEXTS = [
    ("boolean", True, "true"),
    ("integer", 12, "12"),
    ("double", 1.0, "1.0"),
    ("decimal(6,3)", D("1.500"), "1.500"),
    ("decimal(38,18)", D("0E-18"), "0.000000000000000000"),
    ("text", 'say "hi"', 'say "hi"'),
    ("json", '{"a": 1.10}', '{"a": 1.10}'),
    ("bytes", b"\x00\xff", "AP8="),
    ("date", dt.date(24, 1, 2), "0024-01-02"),
    ("timestamp", dt.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
    ("timestamptz", dt.datetime(2024, 1, 2, 3, 4, 5, 7, tzinfo=dt.UTC), "2024-01-02T03:04:05.000007Z"),
    ("uuid", uuid.UUID(int=0xAB), "00000000-0000-0000-0000-0000000000ab"),
    ("array<date>", [dt.date(2024, 1, 2), None], '["2024-01-02",null]'),
    ("record(a text)", {"a": "ü"}, '{"a":"ü"}'),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "text"), TEXTS)
def test_the_text_is_that_of_the_json_value(type_: str, value: object, text: str) -> None:
    assert to_text(value, parse_type(type_)) == text
