"""The reader of a side, by its format."""

from __future__ import annotations

from typing import assert_never

from headgate.runtime.formats.arrow_reader import ArrowReader
from headgate.runtime.formats.avro_reader import AvroReader
from headgate.runtime.formats.json_reader import JsonReader, json_decoder
from headgate.runtime.formats.protobuf_reader import ProtobufDecoders
from headgate.runtime.formats.side import SideReader, WriterSchemas
from headgate.runtime.formats.text_readers import BytesReader, CsvReader, RegexReader, TextReader
from headgate.schema import encodings as e
from headgate.schema.written import SchemaFormat


def side_reader(side: e.Encoding, writers: WriterSchemas) -> SideReader:
    match side:
        case e.BytesEncoding():
            return BytesReader()
        case e.TextEncoding():
            return TextReader()
        case e.JsonEncoding():
            return JsonReader()
        case e.CsvEncoding():
            return CsvReader(side)
        case e.RegexEncoding():
            return RegexReader(side)
        case e.SchemaEncoding():
            return _schema_reader(side, writers)
        case _:
            assert_never(side)


def _schema_reader(side: e.SchemaEncoding, writers: WriterSchemas) -> SideReader:
    match side.format:
        case SchemaFormat.AVRO:
            return AvroReader(side, writers)
        case SchemaFormat.JSON:
            return ArrowReader(side, writers, json_decoder)
        case SchemaFormat.PROTOBUF:
            return ArrowReader(side, writers, ProtobufDecoders.of((*side.schemas, *writers.known.values())))
        case _:
            assert_never(side.format)
