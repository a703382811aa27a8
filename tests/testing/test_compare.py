"""Rows as they are written, and when two of them are the same."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from headgate.serve.protocol import Column, Row, Value
from headgate.testing.compare import Cell, Result, check_rows, differences, read_row, read_rows, write_row
from headgate.testing.errors import MalformedSpec, Mismatch

pytestmark = pytest.mark.unit

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


def _texts(line: str) -> list[str | None]:
    return [cell.text for cell in read_row(line)]


def _holds(lines: list[str], columns: dict[str, str], rows: Sequence[Row], *, ordered: bool = False) -> bool:
    found = Result(tuple(Column(name, type_) for name, type_ in columns.items()), tuple(rows))
    try:
        check_rows(read_rows(lines), found, ordered)
    except Mismatch:
        return False
    return True


def _equal(written: str, type_: str, value: Value) -> bool:
    return _holds([written], {"a": type_}, [(value,)])


def test_columns_are_separated_by_blanks() -> None:
    assert _texts('  1\t 3.5 "a b" "" <null> "<null>" {"k": [1, "}"]} [1, 2]x end ') == [
        "1", "3.5", "a b", "", None, "<null>", '{"k": [1, "}"]}', "[1, 2]x", "end",
    ]  # fmt: skip


def test_escapes_of_quoted_values() -> None:
    assert _texts(r'"a\"b\\c\nd\te"') == ['a"b\\c\nd\te']


def test_a_bracket_that_is_not_closed_is_a_plain_value() -> None:
    assert _texts("[abc {x") == ["[abc", "{x"]


def test_a_quote_that_is_not_closed_is_an_error() -> None:
    with pytest.raises(MalformedSpec):
        read_row('1 "a')


def test_a_line_of_dashes_makes_the_first_line_a_header() -> None:
    expected = read_rows(["id price", "----", "1 2"])
    assert (expected.header, expected.rows) == (("id", "price"), ((Cell("1"), Cell("2")),))
    assert read_rows(["id", "----"]).rows is None
    assert read_rows(["id", "----", "<empty>"]).rows == ()
    assert read_rows(["1 2"]).header is None


@pytest.mark.parametrize(
    ("written", "type_", "value"),
    [
        ("10.0", "bigint", 10),
        ("10", "decimal(10,2)", "10.00"),
        ("12345678901234567890.12", "decimal(38,2)", "12345678901234567890.12"),
        ("9223372036854775807", "bigint", 2**63 - 1),
        ("2.1", "real", 2.0999999046325684),
        ("1e3", "double", 1000.0),
        ("NaN", "double", "NaN"),
        ("-Infinity", "double", "-Infinity"),
        ("0", "double", -0.0),
        ("true", "boolean", True),
        ("00ff", "bytes", "00ff"),
        ("2026-11-15", "date", "2026-11-15"),
        ("12:30:00.5", "time", "12:30:00.500000"),
        ("2026-11-15T12:30:00", "timestamp", "2026-11-15T12:30:00.000"),
        ("2026-11-15T12:30:00.25Z", "timestamptz", "2026-11-15T12:30:00.250Z"),
        ('{"b": 1.0, "a": [2]}', "json", '{"a":[2],"b":1}'),
        ("1.0", "json", "1"),
        ('"\\"x\\""', "json", '"x"'),
        ('{"a": "1.50"}', "record(a decimal(3,2))", {"a": "1.50"}),
        ("[1, null]", "array<integer>", [1, None]),
        ('{"k": 1}', "text", '{ "k" : 1 }'),
        ("5", "my_number", 5.0),
        ("<null>", "text", None),
        ('"<null>"', "text", "<null>"),
        ('""', "text", ""),
    ],
)
def test_values_that_are_the_same(written: str, type_: str, value: Value) -> None:
    assert _equal(written, type_, value)


@pytest.mark.parametrize(
    ("written", "type_", "value"),
    [
        ("10.0", "text", "10"),
        ("9223372036854775806", "bigint", 2**63 - 1),
        ("0.12345678901234567891", "decimal(20,20)", "0.12345678901234567890"),
        ("2.1", "double", 2.0999999046325684),
        ("1", "boolean", True),
        ("true", "bigint", 1),
        ("00FF", "bytes", "00ff"),
        ("2026-11-15T12:30:00", "timestamptz", "2026-11-15T12:30:00Z"),
        ('"<null>"', "text", None),
        ("<null>", "text", "<null>"),
        ('""', "text", None),
        ('{"a": true}', "json", '{"a": 1}'),
        ("[1, 2]", "array<integer>", [2, 1]),
        ("[1]", "array<text>", ["1"]),
        ("1 2", "bigint", 1),
    ],
)
def test_values_that_are_not_the_same(written: str, type_: str, value: Value) -> None:
    assert not _equal(written, type_, value)


def test_rows_are_a_multiset_unless_their_order_counts() -> None:
    columns, rows = {"a": "bigint"}, [(2,), (1,), (2,)]
    assert _holds(["2", "2", "1"], columns, rows)
    assert not _holds(["2", "2", "1"], columns, rows, ordered=True)
    assert _holds(["2", "1", "2.0"], columns, rows, ordered=True)
    assert not _holds(["2", "1", "1"], columns, rows)
    assert not _holds(["2", "1"], columns, rows)


def test_no_rows_are_not_looked_at_and_empty_means_none() -> None:
    assert _holds([], {"a": "bigint"}, [(1,)])
    assert not _holds(["<empty>"], {"a": "bigint"}, [(1,)])
    assert _holds(["<empty>"], {"a": "bigint"}, [])


def test_a_header_checks_names_and_their_order() -> None:
    assert _holds(["a b", "----", "1 2"], {"a": "bigint", "b": "bigint"}, [(1, 2)])
    assert not _holds(["b a", "----", "1 2"], {"a": "bigint", "b": "bigint"}, [(1, 2)])
    assert not _holds(["b a", "----"], {"a": "bigint", "b": "bigint"}, [(1, 2)])


def test_a_mismatch_shows_only_what_differs() -> None:
    found = Result((Column("a", "decimal(3,1)"),), (("3.0",), ("1.0",), ("9.5",)))
    with pytest.raises(Mismatch) as caught:
        check_rows(read_rows(["1", "2", "3"]), found, ordered=False)
    assert caught.value.detail() == "--- expected\n+++ actual\n 1\n-2\n 3\n+9.5"
    assert caught.value.rewritten == ("1.0", "3.0", "9.5")


scalars = st.one_of(
    st.tuples(st.just("text"), text),
    st.tuples(st.just("bigint"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("decimal(38,5)"), st.decimals(allow_nan=False, allow_infinity=False).map(str)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("bytes"), st.binary().map(bytes.hex)),
    st.tuples(st.just("array<text>"), st.lists(st.none() | text, max_size=3)),
    st.tuples(st.just("map<text, bigint>"), st.dictionaries(text, st.integers(), max_size=3)),
    st.tuples(st.just("text"), st.none()),
)


@given(st.lists(scalars, min_size=1, max_size=4))
def test_a_row_that_was_written_is_read_as_the_same(cells: list[tuple[str, Value]]) -> None:
    row: Row = tuple(value for _, value in cells)
    columns = {f"c{index}": type_ for index, (type_, _) in enumerate(cells)}
    line = write_row(row)
    assert "\n" not in line
    assert _holds([line], columns, [row])


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_what_stays_unmatched_is_the_difference_of_multisets(a: list[int], b: list[int]) -> None:
    missing, extra = differences(a, b, lambda one: one % 2, lambda x, y: x % 2 == y % 2)
    odd = [sum(one % 2 for one in side) for side in (a, b, missing, extra)]
    even = [sum(one % 2 == 0 for one in side) for side in (a, b, missing, extra)]
    for wanted, found, lacking, surplus in (odd, even):
        assert (lacking, surplus) == (max(0, wanted - found), max(0, found - wanted))


@given(st.lists(st.integers(-3, 3), max_size=6), st.permutations(range(6)), st.booleans())
def test_comparing_does_not_depend_on_order_or_on_how_numbers_are_written(
    numbers: list[int], order: list[int], decimals: bool
) -> None:
    lines = [f"{Decimal(number):.2f}" if decimals else str(number) for number in numbers] or ["<empty>"]
    shuffled = [numbers[index] for index in order if index < len(numbers)]
    assert _holds(lines, {"a": "bigint"}, [(number,) for number in shuffled])
    assert not _holds(lines, {"a": "bigint"}, [(number,) for number in (*shuffled, 7)])
