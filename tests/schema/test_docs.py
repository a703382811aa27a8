"""Docs in a type tree: all are found, set and taken away at their places."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.schema.docs import (
    DocPath,
    DocumentedPart,
    doc_paths,
    docs,
    undocumented,
    with_docs,
    without_docs,
)
from headgate.schema.errors import UnknownPath
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Type
from tests.laws import examples
from tests.schema import strategies as s

pytestmark = pytest.mark.unit

ORDER = parse_type(
    "record comment 'an order' (id bigint comment 'its number', lines array<record(sku text comment 'part', "
    "size enum comment 'how big' ('s', 'm'))>, extra map<text, record comment 'more' (note text)>)"
)


def test_docs_are_found_at_any_depth() -> None:
    assert docs(ORDER) == {
        DocPath("$", DocumentedPart.TYPE): "an order",
        DocPath("$.id", DocumentedPart.FIELD): "its number",
        DocPath("$.lines[].sku", DocumentedPart.FIELD): "part",
        DocPath("$.lines[].size", DocumentedPart.TYPE): "how big",
        DocPath("$.extra{}", DocumentedPart.TYPE): "more",
    }


def test_what_has_no_doc_is_listed_by_its_path() -> None:
    assert undocumented(ORDER, DocumentedPart.FIELD) == (
        "$.lines",
        "$.lines[].size",
        "$.extra",
        "$.extra{}.note",
    )
    assert undocumented(ORDER, DocumentedPart.TYPE) == ("$.lines[]",)


def test_a_doc_is_set_replaced_and_taken_away() -> None:
    made = with_docs(
        ORDER,
        {
            DocPath("$.id", DocumentedPart.FIELD): None,
            DocPath("$.extra{}.note", DocumentedPart.FIELD): "free text",
            DocPath("$", DocumentedPart.TYPE): "new",
        },
    )
    assert print_type(made, full=True) == (
        "record comment 'new' (id bigint, lines array<record(sku text comment 'part', "
        "size enum comment 'how big' ('s', 'm'))>, extra map<text, record comment 'more' (note text comment 'free text')>)"
    )


def test_a_place_that_is_not_there_is_an_error_with_near_names() -> None:
    with pytest.raises(UnknownPath) as raised:
        with_docs(ORDER, {DocPath("$.lines[].skku", DocumentedPart.FIELD): "x"})
    assert raised.value.similar[0] == "$.lines[].sku"


@examples(30)
@given(s.types())
def test_docs_taken_away_and_set_again_give_the_same_type(type_: Type) -> None:
    bare = without_docs(type_)
    assert docs(bare) == {}
    assert with_docs(bare, docs(type_)) == type_


@examples(30)
@given(s.types())
def test_no_place_is_listed_twice(type_: Type) -> None:
    found = [place for place, _ in doc_paths(type_)]
    assert len(found) == len(set(found))
