"""How the bytes of a record's key or value are read, and the type that they have.

An encoding is plain data. It is made from the FORMAT clause of a statement, with the schemas that were frozen into it, and
the runtime builds a decoder from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import TypeAlias, assert_never

from headgate.schema.evolve.merge import merge_fields
from headgate.schema.formats.avro.read import read_schema as read_avro
from headgate.schema.formats.jsonschema.read import read_schema as read_json_schema
from headgate.schema.formats.protobuf import from_protobuf, read_files
from headgate.schema.types import Bytes, Field, Json, Record, Text
from headgate.schema.written import SchemaFormat, WrittenSchema


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The bytes are one UTF-8 text."""


@dataclass(frozen=True, slots=True)
class BytesEncoding:
    """The bytes are taken as they are."""


@dataclass(frozen=True, slots=True)
class JsonEncoding:
    """The bytes are one JSON text."""


@dataclass(frozen=True, slots=True)
class CsvEncoding:
    """The bytes are one line of delimited text with exactly these columns, all of them text."""

    columns: tuple[str, ...]
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class RegexEncoding:
    """The bytes are a text that the pattern matches. Its groups are the columns. ``pattern`` is written for Java."""

    pattern: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaEncoding:
    """The bytes are an Avro, Protobuf or JSON Schema value.

    ``schemas`` begins with the schema that was frozen at creation. The schemas that were followed since come after it, in
    the order in which they arrived. ``framed`` values begin with the id of the schema that they were written with.
    ``message`` names the message of a Protobuf file; None stands for the first one.
    """

    format: SchemaFormat
    schemas: tuple[WrittenSchema, ...]
    framed: bool = True
    message: str | None = None

    @property
    def first(self) -> WrittenSchema:
        return self.schemas[0]


Encoding: TypeAlias = (
    TextEncoding | BytesEncoding | JsonEncoding | CsvEncoding | RegexEncoding | SchemaEncoding
)
FieldPath: TypeAlias = tuple[str, ...]
"""Names of fields from the outermost record inwards. The empty path stands for the whole value."""


@lru_cache(maxsize=1024)
def decoded_type(encoding: Encoding) -> Field:
    """The type of the whole value, whether it may be null although there are bytes, and its doc. The name of the field
    is only a default for the column."""
    match encoding:
        case TextEncoding():
            return Field("text", Text(), False)
        case BytesEncoding():
            return Field("data", Bytes(), False)
        case JsonEncoding():
            return Field("data", Json(), False)
        case CsvEncoding(columns) | RegexEncoding(columns=columns):
            optional = isinstance(encoding, RegexEncoding)
            return Field("data", Record(tuple(Field(c, Text(), optional) for c in columns)), False)
        case SchemaEncoding():
            types = [type_of_schema(encoding.format, schema, encoding.message) for schema in encoding.schemas]
            return reduce(lambda known, arriving: merge_fields(known, arriving, accept=True), types)


def fields_of(encoding: Encoding) -> tuple[Field, ...] | None:
    """The fields of the decoded value, or None if it is not a record."""
    type_ = decoded_type(encoding).type
    return type_.fields if isinstance(type_, Record) else None


def without_followed_schemas(encoding: Encoding) -> Encoding:
    """The encoding as it was at creation."""
    return (
        replace(encoding, schemas=encoding.schemas[:1]) if isinstance(encoding, SchemaEncoding) else encoding
    )


@lru_cache(maxsize=1024)
def type_of_schema(format_: SchemaFormat, schema: WrittenSchema, message: str | None = None) -> Field:
    """The type of values that are written with a schema, if the text is read in this format. ``message`` names the
    message of a Protobuf file; None stands for the first one."""
    match format_:
        case SchemaFormat.AVRO:
            type_, nullable = read_avro(schema.text, [text for _, text in schema.references])
        case SchemaFormat.JSON:
            type_, nullable = read_json_schema(schema.text, dict(schema.references))
        case SchemaFormat.PROTOBUF:
            file, *imported = read_files(schema.text, schema.references)
            type_, nullable = from_protobuf(file, message, imported), False
        case _:
            assert_never(format_)
    return Field("value", type_, nullable, type_.doc if isinstance(type_, Record) else None)
