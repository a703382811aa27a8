"""CREATE STREAM and TABLE … AS SELECT, INSERT … VALUES, and sinks with schema ids."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from headgate.catalog.changes import apply
from headgate.catalog.errors import AlreadyExists, DependencyCycle
from headgate.catalog.graph import hidden_parts, parts_of
from headgate.catalog.objects import DesiredTaskState, Object
from headgate.control.definitions import task_definition
from headgate.errors import HeadgateError
from headgate.plan.definitions import RecordTime, SinkDefinition
from headgate.plan.doc_errors import PolicyViolated
from headgate.plan.errors import ReplacementBreaks
from headgate.plan.impact import plan_follow
from headgate.plan.plans import ChangeCatalog, CreateTopic, InsertRows, RegisterSchema, ReuseSchema
from headgate.plan.reading import layout_of
from headgate.plan.sink_errors import OptionWithoutKey, SchemaIdExcludes, SinkCannotQuarantine, SinkFeedsItself
from headgate.resolve import stream_errors as errors, time_errors
from headgate.resolve.definitions import with_current_names
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.render import print_type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.errors import UnknownFunction
from headgate.sql.statement import Kind, print_statement
from headgate.sql.streams import CreateStreamAs
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit

SOURCE = "CREATE STREAM src (k bigint KEY, c1 int, c2 text) WITH (kafka_topic = 'src', format = 'avro', partitions = 1)"
TABLE = "CREATE TABLE tab (k bigint PRIMARY KEY, c1 int, c2 text) WITH (kafka_topic = 'tab', format = 'avro', partitions = 1)"


def record(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "r", "namespace": "given", "fields": list(fields)}


@pytest.fixture
def planning() -> Planning:
    found = Planning()
    found.do(f"{SOURCE};{TABLE}")
    return found


def named(planning: Planning, name: str, *kinds: Kind) -> Object:
    (found,) = [o for o in planning.catalog.of_kind(*(kinds or (Kind.STREAM, Kind.TABLE))) if o.name == name]
    return found


def refused(planning: Planning, text: str, error: type[HeadgateError]) -> HeadgateError:
    with pytest.raises(error) as caught:
        planning.plan(text)
    return caught.value


def test_a_stream_as_select_is_a_topic_a_hidden_view_and_a_hidden_sink(planning: Planning) -> None:
    (done,) = planning.do("CREATE STREAM s AS SELECT k, c1 + 1 AS more, c2 FROM src WHERE c1 > 0 EMIT CHANGES")
    stream = named(planning, "s")
    assert [(c.name, print_type(c.type), c.nullable) for c in stream.columns] == [
        ("k", "bigint", True), ("more", "integer", True), ("c2", "text", True),
    ]  # fmt: skip
    topic, key, value = done.effects
    assert isinstance(topic, CreateTopic)
    assert isinstance(key, RegisterSchema)
    assert isinstance(value, RegisterSchema)
    assert (topic.topic, key.subject, value.subject) == ("s", "s-key", "s-value")
    parts = parts_of(planning.catalog, stream)
    assert [(p.kind, p.name) for p in parts] == [(Kind.SINK, "s"), (Kind.VIEW, "s query")]
    assert hidden_parts(planning.catalog) == {p.id for p in parts}


def test_a_table_as_select_keeps_the_key_of_what_it_reads(planning: Planning) -> None:
    planning.do("CREATE TABLE t WITH (kafka_topic = 'out') AS SELECT * FROM tab WHERE c1 > 0")
    table = named(planning, "t")
    assert [(c.name, c.key) for c in table.columns] == [("k", True), ("c1", False), ("c2", False)]
    assert [p.name for p in parts_of(planning.catalog, table)] == ["t", "t columns", "t query"]


def test_the_given_schema_is_written_and_read_with_the_columns_of_the_query(planning: Planning) -> None:
    id_ = planning.outside.add_subject(
        "given",
        record(
            {"name": "c1", "type": "int"},
            {"name": "extra", "type": "int", "default": 100},
            {"name": "c2", "type": ["null", "string"]},
        ),
    )
    (done,) = planning.do(f"CREATE STREAM s WITH (value_schema_id = {id_}) AS SELECT k, c1, c2 FROM src")
    reuse = [effect for effect in done.effects if isinstance(effect, ReuseSchema)]
    assert [(effect.subject, effect.schema.id) for effect in reuse] == [("s-value", id_)]
    assert [c.name for c in named(planning, "s").columns] == ["k", "c1", "c2"]
    assert done.notices == (
        'a row of stream "s" with null in "c1" of its value cannot be written: the schema requires a value',
    )


def test_the_columns_of_the_query_must_be_a_part_of_the_given_schema(planning: Planning) -> None:
    id_ = planning.outside.add_subject(
        "given", record({"name": "c2", "type": "string"}, {"name": "C1", "type": "string"})
    )
    text = f"CREATE STREAM s WITH (value_schema_id = {id_}) AS SELECT k, c1, c2 FROM src"
    wrong = refused(planning, text, errors.ColumnsNotInSchema)
    assert wrong.message().startswith(
        f'the value columns of stream "s" do not fit schema {id_}: "c1" differs from "C1" only by case'
    )
    assert "c2 text" in str(wrong.detail())
    moved = planning.outside.add_subject(
        "moved", record({"name": "c2", "type": "string"}, {"name": "c1", "type": "int"})
    )
    wrong = refused(
        planning,
        f"CREATE STREAM s WITH (value_schema_id = {moved}) AS SELECT k, c1, c2 FROM src",
        errors.ColumnsNotInSchema,
    )
    assert '"c2" comes after "c1"' in wrong.message()


def test_a_key_that_is_no_record_takes_the_one_key_column_under_any_name(planning: Planning) -> None:
    id_ = planning.outside.add_subject("given", '"long"')
    planning.do(f"CREATE STREAM s WITH (key_schema_id = {id_}) AS SELECT k AS other, c1 FROM src")
    assert [c.name for c in named(planning, "s").columns] == ["other", "c1"]


def test_partition_by_makes_columns_the_key(planning: Planning) -> None:
    planning.do("CREATE STREAM s WITH (key_format = 'kafka') AS SELECT c2, c1 FROM src PARTITION BY c2")
    sink = named(planning, "s", Kind.SINK)
    assert sink.definition is not None
    assert 'KEY ("c2")' in print_statement(sink.definition)


@pytest.mark.parametrize(
    ("text", "keys", "values"),
    [
        ("SELECT c1, c2 FROM src PARTITION BY upper(c2)", ["ROWKEY text"], ["c1", "c2"]),
        ("SELECT * FROM src PARTITION BY c1 % 3", ["ROWKEY integer"], ["k", "c1", "c2"]),
        ("SELECT c1 + 1 AS more, c2 FROM src PARTITION BY C1+1", ["more integer"], ["c2"]),
        ("SELECT upper(c2) big, c1 FROM src PARTITION BY c1, Upper(c2)", ["c1 integer", "big text"], []),
        ('SELECT c2 AS "Key", c1 FROM src PARTITION BY "Key"', ["Key text"], ["c1"]),
        ("SELECT k, c1, c2 FROM src PARTITION BY NULL", [], ["k", "c1", "c2"]),
        ("SELECT a.c1, b.c2 FROM src a JOIN src b ON a.k = b.k PARTITION BY c1 + 1", ["ROWKEY integer"], ["c1", "c2"]),
    ],
)
def test_partition_by_an_expression_makes_it_the_key(
    planning: Planning, text: str, keys: list[str], values: list[str]
) -> None:
    planning.do(f"CREATE STREAM s AS {text}")
    definition = named(planning, "s").definition
    assert isinstance(definition, CreateStreamAs)
    found = [f"{c.name.name} {print_type(c.type)}" for c in definition.columns if c.role == "KEY"]
    assert sorted(found) == sorted(keys)
    assert [c.name.name for c in definition.columns if c.role is None] == values
    assert text in " ".join(print_statement(definition).split())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE STREAM s AS SELECT * FROM tab", errors.StreamOfOtherGrowth),
        ("CREATE TABLE s AS SELECT * FROM src", errors.StreamOfOtherGrowth),
        ("CREATE TABLE s AS SELECT c1, c2 FROM tab", errors.StreamOfOtherGrowth),
        ("CREATE STREAM s WITH (key_schema_id = 1) AS SELECT c1 FROM src", errors.StreamWithoutKey),
        ("CREATE STREAM s AS SELECT c1 FROM src PARTITION BY c2 || 'x'", errors.PartitionByNoColumn),
        ("CREATE STREAM s AS SELECT c1 FROM src PARTITION BY c1 + 1, c1 + 2", errors.PartitionByNoColumn),
        ("CREATE STREAM s AS SELECT c1 FROM src PARTITION BY no_function(c1)", UnknownFunction),
        ("CREATE TABLE s AS SELECT * FROM tab PARTITION BY c1", errors.PropertyWithoutMeaning),
        ("CREATE STREAM s WITH (value_schema_id = 99) AS SELECT c1 FROM src", errors.SchemaIdUnknown),
        ("CREATE STREAM s WITH (value_format = 'protobuf', value_schema_id = 1) AS SELECT c1 FROM src", errors.SchemaIdOfOtherFormat),
        ("CREATE STREAM s WITH (value_format = 'json', value_schema_id = 1) AS SELECT c1 FROM src", errors.FormatWithoutSchemas),
        ("CREATE STREAM s WITH (key_format = 'kafka', key_schema_id = 1) AS SELECT k, c1 FROM src", errors.FormatWithoutSchemas),
        ("CREATE STREAM s WITH (value_schema_id = -1) AS SELECT c1 FROM src", errors.InvalidSchemaId),
        ("CREATE STREAM s WITH (key_format = 'kafka') AS SELECT k, c1, c2 FROM src PARTITION BY k, c1", errors.FormatOfOneColumn),
        ("CREATE OR REPLACE STREAM src AS SELECT c1 FROM src", errors.StreamChangesColumns),
        ("CREATE OR REPLACE STREAM src WITH (kafka_topic = 'other') AS SELECT * FROM src", errors.StreamChangesTopic),
        ("CREATE OR REPLACE STREAM src (c1 int) WITH (kafka_topic = 'src', format = 'avro', partitions = 1)", errors.StreamChangesColumns),
    ],
)  # fmt: skip
def test_a_statement_that_breaks_a_rule_is_refused(planning: Planning, text: str, error: type[HeadgateError]) -> None:
    planning.outside.add_subject("given", record({"name": "c1", "type": "int"}))
    refused(planning, text, error)


def test_a_table_over_groups_is_filled_from_a_hidden_materialized_view(planning: Planning) -> None:
    (done,) = planning.do("CREATE TABLE t AS SELECT k, count(*) AS n FROM src GROUP BY k")
    table = named(planning, "t")
    assert [(c.name, print_type(c.type), c.key) for c in table.columns] == [
        ("k", "bigint", True),
        ("n", "bigint", False),
    ]
    parts = parts_of(planning.catalog, table)
    assert [(p.kind, p.name) for p in parts] == [(Kind.SINK, "t"), (Kind.MATERIALIZED_VIEW, "t query")]
    assert done.notices[0] == 'table "t" is filled from a materialized view that nobody else sees'
    assert [e.subject for e in done.effects if isinstance(e, RegisterSchema)] == ["t-key", "t-value"]
    planning.do("ALTER TABLE t PAUSE")
    assert {planning.catalog.desired[part.id] for part in parts} == {DesiredTaskState.PAUSED}
    planning.do("DROP TABLE t DELETE TOPIC")
    assert not list(planning.catalog.of_kind(Kind.MATERIALIZED_VIEW, Kind.SINK))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("CREATE STREAM s AS SELECT a.k, a.c1, b.c2 FROM src a JOIN src2 b ON a.k = b.k", ["k"]),
        ("CREATE STREAM s AS SELECT DISTINCT c2 FROM src", []),
        ("CREATE STREAM s AS SELECT c1, c2 FROM src UNION ALL SELECT c1, c2 FROM src2", []),
        ("CREATE TABLE s AS SELECT a.k, a.c1, b.c2 FROM tab a JOIN tab2 b ON a.k = b.k", ["k"]),
        ("CREATE TABLE s AS SELECT * FROM grouped", ["c2"]),
    ],
)
def test_a_query_with_state_takes_formats_and_keys_from_what_it_reads_first(
    planning: Planning, text: str, keys: list[str]
) -> None:
    planning.do(
        "CREATE STREAM src2 (k text KEY, c1 int, c2 text) WITH (kafka_topic = 'src2', value_format = 'json', partitions = 1);"
        "CREATE TABLE tab2 (k bigint PRIMARY KEY, c2 text) WITH (kafka_topic = 'tab2', value_format = 'json', partitions = 1);"
        "CREATE VIEW grouped AS SELECT c2, sum(c1) AS total FROM src GROUP BY c2"
    )
    text = text.replace("src2 b ON a.k = b.k", "src2 b ON a.c2 = b.c2")
    planning.do(text)
    stream = named(planning, "s")
    assert isinstance(stream.definition, CreateStreamAs)
    given = stream.definition.settled
    assert given is not None
    assert (given.value_format, given.key_format) == ("avro", "avro" if keys else None)
    assert [c.name.name for c in stream.definition.columns if c.role] == keys
    assert parts_of(planning.catalog, stream)[-1].kind is Kind.MATERIALIZED_VIEW


def test_a_source_whose_old_rows_are_needed_gets_a_stored_copy(planning: Planning) -> None:
    (done,) = planning.do("CREATE TABLE t AS SELECT c2, count(*) AS n FROM tab GROUP BY c2")
    assert "tab_rows" in done.notices[1]
    assert [o.name for o in planning.catalog.of_kind(Kind.MATERIALIZED_VIEW)] == ["tab_rows", "t query"]
    planning.do("DROP TABLE t")
    assert list(planning.catalog.of_kind(Kind.MATERIALIZED_VIEW)) == []


def test_a_query_with_state_cannot_quarantine(planning: Planning) -> None:
    text = "CREATE TABLE t WITH (on_error = 'quarantine') AS SELECT k, count(*) AS n FROM src GROUP BY k"
    refused(planning, text, SinkCannotQuarantine)


# OR REPLACE


def replaced(planning: Planning, text: str) -> ChangeCatalog:
    """Replace the stream s or the table t. Its id, and that of the sink that fills it, stay."""
    name = "t" if "TABLE t" in text else "s"
    before, (sink, *_) = named(planning, name), parts_of(planning.catalog, named(planning, name))
    (done,) = planning.do(text)
    after = named(planning, name)
    assert (after.id, parts_of(planning.catalog, after)[0].id) == (before.id, sink.id)
    return done


def test_a_stream_is_replaced_by_one_with_more_columns_and_goes_on(planning: Planning) -> None:
    planning.do("CREATE STREAM s AS SELECT k, c1 FROM src; CREATE VIEW v AS SELECT k, c1 FROM s")
    objects = len(planning.catalog.objects)
    done = replaced(planning, "CREATE OR REPLACE STREAM s AS SELECT k, c1, c2 FROM src WHERE c1 > 0")
    assert done.tag == "CREATE OR REPLACE STREAM"
    assert done.notices[0].startswith('stream "s" goes on with the relation from where it is')
    stream = named(planning, "s")
    assert [(c.id, c.name) for c in stream.columns] == [(1, "k"), (2, "c1"), (3, "c2")]
    assert [p.name for p in parts_of(planning.catalog, stream)] == ["s", "s 2 query"]
    assert len(planning.catalog.objects) == objects
    sink = task_definition(planning.catalog, named(planning, "s", Kind.SINK)).sink
    assert isinstance(sink, SinkDefinition)
    assert sink.topic == "s"
    replaced(planning, "CREATE OR REPLACE STREAM s AS SELECT k, c1, c2 FROM src WHERE c1 > 1")
    assert [p.name for p in parts_of(planning.catalog, stream)] == ["s", "s query"]


def test_a_table_is_replaced_by_one_with_state_and_back(planning: Planning) -> None:
    planning.do("CREATE TABLE t AS SELECT k, c1::bigint AS c1 FROM tab")
    done = replaced(planning, "CREATE OR REPLACE TABLE t AS SELECT k, sum(c1) AS c1 FROM src GROUP BY k")
    assert done.notices[-1].startswith('table "t" is written anew')
    parts = parts_of(planning.catalog, named(planning, "t"))
    assert [(p.kind, p.name) for p in parts] == [(Kind.SINK, "t"), (Kind.MATERIALIZED_VIEW, "t 2 query")]
    replaced(planning, "CREATE OR REPLACE TABLE t AS SELECT k, c1::bigint AS c1 FROM tab")
    assert [o.name for o in planning.catalog.of_kind(Kind.MATERIALIZED_VIEW)] == []


def test_a_plain_stream_becomes_one_with_a_query_and_back(planning: Planning) -> None:
    columns = "(k bigint KEY, c1 int) WITH (kafka_topic = 's', format = 'json', partitions = 1)"
    planning.do(f"CREATE STREAM s {columns}; CREATE VIEW v AS SELECT * FROM s")
    planning.do("CREATE OR REPLACE STREAM s WITH (format = 'json') AS SELECT k, c1 FROM src")
    assert [p.name for p in parts_of(planning.catalog, named(planning, "s"))] == ["s", "s query"]
    planning.do(f"CREATE OR REPLACE STREAM s {columns}")
    assert parts_of(planning.catalog, named(planning, "s")) == ()
    assert [o.name for o in planning.catalog.of_kind(Kind.SINK, Kind.VIEW)] == ["v"]


def test_a_replacement_that_would_break_a_reader_is_refused(planning: Planning) -> None:
    planning.do(
        "CREATE STREAM s AS SELECT k, c1 FROM src;"
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM s; CREATE VIEW v AS SELECT a.*, 1 AS c2 FROM s a"
    )
    wrong = refused(planning, "CREATE OR REPLACE STREAM s AS SELECT k, c1, c2 FROM src", ReplacementBreaks)
    assert wrong.message() == 'cannot replace stream "s": 2 objects that read it would no longer work'
    assert 'view "v"' in str(wrong.detail())
    columns = "(k bigint KEY, c1 int, c2 text) WITH (kafka_topic = 's', format = 'avro')"
    planning.outside.topics["s"] = 1
    refused(planning, f"CREATE OR REPLACE STREAM s {columns}", ReplacementBreaks)


def test_a_stream_cannot_be_replaced_by_a_query_over_itself(planning: Planning) -> None:
    planning.do("CREATE STREAM s AS SELECT k, c1 FROM src; CREATE VIEW v AS SELECT k, c1 FROM s")
    refused(planning, "CREATE OR REPLACE STREAM s AS SELECT k, c1 FROM v", DependencyCycle)


def test_a_stream_that_exists_is_skipped_or_refused(planning: Planning) -> None:
    planning.do("CREATE STREAM s AS SELECT k, c1 FROM src")
    planning.skip("CREATE STREAM IF NOT EXISTS s AS SELECT nothing FROM nowhere")
    planning.skip("CREATE TABLE IF NOT EXISTS tab WITH (kafka_topic = 'nowhere')")
    refused(planning, "CREATE STREAM s AS SELECT k, c1 FROM src", AlreadyExists)


def test_a_renamed_stream_keeps_its_topic_and_its_parts_follow(planning: Planning) -> None:
    planning.do("CREATE STREAM s AS SELECT k, c1 FROM src; ALTER STREAM s RENAME TO r")
    stream = named(planning, "r")
    assert [p.name for p in parts_of(planning.catalog, stream)] == ["r", "r query"]
    assert stream.definition is not None
    shown = print_statement(with_current_names(planning.catalog, stream, stream.definition))
    assert shown == "CREATE STREAM r\nWITH (kafka_topic = 's') AS\nSELECT k, c1 FROM src;"
    planning.do("CREATE STREAM s WITH (kafka_topic = 's2') AS SELECT k, c1 FROM src")


def test_a_stream_cannot_fill_a_topic_that_its_query_reads(planning: Planning) -> None:
    wrong = refused(planning, "CREATE STREAM s WITH (kafka_topic = 'src') AS SELECT * FROM src", SinkFeedsItself)
    assert wrong.message() == 'stream "s" cannot write to topic "src", which stream "src" reads for it'


def test_dropping_a_stream_drops_its_parts(planning: Planning) -> None:
    before = set(planning.catalog.objects)
    planning.do("CREATE STREAM s AS SELECT * FROM src; ALTER STREAM s PAUSE; DROP STREAM s")
    assert set(planning.catalog.objects) == before
    planning.do("CREATE STREAM s AS SELECT * FROM src; DROP STREAM s DELETE TOPIC")
    planning.do("CREATE STREAM s AS SELECT * FROM src; DROP STREAM src CASCADE")
    assert [o.name for o in planning.catalog.of_kind(Kind.STREAM, Kind.SINK, Kind.VIEW)] == []


def test_the_task_of_a_stream_writes_the_given_id(planning: Planning) -> None:
    id_ = planning.outside.add_subject("given", record({"name": "c1", "type": "int"}))
    planning.outside.topics["json"] = 1
    planning.do(
        "CREATE STREAM j (c1 int) WITH (kafka_topic = 'json', value_format = 'json');"
        f"CREATE STREAM s WITH (value_format = 'avro', value_schema_id = {id_}) AS SELECT c1 FROM j"
    )
    sink = task_definition(planning.catalog, named(planning, "s", Kind.SINK)).sink
    assert isinstance(sink, SinkDefinition)
    assert (sink.value.schema_id, sink.value.given, sink.topic) == (id_, True, "s")


def test_a_sink_is_given_schema_ids(planning: Planning) -> None:
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    id_ = planning.outside.add_subject("given", record({"name": "c1", "type": "int"}, {"name": "c2", "type": "string"}))
    key = planning.outside.add_subject("key", '"long"')
    planning.do("CREATE VIEW v AS SELECT c1, c2 FROM src; CREATE VIEW w AS SELECT k, c1, c2 FROM tab")
    (done,) = planning.do(
        f"CREATE SINK one FROM v INTO KAFKA CONNECTION kafka (TOPIC 'o') {avro} (VALUE SCHEMA ID = {id_})"
    )
    assert [type(effect) for effect in done.effects] == [CreateTopic, ReuseSchema]
    (done,) = planning.do(
        f"CREATE SINK two FROM w INTO KAFKA CONNECTION kafka (TOPIC 'p') KEY (k)"
        f" KEY {avro} (KEY SCHEMA ID = {key}) VALUE {avro} (VALUE SCHEMA ID = {id_}) WITH (KEY IN VALUE = false)"
    )
    assert len([effect for effect in done.effects if isinstance(effect, ReuseSchema)]) == 2
    into = "INTO KAFKA CONNECTION kafka (TOPIC 'q')"
    wrong = refused(
        planning, f"CREATE SINK x FROM w {into} KEY (k) {avro} (VALUE SCHEMA ID = {id_})", errors.ColumnsNotInSchema
    )
    assert '"k" is missing' in wrong.message()
    refused(planning, f"CREATE SINK x FROM v {into} {avro} (VALUE SCHEMA ID = 99)", errors.SchemaIdUnknown)
    refused(planning, f"CREATE SINK x FROM v {into} {avro} (VALUE SCHEMA ID = 0)", errors.InvalidSchemaId)
    refused(planning, f"CREATE SINK x FROM v {into} {avro} (KEY SCHEMA ID = {key})", OptionWithoutKey)
    proto = planning.outside.add_subject("p", 'syntax = "proto3"; message M { int32 c1 = 1; }', SchemaFormat.PROTOBUF)
    refused(planning, f"CREATE SINK x FROM v {into} {avro} (VALUE SCHEMA ID = {proto})", errors.SchemaIdOfOtherFormat)
    refused(
        planning,
        f"CREATE SINK x FROM v {into} {avro} (VALUE SCHEMA ID = {id_}, AVRO VALUE FULLNAME = 'a.b')",
        SchemaIdExcludes,
    )


def test_change_events_are_written_with_a_given_schema_as_debezium_has_it(planning: Planning) -> None:
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "c1", "type": "int"}, {"name": "c2", "type": "string"}],
    }
    fields: tuple[dict[str, object], ...] = (
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "Value"]},
    )
    events = {"plain": record(*fields), "op": record(*fields, {"name": "op", "type": "string"})}
    ids = [planning.outside.add_subject(subject, event) for subject, event in events.items()]
    planning.do("CREATE VIEW v AS SELECT c1, c2 FROM src; CREATE VIEW w AS SELECT c1, c2, k FROM src")
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    text = "CREATE SINK x FROM {} INTO KAFKA CONNECTION kafka (TOPIC 'q') {} (VALUE SCHEMA ID = {}) ENVELOPE DEBEZIUM"
    (done,) = planning.do(text.format("v", avro, ids[0]))
    assert ['with null in "before.c1"' in notice for notice in done.notices] == [True]
    sink = task_definition(planning.catalog, named(planning, "x", Kind.SINK)).sink
    assert isinstance(sink, SinkDefinition)
    assert (sink.value.columns, sink.value.given, sink.value.as_event) == (("c1", "c2"), True, True)
    wrong = refused(planning, text.format("w", avro, ids[0]).replace(" x ", " y "), errors.ColumnsNotInSchema)
    assert '"before.k" is missing' in wrong.message()
    (done,) = planning.do(text.format("v", avro, ids[1]).replace(" x ", " z "))
    assert any('the schema requires "op"' in notice for notice in done.notices)


# INSERT


TYPES = (
    "CREATE STREAM all_types (i int, b bigint, d double, n decimal(5,2), t text, o boolean, x bytes, da date, ti time,"
    ' ts timestamp, tz timestamptz, u uuid, j json, a int[], m map<text, int>, r record("F" int, g text))'
    " WITH (kafka_topic = 'types', partitions = 1, value_format = 'json')"
)


def rows(planning: Planning, text: str) -> list[dict[str, object]]:
    planned = planning.plan(text)
    assert isinstance(planned, InsertRows)
    return [dict(row) for row in planned.rows]


def test_literals_become_values_of_the_columns_types(planning: Planning) -> None:
    planning.do(TYPES)
    (row,) = rows(
        planning,
        "INSERT INTO all_types VALUES (-1, 9000000000, 1.5, 12.3, 'it''s', true, '\\x00ff', DATE '2026-11-15', '12:30:00.5',"
        " TIMESTAMP '2026-11-15 12:30:00', '2026-11-15T12:30:00Z', '00000000-0000-0000-0000-000000000001', '{\"a\": 1.10}',"
        " ARRAY[1, NULL], MAP('x' := 1), STRUCT(g := 'z', \"F\" := 2))",
    )
    assert (row["i"], row["b"], row["d"], row["n"]) == (-1, 9_000_000_000, 1.5, Decimal("12.30"))
    assert (row["t"], row["o"], row["x"], row["da"]) == ("it's", True, b"\x00\xff", dt.date(2026, 11, 15))
    assert row["tz"] == dt.datetime(2026, 11, 15, 12, 30, tzinfo=dt.UTC)
    assert (row["j"], row["a"], row["m"], row["r"]) == ('{"a":1.10}', [1, None], {"x": 1}, {"F": 2, "g": "z"})


def test_rows_by_position_casts_and_column_lists(planning: Planning) -> None:
    planning.do(TYPES)
    (row,) = rows(planning, "INSERT INTO all_types (R, a, \"i\") VALUES (ROW(1, 'x'), ARRAY[CAST(2 AS int)], 3::int)")
    assert row == {"r": {"F": 1, "g": "x"}, "a": [2], "i": 3}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INSERT INTO all_types (i) VALUES (1, 2)", errors.WrongNumberOfValues),
        ("INSERT INTO all_types (nope) VALUES (1)", errors.UnknownInsertColumn),
        ("INSERT INTO all_types (i, i) VALUES (1, 2)", errors.UnknownInsertColumn),
        ("INSERT INTO all_types (i) VALUES (1 + 1)", errors.NoLiteral),
        ("INSERT INTO all_types (i) VALUES (now())", errors.NoLiteral),
        ("INSERT INTO all_types (i) VALUES (2147483648)", ValueDoesNotFit),
        ("INSERT INTO all_types (i) VALUES (1.5)", ValueDoesNotFit),
        ("INSERT INTO all_types (n) VALUES (1.234)", ValueDoesNotFit),
        ("INSERT INTO all_types (t) VALUES (1)", ValueDoesNotFit),
        ("INSERT INTO all_types (r) VALUES (STRUCT(g := 'z', h := 2147483648))", ValueDoesNotFit),
        ("INSERT INTO all_types (r) VALUES (STRUCT(g := 'z', G := '2147483648'))", ValueDoesNotFit),
        ("INSERT INTO all_types (r) VALUES (STRUCT(g := 'z', g := '2147483648'))", ValueDoesNotFit),
        ("INSERT INTO all_types (m) VALUES (STRUCT(g := 2147483648))", ValueDoesNotFit),
        ("INSERT INTO all_types (a) VALUES (ROW(2147483648))", ValueDoesNotFit),
        ("INSERT INTO all_types (j) VALUES ('{2147483648')", ValueDoesNotFit),
        ("INSERT INTO all_types (x) VALUES ('\\x2147483648z')", ValueDoesNotFit),
        ("INSERT INTO all_types (r) VALUES (ROW(1))", ValueDoesNotFit),
        ("INSERT INTO all_types (m) VALUES (MAP('k' := 1, 'k' := 2147483648))", errors.NoLiteral),
        ("INSERT INTO tab (c1) VALUES (1)", errors.InsertKeyMissing),
        ("INSERT INTO tab (k, c1) VALUES (NULL, 1)", errors.InsertKeyMissing),
        ("INSERT INTO v VALUES (1)", errors.NotInsertable),
    ],
)
def test_values_that_do_not_fit_are_refused_before_anything_is_written(
    planning: Planning, text: str, error: type[HeadgateError]
) -> None:
    planning.do(f"{TYPES}; CREATE VIEW v AS SELECT c1 FROM src")
    wrong = refused(planning, text, error)
    assert "2147483648" not in str(wrong)


def test_a_row_of_key_columns_alone_deletes_the_key_of_a_table(planning: Planning) -> None:
    planned = planning.plan("INSERT INTO tab (k) VALUES (1)")
    assert isinstance(planned, InsertRows)
    assert planned.deletes
    assert not planning.plan("INSERT INTO tab (k, c1) VALUES (1, NULL)").deletes  # type: ignore[union-attr]


# schema changes and policies


AVRO_SOURCE = (
    "CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders')"
    " FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
)
GROWN = WrittenSchema(
    json.dumps(record({"name": "c1", "type": "int"}, {"name": "new", "type": ["null", "string"], "default": None})),
    id=50,
)


def followed(planning: Planning, name: str) -> None:
    """Let a source or stream follow the grown schema."""
    relation = named(planning, name, Kind.SOURCE, Kind.STREAM)
    planned = plan_follow(planning.catalog, relation, [("VALUE", GROWN)], lambda *_: ())
    planning.catalog = apply(planning.catalog, *planned.changes, *(sink.change([51]) for sink in planned.sinks))


def test_a_stream_keeps_its_columns_when_the_source_of_its_query_follows_a_change(planning: Planning) -> None:
    planning.topic("orders", value=record({"name": "c1", "type": "int"}))
    planning.do(f"{AVRO_SOURCE}; CREATE STREAM s WITH (value_format = 'json') AS SELECT * FROM orders")
    followed(planning, "orders")
    assert [c.name for c in named(planning, "orders", Kind.SOURCE).columns] == ["c1", "new"]
    assert [c.name for c in named(planning, "s").columns] == ["c1"]
    sink = task_definition(planning.catalog, named(planning, "s", Kind.SINK)).sink
    assert isinstance(sink, SinkDefinition)
    assert sink.value.columns == ("c1",)


def test_inferred_columns_follow_and_those_of_an_id_do_not(planning: Planning) -> None:
    planning.topic("orders", value=record({"name": "c1", "type": "int"}))
    (id_,) = (schema.id for schema in planning.outside.subjects.values())
    planning.do(
        "CREATE STREAM inferred WITH (kafka_topic = 'orders', value_format = 'avro');"
        f"CREATE STREAM fixed WITH (kafka_topic = 'orders', value_format = 'avro', value_schema_id = {id_})"
    )
    followed(planning, "inferred")
    assert [c.name for c in named(planning, "inferred").columns] == ["c1", "new"]
    assert [
        layout_of(named(planning, name)).on_schema_change for name in ("inferred", "fixed")
    ] == ["FOLLOW", "PIN"]  # fmt: skip


def test_a_policy_holds_for_streams_without_an_id(planning: Planning) -> None:
    id_ = planning.outside.add_subject("given", record({"name": "c1", "type": "int"}))
    planning.do("CREATE SINK POLICY p FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL FIELDS)")
    refused(planning, "CREATE STREAM s AS SELECT c1 FROM src", PolicyViolated)
    planning.do(f"CREATE STREAM s WITH (value_schema_id = {id_}) AS SELECT c1 FROM src")


def test_the_query_is_printed_with_the_names_of_today(planning: Planning) -> None:
    planning.do("CREATE STREAM s AS SELECT c1 FROM src; ALTER STREAM src RENAME TO origin")
    stream = named(planning, "s")
    assert stream.definition is not None
    assert "FROM origin" in print_statement(with_current_names(planning.catalog, stream, stream.definition))


# timestamp

TIMED = "CREATE {replace}STREAM s WITH (kafka_topic = 's', timestamp = '{name}') AS SELECT * FROM src"


def test_the_task_of_a_stream_with_times_writes_in_transactions(planning: Planning) -> None:
    done = planning.change(TIMED.format(replace="", name="K"))
    assert any("Spark's writer cannot set it" in notice for notice in done.notices)
    planning.do(TIMED.format(replace="", name="K"))
    sink = sink_of(planning)
    assert sink.time == RecordTime("k", t.Bigint())
    assert sink.delivery == "exactly once"


def test_the_time_of_a_query_is_one_of_its_columns(planning: Planning) -> None:
    wrong = refused(planning, TIMED.format(replace="", name="c11"), time_errors.UnknownTimeColumn)
    assert "c1" in (wrong.hint() or "")
    refused(planning, TIMED.format(replace="", name="c1"), time_errors.TimeColumnType)
    refused(planning, TIMED.format(replace="", name="c2"), time_errors.TimeFormatMissing)


def test_a_stream_with_times_is_replaced_by_one_with_another_time_or_without(planning: Planning) -> None:
    planning.do(TIMED.format(replace="", name="k"))
    planning.do("CREATE OR REPLACE STREAM s WITH (kafka_topic = 's') AS SELECT * FROM src WHERE k > 1")
    sink = sink_of(planning)
    assert (sink.time, sink.delivery) == (None, "exactly once")  # the progress stays where it is
    planning.do(TIMED.format(replace="OR REPLACE ", name="k"))
    assert sink_of(planning).time == RecordTime("k", t.Bigint())


def test_a_stream_without_times_cannot_be_given_one(planning: Planning) -> None:
    planning.do("CREATE STREAM s WITH (kafka_topic = 's') AS SELECT * FROM src")
    refused(planning, TIMED.format(replace="OR REPLACE ", name="k"), time_errors.TimeNeedsNewTask)


def test_the_time_stays_when_a_stream_is_renamed(planning: Planning) -> None:
    planning.do(TIMED.format(replace="", name="k") + "; ALTER STREAM s RENAME TO r")
    assert sink_of(planning).time == RecordTime("k", t.Bigint())


def sink_of(planning: Planning) -> SinkDefinition:
    (sink,) = planning.catalog.of_kind(Kind.SINK)
    found = task_definition(planning.catalog, sink).sink
    assert isinstance(found, SinkDefinition)
    return found
