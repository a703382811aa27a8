"""Documents that are checked together get the verdict that they get one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.runtime.formats.json_validation import batch_validator, validator
from headgate.schema.written import WrittenSchema
from tests.laws import examples

pytestmark = pytest.mark.unit

OTHER = {"$defs": {"small": {"maximum": 5}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/small"}}}
SCHEMAS: list[object] = [
    {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
    {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"n": {"$ref": "#/$defs/node"}}, "type": "object"}}},
    {"properties": {"o": {"$ref": "other.json"}, "n": {"$ref": "other.json#/$defs/small"}}},
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 3, "exclusiveMinimum": True}},
    },
    {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"n": {"$ref": "#/definitions/n"}},
     "definitions": {"n": {"enum": [1, "x"]}}},
]  # fmt: skip
VALUES = st.one_of(st.none(), st.integers(0, 9), st.text("xy", max_size=2))
DOCUMENTS = st.dictionaries(st.sampled_from(["id", "n", "o"]), VALUES | st.dictionaries(st.just("n"), VALUES))


@examples(200)
@given(st.sampled_from(SCHEMAS), st.lists(DOCUMENTS | VALUES, max_size=4))
def test_many_are_valid_when_each_is(schema: object, documents: list[Any]) -> None:
    written = WrittenSchema(json.dumps(schema), (("other.json", json.dumps(OTHER)),))
    many, one = batch_validator(written), validator(written)
    assert many is not None
    assert many.is_valid(documents) == all(one.is_valid(document) for document in documents)


@pytest.mark.parametrize("own", [{"$id": "http://a/b"}, {"$anchor": "a"}, {"$dynamicAnchor": "a"}, {"id": "http://a"}])
def test_a_schema_that_has_a_name_of_its_own_is_left_alone(own: dict[str, object]) -> None:
    assert batch_validator(WrittenSchema(json.dumps({**own, "type": "object"}))) is None


def test_a_schema_without_a_draft_may_be_of_draft_7() -> None:
    items = WrittenSchema('{"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}')
    many, one = batch_validator(items), validator(items)
    assert many is not None
    assert [one.is_valid(found) for found in ([1, "x"], ["x"])] == [True, False]
    assert [many.is_valid([found]) for found in ([1, "x"], ["x"])] == [True, False]


def test_a_property_may_have_any_name() -> None:
    schema = {"properties": {"id": {"type": "integer"}, "$id": {"type": "string"}}}
    assert batch_validator(WrittenSchema(json.dumps(schema))) is not None
