"""Random types and values survive the writer of a sink and the reader of a source, and the vendors' own deserialisers read
the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import Phase, assume, given, settings, strategies as st
from pyspark.sql import SparkSession

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.protobuf_writer import is_no_value
from headgate.schema.errors import UnsupportedType
from headgate.schema.formats.protobuf import read_files
from headgate.schema.types import Array, Enum, Json, Map, Record, Type
from tests.laws import TIMES, examples
from tests.runtime.formats.decoding import Bad
from tests.runtime.formats.writing import FORMATS, SchemaWord, canonical, expected, read, side, written
from tests.schema import strategies as s
from tests.schema.proto_messages import class_of, fill

pytestmark = pytest.mark.spark

RECORDS = s.records(s.types(max_leaves=4), min_fields=3, max_fields=8)
# Every try is two jobs of Spark's, so there are few of them, and nothing is made smaller.
FEW = settings(examples(10), max_examples=3 * TIMES, phases=(Phase.explicit, Phase.reuse, Phase.generate))
VALUE_OF_T = SerializationContext("t", MessageField.VALUE)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Record, list[Any]]:
    record = draw(RECORDS)
    return record, draw(st.lists(s.values_of(record), min_size=1, max_size=4))


@pytest.mark.parametrize("word", FORMATS)
def test_what_a_sink_writes_a_source_and_the_vendors_read(session: SparkSession, word: SchemaWord) -> None:
    @given(rows())
    @FEW
    def law(drawn: tuple[Record, list[Any]]) -> None:
        record, values = drawn
        try:
            made = side(word, record)
        except UnsupportedType:
            assume(False)
            raise
        data = written(session, made, values)
        assert [isinstance(one, Bad) for one in data] == [word == "PROTOBUF" and not holds(v, record) for v in values]
        good = [(one, value) for one, value in zip(data, values, strict=True) if isinstance(one, bytes)]
        found = read(session, made, [one for one, _ in good])
        assert found == [expected(value, record, word) for _, value in good]
        for one, value in good:
            check_by_vendor(made, one, value)

    law()


def holds(value: Any, type_: Type, inside: bool = False) -> bool:
    """Whether Protobuf can hold the value: lists and maps hold no null, and JSON's numbers are doubles."""
    if value is None:
        return not inside or isinstance(type_, Json)
    match type_:
        case Record(fields):
            return all(holds(value[f.name], f.type) for f in fields)
        case Array(element):
            return all(holds(one, element, True) for one in value)
        case Map(inner):
            return all(holds(one, inner, True) for one in value.values())
        case Json():
            return not is_no_value(value)
        case _:
            return True


class OneSchema:
    """A registry that knows one schema."""

    def __init__(self, made: RecordEncoding) -> None:
        assert made.written is not None
        self.schema = ConfluentSchema(made.written.text, made.written.format.value)

    def get_schema(self, *_: object, **__: object) -> ConfluentSchema:
        return self.schema

    def get_associations_by_resource_name(self, *_: object, **__: object) -> list[object]:
        return []


def check_by_vendor(made: RecordEncoding, data: bytes, value: Any) -> None:
    client: Any = OneSchema(made)
    assert made.schema is not None
    match made.encoding:
        case "AVRO":
            found = AvroDeserializer(client)(data, VALUE_OF_T)
            assert by_position(found, made.record) == by_position(value, made.record)
        case "JSON SCHEMA":
            read_json = JSONDeserializer(made.schema, schema_registry_client=client)
            assert read_json(data, VALUE_OF_T) == json.loads(data[5:])
        case _:
            message = class_of(read_files(made.schema)[0])
            wanted = message()
            fill(wanted, made.record, value)
            assert ProtobufDeserializer(message, {"use.deprecated.format": False})(data, VALUE_OF_T) == wanted


def by_position(value: Any, type_: Type) -> Any:
    """A value without the names of its fields, which Avro may have changed, and with json parsed."""
    if value is None:
        return None
    match type_:
        case Record(fields):
            given = [f.name for f in fields]
            names = given if set(given) == set(value) else list(value)
            return [by_position(value[name], f.type) for name, f in zip(names, fields, strict=True)]
        case Array(element):
            return [by_position(one, element) for one in value]
        case Map(inner):
            return {key: by_position(one, inner) for key, one in value.items()}
        case Json() if isinstance(value, str):
            return canonical(json.loads(value), type_, type_)
        case Enum():
            return str(value)
        case _:
            return value
