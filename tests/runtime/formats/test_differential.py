"""Random schemas, versions and data: what comes out of the decoders is what the formats' own libraries read."""

from __future__ import annotations

import base64
import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import assume, given, strategies as st

from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.errors import UnsupportedType, ValueDoesNotFit
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.formats.protobuf import to_protobuf
from headgate.schema.types import Array, Enum, Field, Map, Record, Type
from headgate.schema.values import dumps, from_json, to_json
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.laws import examples
from tests.runtime.formats.decoding import Bad, decoded, framed, written
from tests.schema import strategies as s
from tests.schema.evolve.evolutions import edited_record, follows
from tests.schema.proto_messages import class_of, columns, descriptor_of, fill, is_map, value_of_entry

pytestmark = pytest.mark.unit

RECORDS = s.records(s.types(max_leaves=4), min_fields=1, max_fields=4)
MISSING = object()


# Protobuf


def versions(draw: st.DrawFn, first: Record) -> list[Record]:
    """A chain of up to three versions in which each follows the one before."""
    found = [first]
    for _ in range(draw(st.integers(0, 2))):
        later = draw(edited_record(found[-1]))
        if later.fields and follows(found[-1], later):
            found.append(later)
    return found


@st.composite
def protobuf_chains(draw: st.DrawFn) -> tuple[list[WrittenSchema], list[tuple[int, Message]]]:
    chain, messages, previous = [], [], None
    for number, record in enumerate(versions(draw, draw(RECORDS)), 1):
        try:
            previous = to_protobuf(record, name="M", package="p", previous=previous)
        except UnsupportedType:
            assume(False)
        assert previous is not None
        text = base64.b64encode(previous.SerializeToString()).decode()
        chain.append(written(text, number))
        for value in draw(st.lists(s.values_of(record), min_size=1, max_size=3)):
            message = class_of(previous)()
            fill(message, record, value)
            messages.append((number, message))
    return chain, messages


@given(protobuf_chains())
@examples(120)
def test_protobuf_is_read_as_its_own_library_reads_it(
    chain: tuple[list[WrittenSchema], list[tuple[int, Message]]],
) -> None:
    schemas, messages = chain
    side = SchemaEncoding(SchemaFormat.PROTOBUF, tuple(schemas))
    target = decoded_type(side).type
    assert isinstance(target, Record)
    bodies = [framed(number, message.SerializeToString(), (0,)) for number, message in messages]
    for found, (_, message) in zip(decoded(side, bodies), messages, strict=True):
        try:
            expected: Any = read_message(message, target)
        except (ValueDoesNotFit, ValueError):
            assert isinstance(found, Bad)
        else:
            assert comparable(found) == comparable(expected)


def read_message(message: Message, target: Record) -> dict[str, object]:
    """By the library alone, one field after another."""
    fields = columns(descriptor_of(message))
    return {f.name: read_field(message, fields.get(f.name), f) for f in target.fields}


def read_field(message: Message, field: Any, wanted: Field) -> object:
    if field is None:
        assert wanted.nullable or wanted.default is not None
        return None if wanted.default is None else from_json(json.loads(wanted.default), wanted.type)
    value = getattr(message, field.name)
    match wanted.type:
        case Map(inner) if is_map(field):
            return {key: read_one(value_of_entry(field), value[key], inner) for key in value}
        case Array(element) if field.is_repeated:
            return [read_one(field, one, element) for one in value]
        case _ if field.is_repeated:
            raise ValueError
        case _ if field.has_presence and not message.HasField(field.name):
            return None
        case _:
            return read_one(field, value, wanted.type)


def read_one(field: Any, value: Any, type_: Type) -> object:
    if field.enum_type is not None:
        name = field.enum_type.values_by_number[value].name
        if not isinstance(type_, Enum) or name not in type_.symbols:
            raise ValueError
        return name
    if field.message_type is None:
        return value if isinstance(value, bytes) else from_json(value, type_)
    match value.DESCRIPTOR.full_name:
        case "google.type.Date":
            return dt.date(value.year, value.month, value.day)
        case "google.type.TimeOfDay":
            return dt.time(value.hours, value.minutes, value.seconds, value.nanos // 1000)
        case "google.protobuf.Timestamp":
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
                seconds=value.seconds, microseconds=value.nanos // 1000
            )
        case "google.protobuf.Value":
            return json.loads(json_format.MessageToJson(value))
        case _:
            assert isinstance(type_, Record)
            return read_message(value, type_)


def comparable(value: Any) -> Any:
    """JSON texts parsed, so that 1 equals 1.0 in them as anywhere."""
    match value:
        case dict():
            return {key: comparable(one) for key, one in value.items()}
        case list():
            return [comparable(one) for one in value]
        case str() if (
            value[:1] in ("{", "[", '"')
            or value in ("true", "false", "null")
            or value[:1].isdigit()
            or value[:1] == "-"
        ):
            try:
                return comparable(json.loads(value)) if json.loads(value) != value else value
            except ValueError:
                return value
        case uuid.UUID():
            return str(value)
        case _:
            return value


# JSON Schema


@st.composite
def json_chains(draw: st.DrawFn) -> tuple[list[Record], list[tuple[int, str]]]:
    chain, documents = versions(draw, draw(RECORDS)), []
    for number, record in enumerate(chain, 1):
        for value in draw(st.lists(s.values_of(record), min_size=1, max_size=3)):
            document = to_json(value, record)
            assert isinstance(document, dict)
            if not draw(st.integers(0, 2)):
                document = draw(spoilt(document))
            documents.append((number, dumps(document)))
    return chain, documents


@st.composite
def spoilt(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """A member gone, one more, or another value in its place."""
    spoilt = dict(document)
    name = draw(st.sampled_from([*spoilt, "more"]))
    value = draw(st.sampled_from([MISSING, None, 1, 1.0, 1.5, 2**63, True, "1", "2026-11-15", [], ["1"], {}, {"a": 1}]))
    if value is MISSING:
        spoilt.pop(name, None)
    else:
        spoilt[name] = value
    return spoilt


@given(json_chains())
@examples(160)
def test_json_is_let_through_if_jsonschema_lets_it_through_and_the_type_holds_it(
    chain: tuple[list[Record], list[tuple[int, str]]],
) -> None:
    records, documents = chain
    schemas = [to_json_schema(record) for record in records]
    side = SchemaEncoding(SchemaFormat.JSON, tuple(written(schema, n) for n, schema in enumerate(schemas, 1)))
    target = decoded_type(side).type
    bodies = [framed(number, text.encode()) for number, text in documents]
    for found, (number, text) in zip(decoded(side, bodies), documents, strict=True):
        valid = jsonschema.Draft202012Validator(schemas[number - 1]).is_valid(json.loads(text))
        try:
            expected = from_json(json.loads(text, parse_float=Decimal), target)
        except ValueDoesNotFit:
            valid = False
        if valid:
            assert comparable(found) == comparable(expected), (found, expected)
        else:
            assert isinstance(found, Bad)
