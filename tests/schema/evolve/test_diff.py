"""The difference of two schemas is complete, empty only for equals, and says itself."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.schema.evolve.changes import FieldMoved, diff
from headgate.schema.names import print_path
from headgate.schema.types import Record
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.evolve.applying import apply
from tests.schema.evolve.evolutions import changed_records
from tests.schema.records import record_type

pytestmark = pytest.mark.unit


@examples(30)
@given(s.records())
def test_a_schema_does_not_differ_from_itself(record: Record) -> None:
    assert diff(record, record) == ()


@examples(30)
@given(changed_records())
def test_the_changes_done_to_the_old_schema_make_the_new_one(both: tuple[Record, Record]) -> None:
    old, new = both
    assert apply(old, diff(old, new)) == new


@examples(30)
@given(s.records(), s.records())
def test_any_schema_can_be_made_of_any_other(old: Record, new: Record) -> None:
    assert apply(old, diff(old, new)) == new


@examples(30)
@given(changed_records())
def test_every_change_says_its_place(both: tuple[Record, Record]) -> None:
    assert all(print_path(change.path) in change.describe() for change in diff(*both))


DESCRIBED = [
    ("record(a integer)", "record(a bigint)", ["$.a widened from integer to bigint"]),
    ("record(a bigint)", "record(a integer)", ["$.a narrowed from bigint to integer"]),
    ("record(a boolean)", "record(a date)", ["$.a changed from boolean to date"]),
    ("record(a bigint)", "record(a double)", ["$.a changed from bigint to double"]),
    ("record(a text)", "record(a text, b date not null)", ["$.b added as date not null"]),
    ("record(a text, b text)", "record(b text)", ["$.a removed"]),
    ("record(a text not null)", "record(a text)", ["$.a became nullable"]),
    ("record(a text)", "record(a text not null)", ["$.a became not null"]),
    ("record(a text, b text, c text)", "record(c text, a text, b text)", ["$.c moved to position 1"]),
    (
        "record(a array<record(b integer)>)",
        "record(a array<record(b text)>)",
        ["$.a[].b widened from integer to text"],
    ),
    ("record(m map<text, integer>)", "record(m map<text, integer not null>)", ["$.m{} became not null"]),
    (
        "record(e enum('a', 'b'))",
        "record(e enum('b', 'c'))",
        ["$.e lost the symbols a", "$.e gained the symbols c"],
    ),
    ("record(e enum('a', 'b'))", "record(e enum('b', 'a'))", ["$.e lists its symbols in another order"]),
    (
        "record(e enum('a'))",
        """record(e enum "x.E" default 'a' comment 'd' ('a'))""",
        ["$.e is now of the type x.E", "type $.e is documented", "$.e reads unknown symbols as a"],
    ),
    ("record(a text comment 'x')", "record(a text comment 'y')", ["field $.a is documented anew"]),
    (
        'record("a.b" record(c integer))',
        'record("a.b" record(c json))',
        ['$."a.b".c widened from integer to json'],
    ),
    (
        "record(a record(b text))",
        "record(a map<text, text>)",
        ["$.a changed from record(b text) to map<text, text>"],
    ),
]


@pytest.mark.parametrize(("old", "new", "changes"), DESCRIBED)
def test_the_changes_are(old: str, new: str, changes: list[str]) -> None:
    assert [change.describe() for change in diff(record_type(old), record_type(new))] == changes


def test_the_fewest_fields_are_said_to_have_moved() -> None:
    old, new = (
        record_type("record(a text, b text, c text, d text)"),
        record_type("record(b text, c text, d text, a text)"),
    )
    assert diff(old, new) == (FieldMoved(("a",), 3),)
