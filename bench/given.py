"""Streams: writing rows with a schema that is given by its id, beside writing the same rows with a generated schema; and INSERT.

Rows are encoded as a sink encodes them, and nothing is sent: what is compared is the writer. The given schemas have the fields
in the order of the columns, one field more, and nullability and docs of their own. INSERT is measured at an engine that is warm, over
its API, from the call to the answer.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, functions as F

from bench.decoding import AVRO, JSON_SCHEMA, PROTO, finish, order
from bench.engines import execute, open_site
from bench.figures import Report, Row, Size, load_note, shown
from bench.processes import cpu_seconds
from headgate.embedded.spark import open_spark
from headgate.plan.definitions import RecordEncoding
from headgate.plan.publish.schemas import NAMES
from headgate.runtime.formats.writers import row_of
from headgate.runtime.sink_records import side_writer
from headgate.schema.encodings import type_of_schema
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.formats.jsonschema.write import to_json_schema
from headgate.schema.formats.protobuf import print_proto, to_protobuf
from headgate.schema.types import Field, Record
from headgate.schema.written import SchemaFormat, WrittenSchema

RATIO, ONE, EACH = (
    0.9,
    0.3,
    0.005,
)  # promises: speed by id over generated, seconds of one INSERT, and of one of a thousand
ID, PARTITIONS, WARM = 7, 4, 2


def run(size: Size) -> Report:
    records, rounds, inserts = (200_000, 1, 100) if size == "small" else (2_000_000, 5, 1000)
    rows = [*_writing(records, rounds), *_inserting(inserts, 3 if size == "small" else 20)]
    notes = (
        f"{records:,} orders; CPU time of Python and the JVM, the median of {rounds} rounds after {WARM}, in turn.",
        load_note(),
    )
    return Report("Streams: writing by schema id, and INSERT", tuple(rows), notes)


def _writing(records: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = open_spark(master="local[2]", warehouse=Path(folder))
        try:
            orders = session.range(records, numPartitions=PARTITIONS).select(*order()).persist()
            orders.count()
            works = {
                (format_, given): _work(orders, format_, given=given)
                for format_ in SchemaFormat
                for given in (True, False)
            }
            taken: dict[tuple[SchemaFormat, bool], list[float]] = {name: [] for name in works}
            for turn in range(WARM + rounds):
                for name, work in works.items():
                    began = cpu_seconds()
                    work()
                    if turn >= WARM:
                        taken[name].append(cpu_seconds() - began)
        finally:
            session.stop()
    return [_row(f, *(records / statistics.median(taken[f, given]) for given in (True, False))) for f in SchemaFormat]


def _row(format_: SchemaFormat, ours: float, peer: float) -> Row:
    ratio = ours / peer
    return Row(
        f"{format_.words} by id", f"{ours:,.0f} a CPU second", f"{peer:,.0f} with a generated schema", ratio,
        f"at least {RATIO}", ratio >= RATIO,
    )  # fmt: skip


def _work(orders: DataFrame, format_: SchemaFormat, *, given: bool) -> Callable[[], None]:
    side = _given(format_) if given else _generated(format_)
    row = row_of(side)
    writer = side_writer(side)

    def work() -> None:
        finish(orders.select(F.when(writer.accepts(row), writer.encode(row)).alias("value")))

    return work


def _columns(format_: SchemaFormat) -> Record:
    """The columns of the orders, all nullable as those of a stream are."""
    texts = {SchemaFormat.AVRO: AVRO, SchemaFormat.JSON: JSON_SCHEMA, SchemaFormat.PROTOBUF: PROTO}
    whole = type_of_schema(format_, WrittenSchema(texts[format_], format=format_)).type
    assert isinstance(whole, Record)
    return Record(tuple(Field(field.name, field.type) for field in whole.fields))


def _given(format_: SchemaFormat) -> RecordEncoding:
    if format_ is SchemaFormat.PROTOBUF:
        text = PROTO.replace("Address address = 7;", "Address address = 7; optional string note = 8;")
    elif format_ is SchemaFormat.AVRO:
        schema = json.loads(AVRO)
        schema["fields"].append({"name": "note", "type": ["null", "string"], "default": None, "doc": "more"})
        text = json.dumps(schema)
    else:
        schema = json.loads(JSON_SCHEMA)
        schema["properties"]["note"] = {"type": ["string", "null"], "description": "more"}
        text = json.dumps(schema)
    return _side(format_, text, given=True)


def _generated(format_: SchemaFormat) -> RecordEncoding:
    record, name = _columns(format_), NAMES["VALUE"]
    match format_:
        case SchemaFormat.AVRO:
            text = json.dumps(to_avro(record, name=name).json)
        case SchemaFormat.JSON:
            text = json.dumps(to_json_schema(record))
        case SchemaFormat.PROTOBUF:
            text = print_proto(to_protobuf(record, name=name, package=""))
    return _side(format_, text, given=False)


def _side(format_: SchemaFormat, text: str, *, given: bool) -> RecordEncoding:
    record = _columns(format_)
    names = tuple(field.name for field in record.fields)
    return RecordEncoding(format_.words, names, record, text, ID, given=given)  # type: ignore[arg-type]


# INSERT


def _inserting(count: int, rounds: int) -> list[Row]:
    create = "CREATE STREAM s (k bigint KEY, n int, t text) WITH (kafka_topic = 's', partitions = 1, format = 'avro');"
    one = "INSERT INTO s VALUES (1, 2, 'three');"
    many = " ".join(f"INSERT INTO s VALUES ({n}, {n}, 'row {n}');" for n in range(count))
    with open_site() as site, site.engine("inserts") as engine:
        execute(engine, create)
        for _ in range(3):
            execute(engine, one)
        single = statistics.median(_seconds(lambda: execute(engine, one)) for _ in range(rounds))
        each = min(_seconds(lambda: execute(engine, many)) for _ in range(3)) / count
    return [
        Row("INSERT … VALUES of one row, warm", shown(single), promised=f"under {shown(ONE)}", kept=single < ONE),
        Row(f"one of {count:,} INSERTs of a script", shown(each), promised=f"at most {shown(EACH)}", kept=each <= EACH),
    ]


def _seconds(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
