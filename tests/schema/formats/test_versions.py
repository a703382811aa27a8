"""The next version of a JSON Schema or a Protobuf file: what it keeps, what it adds, and when it differs."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from headgate.schema import types as t
from headgate.schema.errors import UnsupportedType
from headgate.schema.formats.jsonschema import to_json_schema, write as json_version
from headgate.schema.formats.protobuf import print_proto, read_files, to_protobuf, version as protobuf_version
from headgate.schema.parse import parse_type
from tests.laws import examples
from tests.schema import strategies as s

pytestmark = pytest.mark.unit

RECORDS = s.records(s.types(max_leaves=5), min_fields=1)


def record(text: str) -> t.Record:
    found = parse_type(text)
    assert isinstance(found, t.Record)
    return found


@given(RECORDS)
@examples(100)
def test_the_same_record_makes_no_other_version(made: t.Record) -> None:
    schema = to_json_schema(made)
    assert json_version.next_version(schema, schema) == schema
    assert not json_version.differs(schema, json_version.next_version(schema, schema))
    try:
        file = to_protobuf(made, name="m", package="")
    except UnsupportedType:
        assume(False)
        raise
    old, *imported = read_files(print_proto(file))
    again = read_files(print_proto(protobuf_version.next_version(old, made, imported)))[0]
    assert not protobuf_version.differs(old, again)


@pytest.mark.parametrize("before", ["record(a text)", "record(a text not null)"])
@pytest.mark.parametrize("inner", ["{}", "array<{}>", "map<text, {}>", "record(x {})"])
def test_json_schema_adds_at_any_depth_what_is_not_required(before: str, inner: str) -> None:
    after = before.replace("record(", "record(b integer not null, ")
    old, new = (to_json_schema(record(f"record(f {inner.format(one)})")) for one in (before, after))
    made = json_version.next_version(old, new)
    assert json_version.differs(old, made)
    assert '"b"' not in str(_required(made)).replace("'", '"')
    assert _required(made) == _required(old)


def _required(schema: object) -> list[object]:
    match schema:
        case dict():
            own = [schema["required"]] if isinstance(schema.get("required"), list) else []
            return own + [one for value in schema.values() for one in _required(value)]
        case list():
            return [one for value in schema for one in _required(value)]
        case _:
            return []


def test_json_schema_keeps_descriptions_and_defaults_and_takes_those_of_new_fields() -> None:
    old = to_json_schema(record("record(a record comment 'type' (x text) comment 'field')"))
    new = to_json_schema(record("record(a record comment 'other' (x text comment 'new', y text comment 'why'))"))
    made = json_version.next_version(old, new)
    assert made["properties"]["a"]["description"] == "field"  # type: ignore[index]
    inner = made["properties"]["a"]["allOf"][0]  # type: ignore[index]
    assert inner["description"] == "type"
    assert inner["properties"] == {
        "x": {"type": ["string", "null"]},
        "y": {"description": "why", "type": ["string", "null"]},
    }
    defaults = t.Record((t.Field("n", t.Integer(), False, default="7"),))
    first = json_version.next_version(to_json_schema(t.Record(())), to_json_schema(defaults), defaults)
    again = json_version.next_version(first, to_json_schema(defaults))
    for found in (first, again):
        assert found["properties"]["n"]["default"] == 7  # type: ignore[index]
        assert "required" not in found
    assert not json_version.differs(first, again)


def test_json_schema_definitions_are_versions_of_their_own() -> None:
    point = {"p": record("record(x integer comment 'old')")}
    wider = {"p": record("record(x integer comment 'new', y integer)")}
    named = t.Record((t.Field("f", t.Named(("p",))),))
    old = to_json_schema(named, resolve=lambda n: point[n.parts[0]])
    new = to_json_schema(named, resolve=lambda n: wider[n.parts[0]])
    made = json_version.next_version(old, new)
    properties = made["$defs"]["p"]["properties"]  # type: ignore[index]
    assert properties["x"]["description"] == "old"
    assert "y" in properties


def test_protobuf_keeps_numbers_comments_and_reserves_what_is_gone() -> None:
    old, *imported = read_files(
        print_proto(to_protobuf(record("record(a text comment 'A', b date, c integer)"), name="m", package="p"))
    )
    new = record("record(n bigint, c bigint comment 'C', a text, d array<array<record(x text comment 'X')>>)")
    made = print_proto(protobuf_version.next_version(old, new, imported))
    assert "optional int64 n = 4;" in made
    assert "optional int64 c = 3;" in made
    assert "// A\n  optional string a = 1;" in made
    assert "reserved 2;" in made
    assert "// C" not in made
    assert made.startswith('syntax = "proto3";\n\npackage p;\n')
