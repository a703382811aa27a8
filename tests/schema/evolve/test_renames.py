"""Renamed fields: a side keeps the name under which it met a field first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.schema.encodings import SchemaEncoding, decoded_type, known_fields, needed_past, past_fields
from headgate.schema.evolve.renames import present_name
from headgate.schema.evolve.verdicts import Target, arriving
from headgate.schema.render import print_type
from headgate.schema.written import SchemaFormat, WrittenSchema

pytestmark = pytest.mark.unit

Field = dict[str, Any]


def version(number: int, *fields: Field) -> WrittenSchema:
    return WrittenSchema(json.dumps({"type": "record", "name": "r", "fields": fields}), (), number)


def field(name: str, type_: object = "int", *aliases: str, **more: object) -> Field:
    return {"name": name, "type": type_, **({"aliases": aliases} if aliases else {}), **more}


def side(*schemas: WrittenSchema) -> SchemaEncoding:
    return SchemaEncoding(SchemaFormat.AVRO, schemas)


def read(encoding: SchemaEncoding) -> str:
    return print_type(decoded_type(encoding).type)


A, B, C = version(1, field("a")), version(2, field("b", "int", "a")), version(3, field("c", "int", "b"))


def test_an_alias_keeps_the_column() -> None:
    found = arriving(side(A), B)
    assert found.describe() == ('$.a renamed to "b"',)
    assert found.grows
    assert not arriving(side(A, B), version(9, field("b", "int", "a"))).grows
    assert read(side(A, B)) == "record(a integer not null)"


def test_a_name_may_change_again_and_again() -> None:
    assert read(side(A, B, C)) == "record(a integer not null)"
    assert present_name(known_fields(side(A, B, C)), ["a"]) == "c"


def test_a_renamed_field_may_change_otherwise_too() -> None:
    wider = version(2, field("b", "long", "a"), field("n", ["null", "string"], default=None))
    assert read(side(A, wider)) == "record(a bigint not null, n text)"
    assert arriving(side(A), version(2, field("b", "string", "a"))).breaking_fields() == (("a",),)


def test_an_alias_of_a_field_that_is_still_there_is_no_rename() -> None:
    both = version(2, field("a"), field("b", "int", "a", default=1))
    assert read(side(A, both)) == "record(a integer not null, b integer not null)"


def test_a_new_field_may_take_the_old_name() -> None:
    taken = version(3, field("b", "int", "a"), field("a", "string", default="x"))
    assert read(side(A, B, taken)) == "record(a integer not null, a_ text not null)"


def test_fields_inside_records_arrays_and_maps_keep_their_columns() -> None:
    def inner(*fields: Field) -> object:
        row = {"type": "record", "name": "i", "fields": fields}
        return {"type": "array", "items": {"type": "map", "values": ["null", row]}}

    old = version(1, field("x", inner(field("a"))))
    new = version(2, field("y", inner(field("b", "long", "a")), "x"))
    assert read(side(old, new)) == "record(x array<map<text, record(a bigint not null)> not null> not null)"
    assert arriving(side(old), new).describe() == (
        '$.x renamed to "y"',
        '$.x[]{}.a renamed to "b"',
        "$.x[]{}.a widened from integer to bigint",
    )


def test_earlier_versions_are_known_by_the_names_of_the_frozen_schema() -> None:
    old = version(1, field("id"), field("a", "int", default=5))
    without = version(0, field("id"))
    now = version(2, field("id"), field("b", "int", "a", default=6))
    last = side(now)
    kept = needed_past(last, [without, old])
    assert [schema.id for schema in kept] == [1]
    found = decoded_type(SchemaEncoding(SchemaFormat.AVRO, (now,), past=kept)).type
    assert "default='5'" in repr(found)


def test_a_name_that_changed_several_times_is_followed_back() -> None:
    kept = needed_past(side(C), [A, B])
    assert [schema.id for schema in kept] == [1, 2]
    found = SchemaEncoding(SchemaFormat.AVRO, (C,), past=kept)
    assert read(found) == "record(c integer not null)"
    assert [one.name for version_ in past_fields(found) for one in version_] == ["c", "c"]


def test_a_key_may_be_renamed_too() -> None:
    assert arriving(side(A), B, Target.KEY).grows
    assert arriving(side(A), version(2, field("b")), Target.KEY).breaks


def proto(number: int, fields: str) -> WrittenSchema:
    return WrittenSchema(f'syntax = "proto3"; message M {{ {fields} }}', (), number, SchemaFormat.PROTOBUF)


def test_a_protobuf_field_is_the_one_with_its_number() -> None:
    old, new = proto(1, "int32 a = 1; string b = 2;"), proto(2, "int64 x = 1; string b = 2; string a = 3;")
    encoding = SchemaEncoding(SchemaFormat.PROTOBUF, (old, new))
    assert read(encoding) == "record(a bigint not null, b text not null, a_ text not null)"
    first = SchemaEncoding(SchemaFormat.PROTOBUF, (old,))
    assert '$.a renamed to "x"' in arriving(first, new).describe()


def test_a_protobuf_field_with_another_number_is_found_by_its_name() -> None:
    old, new = proto(1, "int32 a = 1;"), proto(2, "int32 a = 2;")
    assert read(SchemaEncoding(SchemaFormat.PROTOBUF, (old, new))) == "record(a integer not null)"
