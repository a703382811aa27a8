"""From the FORMAT clause of a statement to the encodings of its keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from headgate.plan import errors
from headgate.schema import encodings as e, types as t
from headgate.schema.formats.regex import read_pattern
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql import formats as f
from headgate.sql.registry_formats import RegistryFormat, Side


def encodings(formats: f.Formats) -> tuple[e.Encoding, e.Encoding | None]:
    """The encodings of values and keys. FORMAT without KEY and VALUE applies to keys too, except for formats with columns.

    With a registry, keys have an encoding only if the registry has a schema for them.
    """
    value = _side(formats.value, "VALUE")
    assert value is not None
    if formats.key is not None:
        return value, _side(formats.key, "KEY")
    if isinstance(formats.value, f.AvroInline | f.ProtobufInline | f.CsvFormat | f.RegexFormat):
        return value, None
    if isinstance(formats.value, RegistryFormat):  # MESSAGE names the message of the value
        return value, _side(replace(formats.value, message=None), "KEY")
    return value, _side(formats.value, "KEY")


def _side(format_: f.Format, side: Side) -> e.Encoding | None:
    match format_:
        case f.TextFormat():
            return e.TextEncoding()
        case f.BytesFormat():
            return e.BytesEncoding()
        case f.JsonFormat():
            return e.JsonEncoding()
        case f.JsonInline(schema):
            written = WrittenSchema(schema, format=SchemaFormat.JSON)
            return e.SchemaEncoding(SchemaFormat.JSON, (written,), framed=False)
        case f.PrimitiveFormat():
            return e.PrimitiveEncoding(_PRIMITIVES[format_.type])
        case f.AvroInline():
            return e.SchemaEncoding(
                SchemaFormat.AVRO, (WrittenSchema(format_.schema),), format_.options.confluent_wire_format
            )
        case f.ProtobufInline(message, schema):
            return e.SchemaEncoding(
                SchemaFormat.PROTOBUF, (WrittenSchema(schema, format=SchemaFormat.PROTOBUF),), False, message
            )
        case f.CsvFormat():
            return _csv_side(format_)
        case f.RegexFormat():
            return _regex_side(format_)
        case RegistryFormat():
            return _registry_side(format_, side)
        case _:
            assert_never(format_)


_PRIMITIVES: Mapping[str, t.Integer | t.Bigint | t.Double] = {
    "integer": t.Integer(), "bigint": t.Bigint(), "double": t.Double(),
}  # fmt: skip


def _csv_side(format_: f.CsvFormat) -> e.CsvEncoding:
    delimiter = "," if format_.delimiter is None else format_.delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise errors.DelimiterNotOneCharacter(delimiter)
    if format_.header is not None:
        return e.CsvEncoding(_distinct("CSV", [i.name for i in format_.header]), delimiter, format_.types)
    if not format_.columns:
        raise errors.CsvWithoutColumns
    return e.CsvEncoding(tuple(f"column{n}" for n in range(1, format_.columns + 1)), delimiter)


def _regex_side(format_: f.RegexFormat) -> e.RegexEncoding:
    pattern = read_pattern(format_.pattern)
    if not pattern.names:
        raise errors.PatternWithoutGroups
    names = [name or f"column{n}" for n, name in enumerate(pattern.names, 1)]
    return e.RegexEncoding(pattern.java, _distinct("REGEX", names))


def _distinct(format_: str, names: list[str]) -> tuple[str, ...]:
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise errors.FormatColumnTwice(format_, twice)
    return tuple(names)


def _registry_side(format_: RegistryFormat, side: Side) -> e.SchemaEncoding | None:
    """The frozen schemas of one side; None if there are none."""
    seeds = f.frozen_schemas(format_, side)
    if not seeds:
        return None
    schema_format = SchemaFormat.from_words(format_.kind)
    schemas, past = (
        tuple(WrittenSchema(s.schema, s.references, s.known_id, schema_format) for s in of)
        for of in (seeds, f.frozen_schemas(format_, side, past=True))
    )
    return e.SchemaEncoding(schema_format, schemas, True, format_.message, past)


_FORMAT_WORDS: dict[type[f.Format], str] = {
    f.TextFormat: "TEXT",
    f.BytesFormat: "BYTES",
    f.JsonFormat: "JSON",
    f.JsonInline: "JSON",
    f.PrimitiveFormat: "BYTES",
    f.CsvFormat: "CSV",
    f.RegexFormat: "REGEX",
    f.AvroInline: "AVRO USING SCHEMA",
    f.ProtobufInline: "PROTOBUF USING SCHEMA",
}


def format_words(format_: f.Format) -> str:
    """How a format is written, as far as its name goes."""
    return format_.kind if isinstance(format_, RegistryFormat) else _FORMAT_WORDS[type(format_)]
