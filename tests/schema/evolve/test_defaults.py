"""Defaults: what a field has in records that were written without it, and which versions a source must keep for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.schema.encodings import SchemaEncoding, decoded_type, needed_past
from headgate.schema.formats.avro.defaults import avro_default, neutral_default
from headgate.schema.formats.avro.read import load_tree, read_tree
from headgate.schema.formats.avro.tree import Record as AvroRecord, values_of
from headgate.schema.render import print_type
from headgate.schema.types import Record
from headgate.schema.written import SchemaFormat, WrittenSchema

pytestmark = pytest.mark.unit

ID = {"name": "id", "type": "int"}


def version(number: int, *fields: dict[str, Any]) -> WrittenSchema:
    return WrittenSchema(json.dumps({"type": "record", "name": "r", "fields": [ID, *fields]}), (), number)


def region(**more: object) -> dict[str, Any]:
    return {"name": "region", "type": "string", **more}


def read(side: SchemaEncoding) -> tuple[str, list[str | None]]:
    type_ = decoded_type(side).type
    assert isinstance(type_, Record)
    return print_type(type_), [field.default for field in type_.fields]


def made_before(*versions: WrittenSchema) -> SchemaEncoding:
    return SchemaEncoding(SchemaFormat.AVRO, versions)


def made_after(*versions: WrittenSchema) -> SchemaEncoding:
    last = SchemaEncoding(SchemaFormat.AVRO, versions[-1:])
    return SchemaEncoding(SchemaFormat.AVRO, versions[-1:], past=needed_past(last, versions[:-1]))


NOT_NULL, NULLABLE = (
    "record(id integer not null, region text not null)",
    "record(id integer not null, region text)",
)
CHAINS = [
    ([version(1), version(2, region(default="eu"))], NOT_NULL, '"eu"', []),
    ([version(1), version(2, region(default="eu")), version(3, region(default="us"))], NOT_NULL, '"eu"', [2]),
    ([version(1), version(2, region())], NULLABLE, None, [1]),
    ([version(1), version(2, region()), version(3, region(default="us"))], NULLABLE, None, [1, 2]),
    ([version(1, region()), version(2, region(default="us"))], NOT_NULL, None, [1]),
    ([version(1, region(default="a")), version(2), version(3, region(default="b"))], NOT_NULL, '"a"', [1]),
]


@pytest.mark.parametrize(("versions", "type_", "default", "kept"), CHAINS)
def test_a_field_has_the_default_of_the_oldest_version_that_has_it(
    versions: list[WrittenSchema], type_: str, default: str | None, kept: list[int]
) -> None:
    assert read(made_before(*versions)) == (type_, [None, default])
    after = made_after(*versions)
    assert read(after) == (type_, [None, default])
    assert [schema.id for schema in after.past] == kept


def test_a_version_with_another_type_does_not_count() -> None:
    other = version(1, {"name": "region", "type": "boolean", "default": True})
    assert read(made_after(other, version(2, region(default="eu")))) == (NOT_NULL, [None, '"eu"'])
    assert read(made_after(other, version(2, region()))) == (NOT_NULL, [None, None])
    assert read(made_after(version(0), other, version(2, region())))[0] == NULLABLE


def test_a_type_that_was_wider_or_nullable_once_still_is() -> None:
    wider = version(1, {"name": "n", "type": ["null", "long"]})
    now = version(2, {"name": "n", "type": "int"})
    assert read(made_after(wider, now))[0] == "record(id integer not null, n bigint)"


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
FIXED = {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 5, "scale": 2}
INNER = {
    "type": "record",
    "name": "i",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}],
}
DEFAULTS: list[tuple[Any, Any, str]] = [
    ("boolean", False, "false"),
    ("int", 7, "7"),
    ("double", 1.5, "1.5"),
    ("string", "é", '"é"'),
    ("bytes", "\u00ff\u0001", '"/wE="'),
    (DECIMAL, "\u0004\u00d2", '"12.34"'),
    (DECIMAL, "\u00ff", '"-0.01"'),
    (FIXED, "\u0000\u0000\u0004\u00d2", '"12.34"'),
    ({"type": "int", "logicalType": "date"}, 1, '"1970-01-02"'),
    ({"type": "long", "logicalType": "timestamp-millis"}, -1, '"1969-12-31T23:59:59.999000Z"'),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, 1, '"1970-01-01T00:00:00.000001"'),
    ({"type": "int", "logicalType": "time-millis"}, 1000, '"00:00:01"'),
    ({"type": "enum", "name": "e", "symbols": ["x", "y"]}, "y", '"y"'),
    ({"type": "array", "items": "int"}, [1, 2], "[1,2]"),
    ({"type": "map", "values": "string"}, {"a": "b"}, '{"a":"b"}'),
    (INNER, {"a": 1, "b": None}, '{"a":1,"b":null}'),
    (["string", "null"], "x", '"x"'),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "default", "neutral"), DEFAULTS)
def test_a_default_of_avro_is_a_neutral_value_and_back(type_: object, default: object, neutral: str) -> None:
    fields = [{"name": "a", "type": type_, "default": default}]
    tree = load_tree(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert isinstance(tree, AvroRecord)
    (member,) = tree.fields
    value = values_of(member.type)[0]
    assert neutral_default(member, read_tree(value)) == neutral
    assert avro_default(neutral, value, read_tree(value)) == default


def test_a_default_that_no_column_can_hold_counts_as_none() -> None:
    late = {"name": "d", "type": {"type": "int", "logicalType": "date"}, "default": 2**31 - 1}
    assert read(made_before(version(1), version(2, late)))[1] == [None, None]


def test_a_default_of_another_type_is_refused() -> None:
    node = load_tree('"int"')
    with pytest.raises(ValueError, match="integer"):
        avro_default('"x"', node, read_tree(node))


def test_a_json_schema_default_of_another_type_counts_as_none() -> None:
    properties = {"a": {"type": "integer", "default": "x"}, "b": {"type": "integer", "default": 3}}
    schema = WrittenSchema(json.dumps({"type": "object", "properties": properties}), (), 1, SchemaFormat.JSON)
    side = SchemaEncoding(SchemaFormat.JSON, (schema,))
    assert read(side) == ("record(a bigint, b bigint not null)", [None, "3"])
