"""Records within records, read as fields of the outer one and put back where they belong."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.formats.avro_flatten import MAX_FLATTENED, find_nested, flatten
from headgate.runtime.formats.avro_plan import is_simple
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import Record
from headgate.schema.written import SchemaFormat
from tests.plan.planning import record
from tests.runtime.formats.decoding import Bad, framed, written
from tests.runtime.formats.test_readers import read

MALFORMED = Bad("the bytes are not a record of their schema")
GEO = record("Geo", ("lat", "int"), ("lon", "int"))
# Both begin with a record, and both have a `lon`.
PLACE = record("Place", ("geo", GEO), ("lon", "string"))
TRIP = record("Trip", ("start", PLACE), ("id", "int"), ("stop", "Place"))
BODY = b"\x02\x04\x02a" + b"\x06" + b"\x08\x0a\x02b"
READ = {
    "start": {"geo": {"lat": 1, "lon": 2}, "lon": "a"},
    "id": 3,
    "stop": {"geo": {"lat": 4, "lon": 5}, "lon": "b"},
}


def names(schema: object, *others: object) -> list[str]:
    """The fields that the first schema is read by."""
    records = [one for one in map(load_tree, (schema, *others)) if isinstance(one, Record)]
    nested = find_nested(records) if all(map(is_simple, records)) else {}
    return [field.name for field in flatten(records[0], nested).fields]


@pytest.mark.unit
def test_every_field_within_has_a_name_of_its_own() -> None:
    start, stop = ([one, f"{one}_headgate_geo_headgate_lon", f"{one}_headgate_lon"] for one in ("start", "stop"))
    assert names(TRIP) == [*start, "id", *stop]


@pytest.mark.unit
def test_what_is_no_record_in_one_of_the_schemas_stays_as_it_is() -> None:
    maybe = record("Trip", ("start", ["null", PLACE]), ("id", "int"), ("stop", "Place"))
    lacking = record("Trip", ("start", PLACE), ("id", "int"))
    assert names(TRIP, maybe)[:2] == ["start", "id"]
    assert names(TRIP, lacking)[-2:] == ["id", "stop"]


@pytest.mark.unit
@pytest.mark.parametrize("inner", [record("E"), {"type": "map", "values": GEO}, ["null", GEO], [GEO]])
def test_what_need_not_be_there_or_has_no_bytes_stays_as_it_is(inner: object) -> None:
    assert names(record("R", ("a", inner), ("b", "int"))) == ["a", "b"]


@pytest.mark.unit
def test_where_a_field_has_an_alias_everything_stays_as_it_is() -> None:
    named = {"type": "record", "name": "R", "fields": [{"name": "a", "aliases": ["x"], "type": GEO}]}
    assert names(named) == ["a"]


@pytest.mark.unit
def test_a_wide_record_keeps_the_records_within_it() -> None:
    many = [(f"f{number}", "int") for number in range(MAX_FLATTENED)]
    assert names(record("R", ("geo", GEO), *many)) == ["geo", *(name for name, _ in many)]


def avro(session: SparkSession, bodies: list[tuple[int, bytes]], *schemas: object) -> list[object]:
    """Read by the first schema, the ids from 1; a source that followed all of them."""
    known = [written(json.dumps(schema), id_) for id_, schema in enumerate(schemas, 1)]
    writers = WriterSchemas({one.id or 0: one for one in known}, newer=frozenset(range(2, len(known) + 1)))
    side = SchemaEncoding(SchemaFormat.AVRO, tuple(known))
    return read(session, side, [framed(id_, body) for id_, body in bodies], writers)


@pytest.mark.spark
def test_records_are_where_they_belong(session: SparkSession) -> None:
    assert avro(session, [(1, BODY), (1, BODY[:-1]), (1, BODY + b"\x00")], TRIP) == [
        READ,
        MALFORMED,
        MALFORMED,
    ]


@pytest.mark.spark
def test_a_text_within_that_is_no_utf8_is_told_by_its_path(session: SparkSession) -> None:
    wrong = BODY.replace(b"b", b"\xff")
    assert avro(session, [(1, wrong)], TRIP) == [Bad("what is at $.stop.lon is not valid UTF-8")]


@pytest.mark.spark
def test_a_record_within_grows_also_at_its_beginning(session: SparkSession) -> None:
    """The new field stands first in the bytes, and last in the record that it is read to."""
    optional = {"name": "height", "type": ["null", "int"], "default": None}
    grown = {"type": "record", "name": "Geo", "fields": [optional, *GEO["fields"]]}  # type: ignore[misc]
    later = record("Trip", ("start", record("Place", ("geo", grown), ("lon", "string"))), ("id", "int"))
    first = record("Trip", ("start", PLACE), ("id", "int"))
    bodies = [(1, b"\x02\x04\x02a\x06"), (2, b"\x02\x12\x02\x04\x02a\x06"), (2, b"\x00\x02\x04\x02a\x06")]
    assert avro(session, bodies, first, later) == [
        {"start": {"geo": {"lat": 1, "lon": 2, "height": height}, "lon": "a"}, "id": 3} for height in (None, 9, None)
    ]


@pytest.mark.spark
def test_a_record_that_may_be_missing_later_is_read_as_before(session: SparkSession) -> None:
    first = record("R", ("id", "int"), ("geo", GEO))
    later = record("R", ("id", "int"), ("geo", ["null", GEO]))
    bodies = [(1, b"\x02\x04\x06"), (2, b"\x02\x00"), (2, b"\x02\x02\x04\x06")]
    geo = {"lat": 2, "lon": 3}
    assert avro(session, bodies, first, later) == [{"id": 1, "geo": one} for one in (geo, None, geo)]
