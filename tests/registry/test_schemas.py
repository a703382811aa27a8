"""Reading registered schemas: what is refused and where, what counts as the same, how references are followed."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable

import fastavro
import pytest
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP
from hypothesis import given

from headgate.errors import HeadgateError
from headgate.registry.compatibility import check
from headgate.registry.errors import MalformedSchema, ReferenceCycle, UnknownReference
from headgate.registry.schemas import ParsedSchema, Reference, Schema, parse
from headgate.schema.written import CompatibilityLevel, Json, SchemaFormat
from tests.laws import examples as law
from tests.registry.compatibility.avro_cases import enum, field, fixed, record
from tests.registry.malformed_schemas import (
    BAD_DEFAULTS,
    GOOD_DEFAULTS,
    MALFORMED_AVRO,
    MALFORMED_JSON_SCHEMA,
)
from tests.registry.strategies import AVRO_WORDS, JSON_SCHEMA_WORDS, avro_schemas, json_schemas, odd_json

pytestmark = pytest.mark.unit

LAW = law(40)

AVRO, JSON, PROTOBUF = SchemaFormat


def read(text: str, schema_type: SchemaFormat = AVRO, *, normalize: bool = False) -> ParsedSchema:
    return parse(Schema(text, schema_type), lambda reference: None, normalize=normalize)


def faults(definition: Json, schema_type: SchemaFormat = AVRO) -> list[tuple[str, str]]:
    with pytest.raises(MalformedSchema) as raised:
        read(json.dumps(definition), schema_type)
    return [(fault.path, fault.reason) for fault in raised.value.faults]


# Text that is no JSON


@pytest.mark.parametrize("schema_type", [AVRO, JSON])
def test_text_that_is_no_json_is_refused_with_line_and_column(schema_type: SchemaFormat) -> None:
    with pytest.raises(MalformedSchema) as raised:
        read('{"type": "record",\n "name" "R"}', schema_type)
    assert (raised.value.line, raised.value.column) == (2, 9)
    assert raised.value.message().endswith("not valid JSON: expecting ':' delimiter (line 2, column 9)")


@pytest.mark.parametrize("text", ["", "NaN", '{"default": Infinity}', "[" * 100_000, "[" * 200 + "]" * 200, '"\\x"'])
@pytest.mark.parametrize("schema_type", [AVRO, JSON])
def test_hostile_text_is_refused_and_nothing_else_happens(text: str, schema_type: SchemaFormat) -> None:
    with pytest.raises(MalformedSchema) as raised:
        read(text, schema_type)
    assert raised.value.code == "REG-0101"


def outcome(value: Json, schema_type: SchemaFormat) -> ParsedSchema | MalformedSchema:
    try:
        return read(json.dumps(value), schema_type)
    except MalformedSchema as wrong:
        return wrong


@LAW
@given(odd_json(*AVRO_WORDS))
def test_any_json_is_an_avro_schema_or_malformed(value: Json) -> None:
    found = outcome(value, AVRO)
    if isinstance(found, MalformedSchema):
        assert all(fault.path.startswith("$") for fault in found.faults)
    else:
        assert check(found, [read(found.canonical)], CompatibilityLevel.FULL) == ()


@LAW
@given(odd_json(*JSON_SCHEMA_WORDS))
def test_any_json_is_a_json_schema_or_malformed(value: Json) -> None:
    found = outcome(value, JSON)
    if isinstance(found, MalformedSchema):
        assert all(fault.path.startswith("/") for fault in found.faults)
    else:
        assert check(found, [read(found.canonical, JSON)], CompatibilityLevel.FULL) == ()


def test_the_error_survives_a_pickle() -> None:
    with pytest.raises(MalformedSchema) as raised:
        read("{")
    assert pickle.loads(pickle.dumps(raised.value)).message() == raised.value.message()


# Avro


@pytest.mark.parametrize(("definition", "path", "reason"), MALFORMED_AVRO, ids=lambda value: str(value)[:50])
def test_malformed_avro_is_refused_with_its_path(definition: Json, path: str, reason: str) -> None:
    assert (path, reason) in faults(definition)


@pytest.mark.parametrize(("type_", "default", "below", "reason"), BAD_DEFAULTS, ids=lambda value: str(value)[:30])
def test_a_default_must_fit_its_type(type_: Json, default: Json, below: str, reason: str) -> None:
    found = faults(record(field("a", type_, default=default)))
    assert found == [(f"$.fields[0].default{below}", reason)]


@pytest.mark.parametrize(("type_", "default"), GOOD_DEFAULTS, ids=lambda value: str(value)[:30])
def test_a_default_that_fits_is_accepted(type_: Json, default: Json) -> None:
    definition = record(field("a", type_, default=default))
    assert read(json.dumps(definition)).definition == definition


def test_every_fault_is_named_at_once() -> None:
    found = faults(record(field("a", "x"), field("b", "int", default="no"), field("b", "y")))
    assert [path for path, _ in found] == [
        "$.fields[0].type",
        "$.fields[2].type",
        "$.fields[2]",
        "$.fields[1].default",
    ]


def test_the_message_names_the_first_fault_and_the_detail_all() -> None:
    with pytest.raises(MalformedSchema) as raised:
        read(json.dumps(record(field("a", "x"), field("b", "y"))))
    assert raised.value.message() == (
        'malformed AVRO schema at $.fields[0].type: type "x" is not defined before its use (and 1 more)'
    )
    assert "$.fields[1].type" in (raised.value.detail() or "")


def test_a_logical_type_that_does_not_fit_is_ignored() -> None:
    odd: Json = {"type": "string", "logicalType": "decimal", "precision": -1}
    assert read(json.dumps(odd)).definition == odd


def test_names_are_found_in_the_enclosing_namespace_then_in_none() -> None:
    inner = record(field("a", "E"), field("b", "F"), name="I")
    outer: Json = record(field("x", fixed(1, "n.F")), field("y", inner), name="n.R")
    assert read(json.dumps([enum("A"), outer])).definition == [enum("A"), outer]


# The same schema


def test_white_space_and_the_order_of_keys_do_not_make_another_avro_schema() -> None:
    one = read('{"type": "record", "name": "a.R", "fields": [{"name": "x", "type": {"type": "int"}}]}')
    other = read('{"fields":[{"type":"int","name":"x"}],"namespace":"a","name":"R","type":"record"}')
    assert one.canonical == other.canonical
    assert one.canonical == '{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":"int"}]}'


def test_docs_defaults_and_aliases_make_another_avro_schema() -> None:
    attributes: tuple[dict[str, Json], ...] = ({}, {"doc": "d"}, {"default": 1}, {"aliases": ["b"]})
    canonical = {read(json.dumps(record(field("a", "int", **each)))).canonical for each in attributes}
    assert len(canonical) == 4


def test_canonical_avro_keeps_attributes_in_the_order_of_java() -> None:
    text = json.dumps(enum("A", namespace="n", aliases=["n.X", "Y"], default="A", doc="d", custom=[1]))
    assert read(text).canonical == (
        '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A",'
        '"custom":[1],"aliases":["X","Y"]}'
    )


def test_a_null_namespace_inside_another_is_written() -> None:
    inner = fixed(1, "F", namespace="")
    canonical = read(json.dumps(record(field("a", inner), name="n.R"))).canonical
    assert '{"type":"fixed","name":"F","namespace":"","size":1}' in canonical


def test_normalizing_avro_ignores_how_names_are_written_and_the_order_of_attributes() -> None:
    one = record(field("a", fixed(1, "n.F", x=1, y={"p": 1, "q": 2})), field("b", "F"), name="n.R", doc="")
    other = record(field("a", fixed(1, "F", y={"q": 2, "p": 1}, x=1)), field("b", "n.F"), name="R", namespace="n")
    first, second = (read(json.dumps(each)) for each in (one, other))
    assert first.canonical != second.canonical
    first, second = (read(json.dumps(each), normalize=True) for each in (one, other))
    assert first.canonical == second.canonical


def test_json_is_compact_and_keeps_the_order_of_keys_unless_normalized() -> None:
    one, other = '{ "type" : "object", "title" : "é" }', '{"title":"é","type":"object"}'
    assert read(one, JSON).canonical == '{"type":"object","title":"é"}'
    assert read(one, JSON).canonical != read(other, JSON).canonical
    assert read(one, JSON, normalize=True).canonical == read(other, JSON, normalize=True).canonical


@LAW
@given(avro_schemas())
def test_canonical_avro_is_its_own_canonical_form(definition: Json) -> None:
    for normalize in (False, True):
        canonical = read(json.dumps(definition), normalize=normalize).canonical
        assert read(canonical, normalize=normalize).canonical == canonical


@LAW
@given(avro_schemas())
def test_canonical_avro_means_the_same_to_fastavro(definition: Json) -> None:
    def fingerprint(text: str) -> str:
        parsing_form = fastavro.schema.to_parsing_canonical_form(json.loads(text))
        return str(fastavro.schema.fingerprint(parsing_form, "CRC-64-AVRO"))

    text = json.dumps(definition)
    assert fingerprint(read(text).canonical) == fingerprint(text)
    assert fingerprint(read(text, normalize=True).canonical) == fingerprint(text)


@LAW
@given(json_schemas(is_closed=False))
def test_canonical_json_is_its_own_canonical_form(definition: Json) -> None:
    canonical = read(json.dumps(definition, indent=2), JSON).canonical
    assert read(canonical, JSON).canonical == canonical


# JSON Schema


@pytest.mark.parametrize(("definition", "path"), MALFORMED_JSON_SCHEMA, ids=lambda value: str(value)[:50])
def test_malformed_json_schema_is_refused_with_its_path(definition: Json, path: str) -> None:
    assert path in [place for place, _ in faults(definition, JSON)]


def test_a_loose_reference_says_what_to_do() -> None:
    ((_, reason),) = faults({"$ref": "other.json"}, JSON)
    assert reason == '"other.json" leads nowhere; another document must be named in the references of the schema'


def test_an_unknown_draft_is_read_as_draft_7_and_never_fetched() -> None:
    text = '{"$schema": "http://127.0.0.1:1/none", "type": "object"}'
    assert read(text, JSON).canonical == text.replace(" ", "")


def test_a_property_may_be_called_like_a_keyword() -> None:
    names: Json = {name: {"type": "string"} for name in ("$ref", "enum", "properties", "id", "$id", "pattern")}
    assert read(json.dumps({"properties": names}), JSON).definition == {"properties": names}


# Protobuf


def test_a_proto_text_becomes_a_descriptor() -> None:
    parsed = read('syntax = "proto3"; package a; message M { int32 x = 1; }', PROTOBUF)
    assert isinstance(parsed.definition, tuple)
    assert parsed.definition[0].message_type[0].name == "M"


def test_a_serialized_descriptor_is_the_same_schema_as_its_text() -> None:
    text = 'syntax = "proto3"; package a; message M { int32 x = 1; }'
    parsed = read(text, PROTOBUF)
    assert isinstance(parsed.definition, tuple)
    as_base64 = base64.b64encode(parsed.definition[0].SerializeToString()).decode()
    assert read(as_base64, PROTOBUF).canonical == parsed.canonical


def test_a_descriptor_that_protoc_made_is_read() -> None:
    text = base64.b64encode(TIMESTAMP.serialized_pb).decode()
    assert "message Timestamp {" in read(text, PROTOBUF).canonical


@pytest.mark.parametrize("text", ["", "message M {", 'syntax = "proto3"; message M { Other x = 1; }', "AAAA"])
def test_malformed_protobuf_is_refused(text: str) -> None:
    with pytest.raises(MalformedSchema) as raised:
        read(text, PROTOBUF)
    assert raised.value.type == "PROTOBUF"


def test_a_proto_fault_has_line_and_column() -> None:
    with pytest.raises(MalformedSchema) as raised:
        read('syntax = "proto3";\nmessage M { int32 = 1; Other x = 2; }', PROTOBUF)
    assert (raised.value.line, raised.value.column) == (2, 19)
    assert raised.value.message() == "malformed PROTOBUF schema: expected field name (line 2, column 19)"


def test_comments_of_proto_decide_whether_two_schemas_are_the_same_and_formatting_does_not() -> None:
    text = 'syntax = "proto3"; message M { int32 x = 1; }'
    assert read(text.replace(" ", "\n"), PROTOBUF).canonical == read(text, PROTOBUF).canonical
    assert read(f"{text} // M", PROTOBUF).canonical == read(text, PROTOBUF).canonical
    assert read(text.replace("message", "// M\nmessage"), PROTOBUF).canonical != read(text, PROTOBUF).canonical


# References


def registry(**subjects: Schema) -> Callable[[Reference], Schema | None]:
    return lambda reference: subjects.get(reference.subject)


def refers_to(*subjects: str) -> tuple[Reference, ...]:
    return tuple(Reference(f"n.{subject}", subject, 1) for subject in subjects)


def avro_of(name: str, *uses: str) -> Schema:
    fields = [field(f"f{index}", f"n.{used}") for index, used in enumerate(uses)]
    return Schema(json.dumps(record(*fields, name=f"n.{name}")), AVRO, refers_to(*uses))


def test_dependencies_come_once_and_after_what_they_need() -> None:
    known = registry(Left=avro_of("Left", "Base"), Right=avro_of("Right", "Base"), Base=avro_of("Base"))
    parsed = parse(avro_of("Top", "Right", "Left"), known)
    assert [dependency.name for dependency in parsed.dependencies] == ["n.Base", "n.Right", "n.Left"]
    assert parsed.name == ""


def test_a_schema_referred_to_under_two_names_defines_its_types_once() -> None:
    again = Schema(avro_of("Right", "Base").text, AVRO, (Reference("another name", "Base", 1),))
    known = registry(Left=avro_of("Left", "Base"), Right=again, Base=avro_of("Base"))
    parsed = parse(avro_of("Top", "Left", "Right"), known)
    names = [dependency.name for dependency in parsed.dependencies]
    assert names == ["n.Base", "n.Left", "another name", "n.Right"]


def test_two_versions_of_one_type_do_not_go_together() -> None:
    versions = {1: avro_of("Base"), 2: Schema(json.dumps(record(field("x", "int"), name="n.Base")))}
    right = Schema(avro_of("Right", "Base").text, AVRO, (Reference("n.Base", "Base", 2),))
    others = {"Left": avro_of("Left", "Base"), "Right": right}

    def resolve(reference: Reference) -> Schema:
        return versions[reference.version] if reference.subject == "Base" else others[reference.subject]

    with pytest.raises(MalformedSchema) as raised:
        parse(avro_of("Top", "Left", "Right"), resolve)
    assert raised.value.faults[0].reason == '"n.Base" is already defined'


def test_types_of_a_reference_are_written_by_name_only() -> None:
    parsed = parse(avro_of("Top", "Base"), registry(Base=avro_of("Base")))
    assert parsed.canonical == ('{"type":"record","name":"Top","namespace":"n","fields":[{"name":"f0","type":"Base"}]}')


def test_a_type_that_a_reference_already_defines_is_refused() -> None:
    schema = Schema(json.dumps(record(name="n.Base")), AVRO, refers_to("Base"))
    with pytest.raises(MalformedSchema) as raised:
        parse(schema, registry(Base=avro_of("Base")))
    assert raised.value.faults[0].reason == '"n.Base" is already defined'


def test_a_reference_to_nothing_is_unknown() -> None:
    with pytest.raises(UnknownReference) as raised:
        parse(avro_of("Top", "Base"), registry())
    assert raised.value.message() == 'reference "n.Base" to version 1 of subject "Base" cannot be found'


def test_a_reference_that_cannot_be_resolved_is_unknown_because_of_that() -> None:
    class Refused(HeadgateError):
        code = "TST-0001"

        def message(self) -> str:
            return "no"

    def refuse(reference: Reference) -> Schema:
        raise Refused

    with pytest.raises(UnknownReference) as raised:
        parse(avro_of("Top", "Base"), refuse)
    assert isinstance(raised.value.__cause__, Refused)


def test_references_in_a_circle_are_refused() -> None:
    known = registry(One=avro_of("One", "Two"), Two=avro_of("Two", "One"))
    with pytest.raises(ReferenceCycle) as raised:
        parse(avro_of("Top", "One"), known)
    assert raised.value.subjects == ("One", "Two", "One")
    assert raised.value.detail() == 'The way round is "One" -> "Two" -> "One".'


def test_a_reference_to_another_type_of_schema_is_refused() -> None:
    with pytest.raises(MalformedSchema) as raised:
        parse(avro_of("Top", "Base"), registry(Base=Schema("{}", JSON)))
    assert raised.value.faults[0].reason == 'reference "n.Base" is a schema of another type, JSON'


def test_normalizing_ignores_order_and_repetition_of_references() -> None:
    known = registry(A=avro_of("A"), B=avro_of("B"))
    text = avro_of("Top", "A", "B").text
    one, other = (
        parse(Schema(text, AVRO, refers_to(*names)), known, normalize=True) for names in (("A", "B"), ("B", "A", "B"))
    )
    assert one.schema == other.schema
    assert one.canonical == other.canonical


def test_a_json_schema_refers_by_the_name_of_the_reference() -> None:
    schema = Schema('{"$ref": "n.Base#/definitions/x"}', JSON, refers_to("Base"))
    base = Schema('{"definitions": {"x": {"type": "string"}}}', JSON)
    assert parse(schema, registry(Base=base)).dependencies[0].schema == base


def test_a_proto_file_imports_by_the_name_of_the_reference() -> None:
    base = Schema('syntax = "proto3"; package p; message Base { int32 x = 1; }', PROTOBUF)
    text = 'syntax = "proto3"; package p; import "n.Base"; message Top { Base b = 1; }'
    parsed = parse(Schema(text, PROTOBUF, refers_to("Base")), registry(Base=base))
    assert isinstance(parsed.definition, tuple)
    assert [file.name for file in parsed.definition[1:]] == ["n.Base"]
