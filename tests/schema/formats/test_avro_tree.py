"""The tree of an Avro schema: parsing, printing and copies of it."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest
from hypothesis import given

from headgate.schema.formats.avro.parse import parse, parse_leniently
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import (
    Primitive,
    Record,
    canonical_text,
    rebuild,
    to_json,
    values_of,
    walk,
    without_docs,
)
from headgate.schema.written import Json
from tests.laws import examples
from tests.registry.strategies import avro_schemas

pytestmark = pytest.mark.unit

LIST: dict[str, Any] = {
    "type": "record",
    "name": "n.list",
    "doc": "a list",
    "fields": [
        {"name": "head", "type": "int", "doc": "the first"},
        {"name": "tail", "type": ["null", "n.list"], "default": None},
    ],
}


@given(avro_schemas())
@examples(60)
def test_a_printed_tree_is_the_same_tree(schema: Json) -> None:
    printed = to_json(load_tree(schema))
    assert to_json(load_tree(printed)) == printed


@given(avro_schemas())
@examples(60)
def test_a_printed_tree_means_the_same_to_fastavro(schema: Json) -> None:
    def canonical(one: Any) -> str:
        return fastavro.schema.to_parsing_canonical_form(json.loads(json.dumps(one)))

    assert canonical(to_json(load_tree(schema))) == canonical(schema)


@given(avro_schemas())
@examples(60)
def test_what_a_registry_accepts_is_the_same_to_the_lenient_parser(schema: Json) -> None:
    strict, lenient = parse(schema), parse_leniently(schema)
    assert (strict.faults, lenient.faults) == ((), ())
    assert canonical_text(strict.type) == canonical_text(lenient.type)


def test_a_record_that_contains_itself_is_one_node() -> None:
    tree = load_tree(LIST)
    assert isinstance(tree, Record)
    assert values_of(tree.fields[1].type) == (tree,)
    assert to_json(tree) == {**LIST, "name": "list", "namespace": "n", "fields": [*_fields("list")]}


def _fields(name: str) -> list[dict[str, Any]]:
    head, tail = LIST["fields"]
    return [head, {**tail, "type": ["null", name]}]


def test_a_copy_of_a_record_that_contains_itself_contains_the_copy() -> None:
    tree = load_tree(LIST)
    copy = rebuild(tree, lambda node: Primitive("long") if isinstance(node, Primitive) and node.kind == "int" else node)
    assert isinstance(copy, Record)
    assert values_of(copy.fields[1].type) == (copy,)
    assert copy is not tree
    assert [node.kind for node in walk(copy) if isinstance(node, Primitive)].count("long") == 1


def test_docs_are_taken_away_everywhere() -> None:
    bare = canonical_text(without_docs(load_tree(LIST)))
    assert "doc" not in bare
    assert "doc" in canonical_text(load_tree(LIST))


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "record", "name": "r", "fields": [{"name": "a b", "type": "int"}]}, "$.fields[0].name"),
        ({"type": "enum", "name": "e", "symbols": ["a b"]}, "$.symbols[0]"),
        ({"type": "record", "name": "a-b", "fields": []}, "$.name"),
        ({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "default": "x"}]}, "$.fields[0].default"),
        ({"type": {"type": "int"}}, "$"),
    ],
)  # fmt: skip
def test_a_schema_from_before_names_were_checked_is_read_but_not_registered(schema: Json, path: str) -> None:
    assert parse_leniently(schema).faults == ()
    assert [fault.path for fault in parse(schema).faults] == [path]
