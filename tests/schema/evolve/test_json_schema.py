"""FOLLOW against really reading: documents of the old JSON Schema, judged by a real validator of the new one."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import assume, given, strategies as st

from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.evolve.changes import TypeWidened, diff
from headgate.schema.evolve.merge import merge
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.parse import parse_type
from headgate.schema.types import Decimal, Field, Record, Type
from headgate.schema.values import from_json, to_json
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.evolve.evolutions import changed_records, follows
from tests.schema.records import record_type
from tests.schema.values import widen_value

pytestmark = pytest.mark.unit

NUMBERS = ("integer", "bigint", "real", "double", "decimal(5,2)", "decimal(9,2)")


def _accepts(type_: Type, document: object, *, formats: bool = False) -> bool:
    return jsonschema_rs.validator_for(to_json_schema(type_), validate_formats=formats).is_valid(document)


def _is_decimal_now(record: Record, merged: Record) -> bool:
    """A decimal is a string in JSON: the one number whose documents change when a column widens to it."""
    return any(
        isinstance(change, TypeWidened) and isinstance(change.new, Decimal) and not isinstance(change.old, Decimal)
        for change in diff(record, merged)
    )


@examples(50)
@given(changed_records(), st.data())
def test_documents_of_both_schemas_are_valid_for_a_reader_that_followed(
    both: tuple[Record, Record], data: st.DataObject
) -> None:
    old, new = both
    assume(follows(old, new))
    merged = merge(old, new)
    for record in both:
        document = to_json(data.draw(s.values_of(record)), record)
        assert _accepts(record, document)
        assert _is_decimal_now(record, merged) or _accepts(merged, document)


@examples(50)
@given(changed_records(), st.data())
def test_old_documents_stay_valid_for_whatever_a_reader_became(
    both: tuple[Record, Record], data: st.DataObject
) -> None:
    old, merged = both[0], merge(*both)
    document = to_json(data.draw(s.values_of(old)), old)
    assert _is_decimal_now(old, merged) or _accepts(merged, document)


@examples(50)
@given(changed_records(), st.data())
def test_a_widened_value_is_a_valid_document_and_what_the_old_one_is_read_as(
    both: tuple[Record, Record], data: st.DataObject
) -> None:
    old, merged = both[0], merge(*both)
    value = data.draw(s.values_of(old))
    try:
        widened = widen_value(value, old, merged)
    except ValueDoesNotFit:  # a double may have more digits than its decimal: refused, not rounded
        assert _is_decimal_now(old, merged)
        return
    assert _accepts(merged, to_json(widened, merged))
    assert to_json(from_json(to_json(value, old), merged), merged) == to_json(widened, merged)


@examples(30)
@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.data())
def test_any_number_is_followed_to_one_that_has_its_documents(
    old_type: str, new_type: str, data: st.DataObject
) -> None:
    old, new = (Record((Field("a", parse_type(text)),)) for text in (old_type, new_type))
    assert follows(old, new)
    merged = merge(old, new)
    document = to_json(data.draw(s.values_of(old)), old)
    assert _is_decimal_now(old, merged) != _accepts(merged, document) or document == {"a": None}


# Documents that one schema has and the other refuses: of the old one, of the new one.
BREAKING = [
    ("integer", "text", 5, "x"),
    ("text", "integer", "x", 5),
    ("boolean", "text", True, "x"),
    ("boolean", "integer", True, 1),
    ("double", "text", 1.5, "1.5"),
    ("date", "timestamptz", "2024-01-31", "2024-01-31T10:00:00Z"),
    ("uuid", "date", "00000000-0000-0000-0000-000000000000", "2024-01-31"),
    ("text", "array<text>", "x", ["x"]),
    ("array<integer>", "array<text>", [5], ["x"]),
    ("map<text, integer>", "map<text, boolean>", {"k": 5}, {"k": True}),
    ("record(x text)", "text", {"x": "y"}, "y"),
    ("record(x text)", "record(x bigint)", {"x": "y"}, {"x": 5}),
    ("record(x text)", "map<text, boolean>", {"x": "y"}, {"x": True}),
    ("enum('a', 'b')", "enum('a', 'c')", "b", "c"),
    ("enum('a')", "array<enum('a')>", "a", ["a"]),
]


@pytest.mark.parametrize(("old", "new", "written", "arriving"), BREAKING)
def test_what_breaks_the_reader_is_refused_both_ways(old: str, new: str, written: object, arriving: object) -> None:
    was, becomes = (Record((Field("a", parse_type(text)),)) for text in (old, new))
    assert any(verdict(change, Target.READER).level is Level.BREAKING for change in diff(was, becomes))
    assert _accepts(was, {"a": written}, formats=True)
    assert not _accepts(becomes, {"a": written}, formats=True)
    assert _accepts(becomes, {"a": arriving}, formats=True)
    assert not _accepts(merge(was, becomes), {"a": arriving}, formats=True)


# The new schema takes every old document, and yet the reader cannot take the new ones.
ARRIVING = [
    ("enum('a')", "enum('a', 'b')", "a", "b"),
    ("enum('a')", "text", "a", "b"),
    ("uuid", "text", "00000000-0000-0000-0000-000000000000", "x"),
    ("text", "json", "x", [1]),
    ("map<text, text>", "json", {"k": "v"}, {"k": 1}),
]


@pytest.mark.parametrize(("old", "new", "written", "arriving"), ARRIVING)
def test_a_wider_type_than_a_number_breaks_the_reader_with_what_arrives(
    old: str, new: str, written: object, arriving: object
) -> None:
    was, becomes = (Record((Field("a", parse_type(text)),)) for text in (old, new))
    assert not follows(was, becomes)
    assert _accepts(becomes, {"a": written}, formats=True)
    assert _accepts(becomes, {"a": arriving}, formats=True)
    assert not _accepts(merge(was, becomes), {"a": arriving}, formats=True)


FOLLOWED = [
    ("record(a integer not null)", "record(a bigint not null, b text)", {"a": 5}, {"a": 2**40, "b": "x"}),
    ("record(a text not null)", "record(a text)", {"a": "x"}, {"a": None}),
    ("record(a text not null, b text)", "record(b text)", {"a": "x", "b": None}, {"b": "y"}),
    ("record(a record(x real not null))", "record(a record(x double, y text))", {"a": {"x": 1.5}}, {"a": {"y": "z"}}),
    ("record(e enum('a', 'b'))", "record(e enum('b'))", {"e": "a"}, {"e": "b"}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "written", "arriving"), FOLLOWED)
def test_a_reader_that_followed_takes_what_was_written_and_what_arrives(
    old: str, new: str, written: object, arriving: object
) -> None:
    was, becomes = record_type(old), record_type(new)
    assert follows(was, becomes)
    assert _accepts(was, written)
    assert _accepts(becomes, arriving)
    assert _accepts(merge(was, becomes), written)
    assert _accepts(merge(was, becomes), arriving)
