"""Mappings of an index: strict and typed, docs in _meta, and read back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from headgate.errors import ErrorGroup, HeadgateError
from headgate.schema.errors import InvalidColumnName, InvalidMapping, UnresolvedType, UnsupportedType
from headgate.schema.formats.elasticsearch import (
    JsonAs,
    from_elasticsearch,
    to_elasticsearch,
    to_elasticsearch_field,
)
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record, Type
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.records import record_type
from tests.schema.round_trip import EVERY_KIND, Lost, declared, lost, without_arrays

pytestmark = pytest.mark.unit


def _back(type_: Type) -> Type:
    try:
        mapping = to_elasticsearch(Record((Field("f", type_),)))
    except HeadgateError:
        assume(False)
    return from_elasticsearch(mapping).fields[0].type


def _lost(type_: Type) -> Lost:
    bare = without_arrays(type_)
    return lost(bare, _back(type_)) | ({("array", "its element")} if bare != type_ else set())


@examples(30)
@given(s.types())
def test_what_comes_back_is_the_type_or_a_declared_loss(type_: Type) -> None:
    assert _lost(type_) <= declared("elasticsearch")


@examples(30)
@given(s.types())
def test_a_second_round_trip_loses_nothing_more(type_: Type) -> None:
    once = _back(type_)
    assert _back(once) == once


def test_every_declared_loss_happens() -> None:
    seen: Lost = set()
    for type_ in EVERY_KIND:
        seen |= _lost(type_)
    assert seen == declared("elasticsearch")


FIELDS: dict[str, dict[str, object]] = {
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "bigint": {"type": "long"},
    "real": {"type": "float"},
    "double": {"type": "double"},
    "decimal(38,18)": {"type": "keyword"},
    "text": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8191}}},
    "bytes": {"type": "binary"},
    "date": {"type": "date", "format": "strict_date"},
    "time": {"type": "keyword"},
    "timestamp": {"type": "date", "format": "strict_date_optional_time_nanos"},
    "timestamptz": {"type": "date", "format": "strict_date_optional_time_nanos"},
    "uuid": {"type": "keyword"},
    "json": {"type": "flat_object"},
    "enum('a')": {"type": "keyword"},
    "array<array<bigint>>": {"type": "long"},
    "record(a record(b date))": {"properties": {"a": {"properties": {"b": {"type": "date", "format": "strict_date"}}}}},
    "map<text, bigint>": {"type": "object", "dynamic": "true"},
    "map<text, record(a text)>": {"type": "flat_object"},
}


@pytest.mark.parametrize(("type_", "mapping"), FIELDS.items())
def test_the_field_is(type_: str, mapping: dict[str, object]) -> None:
    assert to_elasticsearch_field(parse_type(type_)) == mapping


def test_the_mapping_is_strict_and_carries_the_docs() -> None:
    record = record_type(
        "record comment 'orders of the shop' (id bigint comment 'from the till', lines array<record(sku text comment 'part')>,"
        " home record comment 'an address' (street text))"
    )
    mapping = to_elasticsearch(record, relation="headgate.public.orders")
    assert mapping["dynamic"] == "strict"
    assert mapping["_meta"] == {
        "headgate": {
            "relation": "headgate.public.orders",
            "doc": "orders of the shop",
            "fields": {"id": "from the till", "lines.sku": "part", "home": "an address"},
        }
    }


def test_the_values_of_a_map_are_typed_by_a_template() -> None:
    mapping = to_elasticsearch(record_type("record(a record(m map<text, bigint>))"))
    assert mapping["dynamic_templates"] == [{"values of a.m": {"path_match": "a.m.*", "mapping": {"type": "long"}}}]
    assert print_type(from_elasticsearch(mapping)) == "record(a record(m map<text, bigint>))"


def test_elasticsearch_has_its_own_word_for_any_object() -> None:
    assert to_elasticsearch_field(parse_type("json"), JsonAs.FLATTENED) == {"type": "flattened"}


@pytest.mark.parametrize("name", ["a.b", "", " ", "_id", "_version", "_seq_no", "_doc_count", "_tier"])
def test_a_name_that_an_index_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidColumnName):
        to_elasticsearch(Record((Field(name, parse_type("text")),)))


def test_all_bad_names_are_raised_together_with_their_paths() -> None:
    with pytest.raises(ErrorGroup) as raised:
        to_elasticsearch(record_type('record("a.b" text, c array<record("d.e" text, "_id" text)>)'))
    assert [getattr(e, "path", "") for e in raised.value.errors] == ['$."a.b"', '$.c[]."d.e"']


READ: dict[str, dict[str, object]] = {
    "integer": {"type": "short"},
    "real": {"type": "half_float"},
    "decimal(20,0)": {"type": "unsigned_long"},
    "decimal(15,3)": {"type": "scaled_float", "scaling_factor": 1000.0},
    "double": {"type": "scaled_float", "scaling_factor": 12},
    "text": {"type": "ip"},
    "timestamptz": {"type": "date"},
    "date": {"type": "date", "format": "yyyy-MM-dd||strict_date"},
    "json": {"type": "object"},
    "array<record(a bigint)>": {"type": "nested", "properties": {"a": {"type": "long"}}},
}


@pytest.mark.parametrize(("type_", "mapping"), READ.items())
def test_a_field_is_read_as(type_: str, mapping: dict[str, object]) -> None:
    assert print_type(from_elasticsearch({"properties": {"f": mapping}}).fields[0].type) == type_


def test_a_field_without_counterpart_is_refused_with_its_path() -> None:
    with pytest.raises(UnsupportedType) as raised:
        from_elasticsearch({"properties": {"a": {"properties": {"b": {"type": "geo_point"}}}}})
    assert raised.value.path == "$.a.b"


@pytest.mark.parametrize(
    "mapping",
    [
        {"properties": 1},
        {"properties": {"a": 1}},
        {"_meta": []},
        {"dynamic_templates": 1},
        {"dynamic_templates": [1]},
    ],
)
def test_what_is_no_mapping_is_refused(mapping: dict[str, object]) -> None:
    with pytest.raises(InvalidMapping):
        from_elasticsearch(mapping)


def test_a_type_of_the_catalog_must_be_resolved_first() -> None:
    with pytest.raises(UnresolvedType) as raised:
        to_elasticsearch(record_type("record(a record(p point))"))
    assert raised.value.path == "$.a.p"
