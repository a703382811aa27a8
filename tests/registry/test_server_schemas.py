from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.registry.running import Door, avro

pytestmark = pytest.mark.unit

PROTO = 'syntax = "proto3";\npackage shop;\n\n// An order.\nmessage Order {\n  int64 id = 1;\n}\n'


def test_the_subjects_and_versions_of_an_id_are_those_that_are_live(door: Door) -> None:
    schema_id = door.register("a", avro("x"))
    door.register("b", avro("x"))
    path = f"/schemas/ids/{schema_id}"
    assert door.ok("GET", f"{path}/subjects") == ["a", "b"]
    assert door.ok("GET", f"{path}/versions") == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]
    door.ok("DELETE", "/subjects/b")
    assert door.ok("GET", f"{path}/subjects") == ["a"]
    assert door.ok("GET", f"{path}/subjects?deleted=true") == ["a", "b"]
    assert door.ok("GET", f"{path}/versions?deleted=true&subject=b") == [{"subject": "b", "version": 1}]
    assert door.refused("GET", "/schemas/ids/99/subjects") == (404, 40403)
    assert door.refused("GET", "/schemas/ids/99/versions") == (404, 40403)


@pytest.mark.parametrize("schema_id", ["x", "-1", "99999999999", "%D9%A1"])
def test_what_is_no_id_is_refused(door: Door, schema_id: str) -> None:
    assert door.refused("GET", f"/schemas/ids/{schema_id}") == (400, 400)


def test_the_highest_id_is_told_when_asked_for(door: Door) -> None:
    door.register("a", avro("x"))
    door.register("a", avro("x", "y"))
    assert door.ok("GET", "/schemas/ids/1?fetchMaxId=true") == {**avro("x"), "maxId": 2}


def test_all_schemas_are_listed_by_prefix_or_latest_only(door: Door) -> None:
    door.register("a", avro("x"))
    door.register("a", avro("x", "y"))
    door.register("b", avro("x"))
    listed = [(s["subject"], s["version"], s["id"]) for s in door.ok("GET", "/schemas")]
    assert listed == [("a", 1, 1), ("a", 2, 2), ("b", 1, 1)]
    assert [s["version"] for s in door.ok("GET", "/schemas?latestOnly=true")] == [2, 1]
    assert [s["subject"] for s in door.ok("GET", "/schemas?subjectPrefix=b")] == ["b"]
    assert [s["version"] for s in door.ok("GET", "/schemas?offset=1&limit=1")] == [2]


def test_a_protobuf_schema_is_given_as_text_or_as_descriptor(door: Door) -> None:
    door.register("p", {"schema": PROTO, "schemaType": "PROTOBUF"})
    assert door.ok("GET", "/schemas/ids/1")["schema"] == PROTO
    for path in ("/schemas/ids/1", "/subjects/p/versions/1"):
        answer = door.ok("GET", f"{path}?format=serialized")
        file = FileDescriptorProto.FromString(base64.b64decode(answer["schema"]))
        assert (file.package, file.message_type[0].name) == ("shop", "Order")


def test_a_descriptor_is_kept_as_text_and_is_the_same_schema(door: Door) -> None:
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Order").field.add(name="id", number=1, type=3, label=1)
    descriptor = base64.b64encode(file.SerializeToString()).decode()
    first = door.register("p", {"schema": descriptor, "schemaType": "PROTOBUF"})
    kept = door.ok("GET", f"/schemas/ids/{first}")["schema"]
    assert "message Order {" in kept
    assert door.register("p", {"schema": kept, "schemaType": "PROTOBUF"}) == first


def test_only_protobuf_has_a_serialized_form_and_other_formats_are_unknown(door: Door) -> None:
    door.register("a", avro("x"))
    assert door.refused("GET", "/schemas/ids/1?format=serialized") == (422, 42201)
    assert door.refused("GET", "/schemas/ids/1?format=yaml") == (422, 42201)


def test_the_registry_says_what_it_is(door: Door) -> None:
    assert door.ok("GET", "/") == {}
    assert sorted(door.ok("GET", "/schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]
    assert door.ok("GET", "/contexts") == ["."]
    assert door.ok("GET", "/v1/metadata/version")["version"].startswith("7.")
    assert "scope" in door.ok("GET", "/v1/metadata/id")
