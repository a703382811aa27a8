"""Schemas frozen into formats: which format holds a side's, and what becomes of those that were there."""

from __future__ import annotations

import pytest

from headgate.sql.ast.formats import SeedSchema
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.script import parse_statement
from headgate.sql.seeds import format_of, seeds_of, unseeded, with_seeds

pytestmark = pytest.mark.unit

AVRO = "AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
KEY, VALUE, NEWER = SeedSchema("KEY", 1, "k"), SeedSchema("VALUE", 2, "v"), SeedSchema("VALUE", 3, "w")
FORMATS = (f"FORMAT {AVRO}", f"KEY FORMAT {AVRO} VALUE FORMAT {AVRO}")


def sink(formats: str) -> CreateSink:
    statement = parse_statement(
        f"CREATE SINK s FROM r INTO KAFKA CONNECTION kafka (TOPIC 't') KEY (id) {formats}"
    )
    assert isinstance(statement, CreateSink)
    return statement


def frozen(statement: CreateSink) -> tuple[tuple[SeedSchema, ...], ...]:
    return tuple(seeds_of(format_of(statement.formats, side), side) for side in ("KEY", "VALUE"))


@pytest.mark.parametrize("formats", FORMATS)
def test_each_side_has_its_own_schemas_also_in_one_format(formats: str) -> None:
    seeded = with_seeds(with_seeds(sink(formats), "KEY", [KEY]), "VALUE", [VALUE, NEWER])
    assert frozen(seeded) == ((KEY,), (VALUE, NEWER))
    assert frozen(with_seeds(seeded, "VALUE", [NEWER])) == ((KEY,), (NEWER,))


@pytest.mark.parametrize("formats", FORMATS)
def test_taking_the_schemas_out_gives_the_statement_as_it_was(formats: str) -> None:
    bare = sink(formats)
    assert unseeded(with_seeds(with_seeds(bare, "KEY", [KEY]), "VALUE", [VALUE])) == bare


def test_a_format_without_a_registry_has_none() -> None:
    assert frozen(sink(f"KEY FORMAT TEXT VALUE FORMAT {AVRO}")) == ((), ())
    assert unseeded(sink("FORMAT JSON")) == sink("FORMAT JSON")
