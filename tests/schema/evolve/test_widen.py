"""The join of types: its laws, and the pairs that the design names."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.schema.evolve.merge import widen
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Array, Field, Map, Record, Type
from tests.laws import examples
from tests.schema import strategies as s

pytestmark = pytest.mark.unit


def _unordered(type_: Type) -> Type:
    """The type with the fields of its records sorted by name."""
    match type_:
        case Record():
            fields = (Field(f.name, _unordered(f.type), f.nullable, f.doc) for f in type_.fields)
            return Record(tuple(sorted(fields, key=lambda f: f.name)), type_.name, type_.doc)
        case Array():
            return Array(_unordered(type_.element), type_.element_nullable)
        case Map():
            return Map(_unordered(type_.value), type_.value_nullable)
        case _:
            return type_


@st.composite
def _alike(draw: st.DrawFn) -> tuple[Type, Type, Type]:
    """Three types that meet: numbers, enums over the same symbols, records that share field names."""
    numbers = st.sampled_from(
        ["integer", "bigint", "real", "double", "decimal(5,2)", "decimal(38,0)", "decimal(38,18)"]
    )
    others = st.sampled_from(
        ["text", "json", "bytes", "bytes(4)", "bytes(8)", "enum('b', 'a')", "enum('a', 'b')", "date", "x"]
    )
    leaves = (numbers | numbers | others).map(parse_type) | s.enums()
    fields = st.builds(Field, st.sampled_from("abc"), leaves, st.booleans(), s.docs())
    records = st.lists(fields, max_size=3, unique_by=lambda f: f.name).map(lambda fs: Record(tuple(fs)))
    one = leaves | records | st.builds(Array, leaves | records, st.booleans()) | st.builds(Map, leaves, st.booleans())
    return draw(one), draw(one), draw(one)


_THREE = _alike() | st.tuples(s.types(), s.types(), s.types())


@examples(30)
@given(_THREE, st.booleans())
def test_widening_is_commutative_but_for_the_order_of_fields(three: tuple[Type, Type, Type], exact: bool) -> None:
    a, b, _ = three
    assert _unordered(widen(a, b, exact=exact)) == _unordered(widen(b, a, exact=exact))


@examples(30)
@given(_THREE, st.booleans())
def test_widening_is_associative(three: tuple[Type, Type, Type], exact: bool) -> None:
    a, b, c = three
    left = widen(widen(a, b, exact=exact), c, exact=exact)
    assert left == widen(a, widen(b, c, exact=exact), exact=exact)


@examples(30)
@given(s.types(named=True), st.booleans())
def test_widening_a_type_with_itself_changes_nothing(type_: Type, exact: bool) -> None:
    assert widen(type_, type_, exact=exact) == type_


@examples(30)
@given(_THREE, st.booleans())
def test_the_result_is_above_both(three: tuple[Type, Type, Type], exact: bool) -> None:
    a, b, _ = three
    bound = widen(a, b, exact=exact)
    assert widen(bound, a, exact=exact) == bound
    assert _unordered(widen(bound, b, exact=exact)) == _unordered(bound)


BOUNDS = [
    ("integer", "bigint", "bigint"),
    ("integer", "real", "double"),
    ("integer", "double", "double"),
    ("real", "double", "double"),
    ("bigint", "double", "decimal(38,18)"),
    ("bigint", "real", "decimal(38,18)"),
    ("integer", "decimal(5,2)", "decimal(12,2)"),
    ("bigint", "decimal(5,2)", "decimal(21,2)"),
    ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
    ("decimal(38,0)", "decimal(38,18)", "text"),
    ("boolean", "integer", "text"),
    ("uuid", "text", "text"),
    ("date", "timestamp", "text"),
    ("enum('a')", "enum('a', 'b')", "text"),
    ("bytes(4)", "bytes(8)", "bytes"),
    ("text", "json", "json"),
    ("array<integer>", "integer", "json"),
    ("array<integer not null>", "array<bigint>", "array<bigint>"),
    ("record(a integer not null)", "map<text, integer>", "json"),
    ("map<text, integer>", "map<text, text>", "map<text, text>"),
    (
        "record(a integer not null, b text not null)",
        "record(b text not null, c date not null)",
        "record(a integer, b text not null, c date)",
    ),
]


@pytest.mark.parametrize(("a", "b", "bound"), BOUNDS)
def test_the_bound_of_two_types_is(a: str, b: str, bound: str) -> None:
    assert print_type(widen(parse_type(a), parse_type(b))) == bound


@pytest.mark.parametrize("other", ["real", "double"])
def test_a_bigint_whose_values_are_exact_widens_to_double(other: str) -> None:
    assert print_type(widen(parse_type("bigint"), parse_type(other), exact=True)) == "double"
