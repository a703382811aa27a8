"""A script is planned once. What is left of it is planned again only if the catalog changes while it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.catalog.errors import CatalogChanged, UnknownObject
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.sessions import Cancellation, Done, Notice, Result, Session
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

LINES = "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT"
AGAIN = "the catalog has changed meanwhile, and the statement was planned again"


@pytest.fixture
def lines(sql: Shell) -> Shell:
    sql.topics["lines"] = NewTopicOptions()
    sql.run(LINES)
    return sql


def running(sql: Shell, script: str) -> Iterator[Result]:
    steps = sql.executor.plan(script, sql.session)
    return sql.executor.run_steps(steps, sql.session, Cancellation())


def other_client(sql: Shell, statement: str) -> None:
    list(sql.executor.run(statement, Session()))


def test_what_comes_in_between_is_seen_by_the_statements_after_it(lines: Shell) -> None:
    results = running(lines, "CREATE VIEW v AS SELECT text FROM lines; CREATE VIEW w AS SELECT * FROM v")
    assert next(results) == Done("CREATE VIEW")
    other_client(lines, "CREATE OR REPLACE VIEW v AS SELECT text, length(text) AS size FROM lines")
    assert list(results) == [Notice(AGAIN), Done("CREATE VIEW")]
    assert [row[0] for row in lines.rows("DESCRIBE w")] == ["text", "size"]


def test_nothing_is_said_if_the_plan_is_the_same(lines: Shell) -> None:
    results = running(lines, "COMMENT ON SOURCE lines IS 'one'; DROP SOURCE lines")
    next(results)
    other_client(lines, "COMMENT ON SOURCE lines IS 'two'")
    assert list(results) == [Done("DROP SOURCE")]


def test_a_statement_that_is_no_longer_possible_fails_at_its_turn(lines: Shell) -> None:
    results = running(lines, "CREATE SCHEMA other; COMMENT ON SOURCE lines IS 'one'")
    next(results)
    other_client(lines, "DROP SOURCE lines")
    with pytest.raises(UnknownObject):
        next(results)
    assert lines.rows("SHOW SCHEMAS LIKE 'other'") != []


def test_a_change_between_the_effects_and_the_commit_undoes_and_repeats_them(
    lines: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, seen = SqliteStore.commit, []

    def late(store: SqliteStore, *args: object, **kwargs: object) -> object:
        seen.append(set(lines.topics))
        if len(seen) == 1:
            commit(store, (), cause="test")
            raise CatalogChanged(1, 2)
        return commit(store, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteStore, "commit", late)
    assert lines.tags("CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'late') FORMAT JSON") == [
        "CREATE SINK"
    ]
    assert seen == [{"lines", "late"}, {"lines", "late"}]


def test_a_catalog_that_changes_all_the_time_ends_in_an_error(lines: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> object:
        raise CatalogChanged(1, 2)

    monkeypatch.setattr(SqliteStore, "commit", never)
    error = lines.failure("CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'never') FORMAT JSON")
    assert isinstance(error, CatalogChanged)
    assert set(lines.topics) == {"lines"}


# ACCEPT SCHEMA CHANGE

FIRST = '{"type":"record","name":"o","fields":[{"name":"id","type":"int"}]}'
SECOND = '{"type":"record","name":"o","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}'
AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"


@pytest.fixture
def orders(sql: Shell, request: pytest.FixtureRequest) -> tuple[Shell, str]:
    """A source whose registry has a newer schema, a view over it, and a sink of the view."""
    topic = request.node.name
    sql.topics[topic] = NewTopicOptions()
    sql.subject(f"{topic}-value", FIRST)
    sql.run(
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC '{topic}') {AVRO};"
        "CREATE VIEW doubled AS SELECT id * 2 AS twice, id FROM orders;"
        f"CREATE SINK out FROM doubled INTO KAFKA CONNECTION kafka (TOPIC '{topic}-out') {AVRO}"
    )
    sql.subject(f"{topic}-value", SECOND)
    return sql, topic


def test_a_statement_can_use_what_the_one_before_it_accepts(orders: tuple[Shell, str]) -> None:
    sql, _ = orders
    tags = sql.tags("ALTER SOURCE orders ACCEPT SCHEMA CHANGE; CREATE VIEW notes AS SELECT note FROM orders")
    assert tags == ["ALTER SOURCE", "CREATE VIEW"]
    assert sql.rows("DESCRIBE notes") == [("note", "text", True, False, None)]


def test_accepting_registers_the_schemas_of_sinks_and_a_second_time_has_nothing_to_do(
    orders: tuple[Shell, str],
) -> None:
    sql, topic = orders
    taken, *columns = sql.notices("ALTER SOURCE orders ACCEPT SCHEMA CHANGE")
    assert "is accepted" in taken
    assert columns == [f'view "doubled" widens column {name} from integer to bigint' for name in ("twice", "id")]
    assert sql.registry.versions(f"{topic}-out-value") == (1, 2)
    schema_id = sql.registry.latest(f"{topic}-out-value").schema_id
    ((_, created),) = sql.rows("SHOW CREATE SINK out")
    assert f"SEED VALUE SCHEMA ID {schema_id} " in str(created)
    assert sql.notices("ALTER SOURCE orders ACCEPT SCHEMA CHANGE") == ["there is no change to accept"]


def test_accepting_is_refused_where_a_query_would_no_longer_compute(orders: tuple[Shell, str]) -> None:
    sql, topic = orders
    sql.run("CREATE VIEW both (id, note) AS SELECT o.*, 1 AS note FROM orders AS o")
    version = sql.version
    sql.failure("ALTER SOURCE orders ACCEPT SCHEMA CHANGE")
    assert sql.version == version
    assert sql.registry.versions(f"{topic}-out-value") == (1,)
