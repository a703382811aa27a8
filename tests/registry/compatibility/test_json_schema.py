"""JSON Schema: golden pairs, and verdicts that hold for really validated instances."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from headgate.registry.compatibility.json_compare import incompatibilities
from headgate.registry.schemas import ParsedSchema, Reference, Schema, parse
from headgate.schema.written import Json, SchemaFormat
from tests.laws import examples as law
from tests.registry.compatibility.json_schema_cases import CASES, Case, at_2020, closed, opened, text
from tests.registry.strategies import Pair, json_instances, json_pairs, json_schemas

pytestmark = pytest.mark.unit

LAW = law(60)


def read(definition: Json, **others: Json) -> ParsedSchema:
    """``others`` are the schemas referred to; the name ``b`` stands for ``b.json``."""
    references = tuple(Reference(f"{name}.json", name, 1) for name in others)
    schema = Schema(json.dumps(definition), SchemaFormat.JSON, references)
    return parse(schema, lambda reference: Schema(json.dumps(others[reference.subject]), SchemaFormat.JSON))


def is_valid(definition: Json, instance: Json) -> bool:
    return jsonschema_rs.Draft7Validator(json.dumps(definition), validate_formats=True).is_valid(instance)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_only_the_expected_changes_are_incompatible(case: Case) -> None:
    found = incompatibilities(read(case.new), read(case.old))
    assert sorted((each.path, each.kind) for each in found) == sorted(case.incompatible)


def test_messages_name_the_place_and_both_sides() -> None:
    old, new = read(closed({"a": text(maxLength=10)})), read(closed({"a": text(maxLength=5)}))
    (found,) = incompatibilities(new, old)
    assert found.message == "max length decreased at /properties/a/maxLength: 10 to 5"


def test_a_member_without_a_partner_is_named_with_the_reason() -> None:
    def optional(schema: Json) -> ParsedSchema:
        return read({"oneOf": [{"type": "null"}, closed({"a": schema})]})

    (found,) = incompatibilities(optional(text(maxLength=1)), optional(text(maxLength=2)))
    assert found.message == (
        "combined type subschemas changed at /: no member accepts all that oneOf/1 did "
        "(max length decreased at /oneOf/1/properties/a/maxLength: 2 to 1)"
    )


def test_a_reference_leads_into_another_subject() -> None:
    old = read(opened({"a": {"$ref": "b.json"}}), b={"type": "string"})
    new = read(opened({"a": {"$ref": "b.json"}}), b={"type": "number"})
    (found,) = incompatibilities(new, old)
    assert (found.path, found.kind) == ("/properties/a", "TYPE_CHANGED")


def test_a_reference_leads_to_a_definition_of_another_subject() -> None:
    def with_definition(schema: Json) -> ParsedSchema:
        return read(opened({"a": {"$ref": "b.json#/definitions/x"}}), b={"definitions": {"x": schema}})

    (found,) = incompatibilities(with_definition({"type": "number"}), with_definition({"type": "string"}))
    assert (found.path, found.kind) == ("/properties/a", "TYPE_CHANGED")


def test_a_reference_is_relative_to_the_id() -> None:
    def with_id(schema: Json) -> ParsedSchema:
        return read(opened({"a": {"$ref": "b.json"}}, **{"$id": "http://example.com/a.json"}), b=schema)

    assert incompatibilities(with_id({"type": "string"}), with_id({"type": "string"})) == ()
    assert len(incompatibilities(with_id({"type": "number"}), with_id({"type": "string"}))) == 1


def test_an_anchor_is_followed() -> None:
    def with_anchor(kind: str) -> ParsedSchema:
        definitions: Json = {"x": {"$anchor": "here", "type": kind}}
        return read(at_2020(opened({"a": {"$ref": "#here"}}, **{"$defs": definitions})))

    (found,) = incompatibilities(with_anchor("number"), with_anchor("string"))
    assert (found.path, found.kind) == ("/properties/a", "TYPE_CHANGED")


def test_a_cycle_inside_a_sum_does_not_hide_an_incompatibility() -> None:
    # T0 refers to T2 and that back to T0, each through a oneOf of one member. T0 is compared with T0 while the
    # inner T0 is assumed compatible; the answers for T2 that rest on it must not be kept.
    def part(kind: str, target: str) -> Json:
        reference: Json = {"oneOf": [{"$ref": f"#/definitions/{target}"}]}
        return opened({"id": {"type": kind}, "ref": reference})

    def web(first: str, second: str) -> ParsedSchema:
        definitions: Json = {"T0": part(first, "T2"), "T1": part(second, "T2"), "T2": part("integer", "T0")}
        members: list[Json] = [{"$ref": "#/definitions/T0"}, {"$ref": "#/definitions/T1"}]
        return read(opened({"root": {"oneOf": members}}, definitions=definitions))

    assert incompatibilities(web("boolean", "number"), web("integer", "boolean")) != ()
    assert incompatibilities(web("integer", "boolean"), web("integer", "boolean")) == ()


def test_many_definitions_that_refer_to_one_another_are_compared_in_time() -> None:
    names = [f"T{index}" for index in range(12)]
    union: Json = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions: Json = {name: opened({"id": {"const": name}, "x": union, "y": union}) for name in names}
    schema = read(opened({"root": union}, definitions=definitions))
    assert incompatibilities(schema, schema) == ()


@LAW
@given(json_schemas(is_closed=False))
def test_every_schema_accepts_what_it_accepted(definition: Json) -> None:
    assert incompatibilities(read(definition), read(definition)) == ()


@LAW
@given(json_pairs(), st.data())
def test_instances_of_the_old_are_instances_of_a_compatible_new(pair: Pair, data: st.DataObject) -> None:
    new, old = pair
    # Confluent lets a oneOf gain members that overlap, after which a value may match two of them and be refused.
    if incompatibilities(read(new), read(old)) or "oneOf" in json.dumps(new):
        return
    instance = data.draw(json_instances(old))
    if is_valid(old, instance):
        assert is_valid(new, instance)


@pytest.mark.parametrize(
    ("old", "new", "instance"),
    [
        (closed({"a": text()}), closed({"a": text(default="x")}, required=["a"]), {}),
        (opened(), opened(required=["a"]), {}),
        ({"minLength": 1}, {"type": "string", "minLength": 1}, 5),
        ({"type": ["boolean"], "minLength": 1}, {"type": "string"}, True),
        (opened(), opened(propertyNames={"maxLength": 1}), {"long": 1}),
        (
            opened(patternProperties={"a": text()}),
            opened(patternProperties={"a": {"type": "null"}}),
            {"a": ""},
        ),
        ({"contains": {"const": 1}}, {"contains": {"const": 2}}, [1]),
        ({"if": True, "then": True}, {"if": True, "then": False}, 1),
        ({"oneOf": [{"type": "integer"}]}, {"oneOf": [{"type": "integer"}, {"type": "number"}]}, 1),
        (text(), text(format="date"), "no date"),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_what_confluent_knowingly_lets_pass(old: Json, new: Json, instance: Json) -> None:
    # Its verdict is kept although it does not hold: a client that registers there must be able to register here.
    assert incompatibilities(read(new), read(old)) == ()
    assert is_valid(old, instance)
    assert not is_valid(new, instance)
