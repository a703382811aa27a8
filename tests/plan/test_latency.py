"""Which way a sink runs, and why."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.objects import definition_of
from headgate.plan.chain import chain_of
from headgate.plan.definitions import Latency
from headgate.plan.latency import ASKED, NO_KEY, NORMAL, choose_latency
from headgate.plan.sink import plan_sink
from headgate.plan.sink_errors import RealTimeImpossible
from headgate.plan.source import plan_source
from headgate.resolve.statements import object_id, resolve_names
from headgate.schema.written import SchemaFormat
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from tests.plan.planning import AVRO, TO, Planning, record

pytestmark = pytest.mark.unit

FROM = "FROM KAFKA CONNECTION kafka"


@pytest.fixture
def world() -> Planning:
    """`orders` is keyed by id, `sold` is the same without a key, `documents` is JSON."""
    world = Planning()
    value = record("order", ("item", "string"), ("price", "double"))
    world.topic("orders", key=record("k", ("id", "long")), value=value)
    world.topic("documents")
    world.do(
        f"CREATE SOURCE orders {FROM} (TOPIC 'orders') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE sold {FROM} (TOPIC 'orders') {AVRO};"
        f"CREATE SOURCE documents {FROM} (TOPIC 'documents') FORMAT JSON;"
        f"CREATE SOURCE lines {FROM} (TOPIC 'documents') FORMAT TEXT ENVELOPE UPSERT"
    )
    return world


def latency(world: Planning, text: str) -> Latency:
    statement = parse_statement(f"CREATE SINK s {text}")
    assert isinstance(statement, CreateSink)
    resolved = resolve_names(statement, world.catalog, world.path)
    sink, chain = plan_sink(world.catalog, resolved), chain_of(world.catalog, object_id(resolved.relation))
    layout = plan_source(definition_of(chain.source, CreateSource))
    return choose_latency(world.catalog, resolved, sink, layout, chain)


def test_a_sink_with_a_key_runs_in_real_time(world: Planning) -> None:
    assert latency(world, f"FROM orders {TO} KEY (id) {AVRO}") == Latency("real time", NORMAL)
    assert latency(world, f"FROM lines {TO} KEY (key) FORMAT JSON") == Latency("real time", NORMAL)
    assert latency(world, f"FROM sold {TO} KEY (item) NOT ENFORCED FORMAT JSON") == Latency("real time", NORMAL)
    asked = f"FROM orders {TO} KEY (id) {AVRO} WITH (LATENCY = 'real time')"
    assert latency(world, asked) == Latency("real time", ASKED)


def test_views_that_filter_and_project_run_in_real_time(world: Planning) -> None:
    world.do(
        "CREATE VIEW dear AS SELECT id, upper(item) AS what FROM orders WHERE price >= 100;"
        "CREATE VIEW few AS SELECT what, id AS number FROM dear WHERE id > 3"
    )
    assert latency(world, f"FROM few {TO} KEY (number) FORMAT JSON").way == "real time"


def test_a_condition_on_a_computed_column_needs_a_join_for_deletes(world: Planning) -> None:
    world.do(
        "CREATE VIEW loud AS SELECT id, upper(item) AS what FROM orders;CREATE VIEW a AS SELECT * FROM loud WHERE what > 'A'"
    )
    found = latency(world, f"FROM a {TO} KEY (id) FORMAT JSON")
    assert found.way == "micro-batch"
    assert "deletes need a join" in found.reason


def test_a_sink_without_a_key_runs_in_real_time_only_if_asked(world: Planning) -> None:
    assert latency(world, f"FROM sold {TO} FORMAT JSON") == Latency("micro-batch", NO_KEY)
    asked = f"FROM sold {TO} FORMAT JSON WITH (LATENCY = 'real time')"
    assert latency(world, asked) == Latency("real time", ASKED)
    told = latency(world, f"FROM documents {TO} FORMAT JSON")
    assert told == Latency("micro-batch", 'Python workers decode the value of source "documents", which is JSON')


def test_latency_decides_by_hand(world: Planning) -> None:
    by_hand = f"FROM orders {TO} KEY (id) {AVRO} WITH (LATENCY = 'micro-batch')"
    assert latency(world, by_hand) == Latency("micro-batch", ASKED)


@pytest.mark.parametrize("format_", [SchemaFormat.JSON, SchemaFormat.PROTOBUF])
def test_formats_that_python_decodes_run_in_micro_batches(world: Planning, format_: SchemaFormat) -> None:
    texts = {
        SchemaFormat.JSON: json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}),
        SchemaFormat.PROTOBUF: 'syntax = "proto3"; message m { int64 a = 1; }',
    }
    words = {SchemaFormat.JSON: "JSON SCHEMA", SchemaFormat.PROTOBUF: "PROTOBUF"}[format_]
    world.topic("others")
    world.outside.add_subject("others-value", texts[format_], format_)
    world.do(
        f"CREATE SOURCE others {FROM} (TOPIC 'others') FORMAT {words} USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    )
    found = latency(world, f"FROM others {TO} KEY (a) NOT ENFORCED FORMAT JSON")
    assert found.way == "micro-batch"
    assert "Python workers decode the value" in found.reason


def test_what_real_time_cannot_do_is_refused_where_it_was_asked_for(world: Planning) -> None:
    with pytest.raises(RealTimeImpossible) as refused:
        latency(world, f"FROM documents {TO} FORMAT JSON WITH (LATENCY = 'real time')")
    assert 'the value of source "documents", which is JSON' in refused.value.reason
    world.do("CREATE VIEW timed AS SELECT id, now() AS seen FROM orders")
    with pytest.raises(RealTimeImpossible) as refused:
        latency(world, f"FROM timed {TO} KEY (id) FORMAT JSON WITH (LATENCY = 'real time')")
    assert 'column "seen" is computed by' in refused.value.reason
    assert latency(world, f"FROM timed {TO} KEY (id) FORMAT JSON").way == "micro-batch"


def test_a_key_whose_bytes_depend_on_the_version_of_java_is_written_by_workers(world: Planning) -> None:
    found = latency(world, f"FROM sold {TO} KEY (price) NOT ENFORCED FORMAT JSON")
    assert found == Latency(
        "micro-batch", "its key has numbers of type real or double, whose texts Python workers write"
    )
    assert latency(world, f"FROM sold {TO} KEY (price) NOT ENFORCED {AVRO}") == Latency("real time", NORMAL)
