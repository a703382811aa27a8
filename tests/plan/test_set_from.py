"""ALTER SINK … SET FROM: what becomes of the sink's schemas, its dependencies and its topic."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.changes import apply
from headgate.catalog.errors import InUse, UnknownColumn, UnknownObject
from headgate.catalog.objects import DependencyKind
from headgate.control.definitions import task_definition
from headgate.plan.definitions import DefinitionName
from headgate.plan.impact import plan_follow
from headgate.plan.plans import RegisterSchema
from headgate.plan.sink_errors import SinkFeedsItself, SinkNeedsKey
from headgate.schema.written import WrittenSchema
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.plan.planning import AVRO, TO, Planning, record

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    world = Planning()
    for topic in ("orders", "returns"):
        world.topic(topic, key=record("k", ("id", "int")), value=record("order", ("item", "string"), ("n", "int")))
        source = f"FROM KAFKA CONNECTION kafka (TOPIC '{topic}') {AVRO}"
        world.do(f"CREATE SOURCE {topic} {source} ENVELOPE UPSERT; CREATE SOURCE {topic}_log {source}")
    world.do("CREATE VIEW few AS SELECT id, item FROM orders; CREATE VIEW more AS SELECT *, n AS number FROM orders")
    return world


def definition(world: Planning) -> DefinitionName:
    return DefinitionName.of(task_definition(world.catalog, world.named("s", Kind.SINK)).definition)


def test_a_keyed_sink_is_brought_in_step_with_another_view_of_its_source(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM few {TO} KEY (id) {AVRO}")
    before = definition(world)
    (planned,) = world.do("ALTER SINK s SET FROM more")
    made = world.named("s", Kind.SINK)
    assert [d.on for d in made.dependencies if d.use is DependencyKind.READS] == [world.named("more").id]
    (register,) = [e for e in planned.effects if isinstance(e, RegisterSchema)]
    added = [f for f in json.loads(register.schema.text)["fields"] if f["name"] in ("n", "number")]
    assert [f["name"] for f in added] == ["n", "number"]
    assert "brought in step" in planned.notices[-1]
    after = definition(world)
    assert after.keys == before.keys
    assert after.rows != before.rows


def test_nullable_columns_that_come_with_the_relation_have_the_default_null(world: Planning) -> None:
    world.do(
        f"CREATE SINK s FROM few {TO} KEY (id) {AVRO};"
        "CREATE VIEW wide AS SELECT id, item, nullif(n, 0) AS n FROM orders; COMMENT ON COLUMN wide.item IS 'goods'"
    )
    (planned,) = world.do("ALTER SINK s SET FROM wide")
    (register,) = planned.effects
    assert isinstance(register, RegisterSchema)
    assert json.loads(register.schema.text)["fields"] == [
        {"name": "id", "type": "int"},
        {"name": "item", "type": "string", "doc": "goods"},
        {"name": "n", "type": ["null", "int"], "default": None},
    ]


def test_a_relation_over_another_source_writes_all_keys_anew(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders {TO} KEY (id) {AVRO}")
    before = definition(world)
    (planned,) = world.do("ALTER SINK s SET FROM returns")
    assert planned.effects == ()
    assert "is written anew" in planned.notices[-1]
    assert definition(world).keys != before.keys


def test_a_key_that_widened_is_accepted_by_the_same_relation(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders {TO} KEY (id) {AVRO}")
    before = definition(world)
    long = WrittenSchema(json.dumps(record("k", ("id", "long"))), id=90)
    source = world.named("orders")
    followed = plan_follow(world.catalog, source, [("KEY", long)], world.context().answers.types)
    world.catalog = apply(world.catalog, *followed.changes)
    (planned,) = world.do("ALTER SINK s SET FROM orders")
    assert [e.subject for e in planned.effects if isinstance(e, RegisterSchema)] == ["out-key", "out-value"]
    assert "is written anew" in planned.notices[-1]
    assert definition(world).keys != before.keys


def test_an_append_sink_goes_on_over_its_source_and_begins_anew_over_another(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders_log {TO} FORMAT JSON; CREATE VIEW items AS SELECT item FROM orders_log")
    (planned,) = world.do("ALTER SINK s SET FROM items")
    assert "goes on with the relation from where it is" in planned.notices[-1]
    (planned,) = world.do("ALTER SINK s SET FROM returns_log")
    assert "from its start" in planned.notices[-1]


def test_without_a_snapshot_another_source_is_read_from_its_present_end(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders_log {TO} FORMAT JSON WITH (SNAPSHOT = false)")
    world.outside.topics["returns"] = 3
    (planned,) = world.do("ALTER SINK s SET FROM returns_log")
    assert "from its present end" in planned.notices[-1]
    made = world.named("s", Kind.SINK).definition
    assert isinstance(made, CreateSink)
    assert made.with_options.seed_offset == (10, 10, 10)


def test_another_doc_of_a_key_is_published_and_no_record_uses_it(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM few {TO} KEY (id) {AVRO}; CREATE VIEW same AS SELECT id, item FROM orders")
    world.do("COMMENT ON COLUMN same.id IS 'its number'")
    before = definition(world)
    (planned,) = world.do("ALTER SINK s SET FROM same")
    key, value = [e for e in planned.effects if isinstance(e, RegisterSchema)]
    assert key.subject == "out-key"
    assert json.loads(key.schema.text)["fields"] == [{"name": "id", "type": "int", "doc": "its number"}]
    assert value.subject == "out-value"
    assert definition(world).keys == before.keys
    assert "brought in step" in planned.notices[-1]
    assert "nothing has changed" in world.skip("ALTER SINK s SET FROM same").notice


def test_a_relation_whose_old_rows_the_sink_needs_is_read_from_a_stored_copy(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders_log {TO} FORMAT JSON ENVELOPE DEBEZIUM")
    for relation in ("orders", "returns"):
        (planned,) = world.do(f"ALTER SINK s SET FROM {relation}")
        assert planned.notices[0].startswith(f'materialized view "{relation}_rows" is created too')
        copy = world.named(f"{relation}_rows")
        assert task_definition(world.catalog, world.named("s", Kind.SINK)).source.id == copy.id
        with pytest.raises(InUse):
            world.plan(f"DROP MATERIALIZED VIEW {relation}_rows")
    world.do("DROP MATERIALIZED VIEW orders_rows; ALTER SINK s SET FROM orders_log")
    assert task_definition(world.catalog, world.named("s", Kind.SINK)).source.id == world.named("orders_log").id


def test_what_changes_nothing_is_passed_over(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders {TO} KEY (id) {AVRO}")
    assert "reads this relation already" in world.skip("ALTER SINK s SET FROM orders").notice
    assert world.skip("ALTER SINK IF EXISTS nosuch SET FROM orders").tag == "ALTER SINK"


def test_the_relation_must_fit_the_sink(world: Planning) -> None:
    world.do(f"CREATE SINK s FROM orders {TO} KEY (id) {AVRO}; CREATE VIEW items AS SELECT item FROM orders_log")
    with pytest.raises(UnknownColumn):
        world.plan("ALTER SINK s SET FROM items")
    with pytest.raises(UnknownObject):
        world.plan("ALTER SINK s SET FROM nosuch")
    world.do("CREATE SINK t FROM orders_log INTO KAFKA CONNECTION kafka (TOPIC 't') FORMAT JSON")
    with pytest.raises(SinkNeedsKey):
        world.plan("ALTER SINK t SET FROM orders")


def test_a_sink_may_not_be_set_from_its_own_topic(world: Planning) -> None:
    world.topic("out", value=record("v", ("item", "string")))
    world.do(
        f"CREATE SINK s FROM orders_log {TO} FORMAT JSON;"
        f"CREATE SOURCE back FROM KAFKA CONNECTION kafka (TOPIC 'out') {AVRO}"
    )
    with pytest.raises(SinkFeedsItself):
        world.plan("ALTER SINK s SET FROM back")
