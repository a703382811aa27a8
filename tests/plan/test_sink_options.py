"""Options of CREATE SINK: envelopes, keys, partitions, headers, addresses, snapshots and what is refused of them."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.errors import UnknownColumn
from headgate.catalog.objects import definition_of
from headgate.control.definitions import task_definition
from headgate.plan.definitions import AT, HeadersColumn, SinkDefinition, SourceDefinition
from headgate.plan.impact import plan_follow
from headgate.plan.plans import CreateTopic, RegisterSchema, Show
from headgate.plan.sink_errors import (
    DebeziumNeedsState,
    FullnameOfOneSide,
    HeadersOfOtherType,
    OptionWithoutKey,
    PartitionByNotFixed,
    PartitionByNotInteger,
    PartitionByNotKey,
    SinkCannotQuarantine,
    SinkFormatNeedsOneColumn,
    SinkKeyHoldsMap,
    SinkKeyNotOfSource,
    SinkKeyNotUnique,
    SnapshotOfCopy,
)
from headgate.resolve.errors import PasswordInAddress
from headgate.schema.encodings import AFTER_DOC, BEFORE_DOC, EVENT_DOC
from headgate.schema.written import WrittenSchema
from headgate.sql.errors import UnknownColumn as UnknownColumnInQuery
from headgate.sql.registry_formats import PendingId
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, print_statement
from tests.plan.planning import AVRO, REGISTRY, TO, Planning, record, schema, sink

pytestmark = pytest.mark.unit


MORE = {"name": "more", "type": ["null", "int"], "default": None}


@pytest.fixture
def world() -> Planning:
    """`orders` is keyed by id, `sold` only grows and has the position of its records."""
    world = Planning()
    world.topic("orders", key=record("k", ("id", "long")), value=record("order", ("item", "string"), ("n", "int")))
    world.do(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE sold FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO}"
        " INCLUDE PARTITION, OFFSET, HEADERS"
    )
    return world


# envelopes


def test_a_change_event_has_the_row_twice_and_docs_of_its_own(world: Planning) -> None:
    world.do("COMMENT ON SOURCE sold IS 'what was sold'; CREATE VIEW v AS SELECT item, n FROM sold")
    world.do("COMMENT ON VIEW v IS 'what was sold'; COMMENT ON COLUMN v.n IS 'how many'")
    planned = sink(world, f"s FROM v {TO} {AVRO} ENVELOPE DEBEZIUM")
    row = {
        "type": "record",
        "name": "row",
        "doc": "what was sold",
        "fields": [{"name": "item", "type": "string"}, {"name": "n", "type": "int", "doc": "how many"}],
    }
    assert schema(planned.value) == {
        "type": "record",
        "name": "envelope",
        "doc": EVENT_DOC,
        "fields": [
            {"name": "before", "type": ["null", row], "doc": BEFORE_DOC},
            {"name": "after", "type": ["null", "row"], "doc": AFTER_DOC},
        ],
    }
    assert (planned.envelope, planned.key, planned.value.columns) == ("DEBEZIUM", None, ("item", "n"))


def test_the_row_of_a_change_event_is_in_the_namespace_of_the_event(world: Planning) -> None:
    world.do('CREATE VIEW v AS SELECT item AS "größe" FROM sold')
    planned = sink(world, f"s FROM v {TO} {AVRO} (AVRO VALUE FULLNAME 'a.b.c') ENVELOPE DEBEZIUM")
    value = schema(planned.value)
    assert (value["name"], value["namespace"]) == ("c", "a.b")
    assert "namespace" not in value["fields"][0]["type"][1]
    assert planned.value.names == (value["fields"][0]["type"][1]["fields"][0]["name"],)


def test_a_change_event_may_have_a_key_that_is_not_unique(world: Planning) -> None:
    planned = sink(world, f"s FROM sold {TO} KEY (item) {AVRO} ENVELOPE DEBEZIUM")
    assert planned.key is not None
    assert planned.key.columns == ("item",)


def test_the_row_of_a_change_event_follows_its_source(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM sold {TO} {AVRO} ENVELOPE DEBEZIUM")
    fields = [*record("order", ("item", "string"), ("n", "long"))["fields"], MORE]  # type: ignore[misc]
    wider = WrittenSchema(json.dumps({**record("order"), "fields": fields}), id=90)
    followed = plan_follow(world.catalog, world.named("sold"), [("VALUE", wider)], world.context().answers.types)
    ((_, register),) = followed.sinks[0].register
    before, after = json.loads(register.schema.text)["fields"]
    row = {field["name"]: field for field in before["type"][1]["fields"]}
    assert row["n"]["type"] == "long"
    assert row["more"] == {"name": "more", "type": ["null", "int"], "default": None}
    assert after["type"] == ["null", "row"]


def test_change_events_need_the_old_rows_of_what_changes(world: Planning) -> None:
    world.do("CREATE VIEW items AS SELECT item FROM orders")
    for relation in ("orders", "items"):
        with pytest.raises(DebeziumNeedsState) as caught:
            sink(world, f"s FROM {relation} {TO} {AVRO} ENVELOPE DEBEZIUM")
        assert "MATERIALIZED VIEW" in str(caught.value.hint())


def test_change_events_are_explained_with_the_copy_that_creating_them_would_make(world: Planning) -> None:
    text = f"CREATE SINK s FROM orders {TO} {AVRO} ENVELOPE DEBEZIUM"
    for explained in (f"EXPLAIN {text}", f"EXPLAIN VALUE SCHEMA FOR {text}"):
        statement = world.plan(explained)
        assert isinstance(statement, Show)
    assert not [*world.catalog.of_kind(Kind.MATERIALIZED_VIEW)]


def test_a_change_event_is_no_single_column(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item FROM sold")
    with pytest.raises(SinkFormatNeedsOneColumn):
        sink(world, f"s FROM v {TO} FORMAT TEXT ENVELOPE DEBEZIUM")


# keys


@pytest.mark.parametrize(
    "view",
    [
        'SELECT item, "partition", "offset" FROM sold WHERE n > 1',
        'SELECT "offset" AS o, "partition" AS p, upper(item) AS i FROM sold',
        'SELECT "offset", "partition", posexplode(split(item, \' \')) AS (pos, word) FROM sold',
    ],
)
def test_the_position_of_a_record_proves_that_a_key_is_unique(world: Planning, view: str) -> None:
    world.do(f"CREATE VIEW v AS {view}")
    columns = [f'"{c.name}"' for c in world.named("v").columns]
    assert sink(world, f"s FROM v {TO} KEY ({', '.join(columns)}) FORMAT JSON").envelope == "UPSERT"


@pytest.mark.parametrize(
    ("view", "key"),
    [
        ('SELECT item, "partition", "offset" FROM sold', '"offset"'),
        ('SELECT "offset", "partition", explode(split(item, \' \')) AS word FROM sold', '"offset", "partition"'),
        ('SELECT "offset" + 1 AS "offset", "partition" FROM sold', '"offset", "partition"'),
        ("SELECT item, n FROM sold", "item"),
    ],
)
def test_a_key_that_nothing_proves_unique_needs_not_enforced(world: Planning, view: str, key: str) -> None:
    world.do(f"CREATE VIEW v AS {view}")
    with pytest.raises(SinkKeyNotUnique):
        sink(world, f"s FROM v {TO} KEY ({key}) FORMAT JSON")
    planned = world.change(f"CREATE SINK s FROM v {TO} KEY ({key}) NOT ENFORCED FORMAT JSON")
    assert any("is not enforced" in notice for notice in planned.notices)


def test_another_key_than_the_sources_needs_stored_rows(world: Planning) -> None:
    for key in ("item", "id, item"):  # CREATE SINK makes a copy for the second one
        with pytest.raises(SinkKeyNotOfSource) as caught:
            sink(world, f"s FROM orders {TO} KEY ({key}) NOT ENFORCED FORMAT JSON")
        assert "MATERIALIZED VIEW" in str(caught.value.hint())


def test_a_map_is_no_key(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT map('a', n) AS m FROM sold")
    with pytest.raises(SinkKeyHoldsMap):
        sink(world, f"s FROM v {TO} KEY (m) NOT ENFORCED FORMAT JSON")


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("FORMAT JSON WITH (KEY IN VALUE = false)", "KEY IN VALUE"),
        (f"{AVRO} (AVRO KEY FULLNAME 'k')", "AVRO KEY FULLNAME"),
        (f"{AVRO} (KEY COMPATIBILITY LEVEL 'NONE')", "KEY COMPATIBILITY LEVEL"),
    ],
)
def test_an_option_about_the_key_needs_one(world: Planning, text: str, option: str) -> None:
    with pytest.raises(OptionWithoutKey) as caught:
        sink(world, f"s FROM sold {TO} {text}")
    assert caught.value.option == option


def test_a_sink_names_the_records_of_both_sides_or_of_none(world: Planning) -> None:
    for option in ("AVRO KEY FULLNAME", "AVRO VALUE FULLNAME"):
        with pytest.raises(FullnameOfOneSide) as caught:
            sink(world, f"s FROM orders {TO} KEY (id) {AVRO} ({option} 'a')")
        assert caught.value.given == option
    by_side = f"KEY FORMAT TEXT VALUE FORMAT AVRO {REGISTRY} (AVRO VALUE FULLNAME 'a')"
    assert sink(world, f"s FROM orders {TO} KEY (id) {by_side}").value.schema is not None


# partitions


def by(expression: str) -> str:
    return f"INTO KAFKA CONNECTION kafka (TOPIC 'out', PARTITION BY {expression})"


def test_the_partition_is_computed_over_columns_of_the_relation(world: Planning) -> None:
    found = sink(world, f"s FROM sold {by('length(item) + sold.n')} FORMAT JSON").partition_by
    assert found is not None
    assert sorted(column for _, column in found.columns) == ["item", "n"]
    assert all(name in found.sql for name, _ in found.columns)


def test_the_partition_outlives_a_new_name_of_the_relation(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM sold {by('sold.n')} FORMAT JSON; ALTER SOURCE sold RENAME TO gone")
    written = task_definition(world.catalog, world.named("s", Kind.SINK)).sink
    assert isinstance(written, SinkDefinition)
    found = written.partition_by
    assert found is not None
    assert [column for _, column in found.columns] == ["n"]


def test_a_constant_partition_uses_no_column(world: Planning) -> None:
    found = sink(world, f"s FROM sold {by('= 3')} FORMAT JSON").partition_by
    assert found is not None
    assert found.columns == ()


def test_a_partition_is_a_whole_number(world: Planning) -> None:
    with pytest.raises(PartitionByNotInteger) as caught:
        sink(world, f"s FROM sold {by('item')} FORMAT JSON")
    assert caught.value.type == "text"


def test_an_unknown_column_of_the_partition_is_shown_in_the_statement(world: Planning) -> None:
    text = f"CREATE SINK s FROM sold {by('itm')} FORMAT JSON"
    with pytest.raises(UnknownColumnInQuery) as caught:
        world.plan(text)
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == "itm"


@pytest.mark.parametrize("expression", ["sum(n)", "n + (SELECT 1)", "row_number() OVER (ORDER BY n)"])
def test_a_partition_is_computed_from_one_row(world: Planning, expression: str) -> None:
    with pytest.raises(PartitionByNotFixed):
        sink(world, f"s FROM sold {by(expression)} FORMAT JSON")


def test_a_partition_is_the_same_each_time(world: Planning) -> None:
    with pytest.raises(PartitionByNotFixed, match="rand"):
        sink(world, f"s FROM sold {by('(rand() * 10)::integer')} FORMAT JSON")


def test_a_key_stays_in_its_partition(world: Planning) -> None:
    with pytest.raises(PartitionByNotKey) as caught:
        sink(world, f"s FROM orders {by('id + n')} KEY (id) FORMAT JSON")
    assert caught.value.columns == ("n",)
    assert sink(world, f"s FROM orders {by('id + n')} KEY (id) FORMAT JSON ENVELOPE NONE").partition_by is not None
    assert sink(world, f"s FROM orders {by('id % 4')} KEY (id) FORMAT JSON").partition_by is not None


# headers


def test_headers_are_a_map_or_a_list_of_keys_and_values(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item, map('a', item) AS m, map('a', item::bytes) AS b FROM sold")
    assert sink(world, f"s FROM v {TO} HEADERS m FORMAT JSON").headers == HeadersColumn("m", is_map=True)
    assert sink(world, f"s FROM v {TO} HEADERS b FORMAT JSON").headers == HeadersColumn("b", is_map=True)
    assert sink(world, f"s FROM sold {TO} HEADERS headers FORMAT JSON").headers == HeadersColumn(
        "headers", is_map=False
    )


def test_other_columns_are_no_headers(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item, map('a', n) AS m, array(item) AS l FROM sold")
    for column in ("item", "m", "l"):
        with pytest.raises(HeadersOfOtherType):
            sink(world, f"s FROM v {TO} HEADERS {column} FORMAT JSON")
    with pytest.raises(UnknownColumn):
        sink(world, f"s FROM v {TO} HEADERS nosuch FORMAT JSON")


def test_a_format_of_one_column_leaves_the_headers_out(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item, map('a', item) AS m FROM sold")
    assert sink(world, f"s FROM v {TO} HEADERS m FORMAT TEXT").value.columns == ("item",)
    assert sink(world, f"s FROM v {TO} HEADERS m FORMAT JSON").value.columns == ("item", "m")


# where it writes


def test_a_broker_and_a_registry_by_address_are_in_the_effects(world: Planning) -> None:
    registry = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://r:8081'"
    planned = world.change(f"CREATE SINK s FROM sold INTO KAFKA BROKER 'b:9092' TOPIC 'out' {registry}")
    topic, register = planned.effects
    assert topic == CreateTopic("b:9092", "out")
    assert isinstance(register, RegisterSchema)
    assert register.connection == "http://r:8081"
    assert register.id == PendingId("http://r:8081", "out-value")
    world.do(f"CREATE SINK s FROM sold INTO KAFKA BROKER 'b:9092' TOPIC 'out' {registry}")
    assert [d.on for d in world.named("s").dependencies] == [world.named("sold").id]


def test_each_side_may_have_a_registry_of_its_own(world: Planning) -> None:
    other = "AVRO USING CONFLUENT SCHEMA REGISTRY 'http://other'"
    planned = world.change(f"CREATE SINK s FROM orders {TO} KEY (id) KEY FORMAT {other} VALUE FORMAT AVRO {REGISTRY}")
    found = {e.subject: e.connection for e in planned.effects if isinstance(e, RegisterSchema)}
    assert found == {"out-key": "http://other", "out-value": world.named("registry").id}


def test_a_password_in_an_address_is_refused(world: Planning) -> None:
    with pytest.raises(PasswordInAddress):
        world.plan(f"CREATE SINK s FROM sold {TO} FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://me:pw@r'")


# where it begins


def test_a_sink_without_a_snapshot_begins_where_its_source_ends_now(world: Planning) -> None:
    world.do(f"CREATE VIEW v AS SELECT item FROM sold; CREATE SINK s FROM v {TO} FORMAT TEXT WITH (SNAPSHOT = false)")
    made = world.named("s", Kind.SINK)
    assert isinstance(made.definition, CreateSink)
    assert made.definition.with_options.seed_offset == (10,)
    source = task_definition(world.catalog, made).source
    assert isinstance(source, SourceDefinition)
    assert source.start_offsets == {0: 10}


def test_over_a_materialized_view_a_sink_without_a_snapshot_begins_behind_its_last_batch(world: Planning) -> None:
    world.do(
        "CREATE MATERIALIZED VIEW counts AS SELECT item, count(*) AS n FROM sold GROUP BY item;"
        "CREATE VIEW many AS SELECT * FROM counts WHERE n > 1;"
        f"CREATE SINK s FROM many {TO} KEY (item) FORMAT JSON WITH (SNAPSHOT = false);"
        "CREATE SINK t FROM sold INTO KAFKA CONNECTION kafka (TOPIC 't') KEY (item) NOT ENFORCED FORMAT JSON WITH (SNAPSHOT = false)"
    )
    made = world.named("s", Kind.SINK)
    assert task_definition(world.catalog, made).view_start == (1, 7)
    assert "SEED BATCH = (1, 7)" in print_statement(definition_of(made, CreateSink))
    for relation, begins in (("counts", (None, (1, 7))), ("sold", ((10,), None))):
        world.do(f"ALTER SINK t SET FROM {relation}")
        options = definition_of(world.named("t", Kind.SINK), CreateSink).with_options
        assert (options.seed_offset, options.seed_batch) == begins


def test_a_stored_copy_does_not_know_where_its_source_ends(world: Planning) -> None:
    text = f"CREATE SINK s FROM orders {TO} FORMAT JSON ENVELOPE DEBEZIUM WITH (SNAPSHOT = false)"
    with pytest.raises(SnapshotOfCopy) as refused:
        world.plan(text)
    assert "orders_rows" in str(refused.value.hint())
    world.do("CREATE MATERIALIZED VIEW orders_rows AS SELECT * FROM orders")
    world.plan(text.replace("FROM orders", "FROM orders_rows"))


def test_a_sink_with_a_snapshot_begins_where_its_source_begins(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM sold {TO} FORMAT JSON")
    source = task_definition(world.catalog, world.named("s", Kind.SINK)).source
    assert isinstance(source, SourceDefinition)
    assert source.start_offsets == {}


# rows that cannot be encoded


def test_a_row_is_set_aside_by_the_position_of_its_record(world: Planning) -> None:
    world.do(
        "CREATE VIEW v AS SELECT item, n FROM sold WHERE n > 1; CREATE VIEW w AS SELECT upper(item) AS i FROM v;"
        f"CREATE SINK s FROM w {TO} FORMAT JSON WITH (ON ERROR = QUARANTINE)"
    )
    made = task_definition(world.catalog, world.named("s", Kind.SINK))
    assert made.sink.on_error == "QUARANTINE"
    assert made.positioned_sql is not None
    assert made.positioned_sql.count(f"AS `{AT}`") == 2


def test_a_record_of_several_rows_is_not_sent_through_again_as_a_whole(world: Planning) -> None:
    world.do('CREATE VIEW v AS SELECT "partition", "offset", posexplode(split(item, \' \')) AS (pos, word) FROM sold')
    with pytest.raises(SinkCannotQuarantine):
        sink(world, f"s FROM v {TO} FORMAT JSON WITH (ON ERROR = QUARANTINE)")
    assert sink(world, f"s FROM v {TO} FORMAT JSON WITH (ON ERROR = SKIP)").on_error == "SKIP"
    keyed = 'KEY ("partition", "offset", pos) FORMAT JSON WITH (ON ERROR = QUARANTINE)'
    assert sink(world, f"s FROM v {TO} {keyed}").on_error == "QUARANTINE"
