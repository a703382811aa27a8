"""ALTER … RENAME TO of what others use: everything goes on under the new name, and every statement says it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import ObjectRenamed
from headgate.catalog.errors import AlreadyExists
from headgate.catalog.names import DEFAULT_PATH, SearchPath, search_path
from headgate.catalog.objects import Object, definition_of
from headgate.catalog.secrets import Secret
from headgate.control.apply import desired_state
from headgate.control.show import create_sql
from headgate.errors import HeadgateError
from headgate.plan.chain import view_query
from headgate.plan.errors import NameShadowed
from headgate.plan.relations import relations_read
from headgate.plan.sink import plan_sink
from headgate.schema.render import print_type
from headgate.sql.script import parse_script
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.plan.planning import Planning, record

pytestmark = pytest.mark.unit

ORDER = record("o", ("id", "long"), ("price", "double"))
SOURCE = """CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders')
  FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;"""


@pytest.fixture
def world() -> Planning:
    """orders -> dear -> sink out"""
    world = Planning()
    world.topic("orders", value=ORDER)
    world.do(SOURCE)
    world.do(
        "CREATE VIEW dear AS SELECT orders.id, price FROM orders WHERE orders.price > 8;"
        "CREATE SINK out FROM dear INTO KAFKA CONNECTION kafka (TOPIC 'out')"
        " FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    )
    return world


def shown(world: Planning, name: str, *kinds: Kind) -> str:
    return create_sql(world.catalog, world.named(name, *kinds))


def view(world: Planning, query: str) -> None:
    world.do(f"CREATE VIEW v AS {query}")


def query_of(world: Planning, name: str = "v") -> str:
    return shown(world, name, Kind.VIEW).partition(" AS\n")[2].removesuffix(";")


# what is used


def test_a_source_under_a_view_under_a_sink(world: Planning) -> None:
    source, dear = world.named("orders"), world.named("dear")
    (planned,) = world.do("ALTER SOURCE orders RENAME TO sales")
    assert [type(c) for c in planned.changes] == [ObjectRenamed]
    assert query_of(world, "dear") == "SELECT sales.id, price FROM sales WHERE sales.price > 8"
    assert world.named("dear").columns == dear.columns
    assert relations_read(view_query(world.catalog, world.named("dear"))) == (source.id,)
    assert shown(world, "sales").startswith("CREATE SOURCE sales")


def test_a_connection_of_sources_and_sinks(world: Planning) -> None:
    world.do("ALTER CONNECTION kafka RENAME TO bus; ALTER CONNECTION registry RENAME TO schemas")
    for name in ("orders", "out"):
        assert "KAFKA CONNECTION bus" in shown(world, name)
        assert "REGISTRY CONNECTION schemas" in shown(world, name)
    sink = definition_of(world.named("out"), CreateSink)
    assert plan_sink(world.catalog, sink).connection == world.named("bus").id


def test_a_secret_of_a_connection(world: Planning) -> None:
    world.do("CREATE SECRET s AS 'x'; CREATE CONNECTION c TO KAFKA (BROKER 'b', SASL PASSWORD SECRET s)")
    world.do("ALTER SECRET s RENAME TO word")
    assert "SECRET word" in shown(world, "c")
    assert shown(world, "word").startswith("CREATE SECRET word ")


def test_a_type_in_a_column_and_in_a_cast(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer); CREATE TYPE line AS (a point, b point[])")
    view(world, "SELECT ROW(1)::point AS p, CAST(NULL AS point[]) AS ps FROM orders")
    before = world.named("v").columns
    world.do("ALTER TYPE point RENAME TO spot")
    assert query_of(world) == "SELECT ROW(1)::spot AS p, CAST(NULL AS array<spot>) AS ps FROM orders"
    assert "a spot" in shown(world, "line")
    assert "point" not in shown(world, "line")
    assert [(c.name, c.id) for c in world.named("v").columns] == [(c.name, c.id) for c in before]


def test_a_type_that_a_query_names_cannot_be_dropped(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer)")
    view(world, "SELECT ROW(1)::point AS p FROM orders")
    with pytest.raises(HeadgateError) as caught:
        world.plan("DROP TYPE point")
    assert 'view "v"' in str(caught.value.detail())


def test_a_schema_that_holds_what_others_use(world: Planning) -> None:
    world.do("CREATE SCHEMA shop; CREATE TYPE shop.t AS (x integer)")
    world.do("CREATE VIEW shop.v AS SELECT id FROM orders; CREATE VIEW w AS SELECT shop.v.id FROM shop.v")
    world.do("ALTER SCHEMA shop RENAME TO store")
    assert shown(world, "v").startswith("CREATE VIEW store.v AS")
    assert query_of(world, "w") == "SELECT store.v.id FROM store.v"


def test_a_schema_of_a_views_search_path(world: Planning) -> None:
    world.do("CREATE SCHEMA shop; CREATE VIEW shop.a AS SELECT id FROM orders")
    shop = parse_script("SET search_path = shop")[0]
    world.path = SearchPath((("headgate", "shop"), ("headgate", "public")))
    world.do("CREATE VIEW b AS SELECT * FROM a")
    world.do("ALTER SCHEMA shop RENAME TO store")
    b = world.named("b")
    assert query_of(world, "b") == "SELECT * FROM store.a"
    assert relations_read(view_query(world.catalog, b)) == (world.named("a").id,)
    with pytest.raises(HeadgateError):
        search_path(world.catalog, DEFAULT_PATH, shop.path)  # type: ignore[attr-defined]


@pytest.mark.parametrize("what", ["SCHEMA public", "DATABASE headgate"])
def test_the_schema_and_database_of_everything(world: Planning, what: str) -> None:
    world.do(f"ALTER {what} RENAME TO other")
    source, dear = world.named("orders"), world.named("dear")
    assert relations_read(view_query(world.catalog, dear)) == (source.id,)
    sink = plan_sink(world.catalog, definition_of(world.named("out"), CreateSink))
    assert (sink.relation, sink.connection) == (dear.id, world.named("kafka").id)


def test_a_sink_without_a_name_keeps_its_name_when_its_relation_is_renamed(world: Planning) -> None:
    world.do("CREATE SINK FROM dear INTO KAFKA CONNECTION kafka (TOPIC 'two') FORMAT JSON")
    assert shown(world, "dear_sink").startswith("CREATE SINK dear_sink\nFROM dear")
    world.do("ALTER VIEW dear RENAME TO costly")
    assert shown(world, "dear_sink").startswith("CREATE SINK dear_sink\nFROM costly")


def test_names_are_swapped(world: Planning) -> None:
    world.topic("others", value=ORDER)
    world.do(SOURCE.replace("orders", "others"))
    ids = world.named("orders").id, world.named("others").id
    view(world, "SELECT orders.id, o.price FROM orders JOIN others AS o ON o.id = orders.id")
    world.do(
        "ALTER SOURCE orders RENAME TO tmp; ALTER SOURCE others RENAME TO orders; ALTER SOURCE tmp RENAME TO others"
    )
    assert query_of(world) == "SELECT others.id, o.price FROM others JOIN orders AS o ON o.id = others.id"
    assert relations_read(view_query(world.catalog, world.named("v"))) == ids


# how queries are rewritten


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT orders.* FROM orders", "SELECT sales.* FROM sales"),
        ("SELECT public.orders.id FROM public.orders", "SELECT public.sales.id FROM public.sales"),
        ("SELECT ORDERS.id FROM Orders", "SELECT sales.id FROM sales"),
        ('SELECT "orders"."id" FROM "orders"', 'SELECT sales."id" FROM sales'),
        ("SELECT orders.id FROM orders AS orders", "SELECT orders.id FROM sales AS orders"),
        (
            "SELECT a.id FROM orders a JOIN orders b USING (id)",
            "SELECT a.id FROM sales a JOIN sales b USING (id)",
        ),
        (
            "WITH orders AS (SELECT id FROM orders) SELECT orders.id FROM orders",
            "WITH orders AS (SELECT id FROM sales) SELECT orders.id FROM orders",
        ),
        (
            "SELECT id, 'orders' AS orders -- orders\nFROM /* orders */ orders",
            "SELECT id, 'orders' AS orders -- orders\nFROM /* orders */ sales",
        ),
        (
            "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM dear WHERE dear.id = orders.id)",
            "SELECT id FROM sales WHERE EXISTS (SELECT 1 FROM dear WHERE dear.id = sales.id)",
        ),
        (
            "SELECT orders.id, count(*) AS n FROM orders GROUP BY orders.id HAVING max(orders.price) > 1"
            " ORDER BY orders.id",
            "SELECT sales.id, count(*) AS n FROM sales GROUP BY sales.id HAVING max(sales.price) > 1 ORDER BY sales.id",
        ),
        (
            "SELECT id FROM orders UNION ALL SELECT id FROM orders",
            "SELECT id FROM sales UNION ALL SELECT id FROM sales",
        ),
    ],
)
def test_names_of_the_relation_are_rewritten_and_nothing_else(world: Planning, query: str, expected: str) -> None:
    view(world, query)
    world.do("ALTER SOURCE orders RENAME TO sales")
    assert query_of(world) == expected


@pytest.mark.parametrize(
    ("new", "written"),
    [
        ('"my orders"', '"my orders"'),
        ('"select"', '"select"'),
        ('"a""b"', '"a""b"'),
        ("MixedCase", "MixedCase"),
        ('"Örders"', '"Örders"'),
        ('"a.b"', '"a.b"'),
        ("window", '"window"'),
    ],
)
def test_names_that_need_quotes_get_them(world: Planning, new: str, written: str) -> None:
    world.do(f"ALTER SOURCE orders RENAME TO {new}")
    assert query_of(world, "dear") in {
        f"SELECT {w}.id, price FROM {w} WHERE {w}.price > 8" for w in (written, written.strip('"'))
    }
    parse_script(shown(world, "dear"))
    world.do(f"ALTER SOURCE {new} RENAME TO orders")
    assert query_of(world, "dear").replace('"', "") == "SELECT orders.id, price FROM orders WHERE orders.price > 8"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT orders.id, sales.id AS other FROM orders, dear AS sales",
        "WITH sales AS (SELECT 1 AS one) SELECT orders.id FROM orders, sales",
        "SELECT (SELECT max(sales.id + orders.id) FROM orders) AS m FROM dear AS sales",
    ],
)
def test_a_name_that_would_mean_something_else_is_refused(world: Planning, query: str) -> None:
    view(world, query)
    before = world.catalog
    with pytest.raises(NameShadowed) as caught:
        world.do("ALTER SOURCE orders RENAME TO sales")
    assert 'view "v"' in caught.value.message()
    assert "alias" in str(caught.value.hint())
    assert world.catalog is before


def test_a_renamed_relation_does_not_catch_the_names_of_others(world: Planning) -> None:
    world.do("CREATE SCHEMA first; CREATE VIEW first.x AS SELECT 1 AS one")
    world.path = SearchPath((("headgate", "first"), ("headgate", "public")))
    view(world, "SELECT orders.id FROM orders")
    world.do("ALTER VIEW first.x RENAME TO orders")
    source = next(o for o in world.catalog.of_kind(Kind.SOURCE))
    assert relations_read(view_query(world.catalog, world.named("v"))) == (source.id,)
    assert query_of(world) == "SELECT orders.id FROM orders"


# what may be said


def test_a_name_in_use_is_refused_in_any_case(world: Planning) -> None:
    for new in ("dear", "DEAR", '"dear"'):
        with pytest.raises(AlreadyExists):
            world.do(f"ALTER SOURCE orders RENAME TO {new}")
    world.do('ALTER SOURCE orders RENAME TO "DEAR"')
    assert query_of(world, "dear") == "SELECT DEAR.id, price FROM DEAR WHERE DEAR.price > 8"


def test_its_own_name_is_passed_over(world: Planning) -> None:
    planned = world.skip("ALTER SOURCE orders RENAME TO orders")
    assert "has this name already" in planned.notice


# what depends on it


def test_a_rename_keeps_definitions_and_a_replacement_does_not(world: Planning) -> None:
    definitions = {name: world.named(name).definition for name in ("dear", "out")}
    world.do("ALTER SOURCE orders RENAME TO sales; ALTER CONNECTION kafka RENAME TO bus; ALTER VIEW dear RENAME TO d")
    assert world.named("d").definition == definitions["dear"]
    assert world.named("out").definition == definitions["out"]
    world.do("CREATE OR REPLACE VIEW d AS SELECT id, price FROM sales WHERE price > 9")
    assert world.named("d").definition != definitions["dear"]


def test_a_script_with_the_new_names_finds_nothing_to_do(world: Planning) -> None:
    world.do("CREATE TYPE point AS (x integer); CREATE TYPE line AS (a point)")
    view(world, "SELECT ROW(1)::point AS p, orders.id FROM orders")
    world.do(
        'ALTER SOURCE orders RENAME TO "Sales"; ALTER TYPE point RENAME TO spot; ALTER CONNECTION kafka RENAME TO bus'
    )
    script = """CREATE TYPE spot AS (x integer); CREATE TYPE line AS (a spot);
        CREATE SOURCE "Sales" FROM KAFKA CONNECTION bus (TOPIC 'orders')
          FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;
        CREATE VIEW dear AS SELECT "Sales".id, price FROM "Sales" WHERE sales.price > 8;
        CREATE VIEW v AS SELECT ROW(1)::spot AS p, Sales.id FROM sales;"""
    items = desired_state(world.catalog, script, _no_secrets).items
    assert {item.action for item in items} == {"keep"}


def _no_secrets(_catalog: Catalog, _secret: Object) -> Secret:
    raise AssertionError


# the law

NAMES = [
    "orders",
    "dear",
    "a",
    "b",
    "id",
    "Price",
    "select",
    "my name",
    'q"q',
    "kafka",
    "window",
    "ö",
    "x.y",
    "if",
]
RENAMES = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(NAMES)), max_size=8)


@given(RENAMES)
@settings(deadline=None, max_examples=40)
def test_after_any_renames_all_statements_parse_and_all_views_give_the_same_columns(
    renames: list[tuple[int, str]],
) -> None:
    world = _busy_world()
    before = {o.id: _columns(world, o) for o in world.catalog.of_kind(Kind.VIEW)}
    for number, name in renames:
        found = list(world.catalog.objects.values())
        target = found[number % len(found)]
        quoted = name.replace('"', '""')
        path = ".".join('"' + part.replace('"', '""') + '"' for part in world.catalog.path(target.id))
        try:
            world.do(f'ALTER {target.kind.upper()} {path} RENAME TO "{quoted}"')
        except (AlreadyExists, NameShadowed):
            continue
    for entry in world.catalog.objects.values():
        if entry.statement:
            assert len(parse_script(create_sql(world.catalog, entry))) == 1
    assert {o.id: _columns(world, o) for o in world.catalog.of_kind(Kind.VIEW)} == before
    sink = next(o for o in world.catalog.of_kind(Kind.SINK))
    planned = plan_sink(world.catalog, definition_of(sink, CreateSink))
    assert [planned.relation, planned.connection] == [d.on for d in sink.dependencies[:2]]


def _columns(world: Planning, entry: Object) -> object:
    query = view_query(world.catalog, entry)
    told = [(c.name, c.type and print_type(c.type), c.nullable, c.origin) for c in query.columns]
    return told, relations_read(query)


def _busy_world() -> Planning:
    world = Planning()
    world.topic("orders", value=ORDER)
    world.do(SOURCE)
    world.do(
        "CREATE TYPE point AS (x integer); CREATE SCHEMA extra;"
        "CREATE VIEW dear AS SELECT orders.id, price, ROW(1)::point AS p FROM orders WHERE orders.price > 8;"
        "CREATE VIEW extra.b AS SELECT d.id, o.price FROM dear d JOIN public.orders AS o ON o.id = d.id;"
        "CREATE VIEW c AS WITH a AS (SELECT id FROM dear) SELECT a.id, extra.b.price FROM a, extra.b;"
        "CREATE SINK out FROM dear INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT JSON"
    )
    return world
