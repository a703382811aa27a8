"""Which module reads which side."""

from __future__ import annotations

from headgate.plan.errors import NotSupportedYet
from headgate.plan.sides import BytesSide, JsonSide, SchemaSide, SidePlan, TextSide
from headgate.runtime.formats.avro import AvroReader
from headgate.runtime.formats.plain import BytesReader, JsonReader, TextReader
from headgate.runtime.formats.side import SideReader, Writers


def side_reader(side: SidePlan, writers: Writers) -> SideReader:
    match side:
        case BytesSide():
            return BytesReader()
        case TextSide():
            return TextReader()
        case JsonSide():
            return JsonReader()
        case SchemaSide(kind="AVRO"):
            return AvroReader(side, writers)
        case _:
            raise NotSupportedYet("reading this format")
