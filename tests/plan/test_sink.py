"""CREATE SINK: the schemas it publishes, its key, and what it makes outside."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.errors import AlreadyExists, UnknownColumn, UnknownObject, WrongKind
from headgate.catalog.names import find
from headgate.catalog.objects import DesiredTaskState
from headgate.control.definitions import task_definition
from headgate.plan.errors import ColumnTwice
from headgate.plan.plans import CreateTopic, RegisterSchema, SetCompatibility, Show
from headgate.plan.sink import subjects
from headgate.plan.sink_errors import (
    ClockInFilter,
    ExactlyOnceInRealTime,
    FormatNotWritten,
    KeyWithoutFormat,
    SinkFeedsItself,
    SinkFormatNeedsOneColumn,
    SinkKeyHoldsMap,
    SinkKeyMissing,
    SinkKeyNotOfSource,
    SinkKeyNotUnique,
    SinkNeedsKey,
    SinkNotDeterministic,
    SinkOverChanging,
)
from headgate.resolve.errors import ConnectionOfOtherKind, TopicMissing
from headgate.schema.written import CompatibilityLevel
from headgate.sql.registry_formats import PendingId
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier
from tests.plan.planning import AVRO, REGISTRY, TO, Planning, record, schema, sink

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    """`orders`, keyed by id; its price may be missing and its item has a doc."""
    world = Planning()
    value = {
        **record("order", doc="an order"),
        "fields": [
            {"name": "item", "type": "string", "doc": "what was bought"},
            {"name": "price", "type": ["null", "double"]},
        ],
    }
    world.topic("orders", key=record("k", ("id", "long")), value=value)
    world.do(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE sold FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO};"
        "CREATE VIEW items AS SELECT item FROM sold"
    )
    return world


# schemas


def test_the_value_is_an_envelope_and_the_key_a_row_with_docs_and_nullability(world: Planning) -> None:
    plan = sink(world, f"s FROM orders {TO} KEY (id) {AVRO}")
    assert schema(plan.value) == {
        "type": "record",
        "name": "envelope",
        "doc": "an order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "item", "type": "string", "doc": "what was bought"},
            {"name": "price", "type": ["null", "double"]},
        ],
    }
    assert schema(plan.key) == {
        "type": "record",
        "name": "row",
        "doc": "an order",
        "fields": [{"name": "id", "type": "long"}],
    }


def test_a_comment_beats_the_imported_doc_and_null_silences_it(world: Planning) -> None:
    world.do("COMMENT ON COLUMN sold.item IS 'the goods'; COMMENT ON SOURCE sold IS NULL")
    value = schema(sink(world, f"s FROM sold {TO} {AVRO}").value)
    assert value["fields"][0]["doc"] == "the goods"
    assert "doc" not in value


def test_docs_follow_a_column_through_a_view_that_renames_it(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item AS what, upper(item) AS loud FROM sold")
    fields = schema(sink(world, f"s FROM v {TO} {AVRO}").value)["fields"]
    assert fields[0] == {"name": "what", "type": "string", "doc": "what was bought"}
    assert "doc" not in fields[1]


def test_null_defaults_are_written_only_when_asked_for(world: Planning) -> None:
    plan = sink(world, f"s FROM sold {TO} {AVRO} (NULL DEFAULTS)")
    assert schema(plan.value)["fields"][1] == {"name": "price", "type": ["null", "double"], "default": None}


def test_full_names_replace_the_names_of_key_and_value(world: Planning) -> None:
    options = "(AVRO VALUE FULLNAME 'com.shop.order', AVRO KEY FULLNAME 'com.shop.id')"
    plan = sink(world, f"s FROM orders {TO} KEY (id) {AVRO} {options}")
    assert (schema(plan.value)["name"], schema(plan.value)["namespace"]) == ("order", "com.shop")
    assert (schema(plan.key)["name"], schema(plan.key)["namespace"]) == ("id", "com.shop")


def test_a_column_that_avro_cannot_name_is_renamed_and_keeps_its_doc(world: Planning) -> None:
    world.do('CREATE VIEW v AS SELECT item AS "größe in cm" FROM sold')
    plan = sink(world, f"s FROM v {TO} {AVRO}")
    (field,) = schema(plan.value)["fields"]
    assert field["doc"] == "what was bought"
    assert plan.value.columns == ("größe in cm",)
    assert plan.value.names == (field["name"],)
    assert field["name"].isascii()


def test_a_record_in_a_column_is_a_record_in_the_namespace_of_sinks(world: Planning) -> None:
    world.do(
        "CREATE TYPE point AS (x integer NOT NULL, y integer);CREATE VIEW v AS SELECT ROW(1, 2)::point AS p FROM sold"
    )
    (field,) = schema(sink(world, f"s FROM v {TO} {AVRO}").value)["fields"]
    of = field["type"] if isinstance(field["type"], dict) else field["type"][1]
    assert (of["namespace"], of["name"]) == ("com.headgate.sink", "point")
    assert [f["type"] for f in of["fields"]] == ["int", ["null", "int"]]


def test_a_named_type_keeps_its_name_through_views_lists_and_other_records(world: Planning) -> None:
    world.do(
        "CREATE TYPE point AS (x integer, y integer); CREATE TYPE line AS (a point, b point);"
        "CREATE VIEW v AS SELECT ROW(ROW(1, 2), ROW(3, 4))::line AS l, array(ROW(1, 2)::point) AS ps FROM sold;"
        "CREATE VIEW w AS SELECT l, (l).b AS b, ps, ROW(1, 2) AS plain FROM v"
    )
    text = json.dumps(schema(sink(world, f"s FROM w {TO} {AVRO}").value))
    assert text.count('"name": "line"') == text.count('"name": "point"') == text.count('"name": "record0"') == 1
    assert "record1" not in text


def test_the_schemas_are_registered_for_the_topics_subjects(world: Planning) -> None:
    (planned,) = world.do(f"CREATE SINK s FROM orders {TO} KEY (id) {AVRO} (VALUE COMPATIBILITY LEVEL 'FULL')")
    topic, key, level, value = planned.effects
    registry = world.named("registry").id
    assert topic == CreateTopic(world.named("kafka").id, "out")
    assert isinstance(key, RegisterSchema)
    assert level == SetCompatibility(registry, "out-value", CompatibilityLevel.FULL)
    assert isinstance(value, RegisterSchema)
    assert (key.id, value.id) == (PendingId(registry, "out-key"), PendingId(registry, "out-value"))


def test_the_topic_is_made_as_the_options_say(world: Planning) -> None:
    options = (
        "TOPIC 'out', TOPIC PARTITION COUNT 3, TOPIC REPLICATION FACTOR 1,"
        " TOPIC CONFIG MAP['cleanup.policy' => 'compact']"
    )
    (planned,) = world.do(f"CREATE SINK s FROM sold INTO KAFKA CONNECTION kafka ({options}) FORMAT JSON")
    kafka = world.named("kafka").id
    assert planned.effects == (CreateTopic(kafka, "out", 3, 1, (("cleanup.policy", "compact"),)),)


# key and envelope


def test_a_key_means_upsert_and_no_key_means_none(world: Planning) -> None:
    assert sink(world, f"s FROM orders {TO} KEY (id) FORMAT JSON").envelope == "UPSERT"
    assert sink(world, f"s FROM sold {TO} FORMAT JSON").envelope == "NONE"
    appended = sink(world, f"s FROM orders {TO} KEY (id) FORMAT JSON ENVELOPE NONE")
    assert (appended.envelope, appended.key is not None) == ("NONE", True)


def test_upsert_without_a_key_is_refused(world: Planning) -> None:
    with pytest.raises(SinkKeyMissing):
        sink(world, f"s FROM orders {TO} FORMAT JSON ENVELOPE UPSERT")


def test_a_key_must_hold_the_relations_key(world: Planning) -> None:
    with pytest.raises(SinkKeyNotUnique) as caught:
        sink(world, f"s FROM orders {TO} KEY (item) FORMAT JSON")
    assert caught.value.detail() == "The relation's key is (id)."


def test_a_key_wider_than_the_relations_needs_the_rows_of_a_view(world: Planning) -> None:
    with pytest.raises(SinkKeyNotOfSource) as caught:
        sink(world, f"s FROM orders {TO} KEY (item, id) FORMAT JSON")
    assert caught.value.source_id == world.named("orders").id
    world.do("CREATE MATERIALIZED VIEW stored AS SELECT item, id FROM orders; CREATE VIEW v AS SELECT * FROM stored")
    for relation in ("stored", "v"):
        plan = sink(world, f"s FROM {relation} {TO} KEY (item, id) FORMAT JSON")
        assert (plan.envelope, plan.old_rows) == ("UPSERT", True)
    assert not sink(world, f"s FROM v {TO} KEY (id) FORMAT JSON").old_rows


def test_a_sink_with_another_key_gets_a_stored_copy_of_its_source(world: Planning) -> None:
    world.do("CREATE VIEW words AS SELECT id, posexplode(split(item, ' ')) AS (pos, word) FROM orders")
    assert isinstance(world.plan(f"EXPLAIN CREATE SINK s FROM words {TO} KEY (id, pos) FORMAT JSON"), Show)
    (planned,) = world.do(f"CREATE SINK s FROM words {TO} KEY (id, pos) FORMAT JSON")
    assert planned.notices[0].startswith('materialized view "orders_rows" is created too')
    task = task_definition(world.catalog, world.named("s"))
    assert (task.source.id, task.event_key) == (world.named("orders_rows").id, ("id", "pos"))


def test_a_relation_without_a_key_has_no_unique_columns(world: Planning) -> None:
    with pytest.raises(SinkKeyNotUnique) as caught:
        sink(world, f"s FROM items {TO} KEY (item) FORMAT JSON")
    assert caught.value.detail() == "The relation has no key."


def test_not_enforced_takes_the_users_word_for_it(world: Planning) -> None:
    plan = sink(world, f"s FROM sold {TO} KEY (ITEM) NOT ENFORCED FORMAT JSON")
    assert plan.envelope == "UPSERT"
    assert plan.key is not None
    assert plan.key.columns == ("item",)


def test_over_a_keyed_source_no_other_key_is_taken(world: Planning) -> None:
    """A deletion has no value for it: what was written under the key would stay for ever. Nor does a stored copy help: of two rows
    with one item, one may go and the other stay."""
    world.do("CREATE MATERIALIZED VIEW stored AS SELECT item, id FROM orders")
    for relation in ("orders", "stored"):
        with pytest.raises(SinkKeyNotOfSource) as refused:
            world.plan(f"CREATE SINK s FROM {relation} {TO} KEY (item) NOT ENFORCED FORMAT JSON")
        assert "GROUP BY" in str(refused.value.hint())
    with pytest.raises(SinkKeyNotUnique) as caught:
        sink(world, f"s FROM orders {TO} KEY (item) FORMAT JSON")
    assert "ENVELOPE NONE" in str(caught.value.hint())


def test_a_keyed_relation_needs_a_key_or_an_explicit_none(world: Planning) -> None:
    with pytest.raises(SinkNeedsKey) as caught:
        sink(world, f"s FROM orders {TO} FORMAT JSON")
    assert str(caught.value.hint()).startswith("Write KEY (id) to write the newest row of each key")
    (planned,) = world.do(f"CREATE SINK s FROM orders {TO} FORMAT JSON ENVELOPE NONE")
    assert planned.notices == ('sink "s" writes every change of source "orders" as a record, and no deletes',)
    (planned,) = world.do("CREATE SINK t FROM sold INTO KAFKA CONNECTION kafka (TOPIC 't') FORMAT JSON")
    assert planned.notices == ()


@pytest.mark.parametrize("rest", ["", "KEY (item)", "KEY (item) NOT ENFORCED"])
@pytest.mark.parametrize("envelope", ["", "ENVELOPE NONE"])
def test_no_sink_takes_a_relation_that_lost_its_key(world: Planning, rest: str, envelope: str) -> None:
    world.do("CREATE VIEW names AS SELECT item FROM orders; CREATE VIEW again AS SELECT * FROM names")
    with pytest.raises(SinkOverChanging) as caught:
        sink(world, f"s FROM again {TO} {rest} FORMAT JSON {envelope}")
    assert caught.value.message() == (
        'sink "s" cannot write view "again": its rows change, and no key tells them apart'
    )
    assert caught.value.detail() == "Its key (id) is not kept."
    assert caught.value.hint() == 'Keep "id" in the query.'


def test_explode_over_a_keyed_relation_says_to_keep_the_position(world: Planning) -> None:
    world.do("CREATE VIEW words AS SELECT id, explode(split(item, ' ')) AS word FROM orders")
    with pytest.raises(SinkOverChanging) as caught:
        sink(world, f"s FROM words {TO} KEY (id) FORMAT JSON")
    assert caught.value.detail() == "explode gives several rows for one key (id)."
    assert caught.value.hint() == "Write posexplode, keep its position beside (id), and make it a MATERIALIZED VIEW."


@pytest.mark.parametrize("function", ["posexplode", "posexplode_outer"])
@pytest.mark.parametrize("key", ["KEY (id, pos)", "KEY (id)", "KEY (id, pos) NOT ENFORCED", "KEY (pos) NOT ENFORCED"])
def test_a_key_with_a_position_cannot_be_deleted_by(world: Planning, function: str, key: str) -> None:
    """A delete in the source carries the source's key, not the positions that were written."""
    world.do(f"CREATE VIEW words AS SELECT id, {function}(split(item, ' ')) AS (pos, word) FROM orders")
    assert [c.name for c in world.named("words").columns if c.key] == ["id", "pos"]
    with pytest.raises(SinkKeyNotOfSource) as caught:
        sink(world, f"s FROM words {TO} {key} FORMAT JSON")
    assert caught.value.message() == ('sink "s" cannot delete by key (id, pos), as source "orders" is keyed by (id)')
    assert "MATERIALIZED VIEW" in (caught.value.hint() or "")
    assert sink(world, f"s FROM words {TO} FORMAT JSON ENVELOPE NONE").envelope == "NONE"


def test_a_key_with_a_position_is_written_over_rows_that_are_only_added(world: Planning) -> None:
    """Nothing is ever deleted there, so that no position can be left behind."""
    world.do("CREATE VIEW words AS SELECT item, posexplode(split(item, ' ')) AS (pos, word) FROM sold")
    assert sink(world, f"s FROM words {TO} KEY (item, pos) NOT ENFORCED FORMAT JSON").envelope == "UPSERT"


@pytest.mark.parametrize(
    ("query", "functions", "columns"),
    [
        ("SELECT id, rand() AS r FROM orders", ("rand",), ("r",)),
        ("SELECT id, upper(r) AS s FROM (SELECT id, uuid() AS r FROM orders) AS t", ("uuid",), ("s",)),
        ("SELECT id, shuffle(array(1, 2)) AS a, randn() AS b FROM orders", ("randn", "shuffle"), ("a", "b")),
        ("SELECT id FROM orders WHERE rand() > 0.5", ("rand",), ()),
    ],
)
def test_a_keyed_sink_is_not_filled_at_random(
    world: Planning, query: str, functions: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    world.do(f"CREATE VIEW v AS {query}; CREATE VIEW w AS SELECT * FROM v")
    for relation in ("v", "w"):
        with pytest.raises((SinkNotDeterministic, SinkOverChanging)) as caught:
            sink(world, f"s FROM {relation} {TO} KEY (id) FORMAT JSON")
        if isinstance(caught.value, SinkNotDeterministic):
            assert (caught.value.functions, caught.value.columns) == (functions, columns)
        assert isinstance(caught.value, SinkNotDeterministic) or not columns


def test_rows_that_are_only_added_may_be_random(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT item, uuid() AS u FROM sold WHERE rand() > 0.5")
    assert sink(world, f"s FROM v {TO} FORMAT JSON").envelope == "NONE"
    with pytest.raises(SinkNotDeterministic):
        sink(world, f"s FROM v {TO} KEY (item) NOT ENFORCED FORMAT JSON")


def test_a_time_as_a_column_is_noticed(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT id, now() AS t, current_date AS d, item FROM orders")
    (planned,) = world.do(f"CREATE SINK s FROM v {TO} KEY (id) FORMAT JSON")
    assert [notice.partition(":")[0] for notice in planned.notices] == [
        'column "t" of sink "s" is computed by now',
        'column "d" of sink "s" is computed by current_date',
    ]
    world.do("CREATE VIEW keyed_by_time AS SELECT item, now() AS t FROM sold")
    with pytest.raises(SinkNotDeterministic):
        sink(world, f"s FROM keyed_by_time {TO} KEY (t) NOT ENFORCED FORMAT JSON")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM timed WHERE ts > now() - INTERVAL '1' DAY",
        "SELECT id FROM timed WHERE ts > 'yesterday'::timestamptz",
        "SELECT id FROM (SELECT id, ts, current_timestamp AS t FROM timed) AS x WHERE ts > t",
        "SELECT id FROM stamped WHERE ts > t",
    ],
)
def test_a_time_in_a_filter_is_refused(world: Planning, query: str) -> None:
    world.do(
        "CREATE VIEW timed AS SELECT id, '2020-01-01'::timestamptz AS ts FROM orders;"
        "CREATE VIEW stamped AS SELECT *, now() AS t FROM timed;"
        f"CREATE VIEW recent AS {query}; CREATE VIEW again AS SELECT * FROM recent"
    )
    with pytest.raises(ClockInFilter) as caught:
        sink(world, f"s FROM again {TO} KEY (id) FORMAT JSON")
    assert "MATERIALIZED VIEW" in str(caught.value.hint())


def test_a_key_with_a_map_is_refused_before_spark_does(world: Planning) -> None:
    tags = {"type": "array", "items": {"type": "map", "values": "int"}}
    world.topic("tagged", key=record("k", ("tags", tags)), value=record("v", ("a", "int")))
    world.do(f"CREATE SOURCE tagged FROM KAFKA CONNECTION kafka (TOPIC 'tagged') {AVRO} ENVELOPE UPSERT")
    with pytest.raises(SinkKeyHoldsMap, match="holds a map"):
        sink(world, f"s FROM tagged {TO} KEY (tags) FORMAT JSON")


def test_under_none_a_key_need_not_be_unique(world: Planning) -> None:
    assert sink(world, f"s FROM items {TO} KEY (item) FORMAT JSON ENVELOPE NONE").envelope == "NONE"


def test_a_key_column_must_exist_and_be_named_once(world: Planning) -> None:
    with pytest.raises(UnknownColumn) as unknown:
        sink(world, f"s FROM orders {TO} KEY (itme) FORMAT JSON")
    assert unknown.value.similar == ("item",)
    with pytest.raises(ColumnTwice):
        sink(world, f"s FROM orders {TO} KEY (id, ID) FORMAT JSON")


def test_key_in_value_false_leaves_the_key_out_of_the_value(world: Planning) -> None:
    plan = sink(world, f"s FROM orders {TO} KEY (id) {AVRO} WITH (KEY IN VALUE = false)")
    assert [f["name"] for f in schema(plan.value)["fields"]] == ["item", "price"]
    kept = sink(world, f"s FROM orders {TO} KEY (id) {AVRO} WITH (KEY IN VALUE = true)")
    assert [f["name"] for f in schema(kept.value)["fields"]] == ["id", "item", "price"]


def test_a_key_format_needs_a_key(world: Planning) -> None:
    with pytest.raises(KeyWithoutFormat):
        sink(world, f"s FROM sold {TO} KEY FORMAT TEXT VALUE FORMAT JSON")


def test_text_and_bytes_write_exactly_one_column(world: Planning) -> None:
    for word in ("TEXT", "BYTES"):
        assert sink(world, f"s FROM items {TO} FORMAT {word}").value.columns == ("item",)
        with pytest.raises(SinkFormatNeedsOneColumn) as caught:
            sink(world, f"s FROM sold {TO} FORMAT {word}")
        assert caught.value.message() == f'{word} writes one column, but the value of sink "s" has 2'


def test_a_key_may_be_text_beside_an_avro_value(world: Planning) -> None:
    plan = sink(world, f"s FROM orders {TO} KEY (id) KEY FORMAT TEXT VALUE FORMAT AVRO {REGISTRY}")
    assert plan.key is not None
    assert (plan.key.encoding, plan.key.schema, plan.value.encoding) == ("TEXT", None, "AVRO")
    assert [subject for _, subject, _ in subjects(plan)] == ["out-value"]


# names


def test_a_sink_without_a_name_is_called_after_its_relation(world: Planning) -> None:
    world.do(f"CREATE SINK FROM sold {TO} FORMAT JSON")
    made = world.named("sold_sink", Kind.SINK)
    assert world.catalog.desired[made.id] is DesiredTaskState.RUNNING
    with pytest.raises(AlreadyExists):
        world.do(f"CREATE SINK FROM SOLD {TO} FORMAT JSON")
    again = world.skip(f"CREATE SINK IF NOT EXISTS FROM sold {TO} FORMAT JSON")
    assert again.notice == 'sink "sold_sink" exists already, skipped'


def test_a_sink_may_have_the_name_of_its_relation(world: Planning) -> None:
    world.do(f"CREATE SINK sold FROM sold {TO} FORMAT JSON")
    assert world.named("sold", Kind.SINK).dependencies[0].on == world.named("sold", Kind.SOURCE).id


def test_what_a_sink_names_must_be_there_and_of_the_right_kind(world: Planning) -> None:
    with pytest.raises(UnknownObject) as unknown:
        world.plan(f"CREATE SINK s FROM ordres {TO} FORMAT JSON")
    assert unknown.value.similar == ("orders",)
    with pytest.raises(UnknownObject):
        world.plan("CREATE SINK s FROM orders INTO KAFKA CONNECTION nosuch (TOPIC 'o') FORMAT JSON")
    with pytest.raises(ConnectionOfOtherKind) as other:
        world.plan("CREATE SINK s FROM orders INTO KAFKA CONNECTION registry (TOPIC 'o') FORMAT JSON")
    assert other.value.message() == 'connection "registry" is to CONFLUENT SCHEMA REGISTRY, not to KAFKA'
    world.do("CREATE TYPE t AS (x integer)")
    with pytest.raises(WrongKind):
        world.plan(f"CREATE SINK s FROM t {TO} FORMAT JSON")


def test_a_sink_needs_a_topic(world: Planning) -> None:
    with pytest.raises(TopicMissing):
        world.plan("CREATE SINK s FROM orders INTO KAFKA CONNECTION kafka (TOPIC PARTITION COUNT 2) FORMAT JSON")


# options


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("CSV WITH 3 COLUMNS", "CSV"),
        ("REGEX '(?<a>.)'", "REGEX"),
        ("AVRO USING SCHEMA '\"int\"'", "AVRO USING SCHEMA"),
    ],
)
def test_a_format_of_sources_alone_is_refused_with_those_that_a_sink_writes(
    world: Planning, text: str, format_: str
) -> None:
    with pytest.raises(FormatNotWritten) as caught:
        sink(world, f"s FROM sold {TO} FORMAT {text}")
    assert caught.value.format == format_


def test_delivery_at_least_once_and_a_snapshot_are_the_defaults(world: Planning) -> None:
    with_ = "WITH (DELIVERY = 'at least once', SNAPSHOT = true, ON ERROR = HALT)"
    assert sink(world, f"s FROM sold {TO} FORMAT JSON {with_}") == sink(world, f"s FROM sold {TO} FORMAT JSON")


def test_a_sink_delivers_exactly_once_if_asked_but_not_in_real_time(world: Planning) -> None:
    exactly = "DELIVERY = 'exactly once'"
    assert sink(world, f"s FROM sold {TO} FORMAT JSON WITH ({exactly})").delivery == "exactly once"
    with pytest.raises(ExactlyOnceInRealTime):
        sink(world, f"s FROM sold {TO} FORMAT JSON WITH ({exactly}, LATENCY = 'real time')")


def test_a_sink_does_not_write_to_the_topic_that_it_reads(world: Planning) -> None:
    world.do("CREATE VIEW again AS SELECT * FROM sold")
    with pytest.raises(SinkFeedsItself):
        world.do("CREATE SINK n FROM again INTO KAFKA CONNECTION kafka (TOPIC 'orders') FORMAT JSON")


TEXTS = "FROM KAFKA CONNECTION {} (TOPIC '{}') FORMAT TEXT;"


def test_a_loop_over_other_sinks_is_found(world: Planning) -> None:
    for topic in ("a", "b", "c"):
        world.topic(topic)
        world.do(f"CREATE SOURCE {topic} {TEXTS.format('kafka', topic)}")
    world.do("CREATE SINK ab FROM a INTO KAFKA CONNECTION kafka (TOPIC 'b') FORMAT TEXT")
    world.do("CREATE SINK bc FROM b INTO KAFKA CONNECTION kafka (TOPIC 'c') FORMAT TEXT")
    with pytest.raises(SinkFeedsItself) as found:
        world.do("CREATE SINK ca FROM c INTO KAFKA CONNECTION kafka (TOPIC 'a') FORMAT TEXT")
    assert found.value.message() == (
        'sink "ca" cannot write to topic "a", which source "a" reads for sink "ab" and "bc", '
        "whose records it reads again"
    )
    world.do("CREATE SINK cd FROM c INTO KAFKA CONNECTION kafka (TOPIC 'd') FORMAT TEXT")


def test_a_loop_over_two_connections_to_one_cluster_is_found(world: Planning) -> None:
    world.topic("a")
    world.do("CREATE CONNECTION second TO KAFKA (BROKERS ('else:1', 'Broker:9092'))")
    world.do("CREATE CONNECTION third TO KAFKA (BROKER 'else:1')")
    world.do("CREATE CONNECTION foreign_one TO KAFKA (BROKER 'far:9092')")
    world.do(f"CREATE SOURCE a {TEXTS.format('kafka', 'a')}")
    for connection in ("second", "third"):
        with pytest.raises(SinkFeedsItself):
            world.do(f"CREATE SINK n FROM a INTO KAFKA CONNECTION {connection} (TOPIC 'a') FORMAT TEXT")
    foreign = find(world.catalog, world.path, ObjectName((Identifier("foreign_one"),)), Kind.CONNECTION)
    assert foreign is not None
    for cluster in (" elsewhere", None):
        world.outside.elsewhere[foreign.id] = cluster
        world.do(f"CREATE SINK n{cluster is None:d} FROM a INTO KAFKA CONNECTION foreign_one (TOPIC 'a') FORMAT TEXT")
    world.do("CREATE SOURCE plain FROM KAFKA BROKER 'broker:9092' TOPIC 'a' FORMAT TEXT;")
    with pytest.raises(SinkFeedsItself):
        world.do("CREATE SINK m FROM plain INTO KAFKA CONNECTION kafka (TOPIC 'a') FORMAT TEXT")


def test_a_loop_over_addresses_that_share_no_text_is_found_by_the_ids_of_topics(world: Planning) -> None:
    for topic in ("a", "b"):
        world.topic(topic)
        world.do(f"CREATE SOURCE {topic} {TEXTS.format('kafka', topic)}")
    with pytest.raises(SinkFeedsItself):
        world.do("CREATE SINK aa FROM a INTO KAFKA BROKER '10.0.0.1:9092' TOPIC 'a' FORMAT TEXT")
    world.do("CREATE VIEW v AS SELECT text FROM a")
    world.do("CREATE SINK ab FROM v INTO KAFKA BROKER '10.0.0.1:9092' TOPIC 'b' FORMAT TEXT")
    for closing in ("CREATE OR REPLACE VIEW v AS SELECT text FROM b", "ALTER SINK ab SET FROM b"):
        with pytest.raises(SinkFeedsItself):
            world.do(closing)
    with pytest.raises(SinkFeedsItself):
        world.do("CREATE STREAM loop WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'json') AS SELECT text FROM b")


def test_a_loop_by_address_is_found_under_a_sink_that_gets_a_stored_copy(world: Planning) -> None:
    world.topic("a")
    world.do(
        "CREATE CONNECTION by_name TO KAFKA (BROKER 'one:9092'); CREATE CONNECTION by_ip TO KAFKA (BROKER '10.0.0.1:9092')"
    )
    world.do("CREATE SOURCE kv FROM KAFKA CONNECTION by_name (TOPIC 'a') FORMAT TEXT ENVELOPE UPSERT")
    with pytest.raises(SinkFeedsItself):
        world.plan("CREATE SINK n FROM kv INTO KAFKA CONNECTION by_ip (TOPIC 'a') FORMAT JSON ENVELOPE DEBEZIUM")


def test_a_view_that_closes_a_loop_cannot_replace_another(world: Planning) -> None:
    for topic in ("a", "b"):
        world.topic(topic)
        world.do(f"CREATE SOURCE {topic} {TEXTS.format('kafka', topic)}")
    world.do("CREATE VIEW v AS SELECT text FROM a")
    world.do("CREATE SINK ab FROM v INTO KAFKA CONNECTION kafka (TOPIC 'b') FORMAT TEXT")
    with pytest.raises(SinkFeedsItself):
        world.do("CREATE OR REPLACE VIEW v AS SELECT text FROM b")
    world.do("CREATE OR REPLACE VIEW v AS SELECT upper(text) AS text FROM a")


def test_a_key_column_that_the_source_drops_is_told_as_such(world: Planning) -> None:
    world.do("CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'orders') FORMAT TEXT")
    with pytest.raises(UnknownColumn) as failed:
        world.do("CREATE SINK n FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'o') KEY (key) NOT ENFORCED FORMAT JSON")
    assert "add INCLUDE KEY" in str(failed.value.hint())
