"""The seven levels: which versions are compared, and in which direction."""

from __future__ import annotations

import json

import pytest

from headgate.registry.compatibility import check
from headgate.registry.schemas import ParsedSchema, Schema, parse
from headgate.schema.written import CompatibilityLevel, Json, SchemaFormat
from tests.registry.compatibility.avro_cases import field, record

pytestmark = pytest.mark.unit


def read(text: str, schema_type: SchemaFormat = SchemaFormat.AVRO) -> ParsedSchema:
    return parse(Schema(text, schema_type), lambda reference: None)


def avro(*fields: Json) -> ParsedSchema:
    return read(json.dumps(record(*fields)))


A = avro(field("a", "int"))
A_LONG = avro(field("a", "long"))
A_STRING = avro(field("a", "string"))
WITH_B = avro(field("a", "int"), field("b", "int"))
WITH_OPTIONAL_B = avro(field("a", "int"), field("b", "int", default=0))

EVERY_LEVEL = tuple(CompatibilityLevel)


def levels_that_refuse(new: ParsedSchema, *earlier: ParsedSchema) -> set[str]:
    return {level.value for level in EVERY_LEVEL if check(new, earlier, level)}


def test_the_first_version_is_always_compatible() -> None:
    assert levels_that_refuse(A) == set()


def test_the_same_schema_is_always_compatible() -> None:
    assert levels_that_refuse(A, A) == set()


def test_a_new_field_without_a_default_breaks_backward() -> None:
    assert levels_that_refuse(WITH_B, A) == {"BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"}


def test_a_dropped_field_without_a_default_breaks_forward() -> None:
    assert levels_that_refuse(A, WITH_B) == {"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"}


def test_a_new_field_with_a_default_is_compatible_in_both_directions() -> None:
    assert levels_that_refuse(WITH_OPTIONAL_B, A) == set()


def test_a_widened_type_breaks_forward() -> None:
    assert levels_that_refuse(A_LONG, A) == {"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"}


def test_another_type_breaks_every_level_but_none() -> None:
    assert levels_that_refuse(A_STRING, A) == {level.value for level in EVERY_LEVEL} - {"NONE"}


def test_only_transitive_levels_look_further_back_than_the_latest() -> None:
    assert levels_that_refuse(A, A_STRING, A) == {
        "BACKWARD_TRANSITIVE",
        "FORWARD_TRANSITIVE",
        "FULL_TRANSITIVE",
    }


def test_the_latest_is_the_last_given() -> None:
    refused = levels_that_refuse(A, A, A_STRING)
    assert refused == {level.value for level in EVERY_LEVEL} - {"NONE"}


def test_full_names_the_incompatibilities_of_both_directions() -> None:
    found = check(A_LONG, [WITH_B], CompatibilityLevel.FULL)
    assert {(each.path, each.kind) for each in found} == {
        ("$.fields[0].type", "TYPE_MISMATCH"),  # the old int does not read the new long
        ("$.fields[1]", "READER_FIELD_MISSING_DEFAULT_VALUE"),  # the old b is not written any more
    }


def test_what_several_versions_have_in_common_is_named_once() -> None:
    assert len(check(A_STRING, [A, A, A], CompatibilityLevel.BACKWARD_TRANSITIVE)) == 1


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_a_change_of_schema_type_is_refused_but_at_none(level: CompatibilityLevel) -> None:
    as_json = read('{"type": "object"}', SchemaFormat.JSON)
    found = check(as_json, [A], level)
    assert [each.kind for each in found] == ([] if level is CompatibilityLevel.NONE else ["SCHEMA_TYPE_CHANGED"])
    assert all("JSON" in each.message and "AVRO" in each.message for each in found)


def test_json_schema_is_compared_as_json_schema() -> None:
    old, new = (read(json.dumps({"type": kind}), SchemaFormat.JSON) for kind in ("integer", "number"))
    assert check(new, [old], CompatibilityLevel.BACKWARD) == ()
    assert [each.kind for each in check(new, [old], CompatibilityLevel.FORWARD)] == ["TYPE_NARROWED"]


def test_protobuf_is_compared_as_protobuf() -> None:
    texts = (f'syntax = "proto3"; message M {{ {kind} a = 1; }}' for kind in ("int32", "string"))
    old, new = (read(text, SchemaFormat.PROTOBUF) for text in texts)
    assert check(old, [old], CompatibilityLevel.FULL) == ()
    assert check(new, [old], CompatibilityLevel.BACKWARD) != ()


def test_schemas_too_deep_to_compare_are_refused_with_a_word() -> None:
    def chain(last: str) -> ParsedSchema:
        links = {f"L{i}": {"properties": {"next": {"$ref": f"#/definitions/L{i + 1}"}}} for i in range(600)}
        definitions = {**links, "L600": {"type": last}}
        return read(json.dumps({"$ref": "#/definitions/L0", "definitions": definitions}), SchemaFormat.JSON)

    assert check(chain("string"), [chain("string")], CompatibilityLevel.BACKWARD) == ()
    (found,) = check(chain("number"), [chain("string")], CompatibilityLevel.BACKWARD)
    assert found.kind == "TOO_DEEP_TO_COMPARE"
