"""Names get the ids of their objects once; definitions are printed, and compared, by these ids."""

from __future__ import annotations

import pytest

from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import Object
from headgate.catalog.store.codec import from_json, to_json
from headgate.errors import InternalError
from headgate.resolve.definitions import differences, with_current_names
from headgate.resolve.statements import object_id, resolve_names, resolve_statement
from headgate.schema.types import Named
from headgate.sql.objects import CreateType, ListBody
from headgate.sql.script import parse_statement
from headgate.sql.show import Describe, ExplainSchema, ShowObjects
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Create, ObjectName
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier
from tests.plan.planning import Planning, record

pytestmark = pytest.mark.unit

ORDER = record("o", ("id", "long"), ("price", "double"))
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
SOURCE = f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO}"
SINK = f"CREATE SINK out FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'out') {AVRO}"


@pytest.fixture
def world() -> Planning:
    world = Planning()
    world.topic("orders", value=ORDER)
    world.do(SOURCE)
    return world


def create(text: str) -> Create:
    statement = parse_statement(text)
    assert isinstance(statement, Create)
    return statement


def resolved(world: Planning, text: str) -> Create:
    return resolve_names(create(text), world.catalog, world.path)


def definition(world: Planning, name: str) -> Create:
    found = world.named(name).definition
    assert found is not None
    return found


def printed(world: Planning, entry: Object) -> str:
    assert entry.definition is not None
    return with_current_names(world.catalog, entry, entry.definition).sql()


def test_every_name_of_another_object_carries_its_id(world: Planning) -> None:
    sink = resolved(world, SINK)
    assert isinstance(sink, CreateSink)
    assert object_id(sink.relation) == world.named("orders").id
    assert object_id(sink.kafka.connection) == world.named("kafka").id  # type: ignore[union-attr]
    assert sink.name.id is None
    with pytest.raises(InternalError):
        object_id(sink.name)


def test_a_name_that_means_nothing_is_an_error_or_is_left_alone(world: Planning) -> None:
    text = SINK.replace("FROM orders", "FROM nowhere")
    with pytest.raises(UnknownObject) as caught:
        resolved(world, text)
    assert caught.value.span is not None
    sink = resolve_names(create(text), world.catalog, world.path, must_exist=False)
    assert isinstance(sink, CreateSink)
    assert (sink.relation.id, object_id(sink.kafka.connection)) == (None, world.named("kafka").id)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TYPE size AS (height doble)",
        "CREATE TABLE t (id text PRIMARY KEY, sizes array<doble>) WITH (format = 'avro')",
        "CREATE MATERIALIZATION m FROM orders INTO ON DEMAND FIELDS (id text, price doble)",
    ],
)
def test_a_mistyped_type_is_underlined_and_built_in_ones_are_near(world: Planning, text: str) -> None:
    with pytest.raises(UnknownObject) as caught:
        resolved(world, text)
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == "doble"
    assert caught.value.hint() == 'Did you mean "double"?'


def test_a_resolved_statement_does_not_depend_on_the_search_path_any_more(world: Planning) -> None:
    once = resolved(world, SINK)
    assert resolve_names(once, world.catalog, SearchPath((("headgate", "nowhere"),))) is once
    assert from_json(to_json(once)) == once


@pytest.mark.parametrize(
    "text",
    [
        "ALTER SOURCE orders RENAME TO sales",
        "ALTER SOURCE IF EXISTS orders ACCEPT SCHEMA CHANGE",
        "ALTER SOURCE orders RENAME COLUMN id TO number",
        "DROP SOURCE IF EXISTS orders",
        "COMMENT ON SOURCE orders IS 'x'",
        "COMMENT ON COLUMN public.orders.id IS 'x'",
        "SHOW CREATE SOURCE orders",
        "SHOW LINEAGE FOR orders",
        "DESCRIBE SOURCE orders",
        "DESCRIBE orders",
        "REPLAY QUARANTINE FOR orders",
    ],
)
def test_a_statement_about_an_object_carries_the_id_of_it(world: Planning, text: str) -> None:
    found = resolve_statement(parse_statement(text), world.context())
    assert found.name.id == world.named("orders").id  # type: ignore[attr-defined]
    unknown = parse_statement(text.replace("orders", "nowhere").replace("IF EXISTS ", ""))
    with pytest.raises(UnknownObject):
        resolve_statement(unknown, world.context())


def test_if_exists_leaves_the_name_of_a_missing_object_without_an_id(world: Planning) -> None:
    for text in ("DROP VIEW IF EXISTS v", "ALTER SECRET IF EXISTS s AS 'x'", "DROP SCHEMA IF EXISTS s"):
        statement = parse_statement(text)
        assert resolve_statement(statement, world.context()) == statement
        assert world.skip(text).notice.endswith("does not exist, skipped")


def test_a_system_relation_has_its_full_name_and_no_id(world: Planning) -> None:
    world.path = SearchPath((("headgate", "headgate_catalog"),))
    found = resolve_statement(parse_statement("DESCRIBE Tasks"), world.context())
    assert isinstance(found, Describe)
    assert (str(found.name), found.name.id) == ("headgate_catalog.tasks", None)


def test_a_listing_and_a_schema_of_a_sink_carry_ids(world: Planning) -> None:
    world.do(SINK)
    listing = resolve_statement(parse_statement("SHOW SOURCES FROM public"), world.context())
    schema = resolve_statement(parse_statement("EXPLAIN VALUE SCHEMA FOR SINK out"), world.context())
    assert isinstance(listing, ShowObjects)
    assert isinstance(schema, ExplainSchema)
    assert isinstance(schema.sink, ObjectName)
    assert listing.within is not None
    assert (listing.within.id, schema.sink.id) == (world.named("public").id, world.named("out").id)


def test_names_are_equal_by_their_ids_or_by_their_spelling() -> None:
    a, b = (Identifier("a"),), (Identifier("b"),)
    assert ObjectName(a, 7) == ObjectName(b, 7)
    assert hash(ObjectName(a, 7)) == hash(ObjectName(b, 7))
    assert ObjectName(a) == ObjectName(a)
    assert ObjectName(a) != ObjectName(a, 7)


def test_types_are_stored_with_full_names_and_printed_with_short_ones(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer); CREATE TYPE line AS LIST (ELEMENT TYPE = public.point)")
    line = definition(world, "line")
    assert isinstance(line, CreateType)
    assert line.body == ListBody(Named(("headgate", "public", "point")))
    assert printed(world, world.named("line")) == "CREATE TYPE line AS LIST (ELEMENT TYPE = point)"
    world.do("ALTER TYPE point RENAME TO spot")
    assert printed(world, world.named("line")) == "CREATE TYPE line AS LIST (ELEMENT TYPE = spot)"


def test_a_query_stores_its_text_once_and_what_each_name_means(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer)")
    world.do("CREATE VIEW v AS SELECT orders.id, ROW(1)::point AS p FROM orders")
    view = definition(world, "v")
    assert isinstance(view, CreateView)
    orders = world.named("orders").id
    found = [(view.query.text[r.start : r.end], r.name.id, r.of) for r in view.query.references]
    assert found == [
        ("orders", orders, found[1][2] or view.query.text.rindex("orders")),
        ("orders", orders, None),
    ]
    assert [view.query.text[t.start : t.end] for t in view.query.types] == ["point"]
    text = view.query.text
    world.do("ALTER SOURCE orders RENAME TO sales; ALTER TYPE point RENAME TO spot")
    after = definition(world, "v")
    assert isinstance(after, CreateView)
    assert after.query.text == text
    assert printed(world, world.named("v")).endswith("SELECT sales.id, ROW(1)::spot AS p FROM sales")


def test_a_view_of_a_system_relation_found_by_the_search_path_goes_on_under_another(world: Planning) -> None:
    world.path = SearchPath((("headgate", "public"), ("headgate", "information_schema")))
    world.do("CREATE VIEW t AS SELECT table_name FROM tables")
    world.path = DEFAULT_PATH
    assert printed(world, world.named("t")).endswith("SELECT table_name FROM information_schema.tables")
    world.do("CREATE VIEW again AS SELECT * FROM t")


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        (SINK, ()),
        (SINK.replace("out FROM orders", '"other" FROM public."orders"'), ()),
        (SINK.replace("TOPIC 'out'", "TOPIC 'in'"), ("topic or connection",)),
        (SINK.replace("FROM orders", "FROM nowhere"), ("relation",)),
        (SINK + " WITH (SNAPSHOT = true)", ()),
        (SINK + " WITH (SNAPSHOT = false)", ("WITH options",)),
    ],
)
def test_two_statements_differ_where_they_mean_something_else(
    world: Planning, wanted: str, parts: tuple[str, ...]
) -> None:
    other = resolve_names(create(wanted), world.catalog, world.path, must_exist=False)
    assert differences(resolved(world, SINK), other) == parts


def test_docs_are_compared_by_what_they_mean_and_frozen_ones_are_no_difference(world: Planning) -> None:
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    sink = f"CREATE SINK out FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'out') {avro}"
    column = world.named("orders").columns[0].name
    world.do(f"COMMENT ON SOURCE orders IS 'frozen'; {sink} (DOC ON COLUMN orders.{column} = 'x')")
    same = f"{sink} (DOC ON COLUMN public.orders.{column.upper()} = 'x')"
    other = f"{sink} (DOC ON COLUMN orders.{column} = 'y')"
    found = [differences(definition(world, "out"), resolved(world, text)) for text in (same, other, sink)]
    assert found == [(), ("format",), ("format",)]
