"""What a reader's schema becomes under FOLLOW, and when it cannot follow."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.schema.evolve.changes import FieldRemoved, diff
from headgate.schema.evolve.merge import merge
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.render import print_type
from headgate.schema.types import Record
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.evolve.evolutions import changed_records, follows
from tests.schema.records import record_type

pytestmark = pytest.mark.unit


@examples(30)
@given(changed_records())
def test_every_old_column_keeps_its_place_name_and_doc(both: tuple[Record, Record]) -> None:
    old, new = both
    merged = merge(old, new)
    kept = merged.fields[: len(old.fields)]
    assert [(f.name, f.doc) for f in kept] == [(f.name, f.doc) for f in old.fields]
    assert all(f.nullable for f in merged.fields[len(old.fields) :])


@examples(30)
@given(changed_records())
def test_what_was_taken_up_once_is_not_taken_up_again(both: tuple[Record, Record]) -> None:
    old, new = both
    merged = merge(old, new)
    assert merge(merged, new) == merged


@examples(30)
@given(changed_records())
def test_the_reader_always_follows_what_it_became(both: tuple[Record, Record]) -> None:
    old, new = both
    assert follows(old, merge(old, new))


@examples(30)
@given(changed_records())
def test_once_followed_nothing_of_the_new_schema_is_still_to_be_done(both: tuple[Record, Record]) -> None:
    old, new = both
    merged = merge(old, new)
    left = [verdict(change, Target.READER).level for change in diff(merged, new)]
    assert not follows(old, new) or all(level is Level.SAFE for level in left)


@examples(30)
@given(changed_records())
def test_a_merged_schema_loses_no_field_of_either(both: tuple[Record, Record]) -> None:
    old, new = both
    merged = merge(old, new)
    assert not any(isinstance(change, FieldRemoved) for change in diff(old, merged))
    assert {field.name for field in merged.fields} == {f.name for f in old.fields} | {f.name for f in new.fields}


@examples(30)
@given(s.records())
def test_a_schema_merged_with_itself_stays_as_it_is(record: Record) -> None:
    assert merge(record, record) == record


MERGED = [
    (
        "record(a integer not null)",
        "record(b text not null, a integer not null)",
        "record(a integer not null, b text)",
    ),
    ("record(a integer, b text not null)", "record(a bigint)", "record(a bigint, b text)"),
    ("record(a bigint)", "record(a integer)", "record(a bigint)"),
    ("record(a bigint)", "record(a double)", "record(a decimal(38,18))"),
    ("record(a text not null)", "record(a text)", "record(a text)"),
    (
        "record(a array<record(x integer not null) not null>)",
        "record(a array<record(x bigint, y text)>)",
        "record(a array<record(x bigint, y text)>)",
    ),
    ("record(m map<text, real>)", "record(m map<text, double>)", "record(m map<text, double>)"),
]


@pytest.mark.parametrize(("old", "new", "merged"), MERGED)
def test_the_reader_follows_to(old: str, new: str, merged: str) -> None:
    assert follows(record_type(old), record_type(new))
    assert print_type(merge(record_type(old), record_type(new))) == merged


HALTING = [
    ("record(a integer)", "record(a text)"),
    ("record(a text)", "record(a integer)"),
    ("record(a date)", "record(a timestamp)"),
    ("record(e enum('a'))", "record(e enum('a', 'b'))"),
    ("record(a record(b text))", "record(a text)"),
    ("record(a array<integer>)", "record(a array<text>)"),
    ("record(a decimal(38,0))", "record(a decimal(38,18))"),
    ("record(a uuid)", "record(a text)"),
]


@pytest.mark.parametrize(("old", "new"), HALTING)
def test_the_reader_halts_and_keeps_its_column(old: str, new: str) -> None:
    assert not follows(record_type(old), record_type(new))
    assert merge(record_type(old), record_type(new)) == record_type(old)
