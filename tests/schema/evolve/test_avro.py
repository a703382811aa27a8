"""Verdicts and FOLLOW against really reading: written with the old Avro schema, read with the new one."""

from __future__ import annotations

import io
from typing import cast

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from hypothesis import given, strategies as st

from headgate.schema.evolve.changes import diff
from headgate.schema.evolve.merge import merge
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import to_json
from headgate.schema.formats.avro.write import next_version, to_avro
from headgate.schema.parse import parse_type
from headgate.schema.types import Array, Enum, Field, Map, Record, Type
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.evolve.evolutions import follows

pytestmark = pytest.mark.unit

NUMBERS = ("integer", "bigint", "real", "double", "decimal(5,2)", "decimal(9,2)", "decimal(9,4)")
OTHERS = ("text", "uuid", "json", "date", "timestamp", "timestamptz", "time", "boolean", "bytes", "bytes(4)")
# Avro finds an enum by its name, which a sink freezes: the same name on both sides.
ENUMS = tuple(
    Enum(symbols, "x.E", default) for symbols, default in [(("a", "b"), None), (("b", "a", "c"), None), (("a",), "a")]
)
SCALARS: st.SearchStrategy[Type] = st.sampled_from(NUMBERS + OTHERS).map(parse_type) | st.sampled_from(ENUMS[:1])
TYPES = SCALARS | st.builds(Array, SCALARS, st.booleans()) | st.builds(Map, SCALARS, st.booleans())


@st.composite
def _evolved(draw: st.DrawFn) -> tuple[Record, Record]:
    old = Record((Field("a", draw(TYPES), draw(st.booleans())), Field("b", parse_type("text"))))
    a = Field("a", draw(st.just(old.fields[0].type) | TYPES | st.sampled_from(ENUMS)), draw(st.booleans()))
    fields = [a, old.fields[1]] if draw(st.booleans()) else [old.fields[1], a]
    kept = fields[1:] if draw(st.integers(0, 3)) == 0 else fields
    added = [Field("c", draw(SCALARS), draw(st.booleans()))] if draw(st.booleans()) else []
    return old, Record((*kept, *added))


def _read(old: Record, new: Record, value: dict[str, object]) -> dict[str, object]:
    """A record written with one schema and read with its next version, as sinks publish it."""
    first, second = (load_tree(to_avro(record, name="row").json) for record in (old, new))
    writer, reader = (
        fastavro.parse_schema(cast(dict[str, object], to_json(one))) for one in (first, next_version(first, second))
    )
    out = io.BytesIO()
    fastavro.schemaless_writer(out, writer, value)
    out.seek(0)
    return cast(dict[str, object], fastavro.schemaless_reader(out, writer, reader))


@examples(30)
@given(_evolved(), st.data())
def test_what_a_sink_may_do_in_place_can_be_read_from_old_records(
    both: tuple[Record, Record], data: st.DataObject
) -> None:
    old, new = both
    if all(verdict(change, Target.AVRO_SINK).level < Level.BREAKING for change in diff(old, new)):
        value = cast(dict[str, object], data.draw(s.values_of(old)))
        assert _read(old, new, value).keys() == {field.name for field in new.fields}


@examples(30)
@given(st.sampled_from(NUMBERS[:4]), st.sampled_from(NUMBERS[:4]), st.data())
def test_a_number_that_widens_by_itself_is_read_exactly(old_type: str, new_type: str, data: st.DataObject) -> None:
    old = Record((Field("a", parse_type(old_type), False),))
    new = Record((Field("a", parse_type(new_type), False),))
    merged = merge(old, new)
    assert follows(old, new)
    if merged.fields[0].type != parse_type("decimal(38,18)"):  # no promotion of avro's: the reader casts by itself
        value = cast(dict[str, object], data.draw(s.values_of(old)))
        assert _read(old, merged, value) == value


BREAKING = [
    ("record(a text)", "record(a text, b text not null)", {"a": "x"}),
    ("record(a text)", "record(a text not null)", {"a": None}),
    ("record(a bigint not null)", "record(a integer not null)", {"a": 1}),
    ("record(a boolean not null)", "record(a text not null)", {"a": True}),
    ("record(a double not null)", "record(a bigint not null)", {"a": 1.0}),
    ("record(a bytes(4) not null)", "record(a bytes(8) not null)", {"a": b"1234"}),
    ("""record(a enum "x.E" ('a', 'b') not null)""", """record(a enum "x.E" ('a') not null)""", {"a": "b"}),
    ("""record(a enum "x.E" ('a') not null)""", "record(a text not null)", {"a": "a"}),
    ("record(a bigint not null)", "record(a decimal(19,0) not null)", {"a": 1}),
]


@pytest.mark.parametrize(("old", "new", "value"), BREAKING)
def test_what_breaks_a_sink_cannot_be_read_from_an_old_record(old: str, new: str, value: dict[str, object]) -> None:
    was, becomes = parse_type(old), parse_type(new)
    assert isinstance(was, Record)
    assert isinstance(becomes, Record)
    assert any(verdict(change, Target.AVRO_SINK).level is Level.BREAKING for change in diff(was, becomes))
    with pytest.raises((SchemaResolutionError, TypeError, ValueError)):
        _read(was, becomes, value)
