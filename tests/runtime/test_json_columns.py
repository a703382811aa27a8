"""Columns of fields inside JSON documents: the quick way gives what the exact way gives, and takes the columns that it is made for."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from headgate.runtime.json_columns import MISSING_VALUE, quick_column
from headgate.runtime.json_fields import PROBLEM, DocumentReader, JsonField, reason_of, values_of
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.formats.spark import to_spark

pytestmark = pytest.mark.unit

TYPES: tuple[t.Type, ...] = (
    t.Integer(), t.Bigint(), t.Double(), t.Decimal(8, 2), t.Decimal(38, 10), t.Text(), t.Boolean(), t.Date(), t.Timestamp(),
    t.TimestampTz(), t.Array(t.Bigint()), t.Array(t.Text(), False), t.Array(t.Array(t.Double())),
)  # fmt: skip

digits = st.text("0123456789", min_size=1, max_size=3)
moments = st.tuples(st.dates(), st.times(), st.sampled_from(["", "Z", "+01:00"])).map(
    lambda one: f"{one[0].isoformat()}T{one[1].isoformat()}{one[2]}"
)
odd_moments = st.sampled_from(
    ["0000-01-01", "2026-02-30", "2026-1-1", "0001-01-01", "9999-12-31", "2026-02-28T24:00:00Z", "2026-02-28T23:59:60Z",
     "2026-02-28t01:02:03z", "2026-02-28 01:02:03", "2026-02-28T01:02:03.1234567Z", "2026-02-28T01:02:03.120Z",
     "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "２０２６-02-28"]
)  # fmt: skip
texts = st.text(st.characters(), max_size=4) | st.dates().map(str) | moments | odd_moments
numbers = (
    st.integers(-(2**70), 2**70).map(str)
    | st.integers(-9, 9).map(str)
    | st.builds("{}{}.{}{}".format, st.sampled_from(["", "-"]), st.sampled_from(["0", "7", "123456"]), digits, st.sampled_from(["", "e3", "E-400", "e400"]))
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
)  # fmt: skip
scalars = st.sampled_from(["null", "true", "false"]) | numbers | texts.map(json.dumps)
# Columns are of one kind much more often than random values would be.
kinds = (numbers, texts.map(json.dumps), st.sampled_from(["true", "false"]), st.dates().map(lambda d: f'"{d}"'), moments.map(json.dumps))  # fmt: skip


def lists(elements: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(elements, max_size=3).map(lambda items: f"[{','.join(items)}]")


@st.composite
def columns(draw: st.DrawFn) -> list[str]:
    """The texts of some documents, whose values of `a` are mostly of one kind."""
    kind = draw(st.sampled_from([*kinds, *(lists(one) for one in kinds), lists(lists(numbers))]))
    values = draw(st.lists(kind, max_size=6))
    if draw(st.booleans()):
        values += draw(st.lists(scalars | lists(scalars) | st.just('{"b": 1}'), max_size=2))
    documents = [f'{{"a":{value}}}' for value in values]
    return documents + draw(st.lists(st.sampled_from(["{}", "[]", "1", '{"a":1}x']), max_size=1))


def read(documents: list[str], fields: tuple[JsonField, ...]) -> list[dict[str, Any]]:
    problem = StructType([StructField(name, StringType()) for name in ("path", "expected", "reason")])
    values = [StructField(f"v{number}", to_spark(field.held)) for number, field in enumerate(fields)]
    found: list[dict[str, Any]] = (
        DocumentReader(fields, StructType([StructField(PROBLEM, problem), *values]))
        .read(pa.array(documents, pa.string()))
        .to_pylist()
    )
    return found


def exactly(document: str, fields: tuple[JsonField, ...]) -> dict[str, Any]:
    try:
        values, problem = values_of(document, fields), None
    except ValueDoesNotFit as wrong:
        values = [None] * len(fields)
        problem = {"path": wrong.path, "expected": wrong.expected, "reason": reason_of(wrong)}
    held = [
        pa.array([value], to_arrow_type(to_spark(field.held), timezone="UTC"))[0].as_py()
        for value, field in zip(values, fields, strict=True)
    ]
    return {PROBLEM: problem, **{f"v{number}": value for number, value in enumerate(held)}}


@given(columns(), st.sampled_from(TYPES), st.booleans())
def test_a_column_has_what_each_document_alone_gives(documents: list[str], type_: t.Type, nullable: bool) -> None:
    fields = (JsonField(("a",), type_, nullable), JsonField(("a",), t.Json(), True, as_text=True))
    assert repr(read(documents, fields)) == repr([exactly(one, fields) for one in documents])


@pytest.mark.parametrize(
    ("type_", "found", "expected"),
    [
        (t.Integer(), [1, 2], [1, 2]),
        (t.Double(), [1, 2], [1.0, 2.0]),
        (t.Decimal(8, 2), [1, 2], [Decimal("1.00"), Decimal("2.00")]),
        (t.Text(), ["a", None], ["a", None]),
        (t.Boolean(), [True, MISSING_VALUE], [True, None]),
        (t.Date(), ["2026-11-15"], [dt.date(2026, 11, 15)]),
        (t.TimestampTz(), ["2026-11-15T01:02:03.5Z"], [dt.datetime(2026, 11, 15, 1, 2, 3, 500_000, dt.UTC)]),
        (t.Array(t.Text()), [["a"], None, [], [None]], [["a"], None, [], [None]]),
    ],
)
def test_a_column_of_one_kind_is_made_at_once(type_: t.Type, found: list[Any], expected: list[Any]) -> None:
    made = quick_column(found, type_, to_arrow_type(to_spark(type_), timezone="UTC"), nullable=True)
    assert made is not None
    assert made.to_pylist() == expected


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (t.Integer(), [1, 2**31]),
        (t.Bigint(), [True]),
        (t.Double(), [2**53 + 1]),
        (t.Decimal(4, 2), [100]),
        (t.Text(), ["a\0"]),
        (t.Text(), ["\ud800"]),
        (t.Text(), [1]),
        (t.Date(), ["2026-02-30"]),
        (t.Timestamp(), ["2026-11-15T01:02:03Z"]),
        (t.Uuid(), ["8b7b0b4e-0000-4000-8000-000000000000"]),
        (t.Array(t.Text(), False), [[None]]),
    ],
)
def test_a_column_with_a_doubtful_value_is_left_to_the_exact_way(type_: t.Type, found: list[Any]) -> None:
    assert quick_column(found, type_, to_arrow_type(to_spark(type_), timezone="UTC"), nullable=True) is None


def test_a_value_that_is_missing_needs_the_exact_way_where_it_must_not_be() -> None:
    assert quick_column([1, MISSING_VALUE], t.Bigint(), pa.int64(), nullable=False) is None
