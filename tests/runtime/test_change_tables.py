"""Tables with a row for every change (DELTA UPDATES) in a real PostgreSQL, without Spark."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.sql import DataFrame

from headgate.connectors.postgres import Connection
from headgate.plan.tables import change_columns
from headgate.plan.target_definitions import TableDefinition, TargetErrorPolicy
from headgate.runtime.targets.errors import TableForeign, TableHasKey, TableLacksKey
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.table_rows import BAD, CHANGED, DELETE, WRITE
from headgate.schema import types as t
from tests.runtime import test_postgres_target as target
from tests.runtime.tables import database, field, table
from tests.runtime.test_postgres_target import Rows, Writer, numbers, rows, staged, texts

address, connection, name, writers = target.address, target.connection, target.name, target.writers  # fixtures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def changes(of: str, *, adopt: bool = False, on_error: TargetErrorPolicy = "SKIP") -> TableDefinition:
    made = table(of, field("k", t.Text(), key=True), field("v", t.Bigint()), on_error=on_error, adopt=adopt)
    return replace(made, columns=change_columns(made.columns), delta_updates=True)


def begin(address: str, made: TableDefinition) -> None:
    """Let another task begin to write the table."""
    with closing(PostgresTarget(made, database(address), 8, f"other uuid of {made.name}")) as other:
        other.begin(1)


def keys(*names: str) -> DataFrame:
    return cast("DataFrame", Rows({"k": texts(*names)}, [CHANGED] * len(names)))


def test_every_change_is_a_row_and_nothing_is_replaced(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, changes(name))
    writers.append(writer)
    writer.write(staged({"k": texts("a", "b"), "v": numbers(1, 2)}))
    writer.write(staged({"k": texts("a", "b"), "v": numbers(3, None)}, [WRITE, DELETE]), keys("a", "c"))
    writer.write(staged({"k": texts("a", "b"), "v": numbers(None, 4)}, [BAD, WRITE]), keys("a", "b"))
    found = rows(connection, name, "_sequence, k, v, _deleted")
    assert [row[1:] for row in found] == [
        ("a", 1, False), ("b", 2, False), ("a", 3, False), ("b", None, True), ("c", None, True), ("b", 4, False),
    ]  # fmt: skip
    assert writer.target.misfits == 1


def test_a_batch_that_is_there_already_appends_nothing(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, changes(name))
    writers.append(writer)
    batch = writer.batch()
    for _ in range(2):
        writer.target.write_parts([staged({"k": texts("a"), "v": numbers(1)})], batch, lambda: None)
    assert rows(connection, name, "k, v, _deleted") == [("a", 1, False)]


def test_a_table_that_keeps_one_row_for_a_key_cannot_have_every_change(address: str, name: str) -> None:
    merged = replace(changes(name), delta_updates=False)
    begin(address, merged)
    with pytest.raises(TableHasKey) as raised:
        begin(address, changes(name))
    assert raised.value.key == ("k",)


def test_a_table_of_changes_cannot_be_merged_by_its_key(address: str, name: str) -> None:
    begin(address, changes(name))
    with pytest.raises(TableLacksKey):
        begin(address, replace(changes(name), delta_updates=False))


def test_an_adopted_table_gets_the_columns_of_changes_and_keeps_its_rows(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    connection.execute(f"CREATE TABLE public.{name} (k text, v bigint NOT NULL, mine text)".encode())
    connection.execute(f"INSERT INTO public.{name} VALUES ('a', 0, 'x')".encode())
    with pytest.raises(TableForeign):
        begin(address, changes(name))
    writer = Writer(address, changes(name, adopt=True))
    writers.append(writer)
    writer.write(staged({"k": texts("a"), "v": numbers(None)}, [DELETE]))
    found = rows(connection, name, "_sequence, k, v, mine, _deleted")
    assert found == [(1, "a", 0, "x", None), (2, "a", None, None, True)]


BATCHES = st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 3), min_size=1), max_size=6)


@given(BATCHES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_newest_change_of_each_key_gives_the_relation(
    address: str, connection: Connection, batches: list[dict[str, int | None]]
) -> None:
    """None deletes a key."""
    connection.execute("DROP TABLE IF EXISTS public.change_law")
    connection.execute("DELETE FROM headgate.ledger WHERE task = 'uuid of change_law'")
    writer = Writer(address, changes("change_law"))
    wanted: dict[str, Any] = {}
    for batch in batches:
        ops = [DELETE if value is None else WRITE for value in batch.values()]
        writer.write(staged({"k": texts(*batch), "v": numbers(*batch.values())}, ops))
        wanted |= batch
    writer.target.close()
    newest = "SELECT DISTINCT ON (k) k, v, _deleted FROM public.change_law ORDER BY k, _sequence DESC"
    found = {k: None if deleted else v for k, v, deleted in connection.execute(newest).fetchall()}
    assert found == wanted
