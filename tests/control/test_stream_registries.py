"""Registries and schemas that a stream cannot use: each is refused with its own error, and nothing is made. Schemas that look odd
and can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from headgate.errors import HeadgateError
from headgate.registry.client import RegistryClient
from headgate.registry.errors import (
    NotAllowed,
    RegistryAnswerUnreadable,
    RegistryFailed,
    RegistryUnreachable,
    WrongCredentials,
)
from headgate.registry.schemas import Schema
from headgate.registry.server.__main__ import listen
from headgate.registry.transport import Retries
from headgate.resolve.stream_errors import RowUnwritable
from headgate.schema.errors import RecursiveSchema
from headgate.schema.written import SchemaFormat
from tests.control.scripts import Shell, shell
from tests.registry.running import serving
from tests.registry.test_transport import Script

pytestmark = pytest.mark.unit

BY_ID = "CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = '{format}', value_schema_id = {id})"
FORMATS = {"avro": SchemaFormat.AVRO, "json_sr": SchemaFormat.JSON, "protobuf": SchemaFormat.PROTOBUF}


def create(sql: Shell, text: str, format_: str = "json_sr", more: str = "") -> int:
    """A stream over a new topic, with the schema by its id."""
    id_ = sql.registry.register(
        f"given-{format_}-{len(sql.registry.subjects(deleted=True))}", Schema(text, FORMATS[format_])
    )
    sql.run(BY_ID.format(format=format_, id=id_).replace("'t'", f"'t{id_}'") + more)
    return id_


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, WrongCredentials),
        (403, NotAllowed),
        (404, RegistryAnswerUnreadable),  # another path than that of a registry
        (500, RegistryFailed),
    ],
)
def test_what_a_registry_answers_is_told_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, error: type[HeadgateError]
) -> None:
    monkeypatch.setattr(Retries, "pause", lambda *_: None)
    script = Script(JSONResponse({"error_code": status, "message": "no"}, status))
    with serving(script.app) as url, shell(tmp_path, url) as sql:
        found = sql.failure(BY_ID.format(format="avro", id=1))
        assert isinstance(found, error)
        assert found.hint()
        assert "t" not in sql.topics
        sql.run("CREATE STREAM src (n int) WITH (kafka_topic = 'src', partitions = 1, value_format = 'json')")
        text = "CREATE STREAM s WITH (value_format = 'avro', value_schema_id = 1) AS SELECT n FROM src"
        assert isinstance(sql.failure(text), error)
        assert "s" not in sql.topics


def test_a_registry_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(self: RegistryClient, urls: list[str], *args: Any, **named: Any) -> None:
        made(self, urls, *args, **{**named, "timeout": 0.1, "retries": Retries(attempts=1)})

    made = RegistryClient.__init__
    monkeypatch.setattr(RegistryClient, "__init__", impatient)
    with listen("127.0.0.1", 0) as silent, shell(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}") as sql:
        found = sql.failure(BY_ID.format(format="avro", id=1))
        assert isinstance(found, RegistryUnreachable)
        assert found.detail() == "It did not answer in time."
        assert "t" not in sql.topics


TREES = {
    "avro": '{"type": "record", "name": "t", "fields": [{"name": "left", "type": ["null", "t"]}]}',
    "json_sr": '{"type": "object", "properties": {"left": {"$ref": "#"}}}',
    "protobuf": 'syntax = "proto3"; message T { T left = 1; }',
}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_recursive_schema_is_refused_in_every_format(sql: Shell, format_: str) -> None:
    id_ = sql.registry.register(f"tree-{format_}", Schema(TREES[format_], FORMATS[format_]))
    found = sql.failure(BY_ID.format(format=format_, id=id_))
    assert isinstance(found, RecursiveSchema)
    assert "left" in found.message()
    assert "t" not in sql.topics


WIDE = {
    "avro": json.dumps({"type": "record", "name": "o", "fields": [
        {"name": f"f{n}", "type": ["null", "int"], "default": None} for n in range(2000)]}),
    "json_sr": json.dumps({"type": "object", "properties": {f"f{n}": {"type": ["integer", "null"]} for n in range(2000)}}),
    "protobuf": f'syntax = "proto3"; message O {{ {" ".join(f"optional int32 f{n} = {n + 1};" for n in range(2000))} }}',
}  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
def test_a_schema_of_two_thousand_fields_is_written_in_every_format(sql: Shell, format_: str) -> None:
    id_ = create(sql, WIDE[format_], format_, "; INSERT INTO s (f1999) VALUES (1)")
    ((_, _, value),) = sql.connections.cluster.written
    assert value is not None
    assert value[:5] == b"\x00" + id_.to_bytes(4, "big")
    assert len(sql.rows("DESCRIBE s")) == 2000


def test_a_schema_that_was_deleted_softly_can_still_be_given(sql: Shell) -> None:
    id_ = sql.registry.register(
        "soft", Schema('{"type": "record", "name": "soft", "fields": [{"name": "n", "type": "int"}]}')
    )
    sql.registry.delete_subject("soft")
    sql.run(BY_ID.format(format="avro", id=id_).replace("'t'", "'soft-topic'"))
    assert sql.registry.latest("soft-topic-value").schema_id == id_


DESCRIBED = {
    "type": "object", "title": "order", "description": "an order", "additionalProperties": {"type": "string"},
    "properties": {
        "id": {"type": "integer", "description": "its number", "examples": [1]},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}], "description": "if there is one"},
        "inner": {"type": "object", "description": "more", "properties": {"x": {"type": "number"}}, "additionalProperties": True},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "left": {"type": "string"}, "size": {"type": "integer", "default": 3, "maximum": 5},
    },
    "required": ["id", "size"],
}  # fmt: skip


def test_a_json_schema_may_describe_choose_null_and_be_open(sql: Shell) -> None:
    create(sql, json.dumps(DESCRIBED))
    assert [tuple(row) for row in sql.rows("DESCRIBE s")] == [
        ("id", "bigint", True, False, "its number"),
        ("note", "text", True, False, "if there is one"),
        ("inner", "record(x double)", True, False, "more"),
        ("tags", "map<text, text not null>", True, False, None),
        ("left", "text", True, False, None),
        ("size", "bigint", True, False, None),
    ]
    sql.run("INSERT INTO s VALUES (1, NULL, STRUCT(x := 1.5), MAP('k' := 'v'), NULL, NULL)")
    body = (sql.connections.cluster.written[-1][2] or b"")[5:]
    assert json.loads(body) == {"id": 1, "note": None, "inner": {"x": 1.5}, "tags": {"k": "v"}, "size": 3}
    found = sql.failure("INSERT INTO s (id, size) VALUES (1, 6)")
    assert isinstance(found, RowUnwritable)
    assert (found.path, found.reason) == ("$.size", "the schema refuses it by maximum")
