"""How names are written, found, and made to fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from headgate.schema.names import (
    Ambiguous,
    Found,
    NameIndex,
    NotFound,
    avro_names,
    find,
    needs_quotes,
    postgres_too_long,
    print_name,
    quote_identifier,
    quote_literal,
)
from headgate.schema.parse import parse_type
from headgate.schema.types import Field, Integer, Record
from tests.laws import examples
from tests.schema import strategies as s

pytestmark = pytest.mark.unit

ANY_NAME = s.names() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@examples(30)
@given(ANY_NAME)
def test_a_printed_name_is_read_back_as_itself(name: str) -> None:
    assert parse_type(f"record({quote_identifier(name)} integer)") == Record((Field(name, Integer()),))


@pytest.mark.parametrize("name", ["orders", "Orders", "_x1", "ORDER_ID", "type", "value"])
def test_a_plain_name_needs_no_quotes_whatever_its_case(name: str) -> None:
    assert not needs_quotes(name)


@pytest.mark.parametrize("name", ["select", "Order", "1st", "a b", "naïve", 'say "hi"', "", "a.b", "a$"])
def test_a_name_that_would_be_read_otherwise_needs_quotes(name: str) -> None:
    assert needs_quotes(name)


def test_quotes_inside_are_doubled() -> None:
    assert print_name(("shop", 'say "hi"', "Order")) == 'shop."say ""hi"""."Order"'
    assert quote_literal("it's") == "'it''s'"


LOOKUPS = [
    ("orders", False, ["Orders", "other"], Found("Orders")),
    ("ORDERS", False, ["orders"], Found("orders")),
    ("Orders", False, ["orders", "Orders"], Found("Orders")),
    ("ORDERS", False, ["orders", "Orders"], Ambiguous(("Orders", "orders"))),
    ("Orders", True, ["Orders"], Found("Orders")),
    ("orders", True, ["Orders", "orders"], Found("orders")),
    ("orders", False, ["orders", "orders"], Found("orders")),
]


@pytest.mark.parametrize(("name", "quoted", "candidates", "expected"), LOOKUPS)
def test_a_name_finds(name: str, quoted: bool, candidates: list[str], expected: object) -> None:
    assert find(name, quoted, candidates) == expected


MISSES = [
    ("orders", True, ["Orders"], ("Orders",)),
    ("ordres", False, ["orders", "customers"], ("orders",)),
    ("zzz", False, ["orders"], ()),
]


@pytest.mark.parametrize(("name", "quoted", "candidates", "similar"), MISSES)
def test_a_name_that_is_not_found_has_similar_ones(
    name: str, quoted: bool, candidates: list[str], similar: tuple[str, ...]
) -> None:
    found = find(name, quoted, candidates)
    assert isinstance(found, NotFound)
    assert found.similar == similar


@examples(30)
@given(st.lists(ANY_NAME, min_size=1, max_size=8))
def test_every_candidate_is_found_by_its_own_name_quoted_or_not(candidates: list[str]) -> None:
    index = NameIndex(candidates)
    for candidate in candidates:
        assert index.find(candidate, True) == index.find(candidate, False) == Found(candidate)


AVRO = [
    (["a", "b"], ["a", "b"]),
    (["a-b", "a b"], ["a_b", "a_b1"]),
    (["a-b", "a_b"], ["a_b1", "a_b"]),
    (["a-b", "a_b", "a_b1"], ["a_b2", "a_b", "a_b1"]),
    (["1st", "ü", "", "注文"], ["_1st", "_", "_1", "__"]),
]


@pytest.mark.parametrize(("names", "made"), AVRO)
def test_names_are_made_valid_for_avro(names: list[str], made: list[str]) -> None:
    assert list(avro_names(names)) == made


@examples(30)
@given(st.lists(ANY_NAME | st.sampled_from(["a_b", "a-b", "a b", "a_b1", "a.b", "a_b2"]), max_size=10, unique=True))
def test_names_made_for_avro_are_valid_different_and_kept_where_valid(names: list[str]) -> None:
    made = avro_names(names)
    valid = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
    assert len(set(made)) == len(names)
    assert all(valid.match(name) for name in made)
    assert all(new == old for old, new in zip(names, made, strict=True) if valid.match(old))


def test_the_limit_of_postgres_is_in_bytes() -> None:
    assert [postgres_too_long(name) for name in ("x" * 63, "x" * 64, "é" * 31, "é" * 32)] == [
        False,
        True,
        False,
        True,
    ]
