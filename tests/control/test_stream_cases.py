"""Cases that users of ksqlDB know, over a real registry: which columns schemas give, what is registered, and which bytes are written."""

from __future__ import annotations

import json

import pytest

from headgate.control.definitions import task_definition
from headgate.errors import HeadgateError
from headgate.plan.definitions import SinkDefinition
from headgate.registry.schemas import Reference, Schema
from headgate.resolve import stream_errors as errors
from headgate.schema.written import SchemaFormat
from headgate.sql.errors import UnknownChoice
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

AVRO = '{"type": "record", "name": "Value", "fields": [{"name": "c1", "type": "int"}]}'
PROTO = 'syntax = "proto3"; message ValueName { int32 c1 = 1; }'
JSON = '{"type": "object", "properties": {"c1": {"type": "integer"}}}'
VALUES = {
    "avro": (AVRO, SchemaFormat.AVRO, "integer"),
    "protobuf": (PROTO, SchemaFormat.PROTOBUF, "integer"),
    "json_sr": (JSON, SchemaFormat.JSON, "bigint"),
}
TWO = 'syntax = "proto3"; message {0}1 {{ string other = 1; }} message {0}2 {{ int32 {1} = 1; }}'


@pytest.fixture(autouse=True)
def no_subjects(sql: Shell) -> None:
    """All tests share one registry."""
    for subject in reversed(sql.registry.subjects()):
        sql.registry.delete_subject(subject)


def registered(sql: Shell, subject: str, text: str, format_: SchemaFormat, *references: Reference) -> int:
    return sql.registry.register(subject, Schema(text, format_, references))


def columns(sql: Shell, name: str = "s") -> list[tuple[object, ...]]:
    return [tuple(row[:2]) for row in sql.rows(f"DESCRIBE {name}")]


def versions(sql: Shell, subject: str) -> int:
    return len(sql.registry.versions(subject))


def body(sql: Shell, at: int = -1) -> bytes:
    value = sql.connections.cluster.written[at][2]
    assert value is not None
    return value[5:]


@pytest.mark.parametrize("format_", VALUES)
def test_a_declared_key_stands_beside_a_value_by_id(sql: Shell, format_: str) -> None:
    text, kind, type_ = VALUES[format_]
    id_ = registered(sql, "given", text, kind)
    sql.run(
        "CREATE STREAM s (id int KEY) WITH (kafka_topic = 't', partitions = 1, key_format = 'kafka',"
        f" value_format = '{format_}', value_schema_id = {id_}); INSERT INTO s VALUES (42, 4)"
    )
    assert columns(sql) == [("id", "integer"), ("c1", type_)]
    (_, key, value), *_ = sql.connections.cluster.written
    assert key == b"\x00\x00\x00\x2a"
    assert value is not None
    assert value[:5] == b"\x00" + id_.to_bytes(4, "big")
    assert sql.registry.latest("t-value").schema_id == id_


@pytest.mark.parametrize(
    ("format_", "key", "key_format", "type_"),
    [
        ("avro", '"int"', SchemaFormat.AVRO, "integer"),
        ("avro", '["null", "int"]', SchemaFormat.AVRO, "integer"),
        ("avro", '"boolean"', SchemaFormat.AVRO, "boolean"),
        ("avro", '"double"', SchemaFormat.AVRO, "double"),
        ("avro", '{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}', SchemaFormat.AVRO, "decimal(4,2)"),
        ("avro", '{"type": "array", "items": "string"}', SchemaFormat.AVRO, "array<text not null>"),
        ("json_sr", '{"oneOf": [{"type": "null"}, {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}]}', SchemaFormat.JSON, "integer"),
        ("json_sr", '{"type": "string"}', SchemaFormat.JSON, "text"),
    ],
)  # fmt: skip
def test_a_key_without_fields_is_rowkey(
    sql: Shell, format_: str, key: str, key_format: SchemaFormat, type_: str
) -> None:
    text, kind, of_c1 = VALUES[format_]
    ids = registered(sql, "k", key, key_format), registered(sql, "v", text, kind)
    given = f"kafka_topic = 't', partitions = 1, format = '{format_}'"
    sql.run(f"CREATE STREAM s WITH ({given}, key_schema_id = {ids[0]}, value_schema_id = {ids[1]})")
    assert columns(sql) == [("ROWKEY", type_), ("c1", of_c1)]
    sql.run(f"CREATE TABLE inferred WITH ({given})")
    assert columns(sql, "inferred") == [("ROWKEY", type_), ("c1", of_c1)]


def test_full_names_choose_messages_for_keys_and_values(sql: Shell) -> None:
    ids = [
        registered(sql, n, TWO.format(n, c), SchemaFormat.PROTOBUF)
        for n, c in (("KeySchema", "K1"), ("ValueSchema", "C1"))
    ]
    sql.run(
        f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, format = 'protobuf', key_schema_id = {ids[0]},"
        f" value_schema_id = {ids[1]}, key_schema_full_name = 'KeySchema2', value_schema_full_name = 'ValueSchema2');"
        "INSERT INTO s VALUES (1, 2)"
    )
    assert columns(sql) == [("K1", "integer"), ("C1", "integer")]
    assert body(sql) == b"\x02\x02\x08\x02"  # one index, which is 1, and the message


def test_formats_may_be_mixed_and_both_schemas_are_registered(sql: Shell) -> None:
    ids = registered(sql, "k", '"string"', SchemaFormat.AVRO), registered(sql, "v", PROTO, SchemaFormat.PROTOBUF)
    sql.run(
        "CREATE STREAM src (k text KEY, c1 int) WITH (kafka_topic = 'src', partitions = 1, format = 'avro');"
        f"CREATE STREAM sink WITH (key_schema_id = {ids[0]}, value_format = 'protobuf', value_schema_id = {ids[1]}) AS"
        " SELECT * FROM src; INSERT INTO sink VALUES ('a', 4)"
    )
    assert [sql.registry.latest(subject).schema_id for subject in ("sink-key", "sink-value")] == list(ids)
    assert body(sql) == b"\x00\x08\x04"


def test_a_wrong_key_registers_nothing_for_the_value(sql: Shell) -> None:
    ids = registered(sql, "k", '"string"', SchemaFormat.AVRO), registered(sql, "v", AVRO, SchemaFormat.AVRO)
    given = f"kafka_topic = 't', partitions = 1, value_format = 'avro', value_schema_id = {ids[1]}, key_schema_id = {ids[0]}"
    for format_, error in (("kafka", errors.FormatWithoutSchemas), ("protobuf", errors.SchemaIdOfOtherFormat)):
        assert isinstance(sql.failure(f"CREATE STREAM s WITH ({given}, key_format = '{format_}')"), error)
    assert [name for name in sql.registry.subjects() if name.startswith("t-")] == []
    assert "t" not in sql.topics


def test_a_stream_by_inference_follows_as_select_in_one_script(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM src (k text KEY, c1 int) WITH (kafka_topic = 'src', partitions = 1, format = 'avro');"
        "CREATE STREAM made WITH (kafka_topic = 't') AS SELECT k, c1 AS \"C\" FROM src;"
        "CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro')"
    )
    assert columns(sql) == [("C", "integer")]


def test_a_json_schema_with_a_further_property_takes_an_object_key(sql: Shell) -> None:
    key = registered(sql, "k", '{"type": "object", "properties": {"id": {"type": "integer"}}}', SchemaFormat.JSON)
    text = '{"type": "object", "properties": {"c1": {"type": "integer"}, "c2": {"type": "string"}}}'
    value = registered(sql, "v", text, SchemaFormat.JSON)
    sql.run(
        "CREATE STREAM src (id bigint KEY, c1 bigint) WITH (kafka_topic = 'src', partitions = 1, format = 'json_sr');"
        f"CREATE STREAM s WITH (key_schema_id = {key}, value_schema_id = {value}) AS SELECT * FROM src;"
        "INSERT INTO s VALUES (1, 4)"
    )
    assert columns(sql) == [("id", "bigint"), ("c1", "bigint")]
    assert json.loads(body(sql)) == {"c1": 4}


@pytest.mark.parametrize("format_", VALUES)
def test_tables_by_id_are_joined_grouped_and_filtered_into_tables(sql: Shell, format_: str) -> None:
    text, kind, _ = VALUES[format_]
    key = {
        "avro": '"string"',
        "json_sr": '{"type": "string"}',
        "protobuf": 'syntax = "proto3"; message K { string ROWKEY = 1; }',
    }
    ids = registered(sql, "k", key[format_], kind), registered(sql, "v", text, kind)
    given = f"partitions = 1, format = '{format_}', key_schema_id = {ids[0]}, value_schema_id = {ids[1]}"
    sql.run(
        f"CREATE TABLE a WITH (kafka_topic = 'a', {given}); CREATE TABLE b WITH (kafka_topic = 'b', {given});"
        "CREATE TABLE filtered AS SELECT ROWKEY, c1 FROM a WHERE c1 > 0;"
        "CREATE TABLE joined AS SELECT a.ROWKEY, a.c1, b.c1 AS other FROM a JOIN b ON a.ROWKEY = b.ROWKEY;"
        "CREATE TABLE c (ROWKEY text PRIMARY KEY, fk text) WITH (kafka_topic = 'c', partitions = 1, value_format = 'json');"
        "CREATE TABLE foreign_key WITH (value_format = 'avro') AS SELECT c.ROWKEY, b.c1 FROM c JOIN b ON c.fk = b.ROWKEY;"
        "CREATE TABLE counted AS SELECT c1, count(*) AS n FROM a GROUP BY c1"
    )
    for name in ("filtered", "joined", "foreign_key"):
        assert columns(sql, name)[0] == ("ROWKEY", "text")
        assert f"{name}-value" in sql.registry.subjects()
    assert columns(sql, "counted")[1] == ("n", "bigint")


def test_rows_with_imported_types_are_inserted(sql: Shell) -> None:
    lib = 'syntax = "proto3"; package lib; message Event { int64 TIMESTAMP = 1; }'
    registered(sql, "lib", lib, SchemaFormat.PROTOBUF)
    text = 'syntax = "proto3"; import "lib.proto"; message V { lib.Event EVENT = 1; }'
    id_ = registered(sql, "v", text, SchemaFormat.PROTOBUF, Reference("lib.proto", "lib", 1))
    sql.run(
        f"CREATE STREAM s (K1 text KEY) WITH (kafka_topic = 't', partitions = 1, key_format = 'kafka',"
        f" value_format = 'protobuf', value_schema_id = {id_}); INSERT INTO s (K1, EVENT) VALUES ('k', STRUCT(TIMESTAMP := 1234))"
    )
    assert body(sql) == b"\x00\x0a\x03\x08\xd2\x09"


def test_a_single_value_is_written_bare(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM s (v int) WITH (kafka_topic = 't', partitions = 1, value_format = 'avro', wrap_single_value = false);"
        "INSERT INTO s VALUES (10)"
    )
    assert body(sql) in (b"\x14", b"\x02\x14")  # 10, alone or as the second branch of a union


@pytest.mark.parametrize(("format_", "written"), [("avro", b"\x14"), ("json_sr", b"10"), ("json", b"10")])
def test_a_query_of_one_column_may_be_written_bare(sql: Shell, format_: str, written: bytes) -> None:
    sql.run(
        "CREATE STREAM src (k int KEY, a int, b int) WITH (kafka_topic = 'src', partitions = 1, value_format = 'json')"
    )
    bare = f"CREATE STREAM s WITH (value_format = '{format_}', wrap_single_value = false) AS SELECT "
    sql.run(f"{bare} k, a FROM src; INSERT INTO s VALUES (1, 10)")
    assert columns(sql) == [("k", "integer"), ("a", "integer")]
    value = sql.connections.cluster.written[-1][2] or b""
    assert value[5 if format_ != "json" else 0 :] == written
    if format_ != "json":
        assert versions(sql, "s-value") == 1
        assert int.from_bytes(value[1:5], "big") == sql.registry.latest("s-value").schema_id
        (sink,) = sql.store.load().of_kind(Kind.SINK)
        task = task_definition(sql.store.load(), sink).sink
        assert isinstance(task, SinkDefinition)
        assert (task.value.whole, task.value.schema_id) == (True, sql.registry.latest("s-value").schema_id)
    assert isinstance(sql.failure(f"{bare.replace(' s ', ' u ')} a, b FROM src"), errors.PropertyWithoutMeaning)


def test_keys_of_two_columns_are_inserted_again_without_another_version(sql: Shell) -> None:
    sql.run("CREATE STREAM s (a int KEY, b text KEY, v int) WITH (kafka_topic = 't', partitions = 1, format = 'avro')")
    for _ in range(2):
        sql.run("INSERT INTO s VALUES (1, 'x', 2)")
    assert (versions(sql, "t-key"), versions(sql, "t-value")) == (1, 1)
    first, second = sql.connections.cluster.written
    assert first == second


def test_numbers_are_widened_and_never_narrowed(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM s (b bigint, d double, i int) WITH (kafka_topic = 't', partitions = 1, value_format = 'json')"
    )
    sql.run("INSERT INTO s VALUES (1, 2, 3)")
    assert sql.connections.cluster.written[-1][2] == b'{"b":1,"d":2.0,"i":3}'
    for values in ("(1.5, 2, 3)", "(1, 2, 3000000000)"):
        sql.failure(f"INSERT INTO s VALUES {values}")


def test_nulls_inside_records_are_written_as_the_defaults_of_their_fields(sql: Shell) -> None:
    inner = '{"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}, {"name": "d", "type": "int", "default": 3}]}'
    fields = f'[{{"name": "m", "type": {{"type": "map", "values": {inner}}}}}, {{"name": "l", "type": {{"type": "array", "items": "I"}}}}]'
    id_ = registered(sql, "v", f'{{"type": "record", "name": "V", "fields": {fields}}}', SchemaFormat.AVRO)
    sql.run(
        f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = 'avro', value_schema_id = {id_});"
        "INSERT INTO s VALUES (MAP('k' := STRUCT(x := 1)), ARRAY[STRUCT(x := 2, d := NULL), STRUCT(x := 3, d := 4)])"
    )
    assert body(sql) == b"\x02\x02k\x02\x06\x00" + b"\x04\x04\x06\x06\x08\x00"
    for values, path in (("MAP('k' := STRUCT(d := 1)), ARRAY[]", "$.m{}.x"), ("MAP(), ARRAY[NULL]", "$.l[]")):
        wrong = sql.failure(f"INSERT INTO s VALUES ({values})")
        assert isinstance(wrong, errors.RowUnwritable)
        assert path in wrong.message()


def test_keys_without_fields_and_keys_with_maps_make_no_table(sql: Shell) -> None:
    value = registered(sql, "v", AVRO, SchemaFormat.AVRO)
    for fields, error in (
        ("", errors.TableWithoutKey),
        ('{"name": "m", "type": {"type": "map", "values": "int"}}', errors.MapInKey),
    ):
        key = registered(
            sql, "k" + fields[:9], f'{{"type": "record", "name": "K", "fields": [{fields}]}}', SchemaFormat.AVRO
        )
        given = f"partitions = 1, format = 'avro', key_schema_id = {key}, value_schema_id = {value}"
        assert isinstance(sql.failure(f"CREATE TABLE t WITH (kafka_topic = 't', {given})"), error)


def test_a_stream_without_any_column_is_refused(sql: Shell) -> None:
    for format_, text in (
        ("avro", '{"type": "record", "name": "V", "fields": []}'),
        ("json_sr", '{"type": "object"}'),
        ("protobuf", 'syntax = "proto3"; message V {} message W { int32 n = 1; }'),
    ):
        id_ = registered(sql, format_, text, VALUES[format_][1])
        wrong = sql.failure(
            f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = '{format_}', value_schema_id = {id_})"
        )
        expected = errors.NoFieldInSchema if format_ != "json_sr" else errors.SchemaNotRecord
        assert isinstance(wrong, expected), format_
    assert "t" not in sql.topics


@pytest.mark.parametrize("format_", ["avro", "json_sr", "protobuf", "json"])
def test_a_query_of_key_columns_alone_gives_a_stream_of_them(sql: Shell, format_: str) -> None:
    sql.run(
        f"CREATE STREAM src (k int KEY, a int) WITH (kafka_topic = 'src', partitions = 1, format = '{format_}');"
        "CREATE STREAM keys AS SELECT k FROM src; INSERT INTO keys VALUES (1)"
    )
    assert columns(sql, "keys") == [("k", "integer")]
    assert isinstance(
        sql.failure("CREATE STREAM x WITH (value_format = 'delimited') AS SELECT k FROM src"),
        errors.PropertyWithoutMeaning,
    )
    refused = sql.failure("CREATE STREAM x WITH (key_format = 'none') AS SELECT k, a FROM src")
    assert isinstance(refused, errors.PropertyWithoutMeaning)
    assert "PARTITION BY NULL" in refused.message()
    sql.run("CREATE STREAM x WITH (key_format = 'none') AS SELECT k, a FROM src PARTITION BY NULL")


def test_a_query_with_names_or_types_that_its_format_lacks_is_refused(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM src (n int, d decimal(9,2)) WITH (kafka_topic = 'src', partitions = 1, value_format = 'json')"
    )
    for format_, columns, error in (
        ("avro", "n + 1", errors.NameNotInFormat), ("avro", 'STRUCT("a b" := n) AS r', errors.NameNotInFormat),
        ("protobuf", "d", errors.TypeNotInFormat),
    ):  # fmt: skip
        assert isinstance(
            sql.failure(f"CREATE STREAM s WITH (value_format = '{format_}') AS SELECT {columns} FROM src"), error
        )
    sql.run("CREATE STREAM s WITH (value_format = 'protobuf') AS SELECT d::text AS d FROM src")


def test_what_is_hidden_is_not_told_when_a_stream_cannot_be_dropped(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM src (n int) WITH (kafka_topic = 'src', partitions = 1, value_format = 'json');"
        "CREATE STREAM s AS SELECT * FROM src"
    )
    assert sql.failure("DROP STREAM src").detail() == 'Used by stream "s".'


def test_a_json_schema_of_an_older_draft_may_stand_without_its_draft(sql: Shell) -> None:
    text = '{"properties": {"a": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}}}'
    id_ = registered(sql, "v", text, SchemaFormat.JSON)
    sql.run(
        f"CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = 'json_sr', value_schema_id = {id_});"
        "INSERT INTO s VALUES ('[1, \"x\"]')"
    )
    assert json.loads(body(sql)) == {"a": [1, "x"]}
    assert isinstance(sql.failure("INSERT INTO s VALUES ('[\"x\"]')"), errors.RowUnwritable)


def test_lines_of_delimited_text_have_types_and_tell_null_from_an_empty_text(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM s (k int KEY, i int, t text, x bytes, d double, n decimal(10,2), tz timestamptz, o boolean)"
        " WITH (kafka_topic = 's', partitions = 1, format = 'delimited', value_delimiter = '|')"
    )
    sql.run(
        "INSERT INTO s VALUES (1, 2, 'a|b\"', '\\x00ff', 0.5, 1.5, '2026-11-19T12:00:00Z', true); INSERT INTO s (t) VALUES ('')"
    )
    assert sql.connections.cluster.written == [
        ("s", b"1", b'2|"a|b\"\""|AP8=|0.5|1.50|2026-11-19T12:00:00.000000Z|true'), ("s", None, b'|""|||||'),
    ]  # fmt: skip


def test_a_stream_from_delimited_text_keeps_the_delimiter_of_its_source(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM s (a int, b text) WITH (kafka_topic = 's', partitions = 1, value_format = 'delimited', value_delimiter = 'TAB');"
        "CREATE STREAM u AS SELECT * FROM s; CREATE STREAM v WITH (value_delimiter = ';') AS SELECT * FROM s;"
        "INSERT INTO u VALUES (1, 'x'); INSERT INTO v VALUES (1, 'x')"
    )
    assert [value for _, _, value in sql.connections.cluster.written] == [b"1\tx", b"1;x"]
    sql.run("CREATE STREAM j (a int) WITH (kafka_topic = 'j', partitions = 1, value_format = 'json')")
    for text, error in (
        ("WITH (value_delimiter = ';') AS SELECT a FROM j", errors.PropertyWithoutMeaning),
        ("WITH (value_format = 'delimited') AS SELECT ARRAY(a) AS a FROM j", errors.FormatCannotHold),
        ("WITH (value_format = 'kafka') AS SELECT a > 1 AS a FROM j", errors.FormatCannotHold),
    ):
        assert isinstance(sql.failure(f"CREATE STREAM w {text}"), error)


def test_headers_and_metadata_are_not_inserted(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM s (v int, h array<record(key text, value bytes)> HEADERS)"
        " WITH (kafka_topic = 't', partitions = 1, value_format = 'json')"
    )
    for column in ("h", "ROWPARTITION", "ROWOFFSET"):
        assert isinstance(sql.failure(f"INSERT INTO s (v, {column}) VALUES (1, NULL)"), errors.UnknownInsertColumn)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE STREAM s (k int KEY, v int) WITH (kafka_topic = 't', partitions = 1, key_format = 'none', value_format = 'json')", errors.StreamFormatMissing),
        ("CREATE STREAM s (v int) WITH (kafka_topic = 't', partitions = 1, value_format = 'none')", errors.StreamFormatMissing),
        ("CREATE STREAM s (v int) WITH (kafka_topic = 't', partitions = 1, value_format = 'yaml')", UnknownChoice),
    ],
)  # fmt: skip
def test_formats_that_cannot_be_are_refused(sql: Shell, text: str, error: type[HeadgateError]) -> None:
    assert isinstance(sql.failure(text), error)
    assert "t" not in sql.topics


def test_names_that_are_words_of_the_language_are_columns(sql: Shell) -> None:
    sql.run(
        'CREATE STREAM s ("@TIMESTAMP" int, "FROM" text, "with.dot" int, "SELECT" text)'
        " WITH (kafka_topic = 't', partitions = 1, value_format = 'json');"
        'CREATE STREAM u AS SELECT "FROM", "with.dot", "SELECT" AS "@x" FROM s PARTITION BY "FROM";'
        "INSERT INTO s VALUES (1, 'f', 2, 's')"
    )
    assert columns(sql, "u") == [("FROM", "text"), ("with.dot", "integer"), ("@x", "text")]
    assert json.loads(sql.connections.cluster.written[-1][2] or b"") == {
        "@TIMESTAMP": 1,
        "FROM": "f",
        "with.dot": 2,
        "SELECT": "s",
    }
