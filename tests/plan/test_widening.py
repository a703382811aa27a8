"""Which columns of PostgreSQL can be changed where they stand."""

from __future__ import annotations

import pytest

from headgate.plan.widening import widening
from headgate.runtime.targets.postgres_columns import holds

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("integer", "bigint"),
        ("smallint", "integer"),
        ("bigint", "numeric(19,0)"),
        ("integer", "double precision"),
        ("real", "double precision"),
        ("double precision", "numeric"),
        ("numeric(10,2)", "numeric(12,3)"),
        ("numeric(10,2)", "numeric"),
        ("boolean", "text"),
        ("uuid", "text"),
        ("timestamp with time zone", "text"),
        ("character varying(10)", "character varying(20)"),
        ("character varying(10)", "text"),
        ("text[]", "jsonb"),
        ("bytea", "jsonb"),
    ],
)
def test_a_wider_type_holds_every_value(old: str, new: str) -> None:
    assert widening(old, new) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "integer"),
        ("bigint", "double precision"),
        ("bigint", "numeric(18,0)"),
        ("numeric(10,2)", "numeric(10,3)"),
        ("numeric", "numeric(38,18)"),
        ("double precision", "real"),
        ("double precision", "bigint"),
        ("text", "bigint"),
        ("text[]", "text"),
        ("bytea", "text"),
        ("jsonb", "bigint"),
        ("boolean", "integer"),
        ("character varying(20)", "character varying(10)"),
        ("date", "timestamp without time zone"),
    ],
)
def test_anything_else_is_not_done_in_place(old: str, new: str) -> None:
    assert widening(old, new) is None


def test_a_double_becomes_numeric_by_its_text_because_a_cast_keeps_fifteen_digits() -> None:
    assert widening("double precision", "numeric") == "{column}::text::numeric"


@pytest.mark.parametrize(
    ("column", "written", "fits"),
    [
        ("bigint", "integer", True),
        ("numeric", "double precision", True),
        ("integer", "bigint", False),
        ("text", "bigint", False),
        ("jsonb", "bigint", False),
    ],
)
def test_a_column_that_is_wider_than_what_is_written_stays(column: str, written: str, fits: bool) -> None:
    assert holds(column, written) is fits
