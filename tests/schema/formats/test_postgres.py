"""PostgreSQL's types and the columns of a record."""

from __future__ import annotations

import pytest
from hypothesis import given

from headgate.errors import ErrorGroup
from headgate.schema.errors import InvalidColumnName, NameClash, NameTooLong, UnresolvedType, UnsupportedType
from headgate.schema.formats.postgres import columns, from_postgres, to_postgres
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Array, Enum, Field, Record, Text, Type
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.records import record_type
from tests.schema.round_trip import EVERY_KIND, Lost, declared, lost

pytestmark = pytest.mark.unit


@examples(30)
@given(s.types())
def test_what_comes_back_is_the_type_or_a_declared_loss(type_: Type) -> None:
    assert lost(type_, from_postgres(to_postgres(type_))) <= declared("postgres")


@examples(30)
@given(s.types())
def test_a_second_round_trip_loses_nothing_more(type_: Type) -> None:
    once = from_postgres(to_postgres(type_))
    assert from_postgres(to_postgres(once)) == once


def test_every_declared_loss_happens() -> None:
    seen: Lost = set()
    for type_ in EVERY_KIND:
        seen |= lost(type_, from_postgres(to_postgres(type_)))
    assert seen == declared("postgres")


COLUMN_TYPES = {
    "boolean": "boolean", "integer": "integer", "bigint": "bigint", "real": "real", "double": "double precision",
    "decimal(10,2)": "numeric(10,2)", "text": "text", "bytes": "bytea", "bytes(16)": "bytea", "date": "date",
    "time": "time without time zone", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone", "uuid": "uuid", "json": "jsonb", "enum('a')": "text",
    "array<integer>": "integer[]", "array<timestamptz>": "timestamp with time zone[]", "array<decimal(5,1)>": "numeric(5,1)[]",
    "array<record(a text)>": "jsonb", "array<array<text>>": "jsonb", "map<text, integer>": "jsonb",
}  # fmt: skip


@pytest.mark.parametrize(("type_", "column"), COLUMN_TYPES.items())
def test_the_column_type_is(type_: str, column: str) -> None:
    assert to_postgres(parse_type(type_)) == column


READ = {
    "int4": "integer", "smallint": "integer", "int8": "bigint", "float8": "double", "numeric": "decimal(38,18)",
    "numeric(7)": "decimal(7,0)", "character varying(20)": "text", "character(3)": "text", "bpchar": "text",
    "timestamp(3) without time zone": "timestamp", "timestamptz": "timestamptz", "timestamp(0) with time zone": "timestamptz",
    "time(2) without time zone": "time", "json": "json", "integer[]": "array<integer>", "text[][]": "array<text>",
    "numeric(5,2)[]": "array<decimal(5,2)>", "varchar(3)[]": "array<text>", "DOUBLE  PRECISION": "double",
}  # fmt: skip


@pytest.mark.parametrize(("column", "type_"), READ.items())
def test_a_column_is_read_as(column: str, type_: str) -> None:
    assert print_type(from_postgres(column)) == type_


@pytest.mark.parametrize(
    "column",
    [
        "interval",
        "money",
        "inet",
        "time with time zone",
        "numeric(50,2)",
        "numeric(5,-2)",
        "numeric(2,5)",
        "mood",
        "((",
        "",
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_path(column: str) -> None:
    with pytest.raises(UnsupportedType) as raised:
        from_postgres(column, "$.c")
    assert raised.value.path == "$.c"


def test_the_database_s_own_types_are_read_where_they_are_known() -> None:
    known: dict[str, Type] = {"mood": Enum(("sad", "glad")), 'shop."E mail"': Text()}
    assert from_postgres("mood[]", known=known) == Array(Enum(("sad", "glad")))
    assert from_postgres('shop."E mail"', known=known) == Text()


def test_a_record_becomes_its_leaves_joined_by_underscores() -> None:
    record = record_type(
        "record(id bigint not null, home record(street text not null comment 'with number', at record(x double) not null),"
        " tags array<text> not null, lines array<record(n integer)>, none record() not null)"
    )
    assert [(c.name, c.path, c.postgres, c.nullable, c.doc) for c in columns(record)] == [
        ("id", "$.id", "bigint", False, None),
        ("home_street", "$.home.street", "text", True, "with number"),
        ("home_at_x", "$.home.at.x", "double precision", True, None),
        ("tags", "$.tags", "text[]", False, None),
        ("lines", "$.lines", "jsonb", True, None),
        ("none", "$.none", "jsonb", False, None),
    ]


def test_two_fields_that_become_one_column_are_refused() -> None:
    with pytest.raises(NameClash) as raised:
        columns(record_type("record(a_b text, a record(b text))"))
    assert raised.value.message() == 'fields $.a_b and $.a.b would both become the column "a_b"'


def test_names_that_differ_only_in_case_are_two_columns() -> None:
    assert [c.name for c in columns(record_type('record(a text, "A" text)'))] == ["a", "A"]


@pytest.mark.parametrize(("name", "fits"), [("x" * 63, True), ("x" * 64, False), ("é" * 31, True), ("é" * 32, False)])
def test_the_limit_of_63_is_in_bytes(name: str, fits: bool) -> None:
    record = Record((Field(name, Text()),))
    if fits:
        assert columns(record)[0].name == name
    else:
        with pytest.raises(NameTooLong):
            columns(record)


def test_the_limit_holds_for_the_joined_name_and_all_problems_are_raised_together() -> None:
    inner = Record((Field("y" * 40, Text()), Field("y" * 40 + "\0", Text())))
    with pytest.raises(ErrorGroup) as raised:
        columns(Record((Field("x" * 40, inner),)))
    assert [type(e) for e in raised.value.errors] == [NameTooLong, InvalidColumnName, NameTooLong]


@pytest.mark.parametrize("name", ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"])
def test_a_column_that_every_table_has_is_refused(name: str) -> None:
    with pytest.raises(InvalidColumnName):
        columns(Record((Field(name, Text()),)))


def test_a_type_of_the_catalog_must_be_resolved_first() -> None:
    with pytest.raises(UnresolvedType) as raised:
        columns(record_type("record(a record(p point))"))
    assert raised.value.path == "$.a.p"
