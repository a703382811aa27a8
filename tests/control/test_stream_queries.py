"""Queries over streams and tables by id, as users of ksqlDB write them: nested records, joins, groups by a record, INSERT … SELECT."""

from __future__ import annotations

import json

import pytest

from headgate.registry.schemas import Reference, Schema
from headgate.resolve import stream_errors as errors
from headgate.schema.written import SchemaFormat
from tests.control.scripts import Shell
from tests.control.test_stream_cases import VALUES, body, columns, registered

pytestmark = pytest.mark.unit

TRANSACTION = {
    "type": "record", "name": "transaction", "fields": [
        {"name": "num_shares", "type": "int"}, {"name": "amount", "type": "double"},
        {"name": "customer", "type": {"type": "record", "name": "customer", "fields": [
            {"name": "first_name", "type": "string"}, {"name": "id", "type": "int"}]}},
    ],
}  # fmt: skip
NESTED = json.dumps({"type": "record", "name": "nested", "fields": [{"name": "transaction", "type": TRANSACTION}]})


@pytest.fixture(autouse=True)
def no_subjects(sql: Shell) -> None:
    """All tests share one registry."""
    for subject in reversed(sql.registry.subjects()):
        sql.registry.delete_subject(subject)


def test_a_nested_record_is_built_with_struct(sql: Shell) -> None:
    id_ = registered(sql, "given", NESTED, SchemaFormat.AVRO)
    sql.run(
        "CREATE STREAM src (n int, amount double, name text) WITH (kafka_topic = 'src', partitions = 1, format = 'avro');"
        f"CREATE STREAM s WITH (value_schema_id = {id_}) AS SELECT STRUCT(num_shares := n, amount := amount,"
        " customer := STRUCT(first_name := name, id := n)) AS transaction FROM src"
    )
    made = "record(num_shares integer, amount double, customer record(first_name text, id integer) not null)"
    assert columns(sql) == [("transaction", made)]
    sql.run(
        "INSERT INTO s VALUES (STRUCT(customer := STRUCT(id := 2, first_name := 'a'), amount := 1, num_shares := 3))"
    )
    assert body(sql) == b"\x06" + b"\x00" * 6 + b"\xf0\x3f" + b"\x02a\x04"


@pytest.mark.parametrize("format_", VALUES)
@pytest.mark.parametrize("side", ["stream", "table"])
def test_streams_and_tables_by_id_are_joined(sql: Shell, format_: str, side: str) -> None:
    text, kind, type_ = VALUES[format_]
    id_ = registered(sql, "v", text, kind)
    by_id = f"kafka_topic = 'by_id', partitions = 1, value_format = '{format_}', value_schema_id = {id_}, key_format = 'kafka'"
    declared = f"kafka_topic = 'declared', partitions = 1, value_format = '{format_}', key_format = 'kafka'"
    key, primary = registered(sql, "k", '"string"', SchemaFormat.AVRO), "key_format = 'avro'"
    keyed = by_id.replace("key_format = 'kafka'", f"{primary}, key_schema_id = {key}")
    if side == "stream":
        sql.run(f"CREATE STREAM s WITH ({keyed}); CREATE TABLE t (id text PRIMARY KEY, name text) WITH ({declared})")
        on, shown = "s.ROWKEY = t.id", "s.ROWKEY, s.c1, t.name"
    else:
        sql.run(f"CREATE STREAM s (id text KEY, name text) WITH ({declared}); CREATE TABLE t WITH ({keyed})")
        on, shown = "s.name = t.ROWKEY", "s.id, t.c1, s.name"
    kinds = "KEYED"
    (found,) = sql.run(f"CREATE MATERIALIZED VIEW joined AS SELECT {shown} FROM s JOIN t ON {on}")[-1:]
    assert found
    assert [name for name, _ in columns(sql, "joined")] == [one.split(".")[1] for one in shown.split(", ")], kinds
    assert ("c1", type_) in columns(sql, "joined")


@pytest.mark.parametrize("format_", VALUES)
def test_a_group_by_a_record_has_that_record_as_its_key(sql: Shell, format_: str) -> None:
    text, kind, type_ = VALUES[format_]
    id_ = registered(sql, "v", text, kind)
    sql.run(
        f"CREATE STREAM s (k text KEY) WITH (kafka_topic = 's', partitions = 1, value_format = '{format_}', value_schema_id = {id_});"
        f"CREATE TABLE g WITH (format = '{format_}') AS SELECT STRUCT(a := k, b := c1) AS whole, count(*) AS n FROM s GROUP BY STRUCT(a := k, b := c1)"
    )
    assert columns(sql, "g") == [("whole", f"record(a text, b {type_})"), ("n", "bigint")]
    assert "g-key" in sql.registry.subjects()


def test_a_stream_by_id_with_imports_and_a_full_name_takes_a_query(sql: Shell) -> None:
    registered(sql, "0lib", 'syntax = "proto3"; package lib; message Place { string city = 1; }', SchemaFormat.PROTOBUF)
    text = 'syntax = "proto3"; import "lib.proto"; message Other { int32 n = 1; } message V { int32 c1 = 1; lib.Place at = 2; }'
    id_ = registered(
        sql, "v", text, SchemaFormat.PROTOBUF, Reference("lib.proto", "0lib", sql.registry.latest("0lib").version)
    )
    named = f"partitions = 1, value_format = 'protobuf', value_schema_id = {id_}, value_schema_full_name = 'V'"
    sql.run(f"CREATE STREAM a WITH (kafka_topic = 'a', {named}); CREATE STREAM b WITH (kafka_topic = 'b', {named})")
    assert columns(sql, "b") == [("c1", "integer"), ("at", "record(city text not null)")]
    # The shell answers a query with its text, so that only the plan is tried: the rows are in the specs.
    assert isinstance(sql.failure("INSERT INTO b SELECT at, c1 FROM a"), errors.InsertTypeDiffers)
    sql.run("INSERT INTO b VALUES (1, STRUCT(city := 'x'))")
    assert body(sql) == b"\x02\x02" + b"\x08\x01\x12\x03\x0a\x01x"


def test_arrays_of_records_are_inserted_with_fields_by_name(sql: Shell) -> None:
    item = {
        "type": "record",
        "name": "item",
        "fields": [{"name": "first", "type": "int"}, {"name": "second", "type": "string"}],
    }
    text = json.dumps({"type": "record", "name": "r", "fields": [
        {"name": "name", "type": "string"}, {"name": "items", "type": {"type": "array", "items": item}}, {"name": "one", "type": "item"}]})  # fmt: skip
    id_ = registered(sql, "v", text, SchemaFormat.AVRO)
    sql.run(
        f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = 'avro', value_schema_id = {id_});"
        'INSERT INTO s ("items", "name", "one") VALUES (ARRAY[STRUCT("second" := \'b\', "first" := 1)], \'n\','
        ' STRUCT("second" := \'c\', "first" := 2))'
    )
    assert body(sql) == b"\x02n" + b"\x02\x02\x02b\x00" + b"\x04\x02c"


def test_key_columns_in_another_order_than_the_subject_has_are_refused(sql: Shell) -> None:
    two = '{"type": "record", "name": "k", "fields": [{"name": "a", "type": ["null", "int"]}, {"name": "b", "type": ["null", "string"]}]}'
    sql.registry.register("t-key", Schema(two))
    given = "WITH (kafka_topic = 't', partitions = 1, key_format = 'avro', value_format = 'json')"
    found = sql.failure(f"CREATE STREAM s (b text KEY, a int KEY, v int) {given}")
    assert isinstance(found, errors.ColumnsNotInSchema)
    assert '"a" comes after "b"' in found.message()
    sql.run(f"CREATE STREAM s (a int KEY, b text KEY, v int) {given}; INSERT INTO s VALUES (1, 'x', 2)")
    assert len(sql.registry.versions("t-key")) == 1


def test_names_of_connect_in_a_schema_do_not_matter(sql: Shell) -> None:
    text = '{"type": "record", "name": "o", "connect.name": "x.o", "fields": [{"name": "c1", "type": ["null", "int"]}]}'
    sql.registry.register("t-value", Schema(text))
    sql.run(
        "CREATE STREAM s (c1 int) WITH (kafka_topic = 't', partitions = 1, value_format = 'avro', value_schema_full_name = 'other');"
        "INSERT INTO s VALUES (4)"
    )
    assert body(sql) == b"\x02\x08"
    assert len(sql.registry.versions("t-value")) == 1


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        ("bool", "boolean"), ("int32", "integer"), ("int64", "bigint"), ("double", "double"), ("string", "text"),
        ("repeated string", "array<text not null>"), ("float", "real"), ("uint32", "bigint"), ("sint64", "bigint"),
    ],
)  # fmt: skip
def test_a_message_is_a_key_with_its_fields_as_columns(sql: Shell, type_: str, column: str) -> None:
    key = registered(sql, "k", f'syntax = "proto3"; message K {{ {type_} F1 = 1; }}', SchemaFormat.PROTOBUF)
    value = registered(sql, "v", VALUES["protobuf"][0], SchemaFormat.PROTOBUF)
    sql.run(
        f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, format = 'protobuf', key_schema_id = {key}, value_schema_id = {value})"
    )
    assert columns(sql) == [("F1", column), ("c1", "integer")]
