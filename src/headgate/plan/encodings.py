"""From the FORMAT clause of a statement to the encodings of its keys and values."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headgate.plan.errors import (
    CsvWithoutColumns,
    DelimiterNotOneCharacter,
    FormatColumnTwice,
    PatternWithoutGroups,
)
from headgate.schema.encodings import (
    BytesEncoding,
    CsvEncoding,
    Encoding,
    JsonEncoding,
    RegexEncoding,
    SchemaEncoding,
    TextEncoding,
)
from headgate.schema.formats.regex import read_pattern
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import (
    AvroInline,
    BytesFormat,
    CsvFormat,
    Format,
    Formats,
    JsonFormat,
    ProtobufInline,
    RegexFormat,
    TextFormat,
    frozen_schemas,
)
from headgate.sql.registry_formats import RegistryFormat, Side


def encodings(formats: Formats) -> tuple[Encoding, Encoding | None]:
    """How values and keys are read. A bare TEXT, BYTES or JSON holds for the key too, a registry's if it has a key."""
    value = _side(formats.value, "VALUE")
    assert value is not None
    if formats.key is not None:
        return value, _side(formats.key, "KEY")
    if isinstance(formats.value, AvroInline | ProtobufInline | CsvFormat | RegexFormat):
        return value, None
    if isinstance(formats.value, RegistryFormat):  # a message that is named is the value's
        return value, _side(replace(formats.value, message=None), "KEY")
    return value, _side(formats.value, "KEY")


def _side(format_: Format, side: Side) -> Encoding | None:
    match format_:
        case TextFormat():
            return TextEncoding()
        case BytesFormat():
            return BytesEncoding()
        case JsonFormat():
            return JsonEncoding()
        case AvroInline():
            return SchemaEncoding(
                SchemaFormat.AVRO, (WrittenSchema(format_.schema),), format_.options.confluent_wire_format
            )
        case ProtobufInline(message, schema):
            return SchemaEncoding(
                SchemaFormat.PROTOBUF, (WrittenSchema(schema, format=SchemaFormat.PROTOBUF),), False, message
            )
        case CsvFormat():
            return _csv_side(format_)
        case RegexFormat():
            return _regex_side(format_)
        case RegistryFormat():
            return _registry_side(format_, side)
        case _:
            assert_never(format_)


def _csv_side(format_: CsvFormat) -> CsvEncoding:
    delimiter = "," if format_.delimiter is None else format_.delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DelimiterNotOneCharacter(delimiter)
    if format_.header is not None:
        return CsvEncoding(_distinct("CSV", [i.name for i in format_.header]), delimiter)
    if not format_.columns:
        raise CsvWithoutColumns
    return CsvEncoding(tuple(f"column{n}" for n in range(1, format_.columns + 1)), delimiter)


def _regex_side(format_: RegexFormat) -> RegexEncoding:
    pattern = read_pattern(format_.pattern)
    if not pattern.names:
        raise PatternWithoutGroups
    names = [name or f"column{n}" for n, name in enumerate(pattern.names, 1)]
    return RegexEncoding(pattern.java, _distinct("REGEX", names))


def _distinct(format_: str, names: list[str]) -> tuple[str, ...]:
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise FormatColumnTwice(format_, twice)
    return tuple(names)


def _registry_side(format_: RegistryFormat, side: Side) -> SchemaEncoding | None:
    """The side's frozen schemas. A format given for the key alone holds only seeds of its own side."""
    seeds = frozen_schemas(format_, side)
    if not seeds:
        return None
    schema_format = SchemaFormat.from_words(format_.kind)
    schemas, past = (
        tuple(WrittenSchema(s.schema, s.references, s.known_id, schema_format) for s in of)
        for of in (seeds, frozen_schemas(format_, side, past=True))
    )
    return SchemaEncoding(schema_format, schemas, True, format_.message, past)


def format_words(format_: Format) -> str:
    """How a format is written, as far as its name goes."""
    match format_:
        case TextFormat():
            return "TEXT"
        case BytesFormat():
            return "BYTES"
        case JsonFormat():
            return "JSON"
        case CsvFormat():
            return "CSV"
        case RegexFormat():
            return "REGEX"
        case AvroInline():
            return "AVRO USING SCHEMA"
        case ProtobufInline():
            return "PROTOBUF USING SCHEMA"
        case RegistryFormat(kind):
            return kind
        case _:
            assert_never(format_)
