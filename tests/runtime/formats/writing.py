"""Rows through the writer of a sink and back through the reader of a source, as canonical values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import StructType

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.decode import evaluate_once, side_reader
from headgate.runtime.formats.arrow_reader import arrow_type, stored
from headgate.runtime.formats.json_text import json_text
from headgate.runtime.formats.side import WriterSchemas
from headgate.runtime.formats.writers import RecordWriter, row_of
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.formats.jsonschema import to_json_schema
from headgate.schema.formats.protobuf import print_proto, to_protobuf
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Field, Json, Map, Record, Type
from headgate.schema.values import from_json
from headgate.schema.written import WrittenSchema
from tests.runtime.formats.decoding import Bad

SchemaWord = Literal["AVRO", "JSON SCHEMA", "PROTOBUF"]
FORMATS: tuple[SchemaWord, ...] = ("AVRO", "JSON SCHEMA", "PROTOBUF")
ID = 7


def side(word: SchemaWord, record: Record) -> RecordEncoding:
    """The side of a sink with the schema that is generated for the record."""
    columns = tuple(field.name for field in record.fields)
    match word:
        case "AVRO":
            made = to_avro(record, name="envelope")
            return RecordEncoding(word, columns, record, json.dumps(made.json), ID, tuple(made.renames.items()))
        case "JSON SCHEMA":
            return RecordEncoding(word, columns, record, json.dumps(to_json_schema(record)), ID)
        case "PROTOBUF":
            file = to_protobuf(record, name="envelope", package="")
            return RecordEncoding(word, columns, record, print_proto(file), ID)


def schema_of(made: RecordEncoding) -> WrittenSchema:
    assert made.written is not None
    return WrittenSchema(made.written.text, id=ID, format=made.written.format)


def written(session: SparkSession, made: RecordEncoding, rows: Sequence[Any]) -> list[bytes | Bad]:
    """The bytes of each row, or the path and reason of a row that is not accepted."""
    whole = Field("row", made.record, False)
    table = pa.Table.from_struct_array(pa.array([stored(row, made.record) for row in rows], arrow_type(whole)))
    schema = to_spark(made.record)
    assert isinstance(schema, StructType)
    frame = session.createDataFrame(table, schema).coalesce(1)
    writer, row = RecordWriter(made), row_of(made)
    accepted = writer.accepts(row)
    checked = frame.select(
        accepted.alias("ok"), writer.error(row).alias("error"), F.when(accepted, writer.encode(row)).alias("data")
    )
    return [
        bytes(one["data"]) if one["ok"] else Bad(f"{one['error']['path']} {one['error']['reason']}")
        for one in checked.collect()
    ]


def read(session: SparkSession, made: RecordEncoding, data: Sequence[bytes]) -> list[Any]:
    """The rows that a source reads from the bytes, as canonical values of the types that were written."""
    schema = schema_of(made)
    encoding = SchemaEncoding(schema.format, (schema,))
    type_ = decoded_type(encoding).type
    reader = side_reader(encoding, WriterSchemas({ID: schema}))
    frame = session.createDataFrame([(bytearray(one),) for one in data], "data binary").coalesce(1)
    decoded, given = F.col("decoded"), F.col("data")
    frame = evaluate_once(frame.withColumn("decoded", reader.decode(given)))
    fits = F.coalesce(reader.accepts(given, decoded), F.lit(False))
    shown = frame.select(
        F.when(~fits, reader.error(given, decoded)).alias("reason"),
        F.when(fits, json_text(reader.value(given, decoded), type_)).alias("value"),
    )
    return [
        Bad(one["reason"]) if one["reason"] else canonical(_loads(one["value"]), made.record, type_)
        for one in shown.collect()
    ]


def _loads(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def canonical(found: Any, was: Type, now: Type) -> Any:
    """What was read, as a value of the type that was written. Fields go by position: a format may rename them."""
    if found is None:
        return None
    match was, now:
        case Record(fields), Record(others):
            pairs = zip(fields, others, strict=True)
            return {f.name: canonical(found[other.name], f.type, other.type) for f, other in pairs}
        case ((Array() | Map()), Record((wrapped,))):
            return canonical(found[wrapped.name], was, wrapped.type)
        case Array(element), Array(other):
            return [canonical(one, element, other) for one in found]
        case Map(value), Map(other):
            return {key: canonical(one, value, other) for key, one in found.items()}
        case Json(), _:
            return _numbers(found)
        case _:
            return from_json(found, was)


def expected(value: Any, type_: Type, word: str) -> Any:
    """A canonical value as it comes back from a format."""
    match type_:
        case Record(fields) if value is not None:
            return {f.name: expected(value[f.name], f.type, word) for f in fields}
        case Array(element):
            if value is None:
                return [] if word == "PROTOBUF" else None
            return [expected(one, element, word) for one in value]
        case Map(inner):
            if value is None:
                return {} if word == "PROTOBUF" else None
            return {key: expected(one, inner, word) for key, one in value.items()}
        case Json() if value is not None:
            return _numbers(_loads(value))
        case _:
            return value


def _numbers(value: Any) -> Any:
    """A JSON value with numbers that compare by value."""
    match value:
        case bool():
            return value
        case int():
            return Decimal(value)
        case list():
            return [_numbers(one) for one in value]
        case dict():
            return {key: _numbers(one) for key, one in value.items()}
        case _:
            return value
