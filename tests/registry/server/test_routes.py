"""The paths of the registry: what each takes, answers and refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import CompatibilityLevel
from tests.registry import running
from tests.registry.running import RegistryApi, avro

pytestmark = pytest.mark.unit

ADDRESS = {"schema": json.dumps({"type": "record", "name": "address", "fields": []})}
PERSON = {
    "schema": json.dumps({"type": "record", "name": "person", "fields": [{"name": "home", "type": "address"}]}),
    "references": [{"name": "address", "subject": "address", "version": 1}],
}


def test_the_same_schema_has_one_id_in_every_subject(api: RegistryApi) -> None:
    first = api.register("a", avro("x"))
    assert api.register("b", avro("x")) == first
    assert api.register("a", avro("x")) == first
    assert api.ok("GET", "/subjects/a/versions") == [1]


def test_a_record_nested_60_deep_is_registered_and_compared_with_the_next_version(api: RegistryApi) -> None:
    def nested(innermost: object) -> dict[str, str]:
        schema = innermost
        for level in range(60):
            fields = [{"name": "inner", "type": ["null", schema]}]
            schema = {"type": "record", "name": f"r{level}", "fields": fields}
        return {"schema": json.dumps(schema)}

    assert api.register("a", nested("int")) != api.register("a", nested("long"))
    assert api.ok("GET", "/subjects/a/versions") == [1, 2]


def test_white_space_does_not_make_another_schema_but_a_doc_does(api: RegistryApi) -> None:
    record = {"type": "record", "name": "r", "fields": []}
    first = api.register("a", {"schema": json.dumps(record)})
    assert api.register("a", {"schema": json.dumps(record, indent=4)}) == first
    assert api.register("a", {"schema": json.dumps({**record, "doc": "d"})}) != first


def test_a_schema_is_given_back_as_its_author_wrote_it(api: RegistryApi) -> None:
    text = '{\n  "type": "record",\n  "name": "r",\n  "doc": "ünïcode", "fields": []\n}'
    schema_id = api.register("a", {"schema": text})
    assert api.ok("GET", f"/schemas/ids/{schema_id}") == {"schema": text}
    assert api.send("GET", "/subjects/a/versions/1/schema").text == text
    assert api.send("GET", f"/schemas/ids/{schema_id}/schema").text == text


def test_a_version_is_answered_without_what_goes_without_saying(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.ok("GET", "/subjects/a/versions/1") == {"subject": "a", "version": 1, "id": 1, **avro("x")}
    api.register("j", {"schema": "{}", "schemaType": "JSON"})
    assert api.ok("GET", "/subjects/j/versions/latest")["schemaType"] == "JSON"


def test_latest_is_the_highest_live_version_however_it_is_written(api: RegistryApi) -> None:
    for fields in (("x",), ("x", "y"), ("x", "y", "z")):
        api.register("a", avro(*fields))
    api.ok("DELETE", "/subjects/a/versions/3")
    for latest in ("latest", "-1", "LATEST"):
        assert api.ok("GET", f"/subjects/a/versions/{latest}")["version"] == 2
    assert api.ok("GET", "/subjects/a/versions/latest?deleted=true")["version"] == 3


@pytest.mark.parametrize("version", ["0", "-2", "x", "1.5", "2147483648"])
def test_what_is_no_version_is_refused_as_such(api: RegistryApi, version: str) -> None:
    api.register("a", avro("x"))
    assert api.refused("GET", f"/subjects/a/versions/{version}") == (422, 42202)


def test_what_does_not_exist_has_its_own_code(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.refused("GET", "/subjects/nix/versions") == (404, 40401)
    assert api.refused("GET", "/subjects/nix/versions/1") == (404, 40401)
    assert api.refused("GET", "/subjects/a/versions/2") == (404, 40402)
    assert api.refused("POST", "/subjects/nix", avro("x")) == (404, 40401)
    assert api.refused("POST", "/subjects/a", avro("y")) == (404, 40403)
    assert api.refused("GET", "/schemas/ids/99") == (404, 40403)


def test_a_malformed_schema_is_refused_with_the_place(api: RegistryApi) -> None:
    broken = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "nix"}]}
    answer = api.send("POST", "/subjects/a/versions", {"schema": json.dumps(broken)})
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42201)
    assert "$.fields[0].type" in answer.json()["message"]
    assert api.ok("GET", "/subjects") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": ""},
        {"schema": 7},
        {"schema": "not json"},
        {"schema": '"int"', "schemaType": "XML"},
        {"schema": '"int"', "references": {}},
        {"schema": '"int"', "references": [{"name": "a"}]},
        {"schema": '"a"', "references": [{"name": "a", "subject": "nix", "version": 1}]},
        {"schema": '"a"', "references": [{"name": "a", "subject": "nix", "version": -1}]},
        {"schema": "[" * 100_000},
        {"schema": '{"type": "array", "items":' * 5_000 + '"int"' + "}" * 5_000},
        {"schema": '"int"', "ruleSet": {"domainRules": [{"name": "encrypt"}]}},
        {"schema": '"int"', "metadata": {"properties": {"owner": "ada"}}},
    ],
    ids=lambda body: json.dumps(body)[:50],
)
def test_a_schema_that_cannot_be_kept_is_invalid(api: RegistryApi, body: dict[str, object]) -> None:
    assert api.refused("POST", "/subjects/a/versions", body) == (422, 42201)
    assert api.ok("GET", "/subjects?deleted=true") == []


@pytest.mark.parametrize("subject", ["%00", "a%0Ab", "__GLOBAL", ":.other:a", ":*:a"])
def test_what_cannot_be_a_subject_is_refused(api: RegistryApi, subject: str) -> None:
    assert api.refused("POST", f"/subjects/{subject}/versions", avro("x")) == (422, 42208)


def test_the_default_context_may_be_written_out(api: RegistryApi) -> None:
    api.register(":.:a", avro("x"))
    assert api.ok("GET", "/subjects") == ["a"]
    assert api.ok("GET", "/subjects/a/versions") == [1]


def test_subjects_are_listed_by_prefix_page_and_deletion(api: RegistryApi) -> None:
    for subject in ("orders-key", "orders-value", "people%25", "people_"):
        api.register(subject, avro("x"))
    api.ok("DELETE", "/subjects/people_")
    assert api.ok("GET", "/subjects") == ["orders-key", "orders-value", "people%"]
    assert api.ok("GET", "/subjects?deleted=true")[-1] == "people_"
    assert api.ok("GET", "/subjects?deletedOnly=true") == ["people_"]
    assert api.ok("GET", "/subjects?subjectPrefix=people%25") == ["people%"]
    assert api.ok("GET", "/subjects?subjectPrefix=:*:orders") == ["orders-key", "orders-value"]
    assert api.ok("GET", "/subjects?offset=1&limit=1") == ["orders-value"]


def test_a_soft_deletion_hides_the_version_and_keeps_the_id(api: RegistryApi) -> None:
    schema_id = api.register("a", avro("x"))
    assert api.ok("DELETE", "/subjects/a/versions/1") == 1
    assert api.refused("GET", "/subjects/a/versions/1") == (404, 40401)
    assert api.refused("GET", "/subjects/a/versions") == (404, 40401)
    assert api.ok("GET", "/subjects/a/versions/1?deleted=true")["id"] == schema_id
    assert api.ok("GET", f"/schemas/ids/{schema_id}") == avro("x")
    assert api.refused("POST", "/subjects/a", avro("x")) == (404, 40401)
    assert api.ok("POST", "/subjects/a?deleted=true", avro("x"))["version"] == 1


def test_deleting_out_of_order_has_the_four_codes_of_the_real_one(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.refused("DELETE", "/subjects/a/versions/1?permanent=true") == (404, 40407)
    assert api.refused("DELETE", "/subjects/a?permanent=true") == (404, 40405)
    api.ok("DELETE", "/subjects/a/versions/1")
    assert api.refused("DELETE", "/subjects/a/versions/1") == (404, 40406)
    assert api.refused("DELETE", "/subjects/a") == (404, 40404)
    assert api.refused("DELETE", "/subjects/nix") == (404, 40401)
    assert api.refused("DELETE", "/subjects/nix/versions/1") == (404, 40401)
    assert api.refused("DELETE", "/subjects/a/versions/7") == (404, 40402)


def test_version_numbers_are_not_given_again_after_a_soft_deletion(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.register("a", avro("x", "y"))
    api.ok("DELETE", "/subjects/a")
    api.register("a", avro("x", "z"))
    assert api.ok("GET", "/subjects/a/versions") == [3]


def test_a_deleted_schema_comes_back_with_its_id_and_a_new_version(api: RegistryApi) -> None:
    schema_id = api.register("a", avro("x"))
    api.ok("DELETE", "/subjects/a")
    assert api.register("a", avro("x")) == schema_id
    assert api.ok("GET", "/subjects/a/versions?deleted=true") == [2]


def test_ids_are_not_given_again_after_a_permanent_deletion(api: RegistryApi) -> None:
    gone = api.register("a", avro("x"))
    api.ok("DELETE", "/subjects/a")
    api.ok("DELETE", "/subjects/a?permanent=true")
    assert api.refused("GET", f"/schemas/ids/{gone}") == (404, 40403)
    assert api.register("b", avro("other")) > gone
    assert api.register("c", avro("x")) == gone
    assert api.ok("GET", f"/schemas/ids/{gone}") == avro("x")


def test_deleting_for_good_forgets_the_settings_of_the_subject(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.ok("PUT", "/config/a", {"compatibility": "NONE"})
    api.ok("DELETE", "/subjects/a")
    assert api.ok("GET", "/config/a") == {"compatibilityLevel": "NONE"}
    api.ok("DELETE", "/subjects/a?permanent=true")
    assert api.refused("GET", "/config/a") == (404, 40408)


def test_what_others_refer_to_cannot_be_deleted(api: RegistryApi) -> None:
    api.register("address", ADDRESS)
    person = api.register("person", PERSON)
    assert api.ok("GET", "/subjects/address/versions/1/referencedby") == [person]
    assert api.refused("DELETE", "/subjects/address/versions/1") == (422, 42206)
    assert api.refused("DELETE", "/subjects/address") == (422, 42206)
    api.ok("DELETE", "/subjects/person")
    api.ok("DELETE", "/subjects/address")
    # The deleted person could be looked at again, so its address may not go for good before it.
    assert api.refused("DELETE", "/subjects/address?permanent=true") == (422, 42206)
    api.ok("DELETE", "/subjects/person?permanent=true")
    api.ok("DELETE", "/subjects/address?permanent=true")
    assert api.ok("GET", "/subjects?deleted=true") == []


def test_references_are_part_of_what_a_schema_is(api: RegistryApi) -> None:
    api.register("address", ADDRESS)
    api.register("other", ADDRESS)
    first = api.register("person", PERSON)
    elsewhere = {**PERSON, "references": [{"name": "address", "subject": "other", "version": 1}]}
    assert api.register("person", elsewhere) != first
    assert api.ok("GET", f"/schemas/ids/{first}") == PERSON


def test_a_reference_to_the_latest_version_is_fixed_when_it_is_registered(api: RegistryApi) -> None:
    api.register("address", ADDRESS)
    latest = {**PERSON, "references": [{"name": "address", "subject": "address", "version": -1}]}
    api.register("person", latest)
    assert api.ok("GET", "/subjects/person/versions/1")["references"][0]["version"] == 1


def test_a_new_schema_cannot_refer_to_a_deleted_one(api: RegistryApi) -> None:
    api.register("address", ADDRESS)
    api.ok("DELETE", "/subjects/address")
    answer = api.send("POST", "/subjects/person/versions", PERSON)
    assert answer.json() == {
        "error_code": 42201,
        "message": 'reference "address" to version 1 of subject "address" cannot be found',
    }


def test_an_old_client_gets_only_the_id_and_a_new_one_the_version_too(api: RegistryApi) -> None:
    assert api.ok("POST", "/subjects/a/versions", avro("x")) == {"id": 1}
    accepting = {"Confluent-Accept-Unknown-Properties": "true"}
    answer = api.send("POST", "/subjects/a/versions", avro("x"), headers=accepting)
    assert answer.json() == {"id": 1, "version": 1}


PROTO = 'syntax = "proto3";\npackage shop;\n\n// An order.\nmessage Order {\n  int64 id = 1;\n}\n'


def test_the_subjects_and_versions_of_an_id_are_those_that_are_live(api: RegistryApi) -> None:
    schema_id = api.register("a", avro("x"))
    api.register("b", avro("x"))
    path = f"/schemas/ids/{schema_id}"
    assert api.ok("GET", f"{path}/subjects") == ["a", "b"]
    assert api.ok("GET", f"{path}/versions") == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]
    api.ok("DELETE", "/subjects/b")
    assert api.ok("GET", f"{path}/subjects") == ["a"]
    assert api.ok("GET", f"{path}/subjects?deleted=true") == ["a", "b"]
    assert api.ok("GET", f"{path}/versions?deleted=true&subject=b") == [{"subject": "b", "version": 1}]
    assert api.refused("GET", "/schemas/ids/99/subjects") == (404, 40403)
    assert api.refused("GET", "/schemas/ids/99/versions") == (404, 40403)


@pytest.mark.parametrize("schema_id", ["x", "-1", "99999999999", "%D9%A1"])
def test_what_is_no_id_is_refused(api: RegistryApi, schema_id: str) -> None:
    assert api.refused("GET", f"/schemas/ids/{schema_id}") == (400, 400)


def test_the_highest_id_is_told_when_asked_for(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.register("a", avro("x", "y"))
    assert api.ok("GET", "/schemas/ids/1?fetchMaxId=true") == {**avro("x"), "maxId": 2}


def test_all_schemas_are_listed_by_prefix_or_latest_only(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    api.register("a", avro("x", "y"))
    api.register("b", avro("x"))
    listed = [(s["subject"], s["version"], s["id"]) for s in api.ok("GET", "/schemas")]
    assert listed == [("a", 1, 1), ("a", 2, 2), ("b", 1, 1)]
    assert [s["version"] for s in api.ok("GET", "/schemas?latestOnly=true")] == [2, 1]
    assert [s["subject"] for s in api.ok("GET", "/schemas?subjectPrefix=b")] == ["b"]
    assert [s["version"] for s in api.ok("GET", "/schemas?offset=1&limit=1")] == [2]


def test_a_protobuf_schema_is_given_as_text_or_as_descriptor(api: RegistryApi) -> None:
    api.register("p", {"schema": PROTO, "schemaType": "PROTOBUF"})
    assert api.ok("GET", "/schemas/ids/1")["schema"] == PROTO
    for path in ("/schemas/ids/1", "/subjects/p/versions/1"):
        answer = api.ok("GET", f"{path}?format=serialized")
        file = FileDescriptorProto.FromString(base64.b64decode(answer["schema"]))
        assert (file.package, file.message_type[0].name) == ("shop", "Order")


def test_a_descriptor_is_kept_as_text_and_is_the_same_schema(api: RegistryApi) -> None:
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Order").field.add(name="id", number=1, type=3, label=1)
    descriptor = base64.b64encode(file.SerializeToString()).decode()
    first = api.register("p", {"schema": descriptor, "schemaType": "PROTOBUF"})
    kept = api.ok("GET", f"/schemas/ids/{first}")["schema"]
    assert "message Order {" in kept
    assert api.register("p", {"schema": kept, "schemaType": "PROTOBUF"}) == first


def test_only_protobuf_has_a_serialized_form_and_other_formats_are_unknown(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.refused("GET", "/schemas/ids/1?format=serialized") == (422, 42201)
    assert api.refused("GET", "/schemas/ids/1?format=yaml") == (422, 42201)


def test_the_registry_says_what_it_is(api: RegistryApi) -> None:
    assert api.ok("GET", "/") == {}
    assert sorted(api.ok("GET", "/schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]
    assert api.ok("GET", "/contexts") == ["."]
    assert api.ok("GET", "/v1/metadata/version")["version"].startswith("7.")
    assert "scope" in api.ok("GET", "/v1/metadata/id")


PATH = "/compatibility/subjects/a/versions"


def test_what_would_be_refused_is_told_with_the_place(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    body = avro("x", "y", defaults=False)
    assert api.ok("POST", PATH, body) == {"is_compatible": False}
    answer = api.ok("POST", f"{PATH}/latest?verbose=true", body)
    assert answer["is_compatible"] is False
    assert ["$.fields[1]" in message for message in answer["messages"]] == [True]
    refused = api.send("POST", "/subjects/a/versions", body)
    assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
    assert answer["messages"][0] in refused.json()["message"]


def test_what_would_be_taken_has_no_messages(api: RegistryApi) -> None:
    api.register("a", avro("x"))
    assert api.ok("POST", f"{PATH}?verbose=true", avro("x", "y")) == {"is_compatible": True, "messages": []}


def test_a_subject_without_versions_takes_anything(api: RegistryApi) -> None:
    assert api.ok("POST", PATH, avro("x")) == {"is_compatible": True}
    assert api.ok("POST", f"{PATH}/latest", avro("x")) == {"is_compatible": True}
    assert api.refused("POST", f"{PATH}/1", avro("x")) == (404, 40402)


def test_an_invalid_schema_is_an_error_or_a_message(api: RegistryApi) -> None:
    assert api.refused("POST", PATH, {"schema": "nix"}) == (422, 42201)
    answer = api.ok("POST", f"{PATH}?verbose=true", {"schema": "nix"})
    assert answer["is_compatible"] is False
    assert "malformed" in answer["messages"][0]


def test_a_transitive_level_looks_at_every_version(api: RegistryApi) -> None:
    api.ok("PUT", "/config", {"compatibility": "NONE"})
    api.register("a", _record([{"name": "x", "type": "string"}]))
    api.register("a", _record([]))
    last = _record([{"name": "x", "type": "int", "default": 0}])
    api.ok("PUT", "/config", {"compatibility": "BACKWARD"})
    assert api.ok("POST", PATH, last)["is_compatible"]
    api.ok("PUT", "/config", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert not api.ok("POST", PATH, last)["is_compatible"]
    assert api.ok("POST", f"{PATH}/2", last)["is_compatible"]
    assert not api.ok("POST", f"{PATH}/1", last)["is_compatible"]


def test_deleted_versions_are_not_compared_with(api: RegistryApi) -> None:
    api.register("a", avro("x", defaults=False))
    api.register("a", _record([]))
    api.ok("DELETE", "/subjects/a/versions/1")
    api.ok("PUT", "/config", {"compatibility": "FULL_TRANSITIVE"})
    assert api.ok("POST", PATH, _record([{"name": "x", "type": "string", "default": ""}]))["is_compatible"]
    assert api.refused("POST", f"{PATH}/1", avro("x")) == (404, 40402)


def test_the_other_types_are_checked_too(api: RegistryApi) -> None:
    api.register("j", {"schemaType": "JSON", "schema": '{"properties": {"n": {"type": "number"}}}'})
    narrower = {"schemaType": "JSON", "schema": '{"properties": {"n": {"type": "integer"}}}'}
    answer = api.ok("POST", "/compatibility/subjects/j/versions?verbose=true", narrower)
    assert not answer["is_compatible"]
    assert "/properties/n" in answer["messages"][0]
    other_type = api.ok("POST", "/compatibility/subjects/j/versions?verbose=true", avro("x"))
    assert not other_type["is_compatible"]


def test_another_compatibility_check_can_be_put_in(tmp_path: Path) -> None:
    def only_short(
        subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]:
        return () if len(new.canonical) < 100 else (f"{subject} would be too long after {len(earlier)}",)

    with running.in_process(tmp_path, check=only_short) as api:
        api.register("a", avro("x"))
        long = avro(*(f"field{i}" for i in range(20)))
        assert api.ok("POST", f"{PATH}?verbose=true", long)["messages"] == ["a would be too long after 1"]
        assert api.refused("POST", "/subjects/a/versions", long) == (409, 409)


def _record(fields: Sequence[dict[str, object]]) -> dict[str, str]:
    return {"schema": json.dumps({"type": "record", "name": "r", "fields": [*fields]})}
