"""NESTED = TABLES: which tables the records of a materialization become, and what is refused."""

from __future__ import annotations

import pytest

from headgate.errors import ErrorGroup, HeadgateError
from headgate.plan import materialization_errors as errors
from headgate.plan.plans import ProvisionTable
from headgate.plan.target_definitions import ChildTable, TableDefinition
from headgate.plan.widening import narrowed_columns
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong
from tests.plan.planning import AVRO, Planning, record, with_orders

pytestmark = pytest.mark.unit

PHONE = record("phone", ("number", "string"), ("kind", ["null", "string"]))
LINE = record("line", ("sku", "string"), ("n", "int"), ("box", ["null", record("box", ("w", "double"))]),
              ("parts", {"type": "array", "items": record("part", ("p", "int"))}))  # fmt: skip
ADDRESS = record(
    "address", ("city", "string"), ("zip", ["null", "long"]), ("phones", {"type": "array", "items": PHONE})
)
ORDERS = record(
    "orders", ("id", "long"), ("tags", {"type": "array", "items": "string"}), ("address", ["null", ADDRESS]),
    ("lines", {"type": "array", "items": LINE}),
)  # fmt: skip
PG = "CREATE CONNECTION pg TO POSTGRES (HOST 'h', DATABASE 'd') WITH (VALIDATE = false)"
KEYED = "ENVELOPE UPSERT (KEY (id))"


def planned(rest: str = "", *, schema: object = ORDERS, envelope: str = KEYED, name: str = "t") -> TableDefinition:
    made: Planning = with_orders(schema)
    made.do(f"{PG}; CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} {envelope}")
    into = f"CREATE MATERIALIZATION m FROM orders INTO POSTGRES CONNECTION pg (TABLE '{name}')"
    (effect,) = made.change(f"{into} {rest} WITH (NESTED = TABLES)").effects
    assert isinstance(effect, ProvisionTable)
    return effect.table


def refused(rest: str = "", *, schema: object = ORDERS, envelope: str = KEYED, name: str = "t") -> HeadgateError:
    with pytest.raises(HeadgateError) as raised:
        planned(rest, schema=schema, envelope=envelope, name=name)
    return raised.value


def columns(table: TableDefinition) -> list[str]:
    return [f"{c.name} {c.postgres}{'' if c.nullable else ' not null'}" for c in table.columns]


def child(table: TableDefinition, name: str) -> ChildTable:
    return next(one for one in table.children if one.table.name == name)


def test_records_and_arrays_of_records_become_tables_with_the_key_of_their_parent() -> None:
    table = planned()
    assert columns(table) == ["id bigint not null", "tags text[] not null"]
    assert [str(one.table) for one in table.children] == [
        "public.t_address",
        "public.t_address_phones",
        "public.t_lines",
    ]
    address = child(table, "t_address").definition(table)
    assert (columns(address), address.key) == (
        ["id bigint not null", "city text not null", "zip bigint"],
        ("id",),
    )
    phones = child(table, "t_address_phones").definition(table)
    assert (columns(phones), phones.key) == (
        ["id bigint not null", "_index integer not null", "number text not null", "kind text"],
        ("id", "_index"),
    )


def test_inside_an_array_records_are_flat_and_arrays_of_records_are_json() -> None:
    table = planned()
    lines = child(table, "t_lines").definition(table)
    assert columns(lines)[2:] == [
        "sku text not null",
        "n integer not null",
        "box_w double precision",
        "parts jsonb not null",
    ]


def test_listed_objects_and_arrays_become_tables_too() -> None:
    table = planned(
        "FIELDS (id i64, at OBJECT (town string FROM '/address/city', zip i64 FROM '/address/zip' NULL AS 'numeric(20,0)'))"
    )
    assert columns(table) == ["id bigint not null"]
    (at,) = table.children
    assert columns(at.definition(table)) == ["id bigint not null", "town text not null", "zip numeric(20,0)"]


def test_child_tables_need_a_key() -> None:
    error = refused(envelope="")
    assert isinstance(error, errors.ChildTablesNeedKey)
    assert error.hint() == "Read a relation with a key, or write NESTED = FLATTEN or JSON."
    assert planned("FIELDS (id i64)", envelope="").children == ()  # nothing nested, nothing to refuse


def test_a_leaf_with_the_name_of_the_key_and_a_table_that_comes_twice_are_refused() -> None:
    lines = {"type": "array", "items": record("line", ("id", "long"), ("_index", "int"))}
    error = refused(schema=record("orders", ("id", "long"), ("lines", lines)))
    assert isinstance(error, ErrorGroup)
    assert [type(one) for one in error.errors] == [NameClash, NameClash]
    inner = {"type": "array", "items": record("c", ("x", "int"))}
    twice = record("orders", ("id", "long"), ("a", record("a", ("b", inner))), ("a_b", record("d", ("y", "int"))))
    assert isinstance(refused(schema=twice), errors.ChildTableTwice)
    assert isinstance(refused(name="t" * 55), NameTooLong | ErrorGroup)
    system = {"type": "array", "items": record("line", ("xmin", "int"))}
    assert isinstance(refused(schema=record("orders", ("id", "long"), ("lines", system))), InvalidColumnName)


def test_columns_of_child_tables_count_as_columns_that_narrow() -> None:
    old, new = (
        planned("FIELDS (id i64, a OBJECT (zip i64 FROM '/address/zip' NULL))"),
        planned("FIELDS (id i64, a OBJECT (zip i32 FROM '/address/zip' NULL))"),
    )
    assert narrowed_columns(old, new) == ("t_a.zip from bigint to integer",)
