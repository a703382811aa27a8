"""SHOW, DESCRIBE and EXPLAIN: exact tables over one small pipeline."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.positions import KafkaPosition
from headgate.catalog.tasks import Ledger, State, TaskStatus
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.definitions import select_definition
from headgate.control.sessions import Done, ResultColumns
from headgate.plan.errors import NotSupportedYet
from headgate.plan.relations import analyse_query, resolved_query
from headgate.plan.sink_errors import SideWithoutSchema
from headgate.resolve.statements import resolve_names
from headgate.schema.names import quote_literal
from headgate.sql.queries import Select
from headgate.sql.registry_formats import DocOn
from headgate.sql.script import parse_statement
from headgate.sql.statement import Create, Kind, rewrite
from headgate.sql.views import CreateView
from tests.catalog.building import NOW
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
VALUE = json.dumps(
    {
        "type": "record",
        "name": "order",
        "doc": "an order",
        "fields": [
            {"name": "item", "type": "string", "doc": "what was bought"},
            {"name": "price", "type": ["null", "double"]},
        ],
    }
)


@pytest.fixture
def shop(sql: Shell) -> Shell:
    """orders -> big -> bigs"""
    sql.topics["shop"] = NewTopicOptions()
    sql.subject("shop-value", VALUE)
    sql.subject("shop-key", '"long"')
    sql.run(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'shop') {AVRO} ENVELOPE UPSERT;"
        "CREATE VIEW big AS SELECT key, item FROM orders WHERE price > 5;"
        f"CREATE SINK bigs FROM big INTO KAFKA CONNECTION kafka (TOPIC 'bigs') KEY (key) {AVRO}"
    )
    return sql


def report(sql: Shell) -> int:
    """Let the sink have run for a while; gives its id."""
    (sink,) = sql.store.load().of_kind(Kind.SINK)
    sql.store.report(TaskStatus(sink.id, State.RUNNING, NOW, None, 3, 120, 2, 7))
    positions = {1: KafkaPosition("shop", "id of shop", (122,))}
    sql.store.advance(None, Ledger(sink.id, 1, 3, 5, positions))
    return sink.id


# SHOW <kind>S


def test_show_lists_names_first_with_schema_and_comment(shop: Shell) -> None:
    assert shop.names("SHOW SOURCES") == ["name", "schema", "comment"]
    assert shop.rows("SHOW SOURCES") == [("orders", "headgate.public", "an order")]
    assert shop.rows("SHOW SINKS") == [("bigs", "headgate.public", None)]
    assert [row[0] for row in shop.rows("SHOW CONNECTIONS")] == [
        "elasticsearch",
        "kafka",
        "postgres",
        "registry",
    ]
    assert shop.rows("SHOW SINK POLICIES; SHOW MATERIALIZED VIEWS; SHOW COLLECTIONS; SHOW STREAMS") == []


def test_show_can_be_limited_by_pattern_and_schema(shop: Shell) -> None:
    shop.run("CREATE SCHEMA sales; CREATE TYPE sales.t1 AS (x integer); CREATE TYPE t2 AS (x integer)")
    assert [row[0] for row in shop.rows("SHOW TYPES LIKE 'T_'")] == ["t1", "t2"]
    assert shop.rows("SHOW TYPES IN sales") == [("t1", "headgate.sales", None)]
    assert shop.rows("SHOW TYPES LIKE 't.'") == []
    assert isinstance(shop.failure("SHOW TYPES IN nosuch"), UnknownObject)


def test_show_of_containers_says_where_they_are(shop: Shell) -> None:
    assert shop.rows("SHOW DATABASES") == [("headgate", "", None)]
    assert shop.rows("SHOW SCHEMAS") == [("public", "headgate", None)]


def test_show_tasks_is_what_the_engine_reported(shop: Shell) -> None:
    report(shop)
    columns = ["name", "kind", "state", "error", "batch", "rows", "skipped", "lag", "stored_bytes", "since", "notice"]
    assert shop.names("SHOW TASKS") == columns
    row = ("bigs", "sink", "running", None, 3, 120, 2, 7, None, "2024-05-01T12:30:15.123456Z", None)
    assert shop.rows("SHOW TASKS") == [row]


def test_show_events_and_history_can_be_of_one_object(shop: Shell) -> None:
    assert [row[1:] for row in shop.rows("SHOW EVENTS FOR BIG")] == [("big", "created", "created view")]
    assert shop.rows('SHOW EVENTS FOR "BIG"') == []
    assert [row[1:] for row in shop.rows("SHOW HISTORY FOR big")] == [
        (
            "big",
            "created view",
            "statement",
            None,
            "CREATE VIEW big AS SELECT key, item FROM orders WHERE price > 5",
        )
    ]


def test_show_dependencies_and_comments_have_their_columns(shop: Shell) -> None:
    assert ("big", "orders", "view") in shop.rows("SHOW DEPENDENCIES")
    assert ("headgate", "public", "big", "view", "item", "what was bought", "followed") in shop.rows("SHOW COMMENTS")


def test_show_quarantine_is_a_query_because_bad_records_may_be_in_the_warehouse(shop: Shell) -> None:
    order = " ORDER BY task, topic, partition, offset"
    assert shop.rows("SHOW QUARANTINE") == [("SELECT * FROM headgate_catalog.quarantine" + order,)]
    ((about,),) = shop.rows("SHOW QUARANTINE FOR BIGS")
    assert str(about).endswith(f"WHERE object IN ('bigs') OR task IN ('bigs'){order}")
    ((about,),) = shop.rows('SHOW QUARANTINE FOR "BIGS"')
    assert str(about).endswith(f"WHERE object IN (NULL) OR task IN (NULL){order}")


@pytest.mark.parametrize(
    ("query", "is_read"),
    [
        ("SELECT * FROM headgate_catalog.quarantine", False),
        ("SELECT count(*) FROM headgate_catalog.quarantine q WHERE q.reason LIKE '%raw%'", False),
        ("SELECT raw FROM headgate_catalog.quarantine", True),
        ("SELECT q.offset FROM headgate_catalog.quarantine q WHERE length(q.raw) > 3", True),
        ("WITH q AS (SELECT raw AS bytes FROM headgate_catalog.quarantine) SELECT max(bytes) FROM q", True),
        ("SELECT 1 FROM range(3) WHERE EXISTS (SELECT 1 FROM headgate_catalog.quarantine WHERE raw IS NULL)", True),
        ("SELECT name FROM headgate_catalog.tasks", False),
    ],
)
def test_the_bytes_of_quarantined_records_are_read_only_if_a_query_names_them(
    shop: Shell, query: str, is_read: bool
) -> None:
    statement = parse_statement(query)
    assert isinstance(statement, Select)
    made = select_definition(shop.store.load(), statement.query).query
    assert made.with_hidden == ({"headgate_catalog.quarantine"} if is_read else set())


# SHOW CREATE


def test_show_create_prints_what_was_frozen(shop: Shell) -> None:
    value = shop.registry.latest("shop-value").schema_id
    key = shop.registry.latest("shop-key").schema_id
    assert shop.rows("SHOW CREATE SOURCE orders") == [
        (
            "orders",
            "CREATE SOURCE orders\n"
            "FROM KAFKA CONNECTION kafka (TOPIC = 'shop')\n"
            "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry (\n"
            f"    SEED VALUE SCHEMA ID {value} {quote_literal(VALUE)},\n"
            f"    SEED KEY SCHEMA ID {key} '\"long\"'\n"
            ")\n"
            "ENVELOPE UPSERT;",
        )
    ]


@pytest.mark.parametrize("what", ["SOURCE orders", "VIEW big", "SINK bigs", "CONNECTION kafka"])
def test_what_show_create_prints_reads_back_as_the_same_statement(shop: Shell, what: str) -> None:
    ((_, printed),) = shop.rows(f"SHOW CREATE {what}")
    catalog = shop.store.load()
    (stored,) = [o for o in catalog.objects.values() if f"{o.kind.upper()} {o.name}" == what]
    again = parse_statement(str(printed))
    assert isinstance(again, Create)
    assert stored.definition is not None
    resolved = resolve_names(again, catalog, DEFAULT_PATH)
    if isinstance(resolved, CreateView):
        analysed = analyse_query(catalog, DEFAULT_PATH, resolved.query)
        query = resolved_query(catalog, DEFAULT_PATH, resolved.query, analysed)
        assert replace(resolved, query=query) == stored.definition
    else:
        assert resolved == rewrite(stored.definition, _as_given)


def _as_given(value: object, _: object) -> object:
    """A doc that was frozen is printed like one that a user gave."""
    return replace(value, frozen=False) if isinstance(value, DocOn) else value


def test_what_show_create_prints_makes_the_same_object_again(shop: Shell) -> None:
    before = shop.rows("DESCRIBE orders")
    ((_, printed),) = shop.rows("SHOW CREATE SOURCE orders")
    shop.run("DROP SOURCE orders CASCADE")
    shop.registry.delete_subject("shop-value")
    shop.run(str(printed))
    assert shop.rows("DESCRIBE orders") == before
    assert shop.rows("SHOW CREATE SOURCE orders") == [("orders", printed)]
    shop.subject("shop-value", VALUE)


def test_show_create_prints_the_present_name(shop: Shell) -> None:
    shop.run("ALTER SINK bigs RENAME TO large")
    ((name, printed),) = shop.rows("SHOW CREATE SINK large")
    assert (name, str(printed).split("\n")[0]) == ("large", "CREATE SINK large")


def test_show_create_of_containers_and_secrets(shop: Shell) -> None:
    shop.run("CREATE SECRET token AS 'hunter2'; CREATE SECRET home FROM ENV 'HOME'")
    assert shop.rows("SHOW CREATE SCHEMA public") == [("public", "CREATE SCHEMA public;")]
    assert shop.rows("SHOW CREATE DATABASE headgate") == [("headgate", "CREATE DATABASE headgate;")]
    assert shop.rows("SHOW CREATE SECRET token") == [("token", "CREATE SECRET token AS '***'")]
    assert shop.rows("SHOW CREATE SECRET home") == [("home", "CREATE SECRET home FROM ENV 'HOME'")]
    assert isinstance(shop.failure("SHOW CREATE VIEW orders"), WrongKind)


# SHOW LINEAGE


def test_lineage_is_everything_upstream_nearest_first(shop: Shell) -> None:
    assert shop.names("SHOW LINEAGE FOR bigs") == ["object", "depends_on", "kind"]
    assert shop.rows("SHOW LINEAGE FOR bigs") == [
        ("bigs", "big", "sink"),
        ("bigs", "kafka", "sink"),
        ("bigs", "registry", "sink"),
        ("big", "orders", "view"),
        ("orders", "kafka", "source"),
        ("orders", "registry", "source"),
    ]
    assert shop.rows("SHOW LINEAGE FOR CONNECTION kafka") == []


# DESCRIBE


def test_describe_gives_columns_with_type_nullability_key_and_comment(shop: Shell) -> None:
    (columns, *_) = shop.run("DESCRIBE orders")
    assert columns == ResultColumns(
        (("name", "text"), ("type", "text"), ("nullable", "boolean"), ("key", "boolean"), ("comment", "text"))
    )
    assert shop.rows("DESCRIBE orders") == [
        ("key", "bigint", False, True, None),
        ("item", "text", False, False, "what was bought"),
        ("price", "double", True, False, None),
    ]
    assert shop.rows("DESCRIBE VIEW Big") == [
        ("key", "bigint", False, True, None),
        ("item", "text", False, False, "what was bought"),
    ]
    assert shop.rows("DESCRIBE SCHEMA public") == []


def test_describe_of_a_sink_gives_the_columns_that_it_writes_and_its_own_key(shop: Shell) -> None:
    assert shop.rows("DESCRIBE SINK bigs") == shop.rows("DESCRIBE VIEW big")
    kafka = "INTO KAFKA CONNECTION kafka (TOPIC 'log')"
    shop.run(
        f"CREATE SINK log FROM orders {kafka} FORMAT JSON ENVELOPE NONE; COMMENT ON COLUMN orders.price IS 'in EUR'"
    )
    assert shop.rows("DESCRIBE log") == [
        ("key", "bigint", False, False, None),
        ("item", "text", False, False, "what was bought"),
        ("price", "double", True, False, "in EUR"),
    ]


def test_describe_knows_the_systems_own_relations(shop: Shell) -> None:
    assert shop.rows("DESCRIBE headgate_catalog.dependencies") == [
        ("object", "text", False, False, None),
        ("depends_on", "text", False, False, None),
        ("kind", "text", False, False, None),
    ]


def test_describe_extended_gives_what_is_beyond_columns(shop: Shell) -> None:
    report(shop)
    told = dict(shop.rows("DESCRIBE EXTENDED SINK bigs"))  # type: ignore[arg-type, var-annotated]
    assert told["kind"] == "sink"
    assert told["reads"] == "big"
    assert (told["key"], told["column item"]) == ("key", "text not null")
    assert (told["state"], told["rows"], told["lag"]) == ("running", 120, 7)
    assert told["offset of shop partition 0"] == 122
    assert str(told["statement"]).startswith("CREATE SINK bigs\nFROM big\n")
    source = dict(shop.rows("DESCRIBE EXTENDED orders"))  # type: ignore[arg-type, var-annotated]
    assert (source["rows come by"], source["key"]) == ("keyed", "key")
    assert source["column key"] == "bigint not null"


# EXPLAIN


def test_explain_says_what_is_read_how_and_what_comes_out(shop: Shell) -> None:
    *lines, spark = [row[0] for row in shop.rows("EXPLAIN SELECT item FROM big WHERE key > 1")]
    assert lines == ["reads big", "row by row, nothing is stored", "gives item text not null"]
    assert str(spark).startswith("spark: SELECT ")
    counted = [row[0] for row in shop.rows("EXPLAIN CREATE VIEW v AS SELECT count(*) AS n FROM big")]
    assert counted[:3] == ["reads big", "over all rows at once", "gives n bigint not null"]
    system = shop.rows("EXPLAIN SELECT name FROM headgate_catalog.objects")
    assert system[0] == ("reads headgate_catalog.objects",)


def test_explain_of_a_sink_says_which_way_it_runs_and_why(shop: Shell) -> None:
    live = "runs in real time while slots are free, because it has a key, and all between its source and its topic runs on the JVM"
    assert shop.rows("EXPLAIN SINK bigs") == [("reads big",), ("writes topic bigs, upsert by key",), (live,)]
    by_hand = f"CREATE SINK x FROM big INTO KAFKA CONNECTION kafka (TOPIC 'x') KEY (key) {AVRO} WITH (LATENCY = 'micro-batch')"
    assert shop.rows(f"EXPLAIN {by_hand}")[-1] == ("runs in micro-batches, because LATENCY says so",)
    each = f"CREATE SINK x FROM big INTO KAFKA CONNECTION kafka (TOPIC 'x') {AVRO} ENVELOPE NONE"
    assert shop.rows(f"EXPLAIN {each}")[1] == ("writes topic x, one record for each row",)
    assert isinstance(shop.failure("EXPLAIN SOURCE orders"), NotSupportedYet)
    assert "x" not in shop.topics


def test_explain_schema_is_one_json_text_and_registers_nothing(shop: Shell) -> None:
    assert shop.names("EXPLAIN KEY SCHEMA FOR SINK bigs") == ["schema"]
    ((stored,),) = shop.rows("EXPLAIN VALUE SCHEMA FOR SINK bigs")
    statement = f"CREATE SINK x FROM big INTO KAFKA CONNECTION kafka (TOPIC 'unmade') KEY (key) {AVRO}"
    ((planned,),) = shop.rows(f"EXPLAIN VALUE SCHEMA FOR {statement}")
    assert json.loads(str(planned)) == json.loads(str(stored))
    assert json.loads(str(planned))["name"] == "envelope"
    assert "unmade" not in shop.topics
    assert not [s for s in shop.registry.subjects() if s.startswith("unmade")]


def test_a_side_without_schema_has_none_to_explain(shop: Shell) -> None:
    sink = "CREATE SINK x FROM big INTO KAFKA CONNECTION kafka (TOPIC 'x') FORMAT JSON ENVELOPE NONE"
    for side in ("KEY", "VALUE"):
        error = shop.failure(f"EXPLAIN {side} SCHEMA FOR {sink}")
        assert isinstance(error, SideWithoutSchema)
        assert error.message() == f'the {side.lower()} of sink "x" has no schema'


def test_looking_changes_nothing(shop: Shell) -> None:
    before = shop.version
    assert shop.run("SHOW VIEWS")[-1] == Done("SHOW")
    shop.run("DESCRIBE orders; EXPLAIN SELECT 1 AS one; SHOW CREATE VIEW big; SHOW LINEAGE FOR big")
    assert shop.version == before
