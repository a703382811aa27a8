"""The client against Headgate's own registry: what each call gives, and which error a refusal becomes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.registry.client import CompatibilityResult, RegisteredSchema, RegistryClient
from headgate.registry.errors import (
    IncompatibleSchema,
    NotDeletedFirst,
    RequestRefused,
    SchemaIdNotFound,
    SchemaNotFound,
    SchemaRefused,
    StillReferenced,
    SubjectDeleted,
    SubjectNotFound,
    UnknownReference,
    VersionNotFound,
)
from headgate.registry.schemas import Reference, Schema
from headgate.registry.transport import Retries
from headgate.schema.written import CompatibilityLevel, SchemaFormat
from tests.registry.running import avro, registry

pytestmark = pytest.mark.unit


def record(*fields: str, defaults: bool = True) -> Schema:
    return Schema(avro(*fields, defaults=defaults)["schema"])


ADDRESS = Schema('{"type": "record", "name": "address", "fields": []}')
PERSON = Schema(
    '{"type": "record", "name": "person", "fields": [{"name": "home", "type": "address"}]}',
    references=(Reference("address", "address", 1),),
)


@pytest.fixture
def client(registry_url: str) -> Iterator[RegistryClient]:
    with RegistryClient([registry_url]) as made:
        yield made


def test_a_schema_is_registered_read_and_looked_up(client: RegistryClient) -> None:
    schema_id = client.register("orders", record("x"))
    expected = RegisteredSchema("orders", 1, schema_id, record("x"))
    assert client.schema_by_id(schema_id) == record("x")
    assert client.latest("orders") == expected
    assert client.version("orders", 1) == expected
    assert client.look_up("orders", record("x")) == expected
    assert client.subjects() == ("orders",)
    assert client.versions("orders") == (1,)
    assert set(client.types()) == {"AVRO", "JSON", "PROTOBUF"}


def test_type_and_references_come_back_as_they_were_sent(client: RegistryClient) -> None:
    client.register("address", ADDRESS)
    schema_id = client.register("person", PERSON)
    assert client.schema_by_id(schema_id) == PERSON
    document = Schema('{"type": "object"}', SchemaFormat.JSON)
    assert client.schema_by_id(client.register("document", document)) == document


def test_a_subject_with_awkward_characters_is_one_name(client: RegistryClient) -> None:
    name = "a/b c%2F?d=ü&#é:x"
    client.register(name, record("x"))
    assert client.subjects() == (name,)
    client.set_level(CompatibilityLevel.NONE, name)
    assert client.level(name) is CompatibilityLevel.NONE
    assert client.delete_subject(name) == (1,)


def test_a_subject_that_does_not_exist_is_told_with_near_names(client: RegistryClient) -> None:
    client.register("orders-value", record("x"))
    for call in (client.latest, client.versions, lambda s: client.version(s, 1), client.delete_subject):
        with pytest.raises(SubjectNotFound) as missing:
            call("order-value")
        assert missing.value.similar == ("orders-value",)
        assert missing.value.hint() == 'Did you mean "orders-value"?'
    with pytest.raises(SubjectNotFound) as far:
        client.look_up("people", record("x"))
    assert far.value.similar == ()


def test_a_version_that_does_not_exist_is_not_a_missing_subject(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    with pytest.raises(VersionNotFound) as missing:
        client.version("orders", 7)
    assert missing.value.message() == 'version 7 of subject "orders" does not exist'
    with pytest.raises(VersionNotFound):
        client.delete_version("orders", 7)


def test_a_schema_that_the_subject_does_not_have_is_not_a_missing_subject(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    with pytest.raises(SchemaNotFound):
        client.look_up("orders", record("y"))


def test_an_id_that_does_not_exist_is_its_own_error(client: RegistryClient) -> None:
    with pytest.raises(SchemaIdNotFound) as missing:
        client.schema_by_id(77)
    assert missing.value.message() == "schema id 77 does not exist in the registry"


def test_a_deleted_subject_is_told_from_one_that_never_was(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    assert client.delete_subject("orders") == (1,)
    for call in (client.latest, client.versions, lambda s: client.version(s, 1), client.delete_subject):
        with pytest.raises(SubjectDeleted) as deleted:
            call("orders")
        assert deleted.value.message() == 'subject "orders" is deleted'
    with pytest.raises(SubjectDeleted):
        client.look_up("orders", record("x"))
    assert client.version("orders", 1, deleted=True).version == 1
    assert client.subjects(deleted=True) == ("orders",)
    assert client.delete_subject("orders", permanent=True) == (1,)
    with pytest.raises(SubjectNotFound):
        client.latest("orders")


def test_deleting_permanently_first_is_told_as_such(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    with pytest.raises(NotDeletedFirst) as subject:
        client.delete_subject("orders", permanent=True)
    assert subject.value.message() == 'subject "orders" cannot be deleted permanently'
    assert client.delete_version("orders", 1) == 1


def test_what_others_refer_to_is_told_as_such(client: RegistryClient) -> None:
    client.register("address", ADDRESS)
    client.register("person", PERSON)
    with pytest.raises(StillReferenced):
        client.delete_subject("address")
    with pytest.raises(StillReferenced):
        client.delete_version("address", 1)


def test_an_incompatible_schema_comes_with_the_registrys_reasons(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    bad = record("x", "y", defaults=False)
    verdict = client.compatibility("orders", bad)
    assert not verdict.is_compatible
    with pytest.raises(IncompatibleSchema) as refused:
        client.register("orders", bad)
    assert refused.value.reasons == verdict.messages
    assert "$.fields[1]" in (refused.value.detail() or "")
    assert client.compatibility("orders", record("x", "y")) == CompatibilityResult(True)


def test_a_schema_that_the_registry_cannot_read_is_refused_with_its_reason(client: RegistryClient) -> None:
    with pytest.raises(SchemaRefused) as malformed:
        client.register("orders", Schema("nix"))
    assert "malformed" in str(malformed.value.detail())
    with pytest.raises(SchemaRefused) as unknown:
        client.register("person", PERSON)
    assert 'subject "address" cannot be found' in str(unknown.value.detail())


def test_levels_are_read_set_and_taken_back(client: RegistryClient) -> None:
    assert client.level() is CompatibilityLevel.BACKWARD
    assert client.level("orders") is CompatibilityLevel.BACKWARD
    for level in CompatibilityLevel:
        client.set_level(level, "orders")
        assert client.level("orders") is level
        assert client.own_level("orders") is level
    client.set_level(None, "orders")
    assert client.own_level("orders") is None
    assert client.level("orders") is CompatibilityLevel.BACKWARD
    client.set_level(CompatibilityLevel.FULL)
    assert client.level("orders") is CompatibilityLevel.FULL


def test_modes_are_set_and_taken_back(client: RegistryClient) -> None:
    client.register("orders", record("x"))
    client.set_mode("READONLY", "orders")
    with pytest.raises(RequestRefused) as refused:
        client.register("orders", record("x", "y"))
    assert refused.value.registry_code == 42205
    assert refused.value.message() == (
        'the registry refuses to register a schema for subject "orders" (its code 42205)'
    )
    client.set_mode(None, "orders")
    with pytest.raises(RequestRefused):
        client.set_mode("IMPORT", "orders")
    client.set_mode("IMPORT", "orders", force=True)
    assert client.register("orders", record("z"), schema_id=50) == 50
    assert client.versions("orders") == (1, 2)


def test_references_are_resolved_to_any_depth(client: RegistryClient) -> None:
    city = Schema('{"type": "record", "name": "city", "fields": []}')
    address = Schema(
        '{"type": "record", "name": "address", "fields": [{"name": "city", "type": "city"}]}',
        references=(Reference("city", "city", 1),),
    )
    client.register("city", city)
    client.register("address", address)
    parsed = client.resolved(PERSON)
    assert [dependency.schema for dependency in parsed.dependencies] == [city, address]


def test_a_reference_that_is_deleted_meanwhile_is_still_resolved(client: RegistryClient) -> None:
    client.register("address", ADDRESS)
    client.delete_subject("address")
    assert client.resolved(PERSON).dependencies[0].schema == ADDRESS


def test_an_unknown_reference_is_named(client: RegistryClient) -> None:
    with pytest.raises(UnknownReference) as unknown:
        client.resolved(PERSON)
    assert unknown.value.subject == "address"


def test_what_never_changes_is_asked_for_once(tmp_path: Path) -> None:
    with registry(tmp_path) as url:
        client = RegistryClient([url], retries=Retries(attempts=1))
        client.register("address", ADDRESS)
        schema_id = client.register("person", PERSON)
        first, parsed = client.schema_by_id(schema_id), client.resolved(PERSON)
    with client:
        assert client.schema_by_id(schema_id) == first
        assert client.resolved(PERSON) == parsed


def test_every_error_of_the_client_crosses_a_process_border(client: RegistryClient) -> None:
    with pytest.raises(SubjectNotFound) as missing:
        client.latest("nix")
    copied = pickle.loads(pickle.dumps(missing.value))
    assert copied.diagnostic() == missing.value.diagnostic()
