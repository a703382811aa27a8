"""CREATE STREAM and CREATE TABLE over a topic: columns, schemas that are registered, and every rule with its own error."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.objects import Growth, Object
from headgate.errors import HeadgateError
from headgate.plan.definitions import RecordTime
from headgate.plan.plans import CreateTopic, DeleteTopic, RegisterSchema, ReuseSchema
from headgate.plan.record_times import known_time
from headgate.resolve import stream_errors as errors, time_errors
from headgate.schema import types as t
from headgate.schema.render import print_type
from headgate.schema.written import SchemaFormat
from headgate.sql.script import parse_statement
from headgate.sql.statement import Kind, print_statement
from headgate.sql.streams import CreateStream
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

ORDER = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "orderId", "type": "long", "doc": "its number"},
        {"name": "Total", "type": ["null", "double"], "default": None},
        {"name": "items", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
PROTO = """syntax = "proto3"; package shop;
message Order { int64 orderId = 1; optional double Total = 2; }
message Other { string text = 1; }
"""
JSON_SCHEMA = {
    "type": "object",
    "properties": {"orderId": {"type": "integer"}, "Total": {"type": ["number", "null"]}},
    "required": ["orderId"],
}
BY_FORMAT = {
    "avro": (ORDER, SchemaFormat.AVRO),
    "protobuf": (PROTO, SchemaFormat.PROTOBUF),
    "json_sr": (JSON_SCHEMA, SchemaFormat.JSON),
}


@pytest.fixture
def planning() -> Planning:
    found = Planning()
    found.outside.topics["t"] = 1
    return found


def made(planning: Planning, kind: Kind = Kind.STREAM) -> Object:
    (found,) = planning.catalog.of_kind(kind)
    return found


def columns(found: Object) -> list[str]:
    return [
        f"{c.name} {print_type(c.type)}{'' if c.nullable else ' not null'}{' key' if c.key else ''}"
        for c in found.columns
    ]


def refused(planning: Planning, text: str, error: type[HeadgateError]) -> HeadgateError:
    with pytest.raises(error) as caught:
        planning.plan(text)
    assert caught.value.message()
    return caught.value


@pytest.mark.parametrize("format_", BY_FORMAT)
def test_a_schema_id_gives_the_columns_with_their_case_and_is_registered_for_the_topic(
    planning: Planning, format_: str
) -> None:
    schema, kind = BY_FORMAT[format_]
    id_ = planning.outside.add_subject("elsewhere", schema, kind)
    (done,) = planning.do(
        f"CREATE STREAM s WITH (kafka_topic = 't', value_schema_id = {id_}, value_format = '{format_}')"
    )
    assert columns(made(planning))[:2] == ["orderId bigint", "Total double"]
    (effect,) = done.effects
    assert isinstance(effect, ReuseSchema)
    assert (effect.subject, effect.schema.id) == ("t-value", id_)
    assert made(planning).growth is Growth.APPEND


def test_a_key_without_fields_is_rowkey_and_a_record_key_gives_flat_columns(planning: Planning) -> None:
    single = planning.outside.add_subject("k1", '"long"')
    pair = planning.outside.add_subject(
        "k2",
        {"type": "record", "name": "k", "fields": [{"name": "a", "type": "int"}, {"name": "B", "type": "string"}]},
    )
    value = planning.outside.add_subject("v", ORDER)
    planning.do(
        f"CREATE TABLE one WITH (kafka_topic = 't', key_schema_id = {single}, value_schema_id = {value}, format = 'avro');"
        f"CREATE TABLE two WITH (kafka_topic = 't', key_schema_id = {pair}, value_schema_id = {value}, format = 'avro')"
    )
    one, two = planning.catalog.of_kind(Kind.TABLE)
    assert columns(one)[0] == "ROWKEY bigint not null key"
    assert columns(two)[:2] == ["a integer not null key", "B text not null key"]
    assert one.growth is Growth.KEYED


def test_a_value_that_is_no_record_needs_wrap_single_value_false(planning: Planning) -> None:
    id_ = planning.outside.add_subject("v", '"int"')
    properties = f"kafka_topic = 't', value_schema_id = {id_}, value_format = 'avro'"
    wrong = refused(planning, f"CREATE STREAM s WITH ({properties})", errors.SchemaNotRecord)
    assert "wrap_single_value = false" in str(wrong.hint())
    planning.do(f"CREATE STREAM s WITH ({properties}, wrap_single_value = false)")
    assert columns(made(planning)) == ["ROWVALUE integer"]


def test_wrap_single_value_false_over_a_record_gives_one_column_of_that_record(planning: Planning) -> None:
    planning.outside.add_subject("t-value", {"type": "record", "name": "r", "fields": [{"name": "F0", "type": "int"}]})
    planning.do("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', wrap_single_value = false)")
    assert columns(made(planning)) == ["ROWVALUE record(F0 integer not null)"]


def test_columns_are_inferred_from_the_subjects_and_nothing_is_registered(planning: Planning) -> None:
    planning.topic("t", key='"string"', value=ORDER)
    (done,) = planning.do("CREATE TABLE s WITH (kafka_topic = 't', format = 'avro')")
    assert columns(made(planning, Kind.TABLE)) == [
        "ROWKEY text not null key", "orderId bigint", "Total double", "items array<text not null>",
    ]  # fmt: skip
    assert done.effects == ()


def test_declared_columns_are_registered_if_the_subject_does_not_exist(planning: Planning) -> None:
    (done,) = planning.do(
        "CREATE STREAM s (id bigint KEY, \"Name\" text, tags text[]) WITH (kafka_topic = 'new', partitions = 3,"
        " retention_ms = 1000, format = 'avro', value_schema_full_name = 'shop.Item')"
    )
    topic, key, value = done.effects
    assert isinstance(topic, CreateTopic)
    assert topic == CreateTopic(topic.connection, "new", 3, None, (("retention.ms", "1000"),))
    assert isinstance(key, RegisterSchema)
    assert isinstance(value, RegisterSchema)
    assert (key.subject, json.loads(key.schema.text)) == ("new-key", "long")
    schema = json.loads(value.schema.text)
    assert (schema["name"], schema["namespace"]) == ("Item", "shop")
    assert [f["name"] for f in schema["fields"]] == ["Name", "tags"]
    assert columns(made(planning)) == ["id bigint", "Name text", "tags array<text>"]


def test_declared_columns_over_an_existing_subject_are_a_part_of_its_schema(planning: Planning) -> None:
    planning.outside.add_subject("t-value", ORDER)
    (done,) = planning.do("CREATE STREAM s (\"Total\" double) WITH (kafka_topic = 't', value_format = 'avro')")
    assert columns(made(planning)) == ["Total double"]
    assert done.effects == ()


def test_columns_that_are_no_part_of_the_schema_are_told_side_by_side(planning: Planning) -> None:
    planning.outside.add_subject("t-value", ORDER)
    wrong = refused(
        planning,
        "CREATE STREAM s (total double, gone text, items text[], \"orderId\" int) WITH (kafka_topic = 't', value_format = 'avro')",
        errors.ColumnsNotInSchema,
    )
    assert wrong.message() == (
        'the value columns of stream "s" do not fit the schema of its subject: "total" differs from "Total" only by case: '
        'write "Total" in quotes; "gone" is missing in the schema; "orderId" comes after "items", which the schema has behind '
        'it; "orderId" is integer and in the schema bigint: write CAST(orderId AS bigint)'
    )
    assert wrong.detail() == (
        "columns           | schema\n"
        "total double      | orderId bigint\n"
        "gone text         | Total double\n"
        "items array<text> | items array<text not null>\n"
        "orderId integer   |"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE STREAM s WITH (kafka_topic = 't')", errors.StreamFormatMissing),
        ("CREATE STREAM s WITH (kafka_topic = 't', key_schema_id = 1, value_format = 'avro')", errors.StreamFormatMissing),
        ("CREATE STREAM s WITH (kafka_topic = 't', format = 'avro', value_format = 'avro')", errors.StreamFormatTwice),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'json', value_schema_id = 1)", errors.FormatWithoutSchemas),
        (
            "CREATE STREAM s WITH (kafka_topic = 't', key_format = 'kafka', key_schema_id = 1, value_format = 'avro')",
            errors.FormatWithoutSchemas,
        ),
        (
            "CREATE STREAM s (a int) WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = 1)",
            errors.ColumnsBesideSchemaId,
        ),
        (
            "CREATE STREAM s (a int KEY) WITH (kafka_topic = 't', format = 'avro', key_schema_id = 1)",
            errors.ColumnsBesideSchemaId,
        ),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = 0)", errors.InvalidSchemaId),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = 99)", errors.SchemaIdUnknown),
        ("CREATE STREAM s WITH (kafka_topic = 't', format = 'avro', key_schema_id = 99, value_schema_id = 1)", errors.SchemaIdUnknown),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'protobuf', value_schema_id = 1)", errors.SchemaIdOfOtherFormat),
        ("CREATE STREAM s (a int PRIMARY KEY, b int) WITH (kafka_topic = 't', value_format = 'json')", errors.KeyRoleOfOtherKind),
        ("CREATE TABLE s (a int KEY, b int) WITH (kafka_topic = 't', value_format = 'json')", errors.KeyRoleOfOtherKind),
        ("CREATE TABLE s (b int) WITH (kafka_topic = 't', value_format = 'json')", errors.TableWithoutKey),
        ("CREATE TABLE s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = 1)", errors.TableWithoutKey),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'json')", errors.StreamColumnsMissing),
        ("CREATE STREAM s (a int) WITH (kafka_topic = 't', value_format = 'json', value_delimiter = ';')", errors.PropertyWithoutMeaning),
        (
            "CREATE STREAM s (a int) WITH (kafka_topic = 't', value_format = 'json', value_schema_full_name = 'x')",
            errors.PropertyWithoutMeaning,
        ),
        (
            "CREATE STREAM s (a int) WITH (kafka_topic = 't', value_format = 'protobuf', wrap_single_value = false)",
            errors.PropertyWithoutMeaning,
        ),
        (
            "CREATE STREAM s (a int, b int) WITH (kafka_topic = 't', value_format = 'json', wrap_single_value = false)",
            errors.PropertyWithoutMeaning,
        ),
        ("CREATE STREAM s (a int) WITH (kafka_topic = 'u', value_format = 'json')", errors.StreamTopicMissing),
        (
            "CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = 1, value_schema_full_name = 'x')",
            errors.OtherFullName,
        ),
        ("CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro')", errors.NoSchemaToInfer),
        ("CREATE STREAM s WITH (kafka_topic = 't', key_format = 'avro', value_format = 'avro', value_schema_id = 1)", errors.NoSchemaToInfer),
        ("CREATE STREAM s (a int KEY, b int, a int) WITH (kafka_topic = 't', value_format = 'json')", errors.StreamColumnTwice),
        ("CREATE STREAM s (a int KEY, b int KEY, c int) WITH (kafka_topic = 't', value_format = 'json')", errors.FormatOfOneColumn),
        ("CREATE STREAM s (a boolean KEY, c int) WITH (kafka_topic = 't', value_format = 'json')", errors.FormatCannotHold),
        ("CREATE STREAM s (a map<text, int> KEY, c int) WITH (kafka_topic = 't', format = 'json')", errors.MapInKey),
        ("CREATE STREAM s (\"a b\" int) WITH (kafka_topic = 't', value_format = 'avro')", errors.NameNotInFormat),
        ("CREATE STREAM s (a decimal(9,2)) WITH (kafka_topic = 't', value_format = 'protobuf')", errors.TypeNotInFormat),
        ("CREATE STREAM s (a int) WITH (kafka_topic = '', value_format = 'json')", errors.PropertyWithoutMeaning),
        ("CREATE STREAM s (a int) WITH (kafka_topic = 't', value_format = 'avro', value_schema_full_name = '')", errors.PropertyWithoutMeaning),
        ("CREATE STREAM s (a int, h text HEADERS) WITH (kafka_topic = 't', value_format = 'json')", errors.HeaderType),
        ("CREATE STREAM s (a int, h text HEADER('x')) WITH (kafka_topic = 't', value_format = 'json')", errors.HeaderType),
    ],
)  # fmt: skip
def test_a_statement_that_breaks_a_rule_is_refused_by_the_error_of_that_rule(
    planning: Planning, text: str, error: type[HeadgateError]
) -> None:
    planning.outside.add_subject("elsewhere", ORDER)
    assert refused(planning, text, error).hint()


def test_a_field_of_the_value_with_the_name_of_a_key_column_is_refused(planning: Planning) -> None:
    key = {"type": "record", "name": "k", "fields": [{"name": "orderId", "type": "long"}]}
    planning.topic("t", key=key, value=ORDER)
    wrong = refused(planning, "CREATE STREAM s WITH (kafka_topic = 't', format = 'avro')", errors.StreamColumnTwice)
    assert 'key field "orderId" and value field "orderId"' in wrong.message()


def test_a_full_name_picks_the_message_of_a_protobuf_file(planning: Planning) -> None:
    id_ = planning.outside.add_subject("p", PROTO, SchemaFormat.PROTOBUF)
    planning.do(
        f"CREATE STREAM s WITH (kafka_topic = 't', value_format = 'protobuf', value_schema_id = {id_},"
        " value_schema_full_name = 'shop.Other')"
    )
    assert columns(made(planning)) == ["text text"]


def test_the_notices_tell_what_nulls_do(planning: Planning) -> None:
    id_ = planning.outside.add_subject("v", ORDER)
    (done,) = planning.do(f"CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = {id_})")
    assert done.notices == (
        'a row of stream "s" with null in "orderId" of its value cannot be written: the schema requires a value',
        'a null in "items" of the value of stream "s" is written as the default of the schema',
    )


def test_the_printed_statement_has_ids_and_no_columns(planning: Planning) -> None:
    id_ = planning.outside.add_subject("v", ORDER)
    text = f"CREATE STREAM s\nWITH (kafka_topic = 't', value_format = 'avro', value_schema_id = {id_});"
    planning.do(text)
    definition = made(planning).definition
    assert definition is not None
    assert print_statement(definition) == text
    assert parse_statement(text).words == "CREATE STREAM"


def test_a_stream_is_replaced_by_one_with_further_columns_only(planning: Planning) -> None:
    planning.do("CREATE STREAM s (a int, b text) WITH (kafka_topic = 't', value_format = 'json')")
    before = made(planning)
    planning.do("CREATE OR REPLACE STREAM s (c int, a int, b text) WITH (kafka_topic = 't', value_format = 'json')")
    after = made(planning)
    assert after.id == before.id
    assert {c.name: c.id for c in after.columns} == {"a": 1, "b": 2, "c": 3}
    text = "CREATE OR REPLACE STREAM s (a text) WITH (kafka_topic = 't', value_format = 'json')"
    assert "b text" in str(refused(planning, text, errors.StreamChangesColumns).detail())


def test_delete_topic_is_refused_while_others_use_the_topic(planning: Planning) -> None:
    planning.outside.add_subject("t-value", ORDER)
    planning.do(
        "CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro');"
        "CREATE SOURCE r FROM KAFKA CONNECTION kafka (TOPIC 't') FORMAT TEXT"
    )
    wrong = refused(planning, "DROP STREAM s DELETE TOPIC", errors.TopicStillUsed)
    assert 'source "r"' in str(wrong.detail())
    planning.do("DROP SOURCE r")
    (done,) = planning.do("DROP STREAM s DELETE TOPIC")
    (effect,) = done.effects
    assert isinstance(effect, DeleteTopic)
    assert (effect.topic, [subject for _, subject in effect.subjects]) == ("t", ["t-value"])


def test_named_types_and_headers_are_columns(planning: Planning) -> None:
    planning.do(
        "CREATE TYPE point AS (x int, y int);"
        "CREATE STREAM s (p point, h array<record(key text, value bytes)> HEADERS, one bytes HEADER('o'))"
        " WITH (kafka_topic = 't', value_format = 'json')"
    )
    assert columns(made(planning)) == [
        "p record(x integer, y integer)",
        "h array<record(key text not null, value bytes) not null>",
        "one bytes",
    ]


def test_views_and_sinks_read_streams(planning: Planning) -> None:
    planning.do(
        "CREATE STREAM s (a int, b text) WITH (kafka_topic = 't', value_format = 'json');"
        "CREATE VIEW v AS SELECT a FROM s WHERE b = 'x';"
        "CREATE SINK k FROM v INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT JSON"
    )
    assert [c.name for c in planning.catalog.get(made(planning, Kind.VIEW).id).columns] == ["a"]


# timestamp

TIMED = "CREATE STREAM s ({columns}) WITH (kafka_topic = 't', value_format = 'json', timestamp = '{name}'{more})"
PATTERN = ", timestamp_format = 'yyyy-MM-dd'"


@pytest.mark.parametrize(
    ("columns", "name", "more", "error", "told"),
    [
        ("created bigint, n int", "creation", "", time_errors.UnknownTimeColumn, "created"),
        ('"Ts" bigint, n int', '"ts"', "", time_errors.UnknownTimeColumn, "Ts"),
        ("n int, h bytes HEADER('h')", "h", "", time_errors.UnknownTimeColumn, "key or the value"),
        ("ts int", "ts", "", time_errors.TimeColumnType, "bigint"),
        ("ts date", "ts", "", time_errors.TimeColumnType, "bigint"),
        ("ts text", "ts", "", time_errors.TimeFormatMissing, "timestamp_format"),
        ("ts bigint", "ts", PATTERN, time_errors.TimeFormatUnused, "Leave"),
        ("ts timestamptz", "ts", PATTERN, time_errors.TimeFormatUnused, "Leave"),
        ("ts text", "ts", ", timestamp_format = 'no pattern'", time_errors.InvalidTimeFormat, "DateTimeFormatter"),
        ("ts bigint", "", "", errors.PropertyWithoutMeaning, "Leave"),
    ],
)
def test_a_time_that_cannot_be_taken_is_refused(
    planning: Planning, columns: str, name: str, more: str, error: type[HeadgateError], told: str
) -> None:
    wrong = refused(planning, TIMED.format(columns=columns, name=name, more=more), error)
    assert told in (wrong.hint() or "")


def test_a_pattern_without_a_column_is_refused(planning: Planning) -> None:
    text = "CREATE STREAM s (t text) WITH (kafka_topic = 't', value_format = 'json', timestamp_format = 'yyyy')"
    refused(planning, text, errors.PropertyWithoutMeaning)


@pytest.mark.parametrize("name", ["TS", "Ts", '"Ts"', "`Ts`"])
def test_the_time_column_is_found_as_columns_are(planning: Planning, name: str) -> None:
    planning.do(TIMED.format(columns='"Ts" bigint', name=name, more=""))
    found = made(planning).definition
    assert isinstance(found, CreateStream)
    assert known_time(found) == RecordTime("Ts", t.Bigint())


def test_a_topic_must_keep_the_times_of_its_records(planning: Planning) -> None:
    done = planning.change(TIMED.format(columns="ts bigint", name="ts", more=", retention_ms = 1000"))
    (topic,) = [effect for effect in done.effects if isinstance(effect, CreateTopic)]
    assert topic.config == (("retention.ms", "1000"), ("message.timestamp.type", "CreateTime"))
