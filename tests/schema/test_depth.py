"""The deepest type that is allowed goes through everything without an overflow."""

from __future__ import annotations

import pickle

import pytest

from headgate.schema.errors import NameTooLong
from headgate.schema.evolve.changes import diff
from headgate.schema.evolve.merge import merge, widen
from headgate.schema.evolve.verdicts import Target, verdict
from headgate.schema.formats.elasticsearch import from_elasticsearch, to_elasticsearch
from headgate.schema.formats.postgres import columns
from headgate.schema.formats.spark import from_spark, to_spark
from headgate.schema.parse import parse_type
from headgate.schema.types import MAX_DEPTH, Record
from headgate.schema.values import from_json, to_json
from tests.schema.evolve.applying import apply
from tests.schema.evolve.evolutions import follows
from tests.schema.values import is_value

pytestmark = pytest.mark.unit

# What one level opens and closes with, and how many levels of nesting that is.
RECORDS = ("record(a ", ")", 1)
ARRAYS = ("array<record(a ", ")>", 2)
MAPS = ("map<text, record(a ", ")>", 2)
KINDS = [RECORDS, ARRAYS, MAPS]
Kind = tuple[str, str, int]


def _deep(kind: Kind, leaf: str) -> Record:
    opening, closing, deep = kind
    levels = (MAX_DEPTH - 1) // deep
    type_ = parse_type("record(a " + opening * levels + leaf + closing * levels + ")")
    assert isinstance(type_, Record)
    return type_


@pytest.mark.parametrize("kind", KINDS)
def test_the_deepest_types_are_compared_joined_and_merged(kind: Kind) -> None:
    old, new = _deep(kind, "integer"), _deep(kind, "bigint not null")
    changes = diff(old, new)
    assert len(changes) == 2
    assert apply(old, changes) == new
    assert follows(old, new)
    assert merge(old, new) == widen(old, new) == _deep(kind, "bigint")
    assert all(verdict(change, target).reason for change in changes for target in Target)


@pytest.mark.parametrize("kind", KINDS)
def test_the_deepest_types_are_mapped(kind: Kind) -> None:
    type_ = _deep(kind, "integer")
    assert from_spark(to_spark(type_)) == type_
    assert from_elasticsearch(to_elasticsearch(type_)).fields[0].name == "a"
    assert pickle.loads(pickle.dumps(type_)) == type_


def test_the_deepest_types_become_columns_or_have_names_that_are_too_long() -> None:
    assert [column.postgres for column in columns(_deep(ARRAYS, "integer"))] == ["jsonb"]
    with pytest.raises(NameTooLong):
        columns(_deep(RECORDS, "integer"))


def test_the_deepest_values_are_cast() -> None:
    type_ = _deep(RECORDS, "integer")
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = {"a": value}
    made = from_json(value, type_)
    assert is_value(made, type_)
    assert to_json(made, type_) == value
