"""Registries and schemas that a stream cannot use: each is refused with its own error, and nothing is made. Schemas that look odd
and can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
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
from headgate.registry.schemas import Reference, Schema
from headgate.registry.server.__main__ import listen
from headgate.registry.transport import Retries
from headgate.resolve.schema_errors import MessageInImport
from headgate.resolve.stream_errors import RowUnwritable
from headgate.schema.errors import RecursiveSchema, UnknownMessage
from headgate.schema.formats.protobuf import read_files
from headgate.schema.formats.protobuf.read import find_message, link
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


COMMON = 'syntax = "proto3"; package common; message Note { string text = 1; } message Address { string city = 1; message Geo { double x = 1; } }'
ORDER = 'syntax = "proto3"; package shop; import "common.proto"; message Order { int64 id = 1; common.Address to = 2; }'
WHOLE = 'syntax = "proto3"; package shop; import "order.proto"; message Batch { repeated Order orders = 1; }'


def imports(sql: Shell) -> tuple[int, int, int]:
    """The ids of three schemas, of which each imports the one before it."""
    found: list[int] = []
    references: tuple[Reference, ...] = ()
    for name, text in (("common", COMMON), ("order", ORDER), ("whole", WHOLE)):
        subject = f"imports-{name}"
        found.append(sql.registry.register(subject, Schema(text, SchemaFormat.PROTOBUF, references)))
        references = (Reference(f"{name}.proto", subject, sql.registry.latest(subject).version),)
    return found[0], found[1], found[2]


def read_by_vendor(descriptor: str, names: tuple[str, ...], text: str, value: bytes) -> str:
    """A field of a record as the vendor's deserializer reads it with the class of the message."""
    files = read_files(text, [("common.proto", COMMON), ("order.proto", ORDER)])
    found = find_message(link(files), descriptor)
    read: Any = ProtobufDeserializer(GetMessageClass(found), {"use.deprecated.format": False})(
        value, SerializationContext("t", MessageField.VALUE)
    )
    for name in names:
        read = getattr(read, name)
    return str(read)


@pytest.mark.parametrize("given", [1, 2])
def test_a_message_of_an_imported_schema_is_written_with_the_id_of_that_schema(sql: Shell, given: int) -> None:
    ids = imports(sql)
    topic = f"imported-{given}"
    create = (
        f"CREATE STREAM s WITH (kafka_topic = '{topic}', partitions = 1, value_format = 'protobuf', value_schema_id = {ids[given]},"
        " value_schema_full_name = 'common.Address')"
    )
    assert any(f"written with id {ids[0]}" in notice for notice in sql.notices(create))
    sql.run("INSERT INTO s VALUES ('Berlin')")
    ((_, _, value),) = sql.connections.cluster.written
    assert value is not None
    assert value[:5] == b"\x00" + ids[0].to_bytes(4, "big")
    assert value[5:7] == b"\x02\x02"  # one index: the second message of the file
    assert read_by_vendor("common.Address", ("city",), COMMON, value) == "Berlin"
    assert sql.registry.latest(f"{topic}-value").schema_id == ids[0]
    described = {str(name): told for name, told in sql.rows("DESCRIBE EXTENDED s")}
    assert (described["value schema id"], described["value full name"]) == (ids[0], "common.Address")
    ((_, text),) = sql.rows("SHOW CREATE STREAM s")
    sql.run(f"DROP STREAM s; {text}")


def test_as_select_writes_an_imported_message_with_the_id_of_its_schema(sql: Shell) -> None:
    ids = imports(sql)
    sql.run("CREATE STREAM a (city text, x double) WITH (kafka_topic = 'a', partitions = 1, value_format = 'json')")
    create = (
        "CREATE STREAM s WITH (kafka_topic = 'as-imported', value_format = 'protobuf', value_schema_id = {id},"
        " value_schema_full_name = '{message}') AS SELECT {column} FROM a"
    )
    made = create.format(id=ids[2], message="common.Address", column="city")
    assert any(f"written with id {ids[0]}" in notice for notice in sql.notices(made))
    described = {str(name): told for name, told in sql.rows("DESCRIBE EXTENDED s")}
    assert described["value schema id"] == ids[0]
    sql.run("INSERT INTO s VALUES ('Rome')")
    assert (sql.connections.cluster.written[-1][2] or b"")[:5] == b"\x00" + ids[0].to_bytes(4, "big")
    assert isinstance(
        sql.failure(made.replace("'common.Address'", "'common.Adress'").replace(" s ", " s2 ")), UnknownMessage
    )
    nested = (
        create.format(id=ids[1], message="common.Address.Geo", column="x").replace(" s ", " s3 ").replace("as-", "n-")
    )
    sql.run(nested)


def test_a_key_may_be_an_imported_message(sql: Shell) -> None:
    ids = imports(sql)
    sql.run(
        "CREATE TABLE s WITH (kafka_topic = 'key-imported', partitions = 1, format = 'protobuf',"
        f" key_schema_id = {ids[1]}, key_schema_full_name = 'common.Address', value_schema_id = {ids[1]},"
        " value_schema_full_name = 'shop.Order'); INSERT INTO s (city, id) VALUES ('Berlin', 1)"
    )
    ((_, key, value),) = sql.connections.cluster.written
    assert key is not None
    assert value is not None
    assert (key[:5], value[:5]) == tuple(b"\x00" + id_.to_bytes(4, "big") for id_ in (ids[0], ids[1]))


def test_an_imported_message_of_the_subject_says_which_id_to_write(sql: Shell) -> None:
    ids = imports(sql)
    sql.registry.register("sub-value", sql.registry.schema_by_id(ids[1]))
    wrong = sql.failure(
        "CREATE STREAM s WITH (kafka_topic = 'sub', partitions = 1, value_format = 'protobuf', value_schema_full_name = 'common.Address')"
    )
    assert isinstance(wrong, MessageInImport)
    assert f"value_schema_id = {ids[0]}" in (wrong.hint() or "")
