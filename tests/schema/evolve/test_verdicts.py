"""What each change does to each target, as the design says it."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.schema.evolve.changes import FieldRenamed, diff
from headgate.schema.evolve.verdicts import Level, Target, Verdict, verdict
from headgate.schema.types import Record
from tests.laws import examples
from tests.schema.evolve.evolutions import changed_records
from tests.schema.records import record_type

pytestmark = pytest.mark.unit

SAFE, IN_PLACE, REBUILD, BREAKING = Level.SAFE, Level.IN_PLACE, Level.REBUILD, Level.BREAKING


@examples(30)
@given(changed_records())
def test_every_change_has_a_verdict_with_a_reason_for_every_target(both: tuple[Record, Record]) -> None:
    for change in diff(*both):
        for target in Target:
            found = verdict(change, target)
            assert isinstance(found, Verdict)
            assert found.reason


COLUMNS = (Target.READER, Target.AVRO_SINK, Target.POSTGRES, Target.ELASTICSEARCH, Target.VIEW)

#   old, new, then the verdict for: a source that follows, an avro sink, a table, an index, a view
TABLE = [
    ("a text", "a text, b text", IN_PLACE, IN_PLACE, IN_PLACE, IN_PLACE, IN_PLACE),
    ("a text", "a text, b text not null", IN_PLACE, BREAKING, IN_PLACE, IN_PLACE, IN_PLACE),
    ("a text, b text", "a text", SAFE, IN_PLACE, SAFE, SAFE, BREAKING),
    ("a text, b text not null", "a text", IN_PLACE, IN_PLACE, IN_PLACE, SAFE, BREAKING),
    ("a integer", "a bigint", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ("a integer", "a double", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ("a real", "a double", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ("a bigint", "a double", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ("a bigint", "a decimal(19,0)", IN_PLACE, BREAKING, IN_PLACE, REBUILD, IN_PLACE),
    ("a decimal(5,2)", "a decimal(9,2)", IN_PLACE, IN_PLACE, IN_PLACE, SAFE, IN_PLACE),
    ("a decimal(5,2)", "a decimal(9,3)", IN_PLACE, BREAKING, IN_PLACE, SAFE, IN_PLACE),
    ("a bigint", "a integer", SAFE, BREAKING, BREAKING, BREAKING, IN_PLACE),
    ("a integer", "a text", BREAKING, BREAKING, IN_PLACE, REBUILD, BREAKING),
    ("a uuid", "a text", BREAKING, IN_PLACE, IN_PLACE, REBUILD, BREAKING),
    ("a enum('x')", "a text", BREAKING, BREAKING, SAFE, REBUILD, BREAKING),
    ("a text", "a json", BREAKING, BREAKING, IN_PLACE, REBUILD, BREAKING),
    ("a text", "a integer", BREAKING, BREAKING, BREAKING, BREAKING, BREAKING),
    ("a boolean", "a date", BREAKING, BREAKING, BREAKING, BREAKING, BREAKING),
    ("a record(x text)", "a json", BREAKING, BREAKING, REBUILD, REBUILD, BREAKING),
    ("a map<text, text>", "a json", BREAKING, BREAKING, SAFE, REBUILD, BREAKING),
    ("a text not null", "a text", IN_PLACE, IN_PLACE, IN_PLACE, SAFE, IN_PLACE),
    ("a text", "a text not null", SAFE, BREAKING, SAFE, SAFE, SAFE),
    ("a enum('x')", "a enum('x', 'y')", BREAKING, IN_PLACE, SAFE, SAFE, SAFE),
    ("a enum('x', 'y')", "a enum('x')", SAFE, BREAKING, SAFE, SAFE, SAFE),
    ("a enum('x', 'y')", "a enum('y', 'x')", SAFE, IN_PLACE, SAFE, SAFE, SAFE),
    ("a text, b text", "b text, a text", SAFE, IN_PLACE, SAFE, SAFE, SAFE),
    ("a text", "a text comment 'x'", SAFE, SAFE, IN_PLACE, IN_PLACE, SAFE),
    ('a record "x.A" (b text)', 'a record "x.B" (b text)', SAFE, SAFE, SAFE, SAFE, SAFE),
    ("a array<integer>", "a array<bigint>", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ("a array<integer not null>", "a array<integer>", IN_PLACE, IN_PLACE, SAFE, SAFE, IN_PLACE),
    (
        "a array<record(x text)>",
        "a array<record(x text, y text)>",
        IN_PLACE,
        IN_PLACE,
        SAFE,
        IN_PLACE,
        IN_PLACE,
    ),
    ("a map<text, integer>", "a map<text, bigint>", IN_PLACE, IN_PLACE, SAFE, REBUILD, IN_PLACE),
    (
        "a map<text, record(x integer)>",
        "a map<text, record(x bigint)>",
        IN_PLACE,
        IN_PLACE,
        SAFE,
        SAFE,
        IN_PLACE,
    ),
    ("a record(x integer)", "a record(x bigint)", IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
    ('"a{}" integer', '"a{}" bigint', IN_PLACE, IN_PLACE, IN_PLACE, REBUILD, IN_PLACE),
]


@pytest.mark.parametrize(("old", "new", "reader", "avro", "postgres", "elasticsearch", "view"), TABLE)
def test_the_verdicts_are(
    old: str, new: str, reader: Level, avro: Level, postgres: Level, elasticsearch: Level, view: Level
) -> None:
    changes = diff(record_type(f"record({old})"), record_type(f"record({new})"))
    found = [max(verdict(change, target).level for change in changes) for target in COLUMNS]
    assert found == [reader, avro, postgres, elasticsearch, view]


def test_a_removed_symbol_is_read_as_the_default_where_there_is_one() -> None:
    old, new = record_type("record(a enum('x', 'y'))"), record_type("record(a enum default 'x' ('x'))")
    assert all(verdict(change, Target.AVRO_SINK).level is IN_PLACE for change in diff(old, new))


def test_a_renamed_field_keeps_its_column_but_not_its_readers() -> None:
    levels = [verdict(FieldRenamed(("a",), "a", "b"), target).level for target in COLUMNS]
    assert levels == [IN_PLACE, BREAKING, IN_PLACE, REBUILD, BREAKING]


#   old, new, then the verdict for: the key of a source, of an avro sink, of a json or text sink
KEYS = [
    ("a integer", "a bigint", IN_PLACE, BREAKING, SAFE),
    ("a integer", "a double", IN_PLACE, BREAKING, BREAKING),
    ("a real", "a double", IN_PLACE, BREAKING, BREAKING),
    ("a decimal(5,2)", "a decimal(9,2)", IN_PLACE, BREAKING, SAFE),
    ("a decimal(5,2)", "a decimal(9,3)", IN_PLACE, BREAKING, BREAKING),
    ("a integer", "a text", BREAKING, BREAKING, BREAKING),
    ("a integer", "a integer, b text", BREAKING, BREAKING, BREAKING),
    ("a integer, b text", "a integer", BREAKING, BREAKING, BREAKING),
    ("a record(x integer)", "a record(x integer, y text)", BREAKING, BREAKING, BREAKING),
    ("a integer not null", "a integer", IN_PLACE, BREAKING, SAFE),
    ("a integer", "a integer comment 'x'", SAFE, SAFE, SAFE),
]


@pytest.mark.parametrize(("old", "new", "source", "avro", "text"), KEYS)
def test_the_verdicts_on_keys_are(old: str, new: str, source: Level, avro: Level, text: Level) -> None:
    changes = diff(record_type(f"record({old})"), record_type(f"record({new})"))
    targets = (Target.KEY, Target.AVRO_KEY, Target.TEXT_KEY)
    assert [max(verdict(change, target).level for change in changes) for target in targets] == [
        source,
        avro,
        text,
    ]
