"""CREATE MATERIALIZED VIEW: how each query is kept, what is refused, and what the task of a view gets."""

from __future__ import annotations

import pytest

from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import DesiredTaskState, Growth
from headgate.control.definitions import select_definition, task_definition
from headgate.control.view_tasks import view_task_definition
from headgate.errors import HeadgateError
from headgate.plan.definitions import MaterializedDefinition, SinkDefinition, ViewDefinition
from headgate.plan.errors import (
    AssertedColumnUnknown,
    ChangesNotKept,
    ClockOutsideCondition,
    ColumnNameReserved,
    NotSupportedYet,
    OldRowsNeeded,
    ReplacementBreaks,
    ViewCannotSkip,
    ViewNotDetermined,
    ViewNotStable,
)
from headgate.plan.materialized_views import kept_view
from headgate.plan.plans import ChangeCatalog, FollowChanges, RunQuery
from headgate.plan.view_definitions import ViewTaskDefinition
from headgate.plan.views import query_dependencies, view_columns
from headgate.sql.statement import Kind, Query
from tests.plan.planning import AVRO, Planning, record

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    world = Planning()
    world.topic("t", key=record("k", ("id", "long")), value=record("v", ("item", "string"), ("price", "int")))
    world.do(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE clicks FROM KAFKA CONNECTION kafka (TOPIC 't') {AVRO} INCLUDE KEY;"
    )
    return world


def create(world: Planning, query: str) -> ChangeCatalog:
    (made,) = world.do(f"CREATE MATERIALIZED VIEW m AS {query}")
    return made


def refused(world: Planning, statement: str) -> HeadgateError:
    with pytest.raises(HeadgateError) as raised:
        world.do(statement)
    return raised.value


@pytest.mark.parametrize(
    ("query", "growth"),
    [
        ("SELECT item, price + 1 AS more FROM clicks WHERE price > 0", Growth.APPEND),
        ("SELECT item, count(*) AS n, sum(price) AS s, max(price) AS most FROM clicks GROUP BY item", Growth.KEYED),
        ("SELECT id, item FROM orders WHERE price > 0", Growth.KEYED),
        ("SELECT 'text' AS c1", Growth.APPEND),
    ],
)
def test_a_view_that_needs_no_old_rows_is_kept_by_its_changes(world: Planning, query: str, growth: Growth) -> None:
    made = create(world, query)
    view = world.named("m")
    assert made.notices == ('materialized view "m" is kept by the changes of what it reads',)
    assert view.growth is growth
    assert world.catalog.desired[view.id] is DesiredTaskState.RUNNING
    task = view_task_definition(world.catalog, view)
    assert task.view.appends is (growth is Growth.APPEND)
    assert task.view.key == (tuple(c.name for c in view.columns if c.key) if growth is Growth.KEYED else None)


def test_a_view_passes_on_what_a_view_below_computes(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT id, upper(item) AS item FROM clicks")
    create(world, "SELECT id, item FROM v")
    stored = view_task_definition(world.catalog, world.named("m")).view.stored
    assert [(column.name, column.default) for column in stored] == [("id", None), ("item", None)]


def test_a_view_over_views_may_need_their_old_rows(world: Planning) -> None:
    create(world, "SELECT * FROM orders")
    (made,) = world.do("CREATE MATERIALIZED VIEW l AS SELECT m.id, o.item FROM m LEFT JOIN m AS o ON o.price = m.id")
    (text,) = made.notices
    assert text.startswith('materialized view "l" is computed anew with every batch, because of left join:')
    (made,) = world.do(
        "CREATE MATERIALIZED VIEW b AS SELECT m.id, rank() OVER (ORDER BY m.price) AS r FROM m LEFT JOIN m AS o ON o.price = m.id "
        "LEFT JOIN m AS p ON p.price = m.id WHERE m.id IN (SELECT id FROM m)"
    )
    (text,) = made.notices
    assert [text.count(f"{each}: ") for each in ("window function rank", "filter", "left join")] == [1, 1, 1]
    assert "max(struct(…))" in text
    assert "Write the subquery as a join." in text
    task = view_task_definition(world.catalog, world.named("l"))
    assert [(read.relation, read.version) for read in task.reads] == [(world.named("m").id, "now")]
    assert task.stored_name is not None


@pytest.mark.parametrize(
    ("query", "source"),
    [
        ("SELECT c.id FROM clicks AS c JOIN clicks AS d ON c.id = d.price", "clicks"),
        ("SELECT item, count(*) AS n FROM orders GROUP BY item", "orders"),
        ("SELECT item FROM orders", "orders"),
        ("SELECT id FROM clicks WHERE price > (SELECT avg(price) FROM clicks)", "clicks"),
        ("SELECT id FROM clicks WHERE price > (SELECT max(n) FROM v)", "clicks"),
    ],
)
def test_a_view_that_needs_old_rows_of_a_topic_reads_a_stored_copy(world: Planning, query: str, source: str) -> None:
    world.do("CREATE VIEW v AS SELECT price + 1 AS n FROM clicks")
    made = create(world, query)
    copy = world.named(f"{source}_rows")
    assert made.notices[0] == (
        f'materialized view "{source}_rows" is created too: it keeps the rows of source "{source}", which "m" needs again'
    )
    task = view_task_definition(world.catalog, world.named("m"))
    assert [each.id for each in task.inputs] == [copy.id]
    assert task.copies == {world.named(source).id: copy.id}
    assert world.catalog.desired[copy.id] is DesiredTaskState.RUNNING
    assert copy.id in {dependency.on for dependency in world.named("m").dependencies}


def test_views_over_a_source_share_its_stored_copy(world: Planning) -> None:
    world.do("CREATE MATERIALIZED VIEW all_of_it AS SELECT * FROM orders")
    world.do("CREATE MATERIALIZED VIEW some AS SELECT * FROM orders WHERE price > 0")
    first = create(world, "SELECT item, count(*) AS n FROM orders GROUP BY item")
    (second,) = world.do("CREATE MATERIALIZED VIEW o AS SELECT price, count(*) AS n FROM orders GROUP BY price")
    assert len(first.changes) == len(second.changes) == 1
    for name in ("m", "o"):
        task = view_task_definition(world.catalog, world.named(name))
        assert [each.id for each in task.inputs] == [world.named("all_of_it").id]


def test_a_stored_copy_goes_with_its_last_user(world: Planning) -> None:
    create(world, "SELECT item, count(*) AS n FROM orders GROUP BY item")
    world.do("CREATE MATERIALIZED VIEW o AS SELECT price, count(*) AS n FROM orders GROUP BY price")
    (first,) = world.do("DROP MATERIALIZED VIEW m")
    assert world.named("orders_rows").kind is Kind.MATERIALIZED_VIEW
    (last,) = world.do("DROP MATERIALIZED VIEW o")
    assert (first.notices, last.notices) == ((), ('materialized view "orders_rows" is dropped too',))
    world.do("CREATE SINK s FROM orders INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT JSON ENVELOPE DEBEZIUM")
    world.do("DROP SINK s")
    with pytest.raises(UnknownObject):
        world.plan("SELECT * FROM orders_rows")


def test_a_stored_copy_that_the_user_made_stays(world: Planning) -> None:
    world.do("CREATE MATERIALIZED VIEW all_of_it AS SELECT * FROM orders")
    create(world, "SELECT item, count(*) AS n FROM orders GROUP BY item")
    world.do("DROP MATERIALIZED VIEW m")
    assert world.named("all_of_it").growth is Growth.KEYED


def test_a_stored_copy_takes_a_name_that_is_free(world: Planning) -> None:
    world.do("CREATE VIEW Orders_Rows AS SELECT id FROM orders")
    create(world, "SELECT item FROM orders")
    assert world.named("orders_rows2").growth is Growth.KEYED


def test_a_view_whose_result_is_not_determined_is_refused(world: Planning) -> None:
    unstable = refused(world, "CREATE MATERIALIZED VIEW m AS SELECT id, rand() AS r FROM clicks")
    assert isinstance(unstable, ViewNotStable)
    assert unstable.functions == ("rand",)
    for query in (
        "SELECT collect_list(item) AS l FROM clicks",
        "SELECT id FROM clicks LIMIT 1",
    ):
        assert isinstance(refused(world, f"CREATE MATERIALIZED VIEW m AS {query}"), ViewNotDetermined)


@pytest.mark.parametrize(
    ("query", "clock", "growth"),
    [
        ("SELECT id, item FROM orders WHERE price < unix_timestamp()", "second", Growth.KEYED),
        ("SELECT id FROM clicks WHERE price < year(current_date)", "day", Growth.CHANGING),
        (
            "SELECT item, count(*) AS n FROM recent GROUP BY item HAVING max(price) < year(curdate())",
            "second",
            Growth.KEYED,
        ),
        (
            "SELECT c.id FROM clicks AS c JOIN clicks AS d ON c.id = d.price AND d.id < day(current_date)",
            "day",
            Growth.CHANGING,
        ),
        ("SELECT id FROM clicks WHERE price IN (SELECT price FROM recent)", "second", Growth.CHANGING),
        ("SELECT 1 AS n WHERE now() > '2020-01-01'", "second", Growth.KEYED),
        (
            "SELECT id FROM (SELECT id, unix_timestamp() - price AS age FROM clicks) AS t WHERE age < 9",
            "second",
            Growth.CHANGING,
        ),
        ("SELECT id FROM clicks WHERE price > 0", None, Growth.APPEND),
    ],
)
def test_a_view_may_choose_its_rows_by_the_time(world: Planning, query: str, clock: str | None, growth: Growth) -> None:
    world.do("CREATE VIEW recent AS SELECT * FROM clicks WHERE price > unix_timestamp()")
    made = create(world, query)
    view = world.named("m")
    assert view.growth is growth
    task = view_task_definition(world.catalog, view)
    assert task.clock == clock
    assert (clock is None) == made.notices[-1].endswith("kept by the changes of what it reads")
    queries = [relation.query.sql for relation in task.relations.values() if isinstance(relation, ViewDefinition)]
    assert not any("NOW()" in sql or "CURRENT_" in sql for sql in (task.first, task.changed, *queries))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, now() AS t FROM clicks",
        "SELECT id, price < unix_timestamp() AS late FROM clicks",
        "SELECT max(now()) AS m FROM clicks",
        "SELECT price > unix_timestamp() AS late, count(*) AS n FROM clicks GROUP BY price > unix_timestamp()",
        "SELECT id FROM clicks ORDER BY abs(price - unix_timestamp()) LIMIT 3",
    ],
)
def test_a_view_uses_the_time_in_conditions_only(world: Planning, query: str) -> None:
    found = refused(world, f"CREATE MATERIALIZED VIEW m AS {query}")
    assert isinstance(found, ClockOutsideCondition)


def test_the_options_of_a_view_are_checked(world: Planning) -> None:
    asserted = refused(world, "CREATE MATERIALIZED VIEW m WITH (ASSERT NOT NULL nothing) AS SELECT id FROM clicks")
    assert isinstance(asserted, AssertedColumnUnknown)
    for policy in ("SKIP", "QUARANTINE"):
        found = refused(world, f"CREATE MATERIALIZED VIEW m WITH (ON ERROR = {policy}) AS SELECT id FROM clicks")
        assert isinstance(found, ViewCannotSkip)
        assert (found.view, found.policy) == ("m", policy)
    reserved = refused(world, "CREATE MATERIALIZED VIEW m AS SELECT id AS hg_weight FROM clicks")
    assert isinstance(reserved, ColumnNameReserved)
    system = refused(world, "CREATE MATERIALIZED VIEW m AS SELECT name FROM headgate_catalog.tasks")
    assert isinstance(system, NotSupportedYet)
    world.do("CREATE MATERIALIZED VIEW other AS SELECT id FROM clicks")
    assert isinstance(refused(world, "REPLAY QUARANTINE FOR other"), WrongKind)
    world.do("CREATE MATERIALIZED VIEW m WITH (ASSERT NOT NULL Item) AS SELECT id, item FROM clicks")
    assert view_task_definition(world.catalog, world.named("m")).not_null == ("item",)


def test_a_view_below_a_materialized_view_is_replaced_if_its_columns_stay(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT id, item FROM clicks")
    world.do("CREATE MATERIALIZED VIEW m AS SELECT id, item FROM v")
    world.do("CREATE OR REPLACE VIEW v AS SELECT id, upper(item) AS item FROM clicks")
    for columns in ("id", "id, length(item) AS item"):
        below = refused(world, f"CREATE OR REPLACE VIEW v AS SELECT {columns} FROM clicks")
        assert isinstance(below, ReplacementBreaks)
    world.do("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT id FROM clicks")


@pytest.mark.parametrize(
    "replacement",
    [
        "CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT id, item, price FROM v WHERE price > 5",
        "CREATE OR REPLACE VIEW v AS SELECT id, item, price FROM clicks WHERE id > 5",
    ],
)
def test_rows_that_only_came_go_when_a_view_below_is_replaced(world: Planning, replacement: str) -> None:
    """Its readers get what differs, with rows that go. So from then on they are kept as over any other view."""
    world.do(
        "CREATE VIEW v AS SELECT id, item, price FROM clicks; CREATE MATERIALIZED VIEW a AS SELECT id, item, price FROM v;"
        "CREATE MATERIALIZED VIEW plain AS SELECT id, item FROM a;"
        "CREATE MATERIALIZED VIEW plainer AS SELECT id FROM plain;"
        "CREATE MATERIALIZED VIEW counts AS SELECT item, count(*) AS n FROM a GROUP BY item;"
        "CREATE MATERIALIZED VIEW sums AS SELECT item, sum(price) AS s FROM a GROUP BY item;"
        "CREATE MATERIALIZED VIEW most AS SELECT item, max(id) AS most FROM plain GROUP BY item;"
    )
    names = ("plain", "plainer", "counts", "sums", "most")

    def tasks() -> list[ViewTaskDefinition]:
        return [view_task_definition(world.catalog, world.named(name)) for name in names]

    before = tasks()
    world.do(replacement)
    after = tasks()
    world.do(replacement)
    assert [task.view.stored_grows for task in before] == [True, True, False, False, False]
    assert not any(task.view.stored_grows for task in after)
    # Groups whose parts cannot be added to any more are filled anew, once. The others go on with what differs.
    anew = [old.query_name != new.query_name for old, new in zip(before, after, strict=True)]
    assert anew == [False, False, False, True, True]
    assert [task.query_name for task in after] == [task.query_name for task in tasks()]
    assert any(read.version == "now" for read in after[-1].reads)


def test_only_materialized_views_know_which_rows_went(world: Planning) -> None:
    create(world, "SELECT item, count(*) AS n FROM clicks GROUP BY item")
    world.do("CREATE VIEW w AS SELECT item AS name, n FROM m WHERE n > 1")
    assert isinstance(world.plan("SELECT name FROM w WHERE n > 2 EMIT CHANGES"), FollowChanges)
    for statement, what in (
        ("SUBSCRIBE clicks", "a source"),
        ("SELECT id FROM orders EMIT CHANGES", "a source"),
        ("SELECT n, count(*) FROM m GROUP BY n EMIT CHANGES", "a query with groups"),
        ("SELECT a.n FROM m AS a JOIN m AS b ON a.n = b.n EMIT CHANGES", "joins"),
    ):
        with pytest.raises(ChangesNotKept) as raised:
            world.plan(statement)
        assert what in raised.value.message()


def test_a_view_is_read_from_its_storage(world: Planning) -> None:
    create(world, "SELECT item, count(*) AS n FROM clicks GROUP BY item")
    planned = world.plan("SELECT * FROM m")
    assert isinstance(planned, RunQuery)
    (relation,) = select_definition(world.catalog, planned.query).relations.values()
    assert isinstance(relation, MaterializedDefinition)
    assert [column.name for column in relation.stored if not column.hidden] == ["item", "n"]
    assert "hg_count" in [column.name for column in relation.stored if column.hidden]


def test_a_sink_over_a_view_reads_its_changes(world: Planning) -> None:
    create(world, "SELECT item, count(*) AS n FROM clicks GROUP BY item")
    world.do("CREATE VIEW w AS SELECT item AS name, n FROM m WHERE n > 1")
    world.do(
        "CREATE SINK s FROM w INTO KAFKA CONNECTION kafka (TOPIC 'out') KEY (name) "
        "KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT"
    )
    task = task_definition(world.catalog, world.named("s"))
    assert isinstance(task.source, MaterializedDefinition)
    assert task.source_key == {"name": "item"}


def test_without_a_stored_copy_the_rows_of_a_topic_are_not_there(world: Planning) -> None:
    analysed, _ = query_dependencies(world.catalog, DEFAULT_PATH, Query("SELECT item FROM orders"))
    with pytest.raises(OldRowsNeeded) as raised:
        kept_view(world.catalog, "m", analysed, view_columns(analysed, (), "m"), {})
    assert "CREATE MATERIALIZED VIEW orders_rows AS SELECT * FROM orders" in (raised.value.hint() or "")


def test_change_events_of_a_source_with_a_key_come_from_a_stored_copy(world: Planning) -> None:
    world.do("CREATE VIEW w AS SELECT id, item AS name FROM orders WHERE price > 0")
    (made,) = world.do("CREATE SINK s FROM w INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT JSON ENVELOPE DEBEZIUM")
    assert made.notices[0].startswith('materialized view "orders_rows" is created too')
    sink, copy = world.named("s"), world.named("orders_rows")
    assert copy.id in {dependency.on for dependency in sink.dependencies}
    task = task_definition(world.catalog, sink)
    assert task.source.id == copy.id
    assert task.event_key == ("id",)


def test_change_events_of_rows_without_a_key_have_none(world: Planning) -> None:
    create(world, "SELECT item FROM orders")
    world.do("CREATE SINK s FROM m INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT JSON ENVELOPE DEBEZIUM")
    task = task_definition(world.catalog, world.named("s"))
    assert isinstance(task.sink, SinkDefinition)
    assert (task.event_key, task.sink.old_rows) == ((), True)
