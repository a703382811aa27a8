"""What an index can be, and which of its fields get narrower."""

from __future__ import annotations

import pytest

from headgate.plan.indexes import check_index, index_name, narrowed_fields
from headgate.plan.materialization_errors import MalformedIndexName, TargetNameMissing
from headgate.plan.target_definitions import IndexDefinition, TargetField, ValuePath
from headgate.schema.errors import InvalidColumnName, UnsupportedType
from headgate.schema.parse import parse_type

pytestmark = pytest.mark.unit


def index(name: str, type_: str, native: str | None = None) -> IndexDefinition:
    parsed = parse_type(type_)
    return IndexDefinition("m", 1, 1, "i", (TargetField(name, ValuePath(name), parsed, parsed, True, native),), ())


def test_an_index_needs_a_name_that_it_can_have() -> None:
    assert index_name("m", "orders") == "orders"
    with pytest.raises(TargetNameMissing):
        index_name("m", None)
    with pytest.raises(MalformedIndexName):
        index_name("m", "Orders")


def test_an_index_needs_fields_that_it_can_have() -> None:
    check_index(index("a", "text", "keyword"))
    with pytest.raises(InvalidColumnName):
        check_index(index("a.b", "text"))
    with pytest.raises(UnsupportedType):
        check_index(index("a", "text", "long"))


@pytest.mark.parametrize(
    ("before", "after", "narrowed"),
    [
        ("integer", "bigint", False),
        ("bigint", "text", False),
        ("text", "text", False),
        ("bigint", "integer", True),
        ("text", "bigint", True),
        ("record(a integer)", "record(a bigint, b text)", False),
        ("record(a bigint)", "record(a integer)", True),
        ("record(a bigint, b text)", "record(a text)", False),
        ("array<bigint>", "array<text>", False),
        ("array<bigint>", "text", True),
        ("bytes", "text", True),
        ("map<text, bigint>", "map<text, double>", True),
        ("record(a bigint)", "json", False),
        ("text", "json", True),
    ],
)
def test_a_narrower_field_is_found(before: str, after: str, narrowed: bool) -> None:
    found = narrowed_fields(index("f", before), index("f", after))
    assert bool(found) is narrowed
