"""The connections that a catalog of the embedded world has from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import SERVICES
from headgate.control.engine import CONNECTIONS, make_connections
from headgate.sql.connections import CreateConnection
from headgate.sql.script import parse_statement
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit


def test_the_four_connections_are_made_once(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "catalog.db") as store:
        make_connections(store)
        version = store.load().version
        make_connections(store)
        assert store.load().version == version
        names = [o.name for o in store.load().of_kind(Kind.CONNECTION)]
    assert names == ["kafka", "registry", "postgres", "elasticsearch"]


def test_each_is_named_after_the_service_that_it_leads_to() -> None:
    assert {options.system: name for name, options in CONNECTIONS.items()} == SERVICES


def test_a_connection_that_was_dropped_comes_back_with_the_next_engine(sql: Shell) -> None:
    sql.run("DROP CONNECTION postgres")
    make_connections(sql.store)
    assert sql.rows("SHOW CONNECTIONS LIKE 'postgres'") == [("postgres", "headgate.public", None)]


def test_a_connection_of_the_users_own_is_left_alone(tmp_path: Path, sql: Shell) -> None:
    sql.run("DROP CONNECTION postgres;CREATE CONNECTION postgres TO POSTGRES (HOST 'h') WITH (VALIDATE = false)")
    make_connections(sql.store)
    ((_, printed),) = sql.rows("SHOW CREATE CONNECTION postgres")
    assert "HOST = 'h'" in str(printed)


@pytest.mark.parametrize("name", CONNECTIONS)
def test_its_statement_reads_back(sql: Shell, name: str) -> None:
    ((_, printed),) = sql.rows(f"SHOW CREATE CONNECTION {name}")
    statement = parse_statement(str(printed))
    assert isinstance(statement, CreateConnection)
    assert statement.options == CONNECTIONS[name]
