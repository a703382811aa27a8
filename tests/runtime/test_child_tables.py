"""Child tables in a real PostgreSQL, without Spark: records are staged as JSON beside the rows of their parent."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from headgate.connectors.postgres import Connection
from headgate.errors import HeadgateError
from headgate.plan.child_tables import child_tables
from headgate.plan.target_definitions import NESTED, TableDefinition, TargetField, record_of
from headgate.runtime.targets.errors import ForeignColumnRequired, LinkKeepsRows, TableForeign, TableLacksKey
from headgate.runtime.targets.postgres_merge import BadRow
from headgate.runtime.targets.postgres_tables import check_table, release
from headgate.runtime.targets.table_rows import DELETE, WRITE
from headgate.schema import types as t
from tests.runtime import test_postgres_target as target
from tests.runtime.tables import field, table
from tests.runtime.test_postgres_target import Writer, numbers, rows, staged, texts

address, connection, name, writers = target.address, target.connection, target.name, target.writers  # fixtures

_laws = count()

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FIRST, SECOND = f"{NESTED}0", f"{NESTED}1"
LINE = t.Record((
    t.Field("sku", t.Text(), False), t.Field("price", t.Decimal(20, 4), True), t.Field("raw", t.Bytes(), True),
    t.Field("at", t.TimestampTz(), True), t.Field("sizes", t.Array(t.Double()), True), t.Field("any", t.Json(), True),
    t.Field("box", t.Record((t.Field("w", t.Bigint(), False),)), True),
))  # fmt: skip


def nested(of: str, *, city: t.Type | None = None, native: str | None = None) -> TableDefinition:
    key = field("id", t.Bigint(), key=True)
    inner = (field("city", city or t.Text()), field("zip", t.Bigint(), nullable=True, native=native))
    about = replace(field("about", record_of(inner), nullable=True), fields=inner)
    lines = field("lines", t.Array(LINE), nullable=True)
    made = table(of, key, on_error="SKIP")
    return replace(made, children=child_tables("m", made.table, made.columns, (about, lines)))


FULL = (
    '[{"sku": "a", "price": "1.1000", "raw": "AP8=", "at": "2026-11-15T12:30:00.000001Z", "sizes": [0.1, null, 1e300],'
    ' "any": {"x": 1.10}, "box": {"w": 9007199254740993}}, null, {"sku": "b"}]'
)


def test_records_are_replaced_with_their_parent_and_go_with_it(
    address: str,
    connection: Connection,
    writers: list[Writer],
    name: str,
) -> None:
    writer = Writer(address, nested(name))
    writers.append(writer)
    about = texts('{"city": "Bonn", "zip": null}', None)
    writer.write(staged({"id": numbers(1, 2), FIRST: about, SECOND: texts(FULL, "[]")}))
    assert rows(connection, name) == [(1,), (2,)]
    assert rows(connection, f"{name}_about") == [(1, "Bonn", None)]
    found = rows(connection, f"{name}_lines", '_index, id, sku, price, raw, sizes, "any", box_w')
    assert found == [
        (0, 1, "a", Decimal("1.1000"), b"\x00\xff", [0.1, None, 1e300], {"x": 1.1}, 9007199254740993),
        (2, 1, "b", None, None, None, None, None),
    ]
    writer.write(
        staged(
            {
                "id": numbers(1, 2),
                FIRST: texts(None, '{"city": "Ulm"}'),
                SECOND: texts('[{"sku": "c"}]', None),
            },
            [WRITE, WRITE],
        )
    )
    assert rows(connection, f"{name}_about") == [(2, "Ulm", None)]
    assert rows(connection, f"{name}_lines", "id, _index, sku") == [(1, 0, "c")]
    writer.write(staged({"id": numbers(1), FIRST: texts(None), SECOND: texts(None)}, [DELETE]))
    assert rows(connection, f"{name}_lines") == []
    assert rows(connection, name) == [(2,)]


def test_a_record_that_the_database_refuses_is_left_out_with_its_parent(
    address: str,
    connection: Connection,
    writers: list[Writer],
    name: str,
) -> None:
    made = nested(name, native="smallint")
    writer = Writer(address, made)
    writers.append(writer)
    about = texts('{"city": "Bonn", "zip": 70000}', '{"city": "Ulm", "zip": 7}')
    writer.write(staged({"id": numbers(1, 2), FIRST: about, SECOND: texts(None, None)}))
    assert rows(connection, name) == [(2,)]
    assert rows(connection, f"{name}_about") == [(2, "Ulm", 7)]
    assert len(writer.target.refused) == 1
    halting = Writer(address, replace(made, on_error="HALT"))
    writers.append(halting)
    halting.epoch, halting.number = writer.epoch, writer.number
    with pytest.raises(BadRow):
        halting.write(staged({"id": numbers(3), FIRST: texts('{"city": "x", "zip": -70000}'), SECOND: texts(None)}))


def test_a_key_that_gets_wider_does_so_in_all_tables_and_stays_linked(
    address: str,
    connection: Connection,
    writers: list[Writer],
    name: str,
) -> None:
    made = nested(name)
    writer = Writer(address, made)
    writers.append(writer)
    writer.write(staged({"id": numbers(1), FIRST: texts('{"city": "Bonn"}'), SECOND: texts(None)}))
    wide: TargetField = field("id", t.Text(), key=True)
    wider = table(name, wide)
    fields = tuple(one.staged.field for one in made.children)
    writers.append(Writer(address, replace(wider, children=child_tables("m", wider.table, wider.columns, fields))))
    assert rows(connection, f"{name}_about", "id, city") == [("1", "Bonn")]
    connection.execute(f"DELETE FROM public.{name}".encode())
    assert rows(connection, f"{name}_about") == []


def test_adopted_tables_keep_rows_of_others_and_their_records(
    address: str,
    connection: Connection,
    writers: list[Writer],
    name: str,
) -> None:
    connection.execute(
        f"CREATE TABLE public.{name} (id int PRIMARY KEY, mine text);"
        f"CREATE TABLE public.{name}_about (id int PRIMARY KEY, city text, mine text);"
        f"INSERT INTO public.{name} VALUES (1, 'x'), (2, 'x'); "
        f"INSERT INTO public.{name}_about VALUES (1, 'Bonn', 'x'), (2, 'Bonn', 'x'), (9, 'orphan', 'x')".encode()
    )
    made = nested(name)
    with pytest.raises(TableForeign):
        check_table(connection, made, new=True)
    made = replace(made, adopt=True)
    check_table(connection, made, new=True)
    writer = Writer(address, made)
    writers.append(writer)
    about = texts('{"city": "Ulm"}', '{"city": "Kiel"}')
    writer.write(staged({"id": numbers(1, 3), FIRST: about, SECOND: texts('[{"sku": "a"}]', None)}))
    assert rows(connection, name) == [(1, "x"), (2, "x"), (3, None)]
    assert rows(connection, f"{name}_about", "id, city, mine") == [
        (1, "Ulm", None), (2, "Bonn", "x"), (3, "Kiel", None), (9, "orphan", "x"),
    ]  # fmt: skip
    assert rows(connection, f"{name}_lines", "id, sku") == [(1, "a")]
    nothing = texts(None, None)
    writer.write(staged({"id": numbers(1, 2), FIRST: nothing, SECOND: nothing}, [DELETE, DELETE]))
    assert rows(connection, f"{name}_about", "id") == [(3,), (9,)]
    assert rows(connection, name, "id") == [(3,)]


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ("id bigint", TableLacksKey),
        ("id bigint PRIMARY KEY, must int NOT NULL", ForeignColumnRequired),
        ("id bigint PRIMARY KEY REFERENCES public.{name}", LinkKeepsRows),
    ],
)
def test_a_child_table_that_cannot_be_adopted_is_refused(
    connection: Connection, name: str, about: str, error: type[HeadgateError]
) -> None:
    columns = about.format(name=name)
    connection.execute(
        f"CREATE TABLE public.{name} (id bigint PRIMARY KEY); CREATE TABLE public.{name}_about ({columns})".encode()
    )
    with pytest.raises(error):
        check_table(connection, replace(nested(name), adopt=True), new=True)


def test_dropping_the_target_drops_the_child_tables(
    address: str,
    connection: Connection,
    writers: list[Writer],
    name: str,
) -> None:
    made = nested(name)
    writers.append(Writer(address, made))
    release(connection, made.table, f"uuid of {name}", drop=True)
    found = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE %s", (f"{name}%",)).fetchone()
    assert found == (0,)


WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=8)
LINES = st.none() | st.lists(st.none() | st.fixed_dictionaries({"sku": WORDS, "box": st.none() | st.fixed_dictionaries({"w": st.integers(-(2**63), 2**63 - 1)})}), max_size=4)  # fmt: skip
ORDERS = st.dictionaries(st.integers(0, 4), st.none() | LINES.map(lambda lines: ("row", lines)), min_size=1, max_size=5)


@given(st.lists(ORDERS, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_batches_the_child_table_has_the_records_of_the_last_row_of_each_key(
    address: str, connection: Connection, batches: list[dict[int, tuple[str, list[Any] | None] | None]]
) -> None:
    """None deletes a key."""
    writer = Writer(address, nested(f"law_{next(_laws)}"))
    wanted: dict[int, list[Any]] = {}
    for rows_ in batches:
        texts_ = [None if row is None else json.dumps(row[1]) if row[1] is not None else None for row in rows_.values()]
        ops = [DELETE if row is None else WRITE for row in rows_.values()]
        frame = {"id": numbers(*rows_), FIRST: texts(*[None] * len(rows_)), SECOND: texts(*texts_)}
        writer.write(staged(frame, ops))
        for id_, row in rows_.items():
            wanted.pop(id_, None)
            if row is not None:
                wanted[id_] = row[1] or []
    name_ = writer.target.table.table.name
    assert [id_ for (id_,) in rows(connection, name_)] == sorted(wanted)
    found = rows(connection, f"{name_}_lines", "id, _index, sku, box_w")
    expected = [
        (id_, index, line["sku"], line["box"] and line["box"]["w"])
        for id_, lines in wanted.items()
        for index, line in enumerate(lines)
        if line is not None
    ]
    writer.target.close()
    assert sorted(found, key=str) == sorted(expected, key=str)
