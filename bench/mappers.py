"""A schema of 2,000 fields through every mapper, beside fastavro reading the same schema.

The schema has what real ones have: docs, optional fields, records in records, arrays, maps, enums, logical types.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import fastavro

from bench.figures import Report, Row, Size, compared, cpu_seconds
from headgate.schema.formats import avro, elasticsearch, jsonschema, postgres, protobuf, spark
from headgate.schema.formats.protobuf.print import print_proto
from headgate.schema.types import Record

LIMIT = 0.2  # seconds per conversion

PER_GROUP = 10  # fields of each inner record
LEAVES: tuple[object, ...] = (
    "long",
    ["null", "string"],
    {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
    ["null", {"type": "long", "logicalType": "timestamp-micros"}],
    {"type": "array", "items": "double"},
    {"type": "map", "values": ["null", "string"]},
    {"type": "int", "logicalType": "date"},
    ["null", {"type": "string", "logicalType": "uuid"}],
    "boolean",
)


def run(size: Size) -> Report:
    fields, rounds = (100, 1) if size == "small" else (2000, 5)
    schema = schema_of(fields)
    text = json.dumps(schema)
    record = avro.from_avro(text)
    assert isinstance(record, Record), "the outermost type is a record"
    peer = cpu_seconds(lambda: fastavro.parse_schema(json.loads(text), {}), rounds)
    rows = [_row(what, work, peer, rounds) for what, work in _conversions(text, record)]
    notes = (f"CPU time, best of the rounds. A schema of {fields:,} fields, {len(text) // 1024} KiB of text.",)
    return Report("Language: mappers", tuple(rows), notes)


def schema_of(fields: int) -> dict[str, object]:
    """A record of records with so many leaves in all."""
    groups = range(fields // PER_GROUP)
    inner = [{"name": f"group_{group}", "type": _group(group), "doc": f"part {group}"} for group in groups]
    return {"type": "record", "name": "Wide", "namespace": "bench", "doc": "many fields", "fields": inner}


def _group(group: int) -> dict[str, object]:
    symbols = [f"S{number}" for number in range(5)]
    enum = {"type": "enum", "name": f"Enum{group}", "symbols": symbols}
    leaves = [*LEAVES, enum]
    fields = [
        {"name": f"field_{number}", "type": leaf, "doc": f"field {number} of part {group}"}
        for number, leaf in enumerate(leaves)
    ]
    return {"type": "record", "name": f"Group{group}", "fields": fields}


def _conversions(text: str, record: Record) -> list[tuple[str, Callable[[], object]]]:
    return [
        ("Avro text to the type system", lambda: avro.from_avro(text)),
        ("to Avro", lambda: avro.to_avro(record, name="bench.Wide")),
        ("to JSON Schema", lambda: jsonschema.to_json_schema(record)),
        ("to Protobuf, a descriptor", lambda: protobuf.to_protobuf(record, name="Wide", package="bench")),
        ("to Protobuf, printed", lambda: print_proto(protobuf.to_protobuf(record, name="Wide", package="bench"))),
        ("to Spark", lambda: spark.to_spark(record)),
        ("to PostgreSQL", lambda: postgres.columns(record)),
        ("to Elasticsearch", lambda: elasticsearch.to_elasticsearch(record)),
    ]  # fmt: skip


def _row(what: str, work: Callable[[], object], peer: float, rounds: int) -> Row:
    return compared(what, cpu_seconds(work, rounds), peer, "fastavro.parse_schema", LIMIT)
