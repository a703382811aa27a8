"""Tables of materializations in a real PostgreSQL, without Spark: how they are made, widened, given up, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import psycopg
import pytest
from psycopg import sql

from headgate.connectors.errors import PostgresFailed, PostgresRefusedLogin, PostgresTooOld, PostgresUnreachable
from headgate.connectors.options import ConnectionOptions
from headgate.connectors.postgres import Connection, PostgresDatabase, describe_table
from headgate.embedded.world import World
from headgate.plan.target_definitions import TableDefinition
from headgate.runtime.targets.errors import (
    ColumnsIncompatible,
    ForeignColumnRequired,
    NotATable,
    TableForeign,
    TableInUse,
    TableLacksKey,
    TableLocked,
    TableNotAllowed,
    TableSchemaMissing,
    TableTooWide,
    UnknownNativeType,
)
from headgate.runtime.targets.postgres_tables import Owner, check_table, owner, prepare, provision, release
from headgate.schema import types as t
from tests.runtime.tables import database, field, table

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

_names = count()


@pytest.fixture(scope="module")
def address(world: World) -> str:
    return world.ensure("postgres")["postgres"]


@pytest.fixture
def connection(address: str) -> Iterator[Connection]:
    with database(address).connect() as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"made_{next(_names)}"


def orders(name: str, *, adopt: bool = False) -> TableDefinition:
    id_ = replace(field("id", t.Bigint(), key=True), doc="The number")
    return replace(table(name, id_, field("price", t.Double(), nullable=True), adopt=adopt), doc="All orders")


def public(name: str) -> sql.Identifier:
    """With its schema: the user of the world is called headgate, and so is the schema of the ledgers, which comes first on the search
    path."""
    return sql.Identifier("public", name)


def columns(connection: Connection, name: str) -> dict[str, str]:
    found = describe_table(connection, "public", name)
    assert found is not None
    return {c.name: f"{c.type}{'' if c.nullable else ' not null'}" for c in found.columns}


def test_a_table_is_made_with_its_key_and_its_docs(connection: Connection, name: str) -> None:
    said: list[str] = []
    made = provision(connection, orders(name), "task", said.append)
    assert (made.known, made.adopted) == (False, False)
    assert columns(connection, name) == {"id": "bigint not null", "price": "double precision"}
    found = describe_table(connection, "public", name)
    assert found is not None
    assert (found.doc, found.columns[0].doc, found.keys) == ("All orders", "The number", (frozenset({"id"}),))
    assert said == [f"Table public.{name} was created with 2 columns."]
    again = provision(connection, orders(name), "task", said.append)
    assert again.known
    assert len(said) == 1


@pytest.mark.parametrize("name_", ['Mixed "Case" {0}', "select", "ä.b; DROP TABLE x --{0}"])
def test_any_name_is_an_identifier(connection: Connection, name_: str) -> None:
    made = table(name_, field('a"b {x}', t.Text(), key=True))
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name_)))
    provision(connection, made, "task")
    assert columns(connection, name_) == {'a"b {x}': "text not null"}
    release(connection, made.table, "task", drop=True)


def test_columns_are_added_and_widened_in_place_and_keep_every_value(connection: Connection, name: str) -> None:
    old = table(
        name, field("id", t.Integer(), key=True), field("n", t.Bigint()), field("d", t.Double()), field("b", t.Boolean()),
        field("at", t.TimestampTz()), field("gone", t.Text()), field("j", t.Array(t.Text())),
    )  # fmt: skip
    provision(connection, old, "task")
    insert = sql.SQL(
        "INSERT INTO {} VALUES (1, 9007199254740993, 0.30000000000000004, true, '2026-11-15T12:00:00Z', 'x', '{{a}}')"
    )
    connection.execute(insert.format(sql.Identifier(name)))
    new = table(
        name, field("id", t.Bigint(), key=True), field("n", t.Decimal(38, 0)), field("d", t.Text()), field("b", t.Text()),
        field("at", t.Text()), field("j", t.Json()), field("more", t.Text()),
    )  # fmt: skip
    provision(connection, new, "task")
    assert columns(connection, name) == {
        "id": "bigint not null", "n": "numeric(38,0) not null", "d": "text not null", "b": "text not null",
        "at": "text not null", "gone": "text", "j": "jsonb not null", "more": "text",
    }  # fmt: skip
    found = connection.execute(sql.SQL("SELECT n, d, b, at, j, more FROM {}").format(sql.Identifier(name))).fetchone()
    assert found == (9007199254740993, "0.30000000000000004", "true", "2026-11-15T12:00:00.000000Z", ["a"], None)


@pytest.mark.parametrize(("value", "type_"), [(2**53, "double precision"), (2**53 + 1, "numeric")])
def test_whole_numbers_become_doubles_only_if_all_are_exact(
    connection: Connection, name: str, value: int, type_: str
) -> None:
    provision(connection, table(name, field("n", t.Bigint())), "task")
    connection.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(name), value))
    wanted = table(name, field("n", t.Double()))
    for _ in range(2):  # the second time the column stays as wide as it is
        assert provision(connection, wanted, "task").columns == {"n": type_}
    assert connection.execute(sql.SQL("SELECT n FROM {}").format(sql.Identifier(name))).fetchone() == (value,)


def test_a_column_without_a_way_in_place_is_made_anew_unless_the_statement_says_otherwise(
    connection: Connection, name: str
) -> None:
    provision(connection, table(name, field("n", t.Text())), "task")
    with pytest.raises(ColumnsIncompatible) as raised:
        provision(connection, replace(table(name, field("n", t.Bigint())), on_incompatible="ABORT"), "task")
    assert raised.value.changes == ('"n" is text and would have to be bigint',)
    assert provision(connection, table(name, field("n", t.Bigint())), "task").columns == {"n": "bigint"}


def test_the_type_of_a_key_is_never_made_anew(connection: Connection, name: str) -> None:
    provision(connection, table(name, field("n", t.Text(), key=True)), "task")
    with pytest.raises(ColumnsIncompatible):
        provision(connection, table(name, field("n", t.Bigint(), key=True)), "task")


def test_a_foreign_table_is_refused_unless_it_is_adopted(connection: Connection, name: str) -> None:
    prepare(connection)
    connection.execute(sql.SQL("CREATE TABLE {} (id bigint, extra text DEFAULT 'e')").format(public(name)))
    with pytest.raises(TableForeign):
        check_table(connection, orders(name), new=True)
    with pytest.raises(TableLacksKey):
        check_table(connection, orders(name, adopt=True), new=True)
    connection.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id), ADD must int NOT NULL").format(public(name)))
    with pytest.raises(ForeignColumnRequired):
        check_table(connection, orders(name, adopt=True), new=True)
    connection.execute(sql.SQL("ALTER TABLE {} DROP must").format(public(name)))
    check_table(connection, orders(name, adopt=True), new=True)
    made = provision(connection, orders(name, adopt=True), "task")
    assert (made.known, made.adopted) == (False, True)
    assert columns(connection, name) == {"id": "bigint not null", "extra": "text", "price": "double precision"}


def test_an_adopted_table_without_a_key_stays_foreign(connection: Connection, name: str) -> None:
    connection.execute(sql.SQL("CREATE TABLE {} (n bigint)").format(public(name)))
    wanted = table(name, field("n", t.Bigint()), adopt=True)
    provision(connection, wanted, "task")
    release(connection, wanted.table, "task", drop=False)
    with pytest.raises(TableForeign):
        check_table(connection, replace(wanted, adopt=False), new=True)
    check_table(connection, wanted, new=True)


def test_a_table_of_another_task_is_refused_until_it_is_given_up(connection: Connection, name: str) -> None:
    provision(connection, orders(name), "first")
    with pytest.raises(TableInUse):
        check_table(connection, orders(name), new=True)
    with pytest.raises(TableInUse):
        provision(connection, orders(name), "second")
    for drop in (True, False):
        release(connection, orders(name).table, "another", drop=drop)
    assert owner(connection, orders(name).table) == Owner("first", adopted=False)
    release(connection, orders(name).table, "first", drop=False)
    assert owner(connection, orders(name).table) == Owner(None, adopted=False)
    check_table(connection, orders(name), new=True)
    assert provision(connection, orders(name), "second").known


def test_dropping_the_target_drops_the_table(connection: Connection, name: str) -> None:
    provision(connection, orders(name), "task")
    release(connection, orders(name).table, "task", drop=True)
    assert describe_table(connection, "public", name) is None
    assert owner(connection, orders(name).table) is None


def test_what_is_not_a_table_is_refused(connection: Connection, name: str) -> None:
    connection.execute(sql.SQL("CREATE VIEW {} AS SELECT 1 AS id").format(public(name)))
    with pytest.raises(NotATable):
        check_table(connection, orders(name), new=True)


def test_an_unknown_schema_and_an_unknown_type_are_refused(connection: Connection, name: str) -> None:
    elsewhere = replace(orders(name), table=replace(orders(name).table, schema="nowhere"))
    with pytest.raises(TableSchemaMissing):
        check_table(connection, elsewhere, new=True)
    with pytest.raises(UnknownNativeType):
        check_table(connection, table(name, field("a", t.Text(), native="nonsense")), new=True)


def test_more_columns_than_a_table_can_have_are_refused(connection: Connection, name: str) -> None:
    wide = table(name, *[field(f"c{number}", t.Bigint()) for number in range(1601)])
    with pytest.raises(TableTooWide):
        check_table(connection, wide, new=True)
    with pytest.raises(TableTooWide):
        provision(connection, wide, "task")


def test_a_login_that_may_not_make_tables_is_told_what_to_grant(connection: Connection, address: str) -> None:
    connection.execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN PASSWORD 'p'")
    connection.execute("DROP DATABASE IF EXISTS poor_house")
    connection.execute("CREATE DATABASE poor_house")
    poor = address.rpartition("/")[0] + "/poor_house"
    options = ConnectionOptions("pg", (("URL", (poor,)), ("USER", ("poor",)), ("PASSWORD", ("p",))))
    with PostgresDatabase(options).connected() as asking:
        with pytest.raises(TableNotAllowed) as raised:
            check_table(asking, orders("t"), new=True)
        assert raised.value.statement == 'GRANT CREATE, USAGE ON SCHEMA "public" TO "poor"'
        with pytest.raises(TableNotAllowed) as raised:
            prepare(asking)
        assert raised.value.statement == 'GRANT CREATE ON DATABASE "poor_house" TO "poor"'


def test_a_lock_that_is_not_given_up_is_told(
    connection: Connection, address: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provision(connection, orders(name), "task")
    monkeypatch.setattr("headgate.runtime.targets.postgres_tables.LOCK_TIMEOUT", "200ms")
    wider = table(name, field("id", t.Decimal(38, 0), key=True), field("price", t.Double(), nullable=True))
    with database(address).connect() as other, other.transaction():
        other.execute(sql.SQL("LOCK TABLE {}").format(sql.Identifier(name)))
        with pytest.raises(TableLocked):
            provision(connection, wider, "task")


# The connection itself


def test_a_server_that_answers_is_accepted_and_others_are_told_apart(address: str) -> None:
    database(address).check()
    with pytest.raises(PostgresUnreachable):
        database("postgresql://127.0.0.1:1/none").check()
    wrong = ConnectionOptions("pg", (("URL", (address,)), ("USER", ("nobody",)), ("PASSWORD", ("HUNTER2",))))
    with pytest.raises(PostgresRefusedLogin) as raised:
        PostgresDatabase(wrong).check()
    assert "HUNTER2" not in str(raised.value)


def test_a_server_that_is_too_old_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.connectors.postgres.OLDEST", 990000)
    with pytest.raises(PostgresTooOld) as raised:
        database(address).check()
    assert raised.value.oldest == "99"


def test_what_the_server_says_of_a_statement_is_shown_without_values(address: str) -> None:
    with pytest.raises(PostgresFailed) as raised, database(address).connected() as connection:
        connection.execute("SELECT 'HUNTER2'::integer")
    assert "invalid text representation" in raised.value.message()
    assert "HUNTER2" not in str(raised.value)
    assert isinstance(raised.value.__cause__, psycopg.Error)
