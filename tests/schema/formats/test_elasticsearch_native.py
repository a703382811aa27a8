"""Types in an index's own words, and names that an index may have."""

from __future__ import annotations

import pytest

from headgate.schema.errors import UnsupportedType
from headgate.schema.formats.elasticsearch import LONGEST_NAME, index_name_problem, native_field, to_elasticsearch_field
from headgate.schema.parse import parse_type

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("type_", "native", "mapping"),
    [
        ("text", "keyword", {"type": "keyword"}),
        ("text", "ip", {"type": "ip"}),
        ("array<text>", "keyword", {"type": "keyword"}),
        ("bigint", "short", {"type": "short"}),
        ("decimal(10,2)", "scaled_float", {"type": "scaled_float", "scaling_factor": 100}),
        ("timestamptz", "date_nanos", {"type": "date_nanos", "format": "strict_date_optional_time_nanos"}),
        ("array<record(a integer)>", "nested", {"type": "nested", "properties": {"a": {"type": "integer"}}}),
        ("record(a integer)", "object", {"properties": {"a": {"type": "integer"}}}),
    ],
)
def test_a_native_type_is(type_: str, native: str, mapping: dict[str, object]) -> None:
    parsed = parse_type(type_)
    assert native_field(to_elasticsearch_field(parsed), parsed, native, "$.f") == mapping


@pytest.mark.parametrize(
    ("type_", "native"),
    [("bigint", "float"), ("double", "float"), ("text", "long"), ("decimal(16,2)", "scaled_float"), ("bytes", "keyword"),
     ("bigint", "nonsense"), ("json", "nested")],
)  # fmt: skip
def test_a_native_type_that_would_change_values_is_refused(type_: str, native: str) -> None:
    parsed = parse_type(type_)
    with pytest.raises(UnsupportedType) as raised:
        native_field(to_elasticsearch_field(parsed), parsed, native, "$.f")
    assert raised.value.hint()


@pytest.mark.parametrize("name", ["orders", "orders-2026", "übersicht", "a.b", ".hidden", "x" * LONGEST_NAME])
def test_a_name_may_be(name: str) -> None:
    assert index_name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "Orders", "a b", "a/b", "a*", 'a"', "a,b", "a#", "a:b", "-a", "_a", "+a", ".", "..", "ü" * LONGEST_NAME],
)
def test_a_name_may_not_be(name: str) -> None:
    assert index_name_problem(name) is not None
