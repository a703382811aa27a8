"""Faults around a table in a real PostgreSQL, without Spark: the server dies, or somebody has changed what Headgate made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from headgate.connectors.errors import PostgresUnreachable
from headgate.connectors.postgres import Connection
from headgate.embedded.world import World
from headgate.plan.target_definitions import TableDefinition
from headgate.runtime.ports import Batch
from headgate.runtime.targets.errors import ColumnsIncompatible, TableChanged, TableForeign, TableInUse, TableLacksKey
from headgate.schema import types as t
from tests.embedded.world_fixtures import eventually
from tests.runtime import test_postgres_target as target
from tests.runtime.tables import database, field, table
from tests.runtime.test_postgres_target import Writer, at, numbers, rows, staged, texts

address, connection, name, writers = target.address, target.connection, target.name, target.writers  # fixtures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def keyed(name: str) -> TableDefinition:
    return table(name, field("n", t.Bigint(), key=True), field("v", t.Text(), nullable=True))


@pytest.fixture
def writer(address: str, writers: list[Writer], name: str) -> Writer:
    """A table with one row."""
    made = Writer(address, keyed(name))
    writers.append(made)
    made.write(staged({"n": numbers(1), "v": texts("x")}))
    return made


def test_a_server_that_is_killed_in_mid_commit_has_the_batch_once(
    world: World, address: str, writer: Writer, name: str
) -> None:
    batch = writer.batch()
    write = two_rows(writer, batch)

    def die() -> None:
        world.stop_hard("postgres")

    with pytest.raises(PostgresUnreachable) as raised:
        write(die)
    assert raised.value.retryable
    world.start("postgres")
    found = writer.target.begin(writer.epoch)
    assert found is not None
    assert found.positions == at(1)
    write(lambda: None)
    write(lambda: None)  # as after a commit whose answer was lost
    with database(address).connect() as again:
        assert rows(again, name) == [(1, "x"), (2, "y"), (3, "z")]


def two_rows(writer: Writer, batch: Batch) -> Callable[[Callable[[], None]], object]:
    part = staged({"n": numbers(2, 3), "v": texts("y", "z")})
    return lambda before_commit: writer.target.write_parts([part], batch, before_commit)


def test_a_full_disk_is_tried_again_and_leaves_nothing_of_the_batch(
    connection: Connection, writer: Writer, name: str
) -> None:
    connection.execute(
        b"CREATE OR REPLACE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        b"$$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$"
    )
    trigger = f'CREATE TRIGGER full_disk AFTER INSERT ON public."{name}" EXECUTE FUNCTION public.full_disk()'
    connection.execute(trigger.encode())
    batch = writer.batch()
    write = two_rows(writer, batch)
    with pytest.raises(PostgresUnreachable) as raised:
        write(lambda: None)
    assert raised.value.retryable
    assert rows(connection, name) == [(1, "x")]
    connection.execute(f'DROP TRIGGER full_disk ON public."{name}"'.encode())
    write(lambda: None)
    assert rows(connection, name, "n") == [(1,), (2,), (3,)]


def test_a_slow_server_is_waited_for_and_has_the_batch_once(
    address: str, connection: Connection, writer: Writer, name: str
) -> None:
    """It is slow because somebody holds a lock. The connection is not given up meanwhile, and the batch not begun again."""
    with database(address).connect() as other, other.transaction():
        other.execute(f'LOCK TABLE public."{name}" IN SHARE MODE'.encode())
        writing = threading.Thread(target=two_rows(writer, writer.batch()), args=(lambda: None,))
        writing.start()
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
        assert eventually(lambda: connection.execute(waits, (f'public."{name}"',)).fetchone() == (1,), 60)
        assert rows(connection, name, "n") == [(1,)]
    writing.join(60)
    assert rows(connection, name, "n") == [(1,), (2,), (3,)]


def test_a_column_with_another_type_is_noticed_and_made_anew(connection: Connection, writer: Writer, name: str) -> None:
    connection.execute(f'ALTER TABLE public."{name}" ALTER v TYPE bytea USING NULL'.encode())
    with pytest.raises(TableChanged):
        writer.write(staged({"n": numbers(2), "v": texts("y")}))
    found = writer.target.begin(2)
    assert found is not None
    assert found.positions == {}  # the table is filled anew
    assert "v from bytea to text, made anew" in writer.notices[-2]


def test_a_column_that_somebody_narrows_between_two_batches_rounds_nothing(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    """PostgreSQL assigns a double to a real, and to a numeric with fewer digits, without an error."""
    made = table(name, field("n", t.Bigint(), key=True), field("v", t.Double(), nullable=True))
    writer = Writer(address, made)
    writers.append(writer)
    writer.write(staged({"n": numbers(1), "v": pa.array([0.5])}))
    for narrow in ("real", "numeric(8,2)"):
        connection.execute(f'ALTER TABLE public."{name}" ALTER v TYPE {narrow}'.encode())
        with pytest.raises(TableChanged, match='column "v" has the type'):
            writer.write(staged({"n": numbers(2), "v": pa.array([1 / 3])}))
        assert rows(connection, name, "n") == [(1,)]
    found = writer.target.begin(2)
    assert found is not None
    assert "v from numeric(8,2) to double precision, made anew" in writer.notices[-2]


def test_a_key_with_another_type_is_named(connection: Connection, writer: Writer, name: str) -> None:
    connection.execute(f'ALTER TABLE public."{name}" ALTER n TYPE text'.encode())
    with pytest.raises(ColumnsIncompatible) as raised:
        writer.target.begin(2)
    assert raised.value.changes == ('"n" is text and would have to be bigint',)


def test_a_key_that_somebody_dropped_is_named(connection: Connection, writer: Writer, name: str) -> None:
    connection.execute(f'ALTER TABLE public."{name}" DROP CONSTRAINT "{name}_pkey"'.encode())
    with pytest.raises(TableChanged):
        writer.write(staged({"n": numbers(1), "v": texts("y")}))
    with pytest.raises(TableLacksKey):
        writer.target.begin(2)
    assert rows(connection, name) == [(1, "x")]


def test_a_ledger_that_somebody_deleted_lets_the_table_be_brought_in_step(
    connection: Connection, writer: Writer, name: str
) -> None:
    connection.execute("DELETE FROM headgate.ledger WHERE task = %s", (f"uuid of {name}",))
    with pytest.raises(TableChanged, match="ledger"):
        writer.write(staged({"n": numbers(2), "v": texts("y")}))
    assert rows(connection, name) == [(1, "x")]
    found = writer.target.begin(2)
    assert found is not None
    assert (found.number, found.positions, found.definition) == (0, {}, "")


def test_a_table_that_headgate_has_forgotten_is_foreign(connection: Connection, writer: Writer, name: str) -> None:
    connection.execute("DELETE FROM headgate.tables WHERE table_name = %s", (name,))
    with pytest.raises(TableForeign):
        writer.target.begin(2)


def test_a_task_whose_table_another_one_has_taken_over_writes_no_more(
    address: str, connection: Connection, writer: Writer, writers: list[Writer], name: str
) -> None:
    """With ADOPT, because nobody knows whether the task before lives on, perhaps in another project."""
    other = replace(keyed(name), name=f"other {name}", adopt=True)
    writers.append(Writer(address, other))
    with pytest.raises(TableInUse):
        writer.write(staged({"n": numbers(2), "v": texts("y")}))
    writers[-1].write(staged({"n": numbers(3), "v": texts("z")}))
    assert rows(connection, name) == [(1, "x"), (3, "z")]
    with pytest.raises(TableInUse):
        writer.target.begin(2)


def test_rows_that_somebody_changed_stay_until_their_key_changes(
    connection: Connection, writer: Writer, name: str
) -> None:
    """BACKFILL brings them in step."""
    connection.execute(f"""UPDATE public."{name}" SET v = 'mine'""".encode())
    writer.write(staged({"n": numbers(2), "v": texts("y")}))
    assert rows(connection, name) == [(1, "mine"), (2, "y")]
    writer.write(staged({"n": numbers(1), "v": texts("z")}))
    assert rows(connection, name) == [(1, "z"), (2, "y")]
