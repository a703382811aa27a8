"""The tables of the docs: complete, and as the mappers have it."""

from __future__ import annotations

import typing

import pytest

from headgate.schema.evolve.verdicts import Target
from headgate.schema.parse import parse_type
from headgate.schema.types import Named, Type
from tools.type_losses import READ_CONVERSIONS, ROUND_TRIP_LOSSES, Loss
from tools.type_tables import FORMATS, TYPES, change_table, loss_table, reading_table, type_table

pytestmark = pytest.mark.unit


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def test_every_type_is_in_the_table() -> None:
    shown = {type(parse_type(text)) for text in TYPES}
    assert shown == set(typing.get_args(Type)) - {Named}


def test_a_row_of_the_type_table_is_what_the_mappers_make() -> None:
    head, _, *rows = type_table().splitlines()
    assert _cells(head)[2:] == ["Avro", "JSON Schema", "Protobuf", "Spark", "PostgreSQL", "Elasticsearch"]
    row = next(row for row in rows if row.startswith("| `timestamptz`"))
    assert _cells(row) == [
        "`timestamptz`",
        "`timestamp with time zone`",
        '`{"type": "long", "logicalType": "timestamp-micros"}`',
        '`{"type": "string", "format": "date-time"}`',
        "`google.protobuf.Timestamp`",
        "`timestamp`",
        "`timestamp with time zone`",
        '`{"type": "date", "format": "strict_date_optional_time_nanos"}`',
    ]


@pytest.mark.parametrize(
    "table",
    [type_table(), change_table(), *map(loss_table, FORMATS), *map(reading_table, FORMATS)],
)
def test_every_row_has_as_many_cells_as_the_head(table: str) -> None:
    head, *rows = table.splitlines()
    assert len(rows) >= 2
    assert all(len(_cells(row.replace("\\|", ""))) == len(_cells(head)) for row in rows[1:])


def test_the_losses_of_a_format_are_all_listed() -> None:
    assert loss_table("postgres").count("\n") == 2 + len(ROUND_TRIP_LOSSES["postgres"])


@pytest.mark.parametrize("losses", [*ROUND_TRIP_LOSSES.values(), *READ_CONVERSIONS.values()])
def test_every_loss_says_what_it_becomes(losses: tuple[Loss, ...]) -> None:
    assert all(loss.type and loss.becomes for loss in losses)
    assert len({(loss.type, loss.becomes) for loss in losses}) == len(losses)


def test_the_table_of_changes_has_a_verdict_for_every_target() -> None:
    head, _, *rows = change_table().splitlines()
    assert _cells(head) == ["change", *(target.value for target in Target)]
    row = next(row for row in rows if row.startswith("| integer to bigint"))
    assert _cells(row)[3:5] == [
        "**in place**: the column becomes bigint",
        "**made anew**: a field keeps its type: a new index is filled behind the alias",
    ]
