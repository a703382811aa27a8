"""The mapping of a materialized index: what it is, how it differs from another one, and what documents become in a wider one."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.plan.indexes import wanted_mapping, written_as_number
from headgate.plan.target_definitions import Fields, IndexDefinition, TargetField, ValuePath
from headgate.runtime.targets.search_convert import converted, converter
from headgate.runtime.targets.search_mapping import (
    Changed,
    difference,
    field_count,
    field_limit,
    merged,
    merged_templates,
)
from headgate.schema.errors import UnsupportedType
from headgate.schema.parse import parse_type
from headgate.schema.types import Record

pytestmark = pytest.mark.unit


def field(name: str, type_: str, native: str | None = None, doc: str | None = None) -> TargetField:
    parsed = parse_type(type_)
    inner: Fields = ()
    if isinstance(parsed, Record):
        inner = tuple(
            TargetField(f.name, ValuePath(name, (f.name,)), f.type, f.type, f.nullable) for f in parsed.fields
        )
    return TargetField(name, ValuePath(name), parsed, parsed, True, native, doc, fields=inner)


def index(*fields: TargetField, key: tuple[str, ...] = ()) -> IndexDefinition:
    return IndexDefinition("m", 7, 1, "i", fields, key, doc="all orders")


def mapping(*fields: TargetField) -> dict[str, Any]:
    return wanted_mapping(index(*fields), opensearch=True)


def test_the_mapping_is_strict_and_tells_types_and_docs() -> None:
    found = mapping(field("id", "bigint", doc="the number"), field("t", "text", "keyword"))
    assert found["dynamic"] == "strict"
    assert found["properties"] == {"id": {"type": "long"}, "t": {"type": "keyword"}}
    about = found["_meta"]["headgate"]
    assert (about["doc"], about["fields"], about["type"]) == (
        "all orders",
        {"id": "the number"},
        "record(id bigint, t text)",
    )


def test_each_product_has_its_own_word_for_json() -> None:
    one = index(field("j", "json"))
    assert wanted_mapping(one, opensearch=True)["properties"]["j"] == {"type": "flat_object"}
    assert wanted_mapping(one, opensearch=False)["properties"]["j"] == {"type": "flattened"}


def test_a_decimal_is_written_as_a_number_where_the_index_has_one() -> None:
    one = index(field("d", "decimal(10,2)", "scaled_float"), field("k", "decimal(10,2)"))
    assert wanted_mapping(one, opensearch=True)["properties"]["d"] == {"type": "scaled_float", "scaling_factor": 100}
    assert written_as_number(parse_type("array<decimal(10,2)>")) == parse_type("array<double>")


def test_a_native_type_may_be_inside_an_object() -> None:
    inner = TargetField("ip", ValuePath("home", ("ip",)), parse_type("text"), parse_type("text"), True, "ip")
    home = TargetField("home", ValuePath("home"), parse_type("record(ip text)"), None, True, fields=(inner,))
    assert mapping(home)["properties"]["home"]["properties"] == {"ip": {"type": "ip"}}
    with pytest.raises(UnsupportedType):
        mapping(field("t", "bigint", "ip"))


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("integer", "bigint", Changed("f", "integer", "long")),
        ("bigint", "decimal(38,0)", Changed("f", "long", "keyword")),
        ("date", "timestamp", Changed("f", "date", "date")),
        ("record(a integer)", "record(a double)", Changed("f.a", "integer", "double")),
        ("map<text, integer>", "map<text, bigint>", Changed("f.*", "integer", "long")),
        ("integer", "array<integer>", None),
        ("text", "text", None),
    ],
)
def test_a_wider_type_is_found(before: str, after: str, changed: Changed | None) -> None:
    found = difference(mapping(field("f", before)), mapping(field("f", after)))
    assert found.changed == (() if changed is None else (changed,))
    assert found.added == {}


def test_new_fields_are_found_at_any_depth() -> None:
    held = mapping(field("a", "integer"), field("r", "record(x text)"))
    wanted = mapping(field("a", "integer"), field("r", "record(x text, y bigint)"), field("n", "boolean"))
    found = difference(held, wanted)
    assert found.changed == ()
    assert found.added == {"r": {"properties": {"y": {"type": "long"}}}, "n": {"type": "boolean"}}


def test_fields_that_nobody_wants_any_more_are_no_difference() -> None:
    found = difference(mapping(field("a", "integer"), field("b", "text")), mapping(field("a", "integer")))
    assert (found.added, found.changed) == ({}, ())


def test_a_foreign_index_may_format_dates_in_its_own_way() -> None:
    held = {"properties": {"d": {"type": "date"}, "t": {"type": "text", "analyzer": "german"}}}
    wanted = mapping(field("d", "timestamp"), field("t", "text"))
    assert difference(held, wanted, foreign=True).changed == ()
    assert difference(held, wanted).changed == (Changed("d", "date", "date"),)


def test_a_merged_mapping_keeps_old_fields_and_has_the_wider_types() -> None:
    held = mapping(field("a", "integer"), field("old", "text"), field("r", "record(x integer)"))
    wanted = mapping(field("a", "bigint"), field("r", "record(x integer, y text)"))
    made = merged(held, wanted)
    assert made["properties"]["a"] == {"type": "long"}
    assert made["properties"]["old"]["type"] == "text"
    assert sorted(made["properties"]["r"]["properties"]) == ["x", "y"]
    assert made["_meta"] == wanted["_meta"]
    assert difference(made, wanted) == difference(wanted, wanted)


def test_a_template_of_the_same_map_is_replaced() -> None:
    held, wanted = mapping(field("m", "map<text, integer>")), mapping(field("m", "map<text, bigint>"))
    foreign = {"dynamic_templates": [{"mine": {"match": "x", "mapping": {"type": "ip"}}}, *held["dynamic_templates"]]}
    [first, second] = merged_templates(foreign, wanted)
    assert [*first] == ["mine"]
    assert second["values of m"]["mapping"] == {"type": "long"}


@pytest.mark.parametrize(
    ("held", "wanted", "same"),
    [("integer", "long", True), ("long", "double", True), ("keyword", "text", True), ("date", "date", True),
     ("long", "keyword", False), ("long", "text", False), ("boolean", "text", False), ("date", "text", False),
     ("text", "flat_object", False)],
)  # fmt: skip
def test_the_server_copies_what_keeps_its_json(held: str, wanted: str, same: bool) -> None:
    assert Changed("f", held, wanted).same_json is same


@pytest.mark.parametrize(
    ("value", "before", "after", "result"),
    [
        (5, "bigint", "text", "5"),
        (True, "boolean", "text", "true"),
        (1.5, "double", "text", "1.5"),
        ("2026-01-02", "date", "text", "2026-01-02"),
        (5, "bigint", "decimal(38,0)", "5"),
        (5, "integer", "double", 5.0),
        ([1, None], "array<bigint>", "array<text>", ["1", None]),
        ({"a": 1, "b": 2}, "record(a bigint)", "record(a text)", {"a": "1", "b": 2}),
        ({"k": 1}, "map<text, bigint>", "map<text, text>", {"k": "1"}),
        ({"k": 1}, "json", "text", '{"k":1}'),
        ({"k": 1}, "record(k bigint)", "json", {"k": 1}),
        (None, "bigint", "text", None),
    ],
)
def test_a_value_becomes_json_of_the_wider_type(value: object, before: str, after: str, result: object) -> None:
    assert converted(value, parse_type(before), parse_type(after)) == result


def test_a_document_keeps_all_that_does_not_change() -> None:
    held, wanted = ({"type": f"record(a {a}, b bigint)"} for a in ("bigint", "text"))
    convert = converter(held, wanted, [Changed("a", "long", "text")])
    assert convert({"a": 1, "b": 2, "c": [3]}) == {"a": "1", "b": 2, "c": [3]}
    assert convert({"b": 2, "a": None}) == {"b": 2, "a": None}


def test_the_limit_of_fields_grows_with_the_mapping_and_leaves_room_for_keys_of_maps() -> None:
    """A text has a sub-field, which servers count, and so are objects and what a flat object is made of."""
    small = mapping(field("t", "text"), field("o", "record(n bigint, k uuid)"), field("j", "json"))
    assert field_count(small) == 2 + 3 + 3
    assert field_limit(small) == 1008
    wide = mapping(*(field(f"t{number}", "text") for number in range(600)))
    assert field_limit(wide) == 2200
    assert field_limit(wide, {}) == 2200
    assert field_limit(wide, {"mapping": {"total_fields": {"limit": "1200"}}}) is None
    assert field_limit(wide, {"mapping": {"total_fields": {"limit": "1199"}}}) == 2200
