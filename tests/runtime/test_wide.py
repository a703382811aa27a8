"""Records of 2,000 fields and records that are nested 60 deep, read, followed and written with a small heap."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.plan.definitions import Origin, RecordEncoding, SourceColumn
from headgate.plan.source import SourcePlan
from headgate.runtime.decode import Decoder
from headgate.runtime.formats.side import WriterSchemas
from headgate.runtime.formats.writers import RecordWriter, row_of
from headgate.runtime.values import json_rows, with_text_times
from headgate.schema.encodings import SchemaEncoding, fields_of
from headgate.schema.types import Integer, Record
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.runtime.formats.decoding import framed, written
from tests.runtime.test_decode import RAW
from tests.spark import in_own_jvm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FIELDS, TIMES, RECORDS, LEVELS = 2000, 20, 50, 60
# Spark refuses to start with less than one and a half times what it reserves, which is 300 MB unless a test says less.
SMALL_HEAP = {"spark.driver.memory": "300m", "spark.testing.reservedMemory": "100000000"}

GEO = {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": "int"}, {"name": "lon", "type": "int"}]}
MILLIS = {"type": "int", "logicalType": "time-millis"}
# A type, a value of it, and that value as a result shows it.
KINDS: Sequence[tuple[object, object, object]] = (
    ("long", 7, 7),
    (["null", "string"], "some text", "some text"),
    ("string", "ö", "ö"),
    (["null", "double"], None, None),
    ("boolean", True, True),
    ({"type": "int", "logicalType": "date"}, 19_000, "2022-01-08"),
)


def test_2000_avro_fields_are_selected_written_followed_and_converted_in_300_mb() -> None:
    in_own_jvm(wide_avro, wide_converted_avro, settings=SMALL_HEAP)


def wide_avro(session: SparkSession) -> None:
    first = written(_schema(), 1)
    bodies = [(1, _body(first, number)) for number in range(RECORDS)]
    rows = _decoded(session, (first,), bodies)
    assert _shown(rows) == [_row(number) for number in range(RECORDS)]
    assert _encoded(rows, first) == [framed(*body) for body in bodies]

    later = written(_schema(("added", ["null", "int"])), 2)
    bodies = [(schema.id or 0, _body(schema, number, added=5)) for number, schema in enumerate((first, later))]
    followed = _decoded(session, (first, later), bodies)
    assert _shown(followed) == [(*_row(0), None), (*_row(1), 5)]


def wide_converted_avro(session: SparkSession) -> None:
    """Times in milliseconds are not as Spark reads them, so the whole record is made anew. A nested record is in it too."""
    times = {f"t{number}": 1000 for number in range(TIMES)}
    schema = written(_schema(("geo", GEO), *((name, MILLIS) for name in times)), 1)
    rows = _decoded(session, (schema,), [(1, _body(schema, 0, geo={"lat": 1, "lon": 2}, **times))])
    assert _shown(rows) == [(*_row(0), {"lat": 1, "lon": 2}, *["00:00:01"] * TIMES)]


def test_2000_fields_of_json_and_protobuf_are_read_in_300_mb() -> None:
    in_own_jvm(wide_json, wide_protobuf, settings=SMALL_HEAP)


def wide_json(session: SparkSession) -> None:
    properties = {f"f{number}": {"type": "string"} for number in range(FIELDS)}
    schema = written({"type": "object", "properties": properties}, 1)
    body = json.dumps({name: name for name in properties}).encode()
    rows = _decoded(session, (schema,), [(1, body)] * RECORDS, SchemaFormat.JSON)
    assert _shown(rows) == [tuple(properties)] * RECORDS


def wide_protobuf(session: SparkSession) -> None:
    members = "".join(f"int32 f{number} = {number + 1};" for number in range(FIELDS))
    schema = written(f'syntax = "proto3"; message Wide {{ {members} }}', 1)
    # The message is the first of its file, and its first member is 5.
    rows = _decoded(session, (schema,), [(1, b"\x00\x08\x05")] * RECORDS, SchemaFormat.PROTOBUF)
    assert _shown(rows) == [(5, *(0,) * (FIELDS - 1))] * RECORDS


def test_a_record_nested_60_deep_with_a_nullable_at_each_level_is_read(session: SparkSession) -> None:
    schema, value = _deep(LEVELS)
    one = written(schema, 1)
    short: dict[str, object] = {"inner": None, "n": 3}
    found = _decoded(session, (one,), [(1, _avro(schema, value)), (1, _avro(schema, short))])
    assert [row.asDict(recursive=True) for row in found.collect()] == [value, short]


def _deep(levels: int) -> tuple[dict[str, object], dict[str, object]]:
    schema: object = "int"
    value: Any = 1
    for level in range(levels):
        names = [{"name": "inner", "type": ["null", schema]}, {"name": "n", "type": "int"}]
        schema, value = {"type": "record", "name": f"r{level}", "fields": names}, {"inner": value, "n": level}
    assert isinstance(schema, dict)
    return schema, value


def _schema(*added: tuple[str, object]) -> dict[str, object]:
    """The first field is a number that identifies the record. Added fields are nullable if they are unions."""
    fields = [{"name": f"f{number}", "type": KINDS[number % len(KINDS)][0]} for number in range(FIELDS)]
    more = [{"name": n, "type": t, **({"default": None} if isinstance(t, list) else {})} for n, t in added]
    return {"type": "record", "name": "wide", "fields": [*fields, *more]}


def _value(number: int) -> dict[str, object]:
    return {**{f"f{at}": KINDS[at % len(KINDS)][1] for at in range(FIELDS)}, "f0": number}


def _row(number: int) -> tuple[object, ...]:
    return (number, *(KINDS[at % len(KINDS)][2] for at in range(1, FIELDS)))


def _body(schema: WrittenSchema, number: int, **more: object) -> bytes:
    parsed = json.loads(schema.text)
    names = {field["name"] for field in parsed["fields"]}
    return _avro(parsed, {name: value for name, value in {**_value(number), **more}.items() if name in names})


def _avro(schema: object, value: Mapping[str, object]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)  # type: ignore[arg-type]
    return body.getvalue()


def _decoded(
    session: SparkSession,
    schemas: Sequence[WrittenSchema],
    bodies: Sequence[tuple[int, bytes]],
    format_: SchemaFormat = SchemaFormat.AVRO,
) -> DataFrame:
    """The rows of a source that was created with the first schema and followed the others."""
    side = SchemaEncoding(format_, tuple(schemas))
    known = {schema.id or 0: schema for schema in schemas}
    writers = WriterSchemas(known, newer=frozenset(id_ for id_ in known if id_ != schemas[0].id))
    columns = [SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields_of(side) or ()]
    decoder = Decoder(SourcePlan("wide", tuple(columns), side, None, "NONE", "QUARANTINE", "PIN"), value=writers)
    when = datetime(2026, 11, 15, tzinfo=UTC)
    no_headers: list[object] = []
    raw = [("t", 0, number, when, None, bytearray(framed(*body)), no_headers) for number, body in enumerate(bodies)]
    return decoder.columns(decoder.accepted(decoder.decode(session.createDataFrame(raw, RAW))))


def _shown(rows: DataFrame) -> list[tuple[object, ...]]:
    """The rows as a SELECT answers them."""
    types = [field.dataType for field in rows.schema.fields]
    return [row for batch in with_text_times(rows).toArrow().to_batches() for row in json_rows(batch, types)]


def _encoded(rows: DataFrame, schema: WrittenSchema) -> list[bytes]:
    """The rows as a sink writes them."""
    fields = fields_of(SchemaEncoding(SchemaFormat.AVRO, (schema,))) or ()
    side = RecordEncoding("AVRO", tuple(rows.columns), Record(tuple(fields)), schema=schema.text, schema_id=schema.id)
    encoded = rows.select(RecordWriter(side).encode(row_of(side)).alias("value"))
    return [bytes(row["value"]) for row in encoded.collect()]


@pytest.mark.parametrize("encoding", ["AVRO", "JSON"])
def test_a_wide_row_is_checked_and_encoded_in_few_calls_into_java(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, encoding: Literal["AVRO", "JSON"]
) -> None:
    """Each call takes a tenth of a millisecond, and a column that is made by itself takes eight."""
    schema = written(_schema(), 1)
    fields = fields_of(SchemaEncoding(SchemaFormat.AVRO, (schema,))) or ()
    side = RecordEncoding(encoding, tuple(f.name for f in fields), Record(fields), schema=schema.text, schema_id=1)
    client, calls = session._jvm._gateway_client, []  # type: ignore[union-attr]
    send = client.send_command

    def counting(command: str, *more: object, **named: object) -> object:
        calls.append(command)
        return send(command, *more, **named)

    monkeypatch.setattr(client, "send_command", counting)
    writer, row = RecordWriter(side), row_of(side)
    writer.accepts(row), writer.encode(row)
    assert 0 < len(calls) < FIELDS / 10


MANY = 150  # fields of a value that are named by a star


def test_many_fields_of_a_value_are_one_star_between_the_other_columns(session: SparkSession) -> None:
    names = [f"f{number}" for number in range(MANY)]
    before, after = Origin("metadata", "OFFSET"), Origin("metadata", "PARTITION")
    found = _selected(session, [("at", before), *((name, Origin("value", name)) for name in names), ("of", after)])
    assert found.columns == ["at", *names, "of"]
    assert found.first() == (0, *range(MANY), 0)


@pytest.mark.parametrize(
    "origins",
    [
        {"f1": "f2", "f2": "f1"},  # in another order
        {"other": "f1"},  # with another name
        {},  # not all of them
    ],
)
def test_fields_that_are_not_as_the_value_has_them_are_named_one_by_one(
    session: SparkSession, origins: dict[str, str]
) -> None:
    fields = {name: name for number in range(MANY) if (name := f"f{number}") not in (*origins, *origins.values())}
    chosen = {**origins, **fields}
    found = _selected(session, [(name, Origin("value", field)) for name, field in chosen.items()])
    assert found.columns == list(chosen)
    assert found.first() == tuple(int(field.removeprefix("f")) for field in chosen.values())


def _selected(session: SparkSession, columns: Sequence[tuple[str, Origin]]) -> DataFrame:
    """Columns of a record of `MANY` numbers."""
    names = [f"f{number}" for number in range(MANY)]
    schema = written({"type": "record", "name": "r", "fields": [{"name": name, "type": "int"} for name in names]}, 1)
    side = SchemaEncoding(SchemaFormat.AVRO, (schema,))
    plan = SourcePlan(
        "wide", tuple(SourceColumn(name, Integer(), False, origin) for name, origin in columns),
        side, None, "NONE", "QUARANTINE", "PIN",
    )  # fmt: skip
    decoder = Decoder(plan, value=WriterSchemas({1: schema}))
    body = _avro(json.loads(schema.text), {name: number for number, name in enumerate(names)})
    when, no_headers = datetime(2026, 11, 15, tzinfo=UTC), list[object]()
    raw = session.createDataFrame([("t", 0, 0, when, None, bytearray(framed(1, body)), no_headers)], RAW)
    return decoder.columns(decoder.accepted(decoder.decode(raw)))
