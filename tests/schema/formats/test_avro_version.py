"""The next version of a published schema: docs that stay, defaults that fields get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import to_json
from headgate.schema.formats.avro.write import differs, next_version

pytestmark = pytest.mark.unit


def version(old: object, new: object) -> Any:
    return to_json(next_version(load_tree(old), load_tree(new)))


def test_only_fields_that_are_new_get_a_default() -> None:
    old = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", "int"]},
            {"name": "b", "type": ["null", {"type": "record", "name": "s", "fields": []}]},
        ],
    }
    inner = {"type": "record", "name": "s", "fields": [{"name": "d", "type": ["null", "int"]}]}
    new = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", "int"]},
            {"name": "b", "type": ["null", inner]},
            {"name": "c", "type": ["null", "int"]},
        ],
    }
    made = version(old, new)
    assert "default" not in made["fields"][0]
    assert made["fields"][1]["type"][1]["fields"] == [{"name": "d", "type": ["null", "int"], "default": None}]
    assert made["fields"][2] == {"name": "c", "type": ["null", "int"], "default": None}


def test_docs_inside_of_fields_stay_as_they_were() -> None:
    def nested(doc: str, *symbols: str) -> dict[str, object]:
        enum = {"type": "enum", "name": "e", "doc": doc, "symbols": [*symbols]}
        inner = {
            "type": "record",
            "name": "s",
            "doc": doc,
            "fields": [{"name": "x", "type": enum, "doc": doc}],
        }
        field = {"name": "b", "type": {"type": "array", "items": ["null", inner]}}
        return {"type": "record", "name": "r", "fields": [field]}

    assert json.dumps(version(nested("old", "a"), nested("new", "a", "b"))) == json.dumps(nested("old", "a", "b"))


def test_docs_alone_make_no_version() -> None:
    one = {
        "type": "record",
        "name": "r",
        "doc": "old",
        "fields": [{"name": "a", "type": "int", "doc": "old"}],
    }
    other = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    wider = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    assert not differs(load_tree(one), load_tree(other))
    assert differs(load_tree(one), load_tree(wider))
