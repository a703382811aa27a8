"""Confluent's own Python client and serialisers, unchanged, against Headgate's registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema as ConfluentSchema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.schema_registry_client import ConfigCompatibilityLevel, ServerConfig
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message

from headgate.registry import wire
from headgate.registry.server.requests import User, Users
from tests.registry.running import registry

pytestmark = pytest.mark.unit

ORDER = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}],
}
ORDER_WITH_NOTE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
ORDER_WITH_AMOUNT = {**ORDER, "fields": [*ORDER["fields"], {"name": "amount", "type": "int"}]}

PERSON_PROTO = """
name: "person.proto" package: "shop" syntax: "proto3" dependency: "address.proto"
message_type { name: "Unused" }
message_type {
  name: "Person"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "name" }
  field { name: "home" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: ".shop.Address" json_name: "home" }
}
"""
ADDRESS_PROTO = """
name: "address.proto" package: "shop" syntax: "proto3"
message_type {
  name: "Address"
  field { name: "street" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "street" }
}
"""

PERSON_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "home": {"$ref": "address.json"}},
    "required": ["name"],
}
ADDRESS_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "address",
    "type": "object",
    "properties": {"street": {"type": "string"}},
    "additionalProperties": False,
}

VALUE_OF_T = SerializationContext("t", MessageField.VALUE)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with registry(tmp_path) as running:
        yield running


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as made:
        yield made


def avro(schema: dict[str, Any]) -> ConfluentSchema:
    return ConfluentSchema(json.dumps(schema), "AVRO")


def person_class() -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    for text in (ADDRESS_PROTO, PERSON_PROTO):
        pool.Add(text_format.Parse(text, FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Person"))


def test_a_schema_is_registered_and_found_by_id_version_and_text(client: SchemaRegistryClient) -> None:
    schema_id = client.register_schema("orders", avro(ORDER))

    assert json.loads(client.get_schema(schema_id).schema_str or "") == ORDER
    latest = client.get_latest_version("orders")
    assert (latest.subject, latest.version, latest.schema_id) == ("orders", 1, schema_id)
    assert client.get_version("orders", 1).schema_id == schema_id
    assert client.lookup_schema("orders", avro(ORDER)).version == 1
    assert client.get_subjects() == ["orders"]
    assert client.get_versions("orders") == [1]
    assert client.get_subjects_by_schema_id(schema_id) == ["orders"]
    assert [(v.subject, v.version) for v in client.get_schema_versions(schema_id)] == [("orders", 1)]
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    assert client.get_contexts() == ["."]


def test_the_full_answer_to_a_registration_has_the_version(client: SchemaRegistryClient) -> None:
    client.register_schema("orders", avro(ORDER))
    registered = client.register_schema_full_response("orders", avro(ORDER_WITH_NOTE))
    assert (registered.schema_id, registered.version) == (2, 2)


def test_a_subject_with_every_awkward_character_is_one_subject(client: SchemaRegistryClient) -> None:
    name = "a/b c%2F?d=ü&#é:x"
    client.register_schema(name, avro(ORDER))
    assert client.get_subjects() == [name]
    assert client.get_latest_version(name).version == 1


def test_normalizing_finds_a_schema_that_is_written_differently(client: SchemaRegistryClient) -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    two = {"properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "type": "object"}
    first = client.register_schema("j", ConfluentSchema(json.dumps(one), "JSON"))
    as_text = ConfluentSchema(json.dumps(two), "JSON")

    with pytest.raises(SchemaRegistryError) as missing:
        client.lookup_schema("j", as_text)
    assert missing.value.error_code == 40403
    assert client.lookup_schema("j", as_text, normalize_schemas=True).schema_id == first
    assert client.register_schema("j", as_text, normalize_schemas=True) == first


def test_compatibility_is_tested_and_enforced(client: SchemaRegistryClient) -> None:
    client.register_schema("orders", avro(ORDER))

    assert client.test_compatibility("orders", avro(ORDER_WITH_NOTE))
    assert not client.test_compatibility("orders", avro(ORDER_WITH_AMOUNT))
    assert not client.test_compatibility_all_versions("orders", avro(ORDER_WITH_AMOUNT))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("orders", avro(ORDER_WITH_AMOUNT))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert "$.fields[2]" in refused.value.error_message


def test_levels_are_set_read_and_dropped(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility(level="FULL")
    assert client.get_compatibility() == "FULL"
    client.register_schema("orders", avro(ORDER))
    with pytest.raises(SchemaRegistryError) as missing:
        client.get_compatibility("orders")
    assert missing.value.error_code == 40408
    client.set_compatibility("orders", "none")
    assert client.get_compatibility("orders") == "NONE"
    assert client.register_schema("orders", avro(ORDER_WITH_AMOUNT)) == 2
    client.set_config("orders", ServerConfig(compatibility=ConfigCompatibilityLevel.FORWARD))
    assert client.get_config("orders").compatibility_level == ConfigCompatibilityLevel.FORWARD
    client.delete_config("orders")
    with pytest.raises(SchemaRegistryError):
        client.get_config("orders")
    with pytest.raises(SchemaRegistryError) as unknown:
        client.set_compatibility("orders", "SIDEWAYS")
    assert unknown.value.error_code == 42203


def test_modes_are_set_read_and_obeyed(client: SchemaRegistryClient) -> None:
    assert client.get_global_mode() == "READWRITE"
    client.update_mode("orders", "READONLY")
    assert client.get_mode("orders") == "READONLY"
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("orders", avro(ORDER))
    assert refused.value.error_code == 42205
    client.delete_mode("orders")
    assert client.register_schema("orders", avro(ORDER)) == 1
    client.update_global_mode("READONLY_OVERRIDE")
    with pytest.raises(SchemaRegistryError):
        client.register_schema("orders", avro(ORDER_WITH_NOTE))
    client.update_global_mode("READWRITE")
    assert client.register_schema("orders", avro(ORDER_WITH_NOTE)) == 2


def test_versions_and_subjects_are_deleted_in_two_steps(client: SchemaRegistryClient) -> None:
    client.register_schema("orders", avro(ORDER))
    client.register_schema("orders", avro(ORDER_WITH_NOTE))

    assert client.delete_version("orders", 1) == 1
    assert client.get_versions("orders") == [2]
    assert client.get_versions("orders", deleted=True) == [1, 2]
    assert client.delete_version("orders", 1, permanent=True) == 1
    assert client.get_versions("orders", deleted=True) == [2]
    with pytest.raises(SchemaRegistryError) as too_early:
        client.delete_subject("orders", permanent=True)
    assert too_early.value.error_code == 40405
    assert client.delete_subject("orders") == [2]
    assert client.delete_subject("orders", permanent=True) == [2]
    assert client.get_subjects(deleted=True) == []


def test_a_wrong_password_is_refused_and_a_right_one_is_not(tmp_path: Path) -> None:
    users = Users({"ada": User("ada", "s3:cret")})
    with registry(tmp_path, users) as url:
        with SchemaRegistryClient({"url": url, "basic.auth.user.info": "ada:s3:cret"}) as right:
            assert right.get_subjects() == []
        with SchemaRegistryClient({"url": url, "basic.auth.user.info": "ada:guess"}) as wrong:
            with pytest.raises(SchemaRegistryError) as refused:
                wrong.get_subjects()
            assert refused.value.http_status_code == 401


def test_avro_records_go_through_the_serialisers(client: SchemaRegistryClient) -> None:
    write, read = AvroSerializer(client, json.dumps(ORDER)), AvroDeserializer(client)
    record = write({"id": 7, "price": 1.5}, VALUE_OF_T)
    assert record is not None
    assert wire.decode(record).schema_id == client.get_latest_version("t-value").schema_id
    assert read(record, VALUE_OF_T) == {"id": 7, "price": 1.5}


def test_an_avro_reader_of_a_newer_version_fills_the_default(client: SchemaRegistryClient) -> None:
    record = AvroSerializer(client, json.dumps(ORDER))({"id": 7, "price": 1.5}, VALUE_OF_T)
    AvroSerializer(client, json.dumps(ORDER_WITH_NOTE))({"id": 8, "price": 2.0, "note": "n"}, VALUE_OF_T)
    read = AvroDeserializer(client, json.dumps(ORDER_WITH_NOTE))
    assert read(record, VALUE_OF_T) == {"id": 7, "price": 1.5, "note": ""}


def test_an_avro_writer_can_use_the_latest_version_instead_of_registering(
    client: SchemaRegistryClient,
) -> None:
    client.register_schema("t-value", avro(ORDER))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    record = AvroSerializer(client, None, conf=settings)({"id": 7, "price": 1.5}, VALUE_OF_T)
    assert AvroDeserializer(client)(record, VALUE_OF_T) == {"id": 7, "price": 1.5}


def test_avro_records_with_references_go_through_the_serialisers(client: SchemaRegistryClient) -> None:
    address = {"type": "record", "name": "shop.address", "fields": [{"name": "street", "type": "string"}]}
    person = {
        "type": "record",
        "name": "shop.person",
        "fields": [{"name": "name", "type": "string"}, {"name": "home", "type": "shop.address"}],
    }
    client.register_schema("address", avro(address))
    schema = ConfluentSchema(json.dumps(person), "AVRO", [SchemaReference("shop.address", "address", 1)])
    record = AvroSerializer(client, schema)({"name": "Ada", "home": {"street": "S"}}, VALUE_OF_T)

    assert AvroDeserializer(client)(record, VALUE_OF_T) == {"name": "Ada", "home": {"street": "S"}}
    assert client.get_referenced_by("address", 1) == [client.get_latest_version("t-value").schema_id]
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject("address")
    assert refused.value.error_code == 42206


def test_protobuf_messages_with_references_go_through_the_serialisers(client: SchemaRegistryClient) -> None:
    person = person_class()
    message = text_format.Parse('name: "Ada" home { street: "S" }', person())
    write = ProtobufSerializer(person, client, {"use.deprecated.format": False})
    record = write(message, VALUE_OF_T)
    assert record is not None

    framed = wire.decode(record)
    assert wire.decode_message_indexes(framed.payload)[0] == (1,)
    read = ProtobufDeserializer(person, {"use.deprecated.format": False}, client)
    assert read(record, VALUE_OF_T) == message
    assert client.get_subjects() == ["address.proto", "t-value"]
    kept = client.get_schema(framed.schema_id)
    assert 'import "address.proto";' in (kept.schema_str or "")
    assert [r.subject for r in kept.references or []] == ["address.proto"]


def test_json_records_with_references_go_through_the_serialisers(client: SchemaRegistryClient) -> None:
    client.register_schema("address", ConfluentSchema(json.dumps(ADDRESS_JSON), "JSON"))
    schema = ConfluentSchema(json.dumps(PERSON_JSON), "JSON", [SchemaReference("address.json", "address", 1)])
    person = {"name": "Ada", "home": {"street": "S"}}
    record = JSONSerializer(schema, client)(person, VALUE_OF_T)
    assert record is not None

    assert json.loads(wire.decode(record).payload) == person
    read = JSONDeserializer(schema, schema_registry_client=client)
    assert read(record, VALUE_OF_T) == person
