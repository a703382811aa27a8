"""Keys and values of records, in a format with a frame that names a schema or in a plain one.

The codecs are independent of those of ``runtime``, so that a spec checks the engine against another reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from headgate.registry import wire
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import ParsedSchema
from headgate.schema.written import SchemaFormat
from headgate.testing.avro_records import AvroCodec
from headgate.testing.errors import InvalidRecord, MalformedSpec
from headgate.testing.notation import Json, Written, read_json
from headgate.testing.protobuf_records import ProtobufCodec

Format: TypeAlias = Literal["avro", "json_sr", "protobuf", "json", "text", "bytes"]
FORMATS: tuple[str, ...] = get_args(Format)

_OF_TYPE: dict[SchemaFormat, Format] = {
    SchemaFormat.AVRO: "avro",
    SchemaFormat.JSON: "json_sr",
    SchemaFormat.PROTOBUF: "protobuf",
}
REGISTERED = tuple(_OF_TYPE.values())
PLAIN = tuple(name for name in FORMATS if name not in REGISTERED)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded value. ``is_loose`` says that an absent member and null mean the same, as in Protobuf."""

    value: Json
    is_loose: bool = False


class Records:
    """Encodes and decodes with the schemas of a registry, each of which is read once."""

    def __init__(self, registry: Callable[[], RegistryClient]) -> None:
        """``registry`` is called when a record first names a schema."""
        self._registry = registry
        self._codecs: dict[int, AvroCodec | ProtobufCodec | None] = {}
        self._formats: dict[int, Format] = {}

    def format_of(self, schema_id: int) -> Format:
        """The format of the records that have this schema."""
        self._codec(schema_id)
        return self._formats[schema_id]

    def encode_framed(self, written: Written, schema_id: int, message: str | None = None) -> bytes:
        """The bytes in the format of the schema, with the frame."""
        codec = self._codec(schema_id)
        match codec:
            case AvroCodec():
                return wire.encode(schema_id, codec.encode(written.value))
            case ProtobufCodec():
                return wire.encode(schema_id, codec.encode(written.value, message))
            case None:
                return wire.encode(schema_id, encode_plain("json", written))

    def decode(self, data: bytes | None, format_: str | None) -> Decoded:
        """Decode a key or a value. Without a format, the frame tells it; data without a frame is JSON."""
        if data is None:
            return Decoded(None)
        if format_ in ("json", "text", "bytes"):
            return Decoded(decode_plain(format_, data))
        if format_ is None and data[:1] != b"\x00":
            return Decoded(decode_plain("json", data))
        framed = wire.decode(data)
        codec, found = self._codec(framed.schema_id), self._formats[framed.schema_id]
        if format_ is not None and format_ != found:
            problem = f"its frame names schema {framed.schema_id}, which is {found} and not {format_}"
            raise InvalidRecord("$", problem)
        match codec:
            case None:
                return Decoded(decode_plain("json", framed.payload))
            case AvroCodec():
                return Decoded(codec.decode(framed.payload))
            case ProtobufCodec():
                return Decoded(codec.decode(framed.payload), is_loose=True)

    def _codec(self, schema_id: int) -> AvroCodec | ProtobufCodec | None:
        """The codec of a schema. None for JSON Schema, whose records are plain JSON."""
        if schema_id not in self._codecs:
            registry = self._registry()
            schema = registry.schema_by_id(schema_id)
            parsed = registry.resolved(schema)
            self._formats[schema_id] = _OF_TYPE[schema.type]
            match schema.type:
                case SchemaFormat.AVRO:
                    self._codecs[schema_id] = _avro_codec(parsed)
                case SchemaFormat.PROTOBUF:
                    self._codecs[schema_id] = ProtobufCodec(parsed)
                case SchemaFormat.JSON:
                    self._codecs[schema_id] = None
        return self._codecs[schema_id]


def _avro_codec(parsed: ParsedSchema) -> AvroCodec:
    """A schema that is referred to under two names defines its types once."""
    references = {other.canonical: other.definition for other in parsed.dependencies}
    return AvroCodec(parsed.definition, list(references.values()))


def encode_plain(format_: str, written: Written) -> bytes:
    """The bytes of a value in a plain format. JSON is sent exactly as it was written."""
    match format_, written.value:
        case "json", _:
            return written.text.encode()
        case "text", str(value):
            return value.encode()
        case "bytes", str(value):
            try:
                return bytes.fromhex(value)
            except ValueError as error:
                raise InvalidRecord("$", "bytes are written as a string of hex digits") from error
        case _:
            raise InvalidRecord("$", f"a record of format {format_} is written as a string")


def decode_plain(format_: str, data: bytes) -> Json:
    """The value of bytes in a plain format. Raises InvalidRecord."""
    if format_ == "bytes":
        return data.hex()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRecord("$", "it is not UTF-8 text") from error
    if format_ == "text":
        return text
    try:
        return read_json(text)
    except MalformedSpec as error:
        raise InvalidRecord("$", "it is not JSON") from error
