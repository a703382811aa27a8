from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import CompatibilityLevel
from tests.registry import running
from tests.registry.running import Door, avro

pytestmark = pytest.mark.unit

PATH = "/compatibility/subjects/a/versions"


def test_what_would_be_refused_is_told_with_the_place(door: Door) -> None:
    door.register("a", avro("x"))
    body = avro("x", "y", defaults=False)
    assert door.ok("POST", PATH, body) == {"is_compatible": False}
    answer = door.ok("POST", f"{PATH}/latest?verbose=true", body)
    assert answer["is_compatible"] is False
    assert ["$.fields[1]" in message for message in answer["messages"]] == [True]
    refused = door.send("POST", "/subjects/a/versions", body)
    assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
    assert answer["messages"][0] in refused.json()["message"]


def test_what_would_be_taken_has_no_messages(door: Door) -> None:
    door.register("a", avro("x"))
    assert door.ok("POST", f"{PATH}?verbose=true", avro("x", "y")) == {"is_compatible": True, "messages": []}


def test_a_subject_without_versions_takes_anything(door: Door) -> None:
    assert door.ok("POST", PATH, avro("x")) == {"is_compatible": True}
    assert door.ok("POST", f"{PATH}/latest", avro("x")) == {"is_compatible": True}
    assert door.refused("POST", f"{PATH}/1", avro("x")) == (404, 40402)


def test_an_invalid_schema_is_an_error_or_a_message(door: Door) -> None:
    assert door.refused("POST", PATH, {"schema": "nix"}) == (422, 42201)
    answer = door.ok("POST", f"{PATH}?verbose=true", {"schema": "nix"})
    assert answer["is_compatible"] is False
    assert "malformed" in answer["messages"][0]


@pytest.mark.parametrize(
    ("level", "taken"),
    [
        ("BACKWARD", {"added with default", "removed", "removed with default"}),
        ("FORWARD", {"added with default", "added", "removed with default"}),
        ("FULL", {"added with default", "removed with default"}),
        ("NONE", {"added with default", "added", "removed", "removed with default", "retyped"}),
    ],
)
def test_each_level_takes_its_own_changes(door: Door, level: str, taken: set[str]) -> None:
    plain: dict[str, object] = {"name": "x", "type": "int"}
    optional: dict[str, object] = {"name": "y", "type": "int", "default": 0}
    changes: dict[str, tuple[list[dict[str, object]], list[dict[str, object]]]] = {
        "added with default": ([plain], [plain, optional]),
        "added": ([plain], [plain, {"name": "y", "type": "int"}]),
        "removed": ([plain, {"name": "y", "type": "int"}], [plain]),
        "removed with default": ([plain, optional], [plain]),
        "retyped": ([plain], [{"name": "x", "type": "string"}]),
    }
    door.ok("PUT", "/config", {"compatibility": level})
    for change, (before, after) in changes.items():
        subject = change.replace(" ", "-")
        door.register(subject, _record(before))
        answer = door.ok("POST", f"/compatibility/subjects/{subject}/versions", _record(after))
        assert answer["is_compatible"] is (change in taken), change


def test_a_transitive_level_looks_at_every_version(door: Door) -> None:
    door.ok("PUT", "/config", {"compatibility": "NONE"})
    door.register("a", _record([{"name": "x", "type": "string"}]))
    door.register("a", _record([]))
    last = _record([{"name": "x", "type": "int", "default": 0}])
    door.ok("PUT", "/config", {"compatibility": "BACKWARD"})
    assert door.ok("POST", PATH, last)["is_compatible"]
    door.ok("PUT", "/config", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert not door.ok("POST", PATH, last)["is_compatible"]
    assert door.ok("POST", f"{PATH}/2", last)["is_compatible"]
    assert not door.ok("POST", f"{PATH}/1", last)["is_compatible"]


def test_deleted_versions_are_not_compared_with(door: Door) -> None:
    door.register("a", avro("x", defaults=False))
    door.register("a", _record([]))
    door.ok("DELETE", "/subjects/a/versions/1")
    door.ok("PUT", "/config", {"compatibility": "FULL_TRANSITIVE"})
    assert door.ok("POST", PATH, _record([{"name": "x", "type": "string", "default": ""}]))["is_compatible"]
    assert door.refused("POST", f"{PATH}/1", avro("x")) == (404, 40402)


def test_the_other_types_are_checked_too(door: Door) -> None:
    door.register("j", {"schemaType": "JSON", "schema": '{"properties": {"n": {"type": "number"}}}'})
    narrower = {"schemaType": "JSON", "schema": '{"properties": {"n": {"type": "integer"}}}'}
    answer = door.ok("POST", "/compatibility/subjects/j/versions?verbose=true", narrower)
    assert not answer["is_compatible"]
    assert "/properties/n" in answer["messages"][0]
    other_type = door.ok("POST", "/compatibility/subjects/j/versions?verbose=true", avro("x"))
    assert not other_type["is_compatible"]


def test_a_protobuf_field_that_changes_its_type_is_named(door: Door) -> None:
    proto = 'syntax = "proto3"; package shop; message Order { %s id = 1; }'
    door.register("p", {"schemaType": "PROTOBUF", "schema": proto % "int64"})
    changed = {"schemaType": "PROTOBUF", "schema": proto % "string"}
    answer = door.ok("POST", "/compatibility/subjects/p/versions?verbose=true", changed)
    assert not answer["is_compatible"]
    assert "Order" in answer["messages"][0]
    assert "id" in answer["messages"][0]


def test_another_compatibility_check_can_be_put_in(tmp_path: Path) -> None:
    def only_short(
        subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]:
        return () if len(new.canonical) < 100 else (f"{subject} would be too long after {len(earlier)}",)

    with running.door(tmp_path, check=only_short) as door:
        door.register("a", avro("x"))
        long = avro(*(f"field{i}" for i in range(20)))
        assert door.ok("POST", f"{PATH}?verbose=true", long)["messages"] == ["a would be too long after 1"]
        assert door.refused("POST", "/subjects/a/versions", long) == (409, 409)


def _record(fields: Sequence[dict[str, object]]) -> dict[str, str]:
    return {"schema": json.dumps({"type": "record", "name": "r", "fields": [*fields]})}
