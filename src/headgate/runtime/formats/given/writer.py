"""Rows as Python values -> the bytes of one side of a record, with its frame."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol, assert_never

from headgate.plan.definitions import RecordEncoding
from headgate.registry.wire import encode
from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.avro import AvroWriter
from headgate.runtime.formats.given.delimited import delimited_writer
from headgate.runtime.formats.given.json_schema import JsonSchemaWriter
from headgate.runtime.formats.given.protobuf import ProtobufWriter
from headgate.runtime.formats.given.spark_text import json_value, print_json
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.protobuf_files import compiled
from headgate.schema import types as t
from headgate.schema.names import ROOT, field_path
from headgate.schema.values import to_json

_PACKED = {t.Integer: ">i", t.Bigint: ">q", t.Double: ">d"}


class BodyWriter(Protocol):
    """Writes the body of a record. Raises Unwritable."""

    def encode(self, value: Any) -> bytes: ...


def row_writer(side: RecordEncoding) -> Callable[[Mapping[str, Any]], bytes]:
    """From a row, which has every column of the side, to the bytes of the side. Raises Unwritable."""
    write = side_body(side)
    name = side.columns[0] if side.columns else ""
    body: Callable[[Mapping[str, Any]], bytes] = (lambda row: write(row[name])) if side.whole else write
    if side.schema is None:
        return body
    schema_id = side.schema_id
    assert schema_id is not None
    return lambda row: encode(schema_id, body(row))


def body_writer(side: RecordEncoding) -> BodyWriter:
    """The writer of a given schema."""
    schema = side.written
    assert schema is not None
    if side.encoding == "PROTOBUF":
        return protobuf_writer(compiled(schema), side.record, side.message)
    type_ = side.record.fields[0].type if side.whole else side.record
    return AvroWriter(schema, type_) if side.encoding == "AVRO" else JsonSchemaWriter(schema, type_)


@lru_cache(maxsize=64)
def protobuf_writer(descriptors: bytes, record: t.Record, message: str | None) -> ProtobufWriter:
    return ProtobufWriter(descriptors, record, message)


def side_body(side: RecordEncoding) -> Callable[[Any], bytes]:
    """From a row, or from the one value of a side that is whole, to the body of the side. Raises Unwritable."""
    match side.encoding:
        case "AVRO" | "JSON SCHEMA" | "PROTOBUF":
            return body_writer(side).encode
        case "JSON":
            type_ = side.record.fields[0].type if side.whole else side.record
            return lambda value: print_json(json_value(value, type_)).encode()
        case "TEXT" | "BYTES" | "PRIMITIVE":
            return _single(side)
        case "DELIMITED":
            return delimited_writer(side.record, side.delimiter)
        case _:
            assert_never(side.encoding)


def _single(side: RecordEncoding) -> Callable[[Any], bytes]:
    """One column, which is never null: the record would have no key, or be a tombstone."""
    field = side.record.fields[0]
    packed = _PACKED.get(type(field.type))
    path = field_path(ROOT, field.name)

    def write(value: Any) -> bytes:
        if not side.whole:
            value = value[field.name]
        if value is None:
            raise Unwritable(path, v.MISSING)
        if side.encoding == "PRIMITIVE" and packed is not None:
            return struct.pack(packed, value)
        return value if isinstance(value, bytes) else str(to_json(value, field.type)).encode()

    return write
