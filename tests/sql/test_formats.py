"""Schemas frozen into formats: which format holds a side's, and what becomes of those that were there."""

from __future__ import annotations

import pytest

from headgate.sql.formats import (
    Formats,
    format_of,
    frozen_schemas,
    with_frozen_schemas,
)
from headgate.sql.registry_formats import FrozenSchema
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink

pytestmark = pytest.mark.unit

AVRO = "AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
KEY, VALUE, NEWER = FrozenSchema("KEY", 1, "k"), FrozenSchema("VALUE", 2, "v"), FrozenSchema("VALUE", 3, "w")
FORMATS = (f"FORMAT {AVRO}", f"KEY FORMAT {AVRO} VALUE FORMAT {AVRO}")


def parsed(formats: str) -> Formats:
    statement = parse_statement(f"CREATE SINK s FROM r INTO KAFKA CONNECTION kafka (TOPIC 't') KEY (id) {formats}")
    assert isinstance(statement, CreateSink)
    return statement.formats


def frozen(formats: Formats) -> tuple[tuple[FrozenSchema, ...], ...]:
    return tuple(frozen_schemas(format_of(formats, side), side) for side in ("KEY", "VALUE"))


@pytest.mark.parametrize("formats", FORMATS)
def test_each_side_has_its_own_schemas_also_in_one_format(formats: str) -> None:
    both = with_frozen_schemas(with_frozen_schemas(parsed(formats), "KEY", [KEY]), "VALUE", [VALUE, NEWER])
    assert frozen(both) == ((KEY,), (VALUE, NEWER))
    assert frozen(with_frozen_schemas(both, "VALUE", [NEWER])) == ((KEY,), (NEWER,))


def test_a_format_without_a_registry_has_none() -> None:
    assert frozen(parsed(f"KEY FORMAT TEXT VALUE FORMAT {AVRO}")) == ((), ())
