"""Our client against a registry that we did not write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.registry.client import RegistryClient
from headgate.registry.errors import (
    IncompatibleSchema,
    NotDeletedFirst,
    RegistryAnswerUnreadable,
    RequestRefused,
    SchemaIdNotFound,
    SchemaNotFound,
    SchemaRefused,
    SubjectDeleted,
    SubjectNotFound,
    VersionNotFound,
)
from headgate.registry.schemas import Reference, Schema
from headgate.schema.written import CompatibilityLevel, SchemaFormat
from tests.registry.apicurio import BASE_PATH, apicurio
from tests.registry.running import avro

pytestmark = pytest.mark.e2e

PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 id = 1;\n}\n'


def record(*fields: str, name: str = "r", defaults: bool = True) -> Schema:
    return Schema(avro(*fields, name=name, defaults=defaults)["schema"])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apicurio(tmp_path_factory.mktemp("apicurio")) as running:
        yield running


@pytest.fixture
def client(url: str) -> Iterator[RegistryClient]:
    with RegistryClient([url + BASE_PATH], timeout=30) as made:
        yield made


@pytest.mark.parametrize(
    "schema",
    [
        record("x", name="read"),
        Schema('{"type":"object","properties":{"a":{"type":"string"}}}', SchemaFormat.JSON),
        Schema(PROTO, SchemaFormat.PROTOBUF),
    ],
    ids=lambda schema: schema.type,
)
def test_a_schema_of_each_type_is_registered_and_read(client: RegistryClient, schema: Schema) -> None:
    subject = f"read/{schema.type}"
    schema_id = client.register(subject, schema)
    assert client.schema_by_id(schema_id) == schema
    latest = client.latest(subject)
    assert (latest.subject, latest.version, latest.schema_id, latest.schema) == (
        subject,
        1,
        schema_id,
        schema,
    )
    assert client.version(subject, 1) == latest
    assert client.look_up(subject, schema) == latest
    assert client.versions(subject) == (1,)
    assert subject in client.subjects()
    assert client.register(subject, schema) == schema_id
    assert {"AVRO", "JSON", "PROTOBUF"} <= set(client.types())


def test_references_are_registered_and_resolved(client: RegistryClient) -> None:
    address = record("street", name="address")
    person = Schema(
        '{"type":"record","name":"person","fields":[{"name":"home","type":"address"}]}',
        references=(Reference("address", "address", 1),),
    )
    client.register("address", address)
    schema_id = client.register("person", person)
    assert client.schema_by_id(schema_id) == person
    assert [dependency.schema for dependency in client.resolved(person).dependencies] == [address]


def test_levels_are_set_and_enforced(client: RegistryClient) -> None:
    client.register("levels", record("x"))
    assert client.level("levels") is CompatibilityLevel.NONE
    client.set_level(CompatibilityLevel.BACKWARD, "levels")
    assert client.level("levels") is CompatibilityLevel.BACKWARD
    bad = record("x", "y", defaults=False)
    verdict = client.compatibility("levels", bad)
    assert not verdict.is_compatible
    assert "/fields/1" in verdict.messages[0]
    assert client.compatibility("levels", record("x", "y")).is_compatible
    with pytest.raises(IncompatibleSchema) as refused:
        client.register("levels", bad)
    assert "/fields/1" in (refused.value.detail() or "")
    client.set_level(None, "levels")
    assert client.level("levels") is CompatibilityLevel.NONE


def test_what_does_not_exist_is_told_apart(client: RegistryClient) -> None:
    client.register("missing-value", record("x"))
    with pytest.raises(SubjectNotFound) as subject:
        client.latest("missing-vlaue")
    assert subject.value.similar == ("missing-value",)
    with pytest.raises(SubjectNotFound):
        client.versions("missing-vlaue")
    with pytest.raises(VersionNotFound):
        client.version("missing-value", 9)
    with pytest.raises(SchemaIdNotFound):
        client.schema_by_id(999_999)
    with pytest.raises(SchemaNotFound):
        client.look_up("missing-value", record("other"))


def test_what_cannot_be_read_is_refused(client: RegistryClient) -> None:
    with pytest.raises(SchemaRefused):
        client.register("refused", Schema("nix"))
    with pytest.raises(SchemaRefused):
        client.register("refused", Schema('"a"', references=(Reference("a", "nix", 1),)))


def test_deleting_goes_in_two_steps(client: RegistryClient) -> None:
    client.register("deleted", record("x"))
    with pytest.raises(NotDeletedFirst):
        client.delete_subject("deleted", permanent=True)
    assert client.delete_subject("deleted") == (1,)
    assert "deleted" in client.subjects(deleted=True)
    with pytest.raises(SubjectDeleted):
        client.delete_subject("deleted")
    assert client.delete_subject("deleted", permanent=True) == (1,)
    with pytest.raises(SubjectNotFound):
        client.latest("deleted")


def test_what_the_registry_cannot_do_is_refused_in_its_own_words(client: RegistryClient) -> None:
    with pytest.raises(RequestRefused) as refused:
        client.set_mode("READWRITE")
    assert (refused.value.registry_code, refused.value.reason) == (404, "Operation not supported.")


@pytest.mark.parametrize("path", ["", "/apis", "/apis/ccompat"])
def test_a_base_path_that_is_wrong_is_told_as_such(url: str, path: str) -> None:
    with RegistryClient([url + path]) as lost, pytest.raises(RegistryAnswerUnreadable) as unread:
        lost.subjects()
    assert "/apis/ccompat/v7" in str(unread.value.hint())
