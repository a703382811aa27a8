"""The reader of a side, by its format."""

from __future__ import annotations

from typing import assert_never

from headgate.plan.sides import BytesSide, CsvSide, JsonSide, RegexSide, SchemaSide, SidePlan, TextSide
from headgate.runtime.formats.arrow_reader import ArrowReader
from headgate.runtime.formats.avro_reader import AvroReader
from headgate.runtime.formats.json_reader import JsonReader, json_decoder
from headgate.runtime.formats.protobuf_reader import ProtobufDecoders
from headgate.runtime.formats.side import SideReader, WriterSchemas
from headgate.runtime.formats.text_readers import BytesReader, CsvReader, RegexReader, TextReader


def side_reader(side: SidePlan, writers: WriterSchemas) -> SideReader:
    match side:
        case BytesSide():
            return BytesReader()
        case TextSide():
            return TextReader()
        case JsonSide():
            return JsonReader()
        case CsvSide():
            return CsvReader(side)
        case RegexSide():
            return RegexReader(side)
        case SchemaSide():
            return _schema_reader(side, writers)
        case _:
            assert_never(side)


def _schema_reader(side: SchemaSide, writers: WriterSchemas) -> SideReader:
    match side.kind:
        case "AVRO":
            return AvroReader(side, writers)
        case "JSON SCHEMA":
            return ArrowReader(side, writers, json_decoder)
        case "PROTOBUF":
            return ArrowReader(side, writers, ProtobufDecoders.of((*side.schemas, *writers.known.values())))
        case _:
            assert_never(side.kind)
