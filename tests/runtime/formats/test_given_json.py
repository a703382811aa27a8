"""Given JSON Schemas on Spark: the JVM and plain Python write the same documents, and refuse the same rows with the same paths."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from hypothesis import Phase, assume, given, settings, strategies as st
from pyspark.sql import SparkSession

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.given_json import GivenJsonWriter, json_in_jvm
from headgate.runtime.formats.json_shape import UNCHECKED_FORMATS
from headgate.runtime.formats.json_validation import validator
from headgate.schema.errors import SchemaError
from headgate.schema.values import from_json
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.laws import TIMES, examples
from tests.runtime.formats.test_given import VALUE_OF_T, OneSchema
from tests.runtime.formats.test_given_on_spark import in_python, on_spark, side
from tests.schema import strategies as s

pytestmark = pytest.mark.spark

INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
WHEN = dt.datetime(2026, 11, 15, 12, 30, 0, 123456, tzinfo=dt.UTC)


def made_of(properties: Mapping[str, object], leave_out: set[str] | None = None, **more: Any) -> RecordEncoding:
    document = {"type": "object", "properties": properties, **more}
    return side(json.dumps(document), SchemaFormat.JSON, leave_out or set())


def written_alike(session: SparkSession, made: RecordEncoding, rows: list[Any]) -> list[Any]:
    """What both ways write, which is the same: documents, and paths of values that are refused."""
    jvm = json_in_jvm(made)
    assert isinstance(jvm, GivenJsonWriter)
    found, expected = (
        [one if isinstance(one, str) else json.loads(one[5:]) for one in way]
        for way in (on_spark(session, made, jvm, rows), in_python(made, rows))
    )
    assert found == expected
    return found


NULLABLE = {
    "type": lambda kind: {"type": ["null", kind]},
    "choice": lambda kind: {"oneOf": [{"type": "null"}, {"type": kind}]},
    "reference": lambda kind: {"description": "x", "anyOf": [{"$ref": f"#/definitions/{kind}"}, {"type": "null"}]},
    "left out": lambda kind: {"type": kind},
    "left out behind": lambda kind: {"allOf": [{"$ref": f"#/definitions/{kind}"}]},
}


@pytest.mark.parametrize("how", NULLABLE)
def test_properties_without_a_value_are_null_left_out_or_their_default(session: SparkSession, how: str) -> None:
    number, text, flag, whole = map(NULLABLE[how], ("number", "string", "boolean", "integer"))
    items = {"type": "object", "properties": {"more": text, "x": whole}, "additionalProperties": {"type": "integer"}}
    properties = {
        "extra": {"type": "string", "default": "x"},
        "i": {"type": "integer", **INT32, "description": "a number", "connect.type": "int32", "connect.index": 1},
        "b": {"type": "integer", "default": 7}, "d": number, "t": text, "e": {"enum": ["A", "B"]}, "more": flag,
        "rows": {"type": "array", "items": items, "connect.type": "map"}, "always": {"type": ["string", "null"]},
        "m": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
    }  # fmt: skip
    made = made_of(
        properties, {"extra", "more"}, required=["i", "e", "b"], additionalProperties=False, description="a row",
        definitions={kind: {"type": kind} for kind in ("number", "string", "boolean", "integer")},
        **{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://shop/row"},
    )  # fmt: skip
    good: dict[str, Any] = {"i": 1, "b": None, "d": None, "t": None, "e": "A", "rows": [{"x": None}, {"x": 1}], "m": {"k": None, "l": 2}, "always": None}  # fmt: skip
    full = {**good, "b": 2**60, "d": -2.5, "t": 'ä"\n', "rows": [], "m": {}, "always": "a"}
    bad: list[dict[str, Any]] = [{"i": None}, {"e": "C"}, {"e": None}, {"d": float("inf")}]
    nothing = {**good, "rows": None, "m": None}
    found = written_alike(session, made, [good, full, nothing, *({**good, **wrong} for wrong in bad)])
    assert found[3:] == ["$.i", "$.e", "$.e", "$.d"]
    absent = how.startswith("left out")
    assert ("d" in found[0], "more" in found[0]) == (not absent, not absent)
    assert (found[0]["b"], found[0]["extra"], found[0]["always"]) == (7, "x", None)
    assert found[0]["rows"][0] == ({} if absent else {"more": None, "x": None})
    assert not {"rows", "m"} & found[2].keys()


def test_bounds_are_checked_with_their_paths(session: SparkSession) -> None:
    inner = {"type": "object", "properties": {"n": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 2}}}
    made = made_of(
        {
            "low": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
            "wide": {"type": "integer", "exclusiveMinimum": -5, "multipleOf": 3},
            "text": {"type": ["string", "null"], "minLength": 2, "maxLength": 3, "format": "email"},
            "list": {"type": "array", "items": inner, "minItems": 1, "maxItems": 2},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 4}},
            "fixed": {"const": "only"},
        }
    )
    good = {"low": 10, "wide": -3, "text": "aä", "list": [{"n": 0.5}], "map": {"k": 4}, "fixed": "only"}
    bad: list[tuple[dict[str, Any], str]] = [
        ({"low": 0}, "$.low"), ({"low": 11}, "$.low"), ({"wide": -6}, "$.wide"), ({"wide": 4}, "$.wide"),
        ({"text": "ä"}, "$.text"), ({"text": "😀😀😀😀"}, "$.text"), ({"list": []}, "$.list"),
        ({"list": [{"n": 1.0}] * 3}, "$.list"), ({"list": [{"n": 1.0}, {"n": 2.0}]}, "$.list[].n"),
        ({"list": [{"n": 0.25}]}, "$.list[].n"), ({"fixed": "other"}, "$.fixed"),
    ]  # fmt: skip
    empty = dict.fromkeys(good)
    found = written_alike(session, made, [good, empty, *({**good, **wrong} for wrong, _ in bad)])
    assert found[:2] == [good, {"low": 3, "text": None}]
    assert found[2:] == [path for _, path in bad]


def test_values_of_maps_are_checked_by_the_path_of_their_type(session: SparkSession) -> None:
    made = made_of({"m": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 4}}})
    rows = [{"m": {"k": 4}}, {"m": {"k": 5}}]
    jvm = json_in_jvm(made)
    assert jvm is not None
    assert on_spark(session, made, jvm, rows)[1] == "$.m{}"


def test_references_to_other_documents_are_followed(session: SparkSession) -> None:
    inner = '{"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}}, "required": ["x"]}'
    text = '{"type": "object", "properties": {"i": {"$ref": "inner.json"}}}'
    made = side(text, SchemaFormat.JSON, set(), references=(("inner.json", inner),))
    assert written_alike(session, made, [{"i": {"x": 1}}, {"i": None}, {"i": {"x": None}}, {"i": {"x": -1}}]) == [
        {"i": {"x": 1}}, {}, "$.i.x", "$.i.x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "property_",
    [
        {"type": "string", "pattern": "a"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "integer"}]},
        {"oneOf": [{"type": "null"}, {"type": ["string", "null"]}]},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
        {"type": "integer", "minimum": 1.5},
        {"type": "number", "maximum": 2**53 + 1},
        {"type": "number", "multipleOf": 0.1},
        {"type": "string", "default": 5},
        {"type": "string", "default": None},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"properties": {"a": {"type": "string"}}},
        {"type": "number", "title": "org.apache.kafka.connect.data.Decimal"},
        {"type": "integer", "title": "org.apache.kafka.connect.data.Date"},
        {"$id": "http://elsewhere/", "type": "string"},
    ],
)
def test_what_only_a_validator_can_check_is_left_to_the_workers(property_: object) -> None:
    assert json_in_jvm(made_of({"a": property_})) is None


@pytest.mark.parametrize(
    ("draft", "format_", "in_jvm"),
    [
        ("", "email", True),
        ("https://json-schema.org/draft/2020-12/schema", "email", True),
        ("http://json-schema.org/draft-07/schema#", "email", False),
        ("http://json-schema.org/draft-07/schema#", "date", True),
    ],
)
def test_formats_that_a_draft_checks_are_left_to_the_workers(draft: str, format_: str, in_jvm: bool) -> None:
    more: dict[str, Any] = {"$schema": draft} if draft else {}
    made = made_of({"a": {"type": "string", "format": format_}}, **more)
    assert (json_in_jvm(made) is not None) == in_jvm


@pytest.mark.parametrize("format_", sorted(UNCHECKED_FORMATS))
@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_no_draft_checks_the_formats_that_stay_in_the_jvm(draft: str, format_: str) -> None:
    schema = json.dumps({"$schema": f"http://json-schema.org/{draft}/schema#", "format": format_})
    assert validator(WrittenSchema(schema, format=SchemaFormat.JSON)).is_valid("no value of any format")


# random schemas

TEXTS = st.sampled_from(("date", "time", "date-time", "date-time-local", "uuid", "email"))
SCALARS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "integer", **INT32}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(-(2**65), -(2**40))}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"default": st.integers(-9, 9), "maximum": st.just(2**62)}),
    st.fixed_dictionaries({"type": st.just("number")}, optional={"minimum": st.floats(-1e300, -1e200)}),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(6, 12), "default": st.just("ä")}),
    st.fixed_dictionaries({"type": st.just("string"), "format": TEXTS}),
    st.just({"type": "string", "contentEncoding": "base64"}),
    st.just({"type": "string", "format": "number", "x-precision": 12, "x-scale": 3}),
    st.just({"type": "string", "enum": ["A", "B", "ö"]}),
    st.just({"description": "anything"}),
)  # fmt: skip


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.just(2)}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        objects(inner),
    )


@st.composite
def nullable(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    schema = draw(inner)
    match draw(st.sampled_from(("", "", "type", "oneOf", "anyOf", "allOf"))):
        case "type" if isinstance(schema.get("type"), str) and "enum" not in schema:
            return {**schema, "type": [schema["type"], "null"]}
        case "oneOf" | "anyOf" as keyword if "type" in schema:
            return {"description": "one", keyword: [{"type": "null"}, schema]}
        case "allOf":
            return {"allOf": [schema], "connect.index": 0}
        case _:
            return schema


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(("a", "B", "c d", "ä", "e", "f", "g")), min_size=1, max_size=6, unique=True))
    required = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    properties = {name: draw(nullable(inner)) for name in names}
    return {"type": "object", "properties": properties, "required": required}


SCHEMAS = objects(st.recursive(SCALARS, nested, max_leaves=3))
FEW = settings(examples(10), max_examples=4 * TIMES, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@st.composite
def sides(draw: st.DrawFn) -> tuple[RecordEncoding, list[Any]]:
    try:
        made = side(json.dumps(draw(SCHEMAS)), SchemaFormat.JSON, set())
    except SchemaError:
        assume(False)
        raise
    assume(json_in_jvm(made) is not None)
    return made, draw(st.lists(s.values_of(made.record), min_size=2, max_size=6))


def written_schema(made: RecordEncoding) -> WrittenSchema:
    assert made.written is not None
    return made.written


def test_random_schemas_are_written_alike_by_the_jvm_and_by_python_and_read_by_the_vendor(
    session: SparkSession,
) -> None:
    @given(sides())
    @FEW
    def law(drawn: tuple[RecordEncoding, list[Any]]) -> None:
        made, rows = drawn
        jvm = json_in_jvm(made)
        for ours, theirs in zip(on_spark(session, made, jvm, rows), in_python(made, rows), strict=True):
            assert isinstance(ours, str) == isinstance(theirs, str), (ours, theirs)
            if not isinstance(ours, str):
                client: Any = OneSchema(written_schema(made))
                read_json = JSONDeserializer(made.schema, schema_registry_client=client)
                assert read_json(ours, VALUE_OF_T) == json.loads(ours[5:])
                one, other = (json.loads(text[5:], parse_float=Decimal) for text in (ours, theirs))
                assert outline(one) == outline(other)
                assert from_json(one, made.record) == from_json(other, made.record)

    law()


def outline(document: Any) -> Any:
    """Which members a document has, and which of them are null."""
    match document:
        case dict():
            return {name: outline(value) for name, value in document.items()}
        case list():
            return [outline(value) for value in document]
        case _:
            return document is None
