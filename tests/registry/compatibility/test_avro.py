"""Avro: golden pairs, and verdicts that agree with another implementation and with really reading."""

from __future__ import annotations

import io
import json

import avro.compatibility
import avro.schema
import fastavro
import pytest
from hypothesis import given, strategies as st

from headgate.registry.compatibility.avro import incompatibilities
from headgate.registry.schemas import ParsedSchema, Reference, Schema, avro_types, parse
from headgate.schema.written import Json
from tests.laws import examples as law
from tests.registry.compatibility.avro_cases import CASES, Case, field, record
from tests.registry.strategies import Pair, avro_pairs, avro_schemas, avro_values

pytestmark = pytest.mark.unit

LAW = law(60)


def read(definition: Json) -> ParsedSchema:
    return parse(Schema(json.dumps(definition)), lambda reference: None)


def python_avro_reads(reader: ParsedSchema, writer: ParsedSchema) -> bool:
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    parsed_reader, parsed_writer = (avro.schema.parse(each.schema.text) for each in (reader, writer))
    verdict = checker.get_compatibility(parsed_reader, parsed_writer).compatibility
    return verdict is avro.compatibility.SchemaCompatibilityType.compatible


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_a_pair_has_the_expected_incompatibilities(case: Case) -> None:
    found = incompatibilities(read(case.reader), read(case.writer))
    assert sorted((each.path, each.kind) for each in found) == sorted(case.expected)


# Where the Python library answers otherwise than Java, and so than registries in use.
DISAGREEMENTS = {
    # Python compares aliases as written; they are relative to the namespace of the type (specification, "Aliases").
    "an alias is relative to its namespace",
    # Java refuses a reader's field that may stand for two fields; Python takes the one of the same name.
    "a field may not stand for two of the writer",
    # Python has no "error" outside protocols.
    "an error is read as a record",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_golden_verdicts_are_those_of_the_python_library_but_for_explained_ones(case: Case) -> None:
    reader, writer = read(case.reader), read(case.writer)
    try:
        agrees = python_avro_reads(reader, writer) is not bool(case.expected)
    except avro.errors.AvroRuntimeException:
        agrees = False
    assert agrees is (case.claim not in DISAGREEMENTS)


def test_messages_name_both_types() -> None:
    reader = read({"type": "record", "name": "a.R", "fields": [{"name": "n", "type": "int"}]})
    writer = read({"type": "record", "name": "a.R", "fields": [{"name": "n", "type": ["null", "string"]}]})
    assert [each.message for each in incompatibilities(reader, writer)] == [
        "the reader's int cannot read the writer's null",
        "the reader's int cannot read the writer's string",
    ]


def test_a_missing_default_names_field_and_record() -> None:
    reader = read({"type": "record", "name": "a.R", "fields": [{"name": "n", "type": "int"}]})
    writer = read({"type": "record", "name": "a.R", "fields": []})
    (found,) = incompatibilities(reader, writer)
    assert found.message == (
        'field "n" of record "a.R", of type int, is not written by record "a.R" and has no default'
    )


def test_an_assumption_inside_a_cycle_does_not_hide_an_incompatibility() -> None:
    # B is compared while A is still assumed to read A. B seems to read B only because of that; A does not read A,
    # so the union must not take B for readable.
    def nested(value: str) -> Json:
        b = record(field("a", "A"), name="B")
        a = record(field("b", ["null", b]), field("v", value), name="A")
        return record(field("x", a), field("y", ["null", "B"]), name="Root")

    found = incompatibilities(read(nested("int")), read(nested("string")))
    assert ("$.fields[1].type", "MISSING_UNION_BRANCH") in [(each.path, each.kind) for each in found]


def test_types_of_references_are_compared() -> None:
    def with_address(zip_type: str) -> ParsedSchema:
        address = {"type": "record", "name": "a.Address", "fields": [{"name": "zip", "type": zip_type}]}
        person = {"type": "record", "name": "a.Person", "fields": [{"name": "home", "type": "Address"}]}
        reference = Reference("a.Address", "address", 1)
        schema = Schema(json.dumps(person), references=(reference,))
        return parse(schema, lambda reference: Schema(json.dumps(address)))

    (found,) = incompatibilities(with_address("int"), with_address("string"))
    assert (found.path, found.kind) == ("$.fields[0].type.fields[0].type", "TYPE_MISMATCH")


@LAW
@given(avro_schemas())
def test_every_schema_reads_itself(definition: Json) -> None:
    assert incompatibilities(read(definition), read(definition)) == ()


@LAW
@given(avro_pairs())
def test_verdicts_agree_with_the_python_library(pair: Pair) -> None:
    # The strategy makes none of the explained disagreements: it writes aliases in full and uses each name once.
    reader, writer = map(read, pair)
    assert python_avro_reads(reader, writer) is (incompatibilities(reader, writer) == ())


@LAW
@given(avro_pairs(), st.data())
def test_what_is_called_compatible_can_really_be_read(pair: Pair, data: st.DataObject) -> None:
    reader, writer = map(read, pair)
    if incompatibilities(reader, writer):
        return
    value = data.draw(avro_values(avro_types(writer)))
    reader_schema, writer_schema = (
        fastavro.parse_schema(json.loads(each.schema.text), {}) for each in (reader, writer)
    )
    written = io.BytesIO()
    fastavro.schemaless_writer(written, writer_schema, value)
    written.seek(0)
    fastavro.schemaless_reader(written, writer_schema, reader_schema)
    assert written.read() == b""
