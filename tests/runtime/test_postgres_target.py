"""A table as a target in a real PostgreSQL, without Spark: rows come as Arrow, as `toArrow` gives them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.errors import PostgresUnreachable
from headgate.connectors.postgres import Connection
from headgate.embedded.world import World
from headgate.plan.target_definitions import TableDefinition
from headgate.runtime.errors import Fenced
from headgate.runtime.ports import Batch, Ledger
from headgate.runtime.targets.errors import ColumnsIncompatible, TableChanged, TableInUse, TableLocked
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.postgres_merge import BadRow
from headgate.runtime.targets.postgres_tables import owner
from headgate.runtime.targets.table_rows import BAD, CHANGED, DELETE, HASH, OP, WRITE
from headgate.schema import types as t
from tests.runtime.tables import database, field, table

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

_names = count()


class Rows:
    """Staged rows, of which a target only asks for Arrow."""

    def __init__(self, columns: dict[str, pa.Array], ops: Sequence[int]) -> None:
        hashes = pa.array(range(100, 100 + len(ops)), pa.int64())
        self._table = pa.table({**columns, OP: pa.array(ops, pa.int32()), HASH: hashes})

    def toArrow(self) -> pa.Table:  # noqa: N802 - the name of Spark's method
        return self._table


def staged(columns: dict[str, pa.Array], ops: Sequence[int] | None = None) -> DataFrame:
    number = len(next(iter(columns.values())))
    return cast("DataFrame", Rows(columns, [WRITE] * number if ops is None else ops))


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def texts(*values: str | None) -> pa.Array:
    return pa.array(values, pa.string())


@pytest.fixture(scope="module")
def address(world: World) -> str:
    return world.ensure("postgres")["postgres"]


@pytest.fixture
def connection(address: str) -> Iterator[Connection]:
    with database(address).connect() as made:
        yield made


class Writer:
    """A target that has begun, and its batches one after the other."""

    def __init__(self, address: str, made: TableDefinition) -> None:
        self.target = PostgresTarget(made, database(address), 7, f"uuid of {made.name}", self.notices_append)
        self.notices: list[str] = []
        self.epoch = 1
        self.number = 0
        self.target.begin(self.epoch)

    def notices_append(self, text: str) -> None:
        self.notices.append(text)

    def batch(self) -> Batch:
        self.number += 1
        now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        return Batch(7, 1, self.number, self.epoch, at(self.number - 1), at(self.number), "k/r", now)

    def write(self, *parts: DataFrame) -> None:
        self.target.write_parts(parts, self.batch(), lambda: None)


def at(offset: int) -> dict[int, KafkaPosition]:
    return {3: KafkaPosition("topic", "id", (offset,))}


@pytest.fixture
def writers(address: str) -> Iterator[list[Writer]]:
    opened: list[Writer] = []
    yield opened
    for one in opened:
        one.target.close()


@pytest.fixture
def name() -> str:
    return f"target_{next(_names)}"


def rows(connection: Connection, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
    return connection.execute(f'SELECT {columns} FROM public."{name}" ORDER BY 1'.encode()).fetchall()


DAY = dt.date(2026, 11, 15)
MOMENT = dt.datetime(2026, 11, 15, 12, 30, 0, 123456)
MATRIX: list[tuple[t.Type, pa.DataType, list[Any], list[Any]]] = [
    (t.Boolean(), pa.bool_(), [True, False], [True, False]),
    (t.Integer(), pa.int32(), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    (t.Bigint(), pa.int64(), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    (t.Real(), pa.float32(), [1.5, math.inf], [1.5, math.inf]),
    (t.Double(), pa.float64(), [0.1, 5e-324, -math.inf], [0.1, 5e-324, -math.inf]),
    (t.Decimal(38, 18), pa.decimal128(38, 18), [Decimal("1.100000000000000000"), Decimal("-99999999999999999999.999999999999999999")], [Decimal("1.1"), Decimal("-99999999999999999999.999999999999999999")]),
    (t.Decimal(10, 0), pa.decimal128(10, 0), [Decimal(0), Decimal(9999999999)], [Decimal(0), Decimal(9999999999)]),
    (t.Text(), pa.string(), ["", "a\tb\n\\N", "ä🙂" * 1000], ["", "a\tb\n\\N", "ä🙂" * 1000]),
    (t.Bytes(), pa.binary(), [b"", b"\x00\xff"], [b"", b"\x00\xff"]),
    (t.Date(), pa.date32(), [dt.date(1, 1, 1), DAY, dt.date(9999, 12, 31)], [dt.date(1, 1, 1), DAY, dt.date(9999, 12, 31)]),
    (t.Time(), pa.time64("ns"), [0, 86_399_999_999_000], [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (t.Timestamp(), pa.timestamp("us"), [MOMENT, dt.datetime(1, 1, 1)], [MOMENT, dt.datetime(1, 1, 1)]),
    (t.TimestampTz(), pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=dt.UTC)], [MOMENT.replace(tzinfo=dt.UTC)]),
    (t.Json(), pa.string(), ['{"a": 1.10}', "null", "12345678901234567890.5"], [{"a": 1.1}, None, 12345678901234567890.5]),
    (t.Enum(("x", "y")), pa.string(), ["x"], ["x"]),
    (t.Array(t.Text()), pa.list_(pa.string()), [[], ["a", None, ""]], [[], ["a", None, ""]]),
    (t.Array(t.Bigint()), pa.list_(pa.int64()), [[2**63 - 1]], [[2**63 - 1]]),
    (t.Array(t.Boolean()), pa.list_(pa.bool_()), [[True, None]], [[True, None]]),
    (t.Array(t.Double()), pa.list_(pa.float64()), [[0.1]], [[0.1]]),
    (t.Array(t.Decimal(10, 2)), pa.list_(pa.string()), [["1.10", None]], [[Decimal("1.10"), None]]),
    (t.Array(t.TimestampTz()), pa.list_(pa.string()), [["2026-11-15T12:30:00.123456Z"]], [[MOMENT.replace(tzinfo=dt.UTC)]]),
    (t.Array(t.Bytes()), pa.list_(pa.string()), [["\\x00FF"]], [[b"\x00\xff"]]),
    (t.Map(t.Bigint()), pa.string(), ['{"a": 1}'], [{"a": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "arrow", "given", "expected"), MATRIX, ids=lambda value: str(value)[:30])
def test_every_type_makes_the_round_trip_with_its_extremes(
    address: str, connection: Connection, writers: list[Writer], name: str, type_: t.Type, arrow: pa.DataType, given: list[Any], expected: list[Any],
) -> None:  # fmt: skip
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True), field("v", type_, nullable=True)))
    writers.append(writer)
    for _ in range(2):  # inserted, then updated in place
        values = pa.array([*given, None], arrow)
        writer.write(staged({"n": numbers(*range(len(values))), "v": values}))
        assert [found for _, found in rows(connection, name)] == [*expected, None]


def test_keys_are_replaced_and_deleted_and_unchanged_rows_are_not_written(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("k", t.Text(), key=True), field("v", t.Bigint(), nullable=True)))
    writers.append(writer)
    writer.write(staged({"k": texts("a", "b", "c", "d"), "v": numbers(1, 2, 3, 4)}))
    before = dict(rows(connection, name, "k, xmin::text"))
    writer.write(
        staged({"k": texts("a", "b", "c"), "v": numbers(1, 5, None)}, [WRITE, WRITE, DELETE]),
        cast("DataFrame", Rows({"k": texts("d", "a")}, [CHANGED, CHANGED])),
    )
    assert rows(connection, name) == [("a", 1), ("b", 5)]
    assert dict(rows(connection, name, "k, xmin::text"))["a"] == before["a"]


def test_a_row_that_does_not_fit_keeps_its_key_as_it_was(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    made = table(name, field("k", t.Text(), key=True), field("v", t.Bigint()), on_error="SKIP")
    writer = Writer(address, made)
    writers.append(writer)
    writer.write(staged({"k": texts("a"), "v": numbers(1)}))
    writer.write(
        staged({"k": texts("a", "b"), "v": numbers(None, 2)}, [BAD, WRITE]),
        cast("DataFrame", Rows({"k": texts("a", "b")}, [CHANGED, CHANGED])),
    )
    assert rows(connection, name) == [("a", 1), ("b", 2)]
    assert writer.target.misfits == 1


def test_what_only_the_database_refuses_is_found_row_by_row(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    made = table(
        name, field("n", t.Bigint(), key=True), field("ip", t.Text(), native="inet", nullable=True),
        field("small", t.Integer(), native="smallint"), field("short", t.Text(), native="varchar(3)"),
        on_error="QUARANTINE",
    )  # fmt: skip
    writer = Writer(address, made)
    writers.append(writer)
    connection.execute(f'ALTER TABLE public."{name}" ADD CONSTRAINT low CHECK (n < 100)'.encode())
    good = [("10.0.0.1", "1", "abc"), (None, "32767", "")]
    bad = [("nonsense", "1", "a"), ("10.0.0.1", "32768", "a"), ("10.0.0.1", "1", "abcd")]
    given = [*good, *bad, ("10.0.0.2", "2", "x")]
    columns = {
        "n": numbers(0, 1, 2, 3, 4, 100),
        "ip": texts(*[row[0] for row in given]),
        "small": texts(*[row[1] for row in given]),
        "short": texts(*[row[2] for row in given]),
    }
    writer.write(staged(columns))
    assert [row[0] for row in rows(connection, name)] == [0, 1]
    found = {one.hash: (one.path, one.expected) for one in writer.target.refused}
    assert found[102] == ("$.ip", "inet")
    assert found[103] == ("$.small", "smallint")
    assert found[105][1] == "constraint low"
    assert set(found) == {102, 103, 104, 105}
    assert all("nonsense" not in one.reason for one in writer.target.refused)


def test_thousands_of_refused_rows_leave_the_others_written(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    made = table(name, field("n", t.Bigint(), key=True), field("v", t.Bigint()), on_error="SKIP")
    writer = Writer(address, made)
    writers.append(writer)
    connection.execute(f'ALTER TABLE public."{name}" ADD CONSTRAINT even CHECK (v % 2 = 0)'.encode())
    writer.write(staged({"n": numbers(*range(2_400)), "v": numbers(*range(2_400))}))
    assert rows(connection, name, "n") == [(number,) for number in range(0, 2_400, 2)]
    assert {one.hash for one in writer.target.refused} == {100 + number for number in range(1, 2_400, 2)}


@pytest.mark.parametrize(
    ("type_", "arrow", "before", "after", "shown"),
    [
        (t.Double(), pa.float64(), 0.0, -0.0, "-0"),
        (t.Real(), pa.float32(), -0.0, 0.0, "0"),
        (t.Json(), pa.string(), '{"a": 1.10}', '{"a": 1.1}', '{"a": 1.1}'),
        (t.Array(t.Double()), pa.list_(pa.float64()), [0.0], [-0.0], "{-0}"),
    ],
)
def test_a_value_that_is_equal_but_written_differently_is_replaced(
    address: str, connection: Connection, writers: list[Writer], name: str, type_: t.Type, arrow: pa.DataType, before: object, after: object, shown: str,
) -> None:  # fmt: skip
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True), field("v", type_)))
    writers.append(writer)
    for value in (before, after):
        writer.write(staged({"n": numbers(1), "v": pa.array([value], arrow)}))
    assert rows(connection, name, "v::text") == [(shown,)]


def test_a_constraint_that_is_checked_at_the_commit_blames_its_row(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True), on_error="SKIP"))
    writers.append(writer)
    connection.execute(f'CREATE TABLE public."{name}_known" (n bigint PRIMARY KEY)'.encode())
    connection.execute(f'INSERT INTO public."{name}_known" VALUES (1)'.encode())
    connection.execute(
        f'ALTER TABLE public."{name}" ADD FOREIGN KEY (n) REFERENCES public."{name}_known" DEFERRABLE INITIALLY DEFERRED'.encode()
    )
    writer.write(staged({"n": numbers(1, 2)}))
    assert rows(connection, name) == [(1,)]
    assert [one.hash for one in writer.target.refused] == [101]


@pytest.mark.parametrize(("type_", "arrow"), [(t.Real(), pa.float32()), (t.Double(), pa.float64())])
def test_a_number_in_an_adopted_numeric_column_keeps_its_digits(
    address: str, connection: Connection, writers: list[Writer], name: str, type_: t.Type, arrow: pa.DataType
) -> None:
    connection.execute(f'CREATE TABLE public."{name}" (n bigint PRIMARY KEY, v numeric)'.encode())
    made = table(name, field("n", t.Bigint(), key=True), field("v", type_), adopt=True)
    writer = Writer(address, made)
    writers.append(writer)
    writer.write(staged({"n": numbers(1), "v": pa.array([0.12345679], arrow)}))
    assert [str(found) for _, found in rows(connection, name)] == ["0.12345679"]


def test_a_deadlock_is_tried_again(address: str, connection: Connection, writers: list[Writer], name: str) -> None:
    """A trigger raises it, as two sessions that wait for each other take longer."""
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True)))
    writers.append(writer)
    connection.execute(
        f"""CREATE FUNCTION public."{name}_f"() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END $$""".encode()
    )
    connection.execute(
        f'CREATE TRIGGER t BEFORE INSERT ON public."{name}" EXECUTE FUNCTION public."{name}_f"()'.encode()
    )
    with pytest.raises(TableLocked) as raised:
        writer.write(staged({"n": numbers(1)}))
    assert raised.value.retryable


def test_under_halt_a_refused_row_ends_the_batch_and_nothing_is_written(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint()), field("ip", t.Text(), native="inet")))
    writers.append(writer)
    with pytest.raises(BadRow):
        writer.write(staged({"n": numbers(1, 2), "ip": texts("10.0.0.1", "x")}))
    assert rows(connection, name) == []
    assert [one.hash for one in writer.target.refused] == [101]


def test_a_table_that_somebody_dropped_is_made_again_and_must_be_filled_anew(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True)))
    writers.append(writer)
    writer.write(staged({"n": numbers(1)}))
    connection.execute(f'DROP TABLE public."{name}"'.encode())
    with pytest.raises(TableChanged):
        writer.write(staged({"n": numbers(2)}))
    for epoch in (2, 3):  # a crash before it is filled changes nothing
        found = writer.target.begin(epoch)
        assert found is not None
        assert (found.number, found.positions, found.definition) == (1, {}, "")
    assert "is filled anew" in writer.notices[-1]


def test_a_column_that_somebody_dropped_is_added_again(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True), field("v", t.Text(), nullable=True)))
    writers.append(writer)
    writer.write(staged({"n": numbers(1), "v": texts("x")}))
    connection.execute(f'ALTER TABLE public."{name}" DROP COLUMN v'.encode())
    writer.target.begin(2)
    assert rows(connection, name) == [(1, None)]
    assert "v text was added" in writer.notices[-1]


def test_a_statement_that_asks_for_all_rows_again_may_narrow_a_column_whatever_the_policy_says(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint(), key=True), field("v", t.Text(), nullable=True)))
    writers.append(writer)
    writer.write(staged({"n": numbers(1), "v": texts("x")}))
    narrow = table(name, field("n", t.Bigint(), key=True), field("v", t.Bigint(), nullable=True))
    narrow = replace(narrow, on_incompatible="ABORT")

    def begin(definition: str) -> Ledger | None:
        other = PostgresTarget(narrow, database(address), 7, f"uuid of {name}", name=definition)
        with closing(other):
            return other.begin(2)

    with pytest.raises(ColumnsIncompatible):
        begin("k/other")
    assert rows(connection, name) == [(1, "x")]
    found = begin("k2/r")
    assert found is not None
    assert found.positions == {}
    assert rows(connection, name) == [(1, None)]


def test_a_new_task_over_a_table_of_headgate_begins_out_of_step(address: str, writers: list[Writer], name: str) -> None:
    made = table(name, field("n", t.Bigint(), key=True))
    writers.append(Writer(address, made))
    other = PostgresTarget(made, database(address), 7, f"uuid of {name}")
    found = other.begin(2)
    other.close()
    assert found is not None
    assert (found.number, found.positions) == (0, {})


def test_a_connection_that_is_cut_between_copy_and_commit_leaves_nothing(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    writer = Writer(address, table(name, field("n", t.Bigint())))
    writers.append(writer)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"

    def before_commit() -> None:
        connection.execute(cut, (f"headgate:uuid of {name}",))

    batch = writer.batch()
    with pytest.raises(PostgresUnreachable):
        writer.target.write_parts([staged({"n": numbers(1)})], batch, before_commit)
    assert rows(connection, name) == []
    found = writer.target.begin(2)
    assert found is None or not found.positions


def test_a_replay_is_behind_the_fence_and_does_not_move_the_ledger(
    address: str, connection: Connection, writers: list[Writer], name: str
) -> None:
    made = table(name, field("n", t.Bigint()))
    writer = Writer(address, made)
    writers.append(writer)
    writer.write(staged({"n": numbers(1)}))
    writer.target.send([staged({"n": numbers(2)})])
    assert rows(connection, name) == [(1,), (2,)]
    other = PostgresTarget(made, database(address), 7, f"uuid of {name}")
    found = other.begin(5)
    assert found is not None
    assert found.positions == at(1)
    with pytest.raises(Fenced):
        writer.target.send([staged({"n": numbers(3)})])
    other.close()


def test_a_task_that_was_dropped_while_it_began_leaves_the_table_free(
    address: str, connection: Connection, name: str
) -> None:
    made = table(name, field("n", t.Bigint(), key=True))
    late = PostgresTarget(made, database(address), 7, f"uuid of {name}", is_dropped=lambda: True)
    with pytest.raises(TableInUse):
        late.begin(1)
    late.close()
    held = owner(connection, made.table)
    assert held is not None
    assert held.task is None
