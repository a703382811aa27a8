"""FORMAT clauses of sources, sinks and captures: how bytes become rows and rows become bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql import options as o, statement as s
from headgate.sql.registry_formats import (
    FormatOptions,
    FrozenSchema,
    InlineFormatOptions,
    RegistryFormat,
    Side,
    registry_format,
)
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import TokenKind


@dataclass(frozen=True, slots=True)
class TextFormat:
    """The bytes are one UTF-8 text."""

    def sql(self) -> str:
        return "TEXT"


@dataclass(frozen=True, slots=True)
class BytesFormat:
    """The bytes are taken as they are."""

    def sql(self) -> str:
        return "BYTES"


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The bytes are one JSON text, without a schema. ``single`` says that a stream writes its one column without an object around it;
    it is not printed."""

    single: bool = False

    def sql(self) -> str:
        return "JSON"


@dataclass(frozen=True, slots=True)
class JsonInline:
    """The bytes are one JSON text of a JSON Schema. Streams and tables with declared columns have it; nobody writes it."""

    schema: str

    def sql(self) -> str:
        return "JSON"


@dataclass(frozen=True, slots=True)
class PrimitiveFormat:
    """The bytes are one number in big-endian order, as Kafka's own serialisers write it. Streams and tables have it in their
    format `kafka`; nobody writes it."""

    type: Literal["integer", "bigint", "double"]

    def sql(self) -> str:
        return "BYTES"


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """``columns``: their number, without names. ``header``: their names. Neither: the file has a header line. ``types`` are those of
    the columns of a stream or table, and are not printed."""

    columns: int | None = None
    header: tuple[Identifier, ...] | None = None
    delimiter: str | None = None
    types: tuple[Type, ...] = ()

    def sql(self) -> str:
        columns = f"WITH {self.columns} COLUMNS" if self.columns is not None else ""
        header = f"WITH HEADER {s.print_identifiers(self.header)}" if self.header is not None else ""
        delimiter = f"DELIMITED BY {s.print_string(self.delimiter)}" if self.delimiter is not None else ""
        return s.words("CSV", columns, header, delimiter)


@dataclass(frozen=True, slots=True)
class RegexFormat:
    """The bytes are a text that the pattern matches. Its groups are the columns."""

    pattern: str

    def sql(self) -> str:
        return f"REGEX {s.print_string(self.pattern)}"


@dataclass(frozen=True, slots=True)
class AvroInline:
    """Avro with a schema in the statement."""

    schema: str
    options: InlineFormatOptions = InlineFormatOptions()

    def sql(self) -> str:
        return s.words(f"AVRO USING SCHEMA {s.print_string(self.schema)}", o.print_options(self.options))


@dataclass(frozen=True, slots=True)
class ProtobufInline:
    """Protobuf with a .proto text in the statement, and the message of it that is used."""

    message: str
    schema: str

    def sql(self) -> str:
        return f"PROTOBUF MESSAGE {s.print_string(self.message)} USING SCHEMA {s.print_string(self.schema)}"


Format: TypeAlias = (
    TextFormat
    | BytesFormat
    | JsonFormat
    | JsonInline
    | PrimitiveFormat
    | CsvFormat
    | RegexFormat
    | AvroInline
    | ProtobufInline
    | RegistryFormat
)


@dataclass(frozen=True, slots=True)
class Formats:
    """``FORMAT f`` (without a key) or ``KEY FORMAT f VALUE FORMAT f``."""

    value: Format
    key: Format | None = None

    def each(self) -> tuple[Format, ...]:
        """The formats of the value and, if it has one of its own, of the key."""
        return (self.value,) if self.key is None else (self.value, self.key)

    def sql(self) -> str:
        if self.key is None:
            return f"FORMAT {self.value.sql()}"
        return f"KEY FORMAT {self.key.sql()}\nVALUE FORMAT {self.value.sql()}"


def frozen_schemas(format_: Format, side: Side, *, past: bool = False) -> tuple[FrozenSchema, ...]:
    """The schemas that the format holds for a side, oldest first."""
    frozen = format_.frozen if isinstance(format_, RegistryFormat) else ()
    return tuple(schema for schema in frozen if schema.side == side and schema.past == past)


def format_of(formats: Formats, side: Side) -> Format:
    """The format that holds the schemas of a side. One that is given without KEY and VALUE holds those of both."""
    return formats.key if side == "KEY" and formats.key is not None else formats.value


def with_frozen_schemas(formats: Formats, side: Side, schemas: Sequence[FrozenSchema]) -> Formats:
    """Replace the schemas of one side."""
    format_ = format_of(formats, side)
    assert isinstance(format_, RegistryFormat)
    kept = tuple(schema for schema in format_.frozen if schema.side != side or schema.past)
    changed = replace(format_, frozen=(*kept, *schemas))
    return replace(formats, key=changed) if format_ is formats.key else replace(formats, value=changed)


def formats(cursor: Cursor, cls: type[FormatOptions]) -> Formats:
    """Read the format clause that must come next."""
    if cursor.take("KEY FORMAT"):
        key = format_(cursor, cls)
        cursor.expect("VALUE FORMAT")
        return Formats(format_(cursor, cls), key)
    cursor.expect("FORMAT")
    return Formats(format_(cursor, cls))


def format_(cursor: Cursor, cls: type[FormatOptions]) -> Format:
    """Read one format. ``cls`` says whether it is one for reading or for writing."""
    # JSON SCHEMA stands before JSON, because a phrase must be tried before its own beginning.
    match cursor.choose("TEXT", "BYTES", "JSON SCHEMA", "JSON", "CSV", "REGEX", "AVRO", "PROTOBUF"):
        case "TEXT":
            return TextFormat()
        case "BYTES":
            return BytesFormat()
        case "JSON":
            return JsonFormat()
        case "CSV":
            return _csv(cursor)
        case "REGEX":
            return RegexFormat(cursor.string())
        case "AVRO":
            return _avro(cursor, cls)
        case "PROTOBUF":
            return _protobuf(cursor, cls)
        case "JSON SCHEMA":
            return registry_format(cursor, "JSON SCHEMA", cls)
        case _:
            raise cursor.unexpected()


# CSV


def _csv(cursor: Cursor) -> CsvFormat:
    """``[WITH n COLUMNS | WITH HEADER (c, …)] [DELIMITED BY 'x']``. What follows WITH may be in parentheses."""
    if _at_csv_with(cursor):
        cursor.expect("WITH")
        enclosed = cursor.take("(")
        columns, header = _csv_columns(cursor)
        delimiter = _delimiter(cursor, enclosed)
        if enclosed:
            cursor.expect(")")
        return CsvFormat(columns, header, delimiter if delimiter is not None else _delimiter(cursor))
    return CsvFormat(delimiter=_delimiter(cursor))


def _at_csv_with(cursor: Cursor) -> bool:
    """Whether WITH belongs to the format. With a parenthesis it can also begin the options of the statement."""
    if cursor.at("WITH", "("):
        inside = cursor.tokens[cursor.index + 2]
        return inside.word == "HEADER" or inside.kind is TokenKind.NUMBER
    return cursor.at("WITH")


def _csv_columns(cursor: Cursor) -> tuple[int | None, tuple[Identifier, ...] | None]:
    """Read the number of the columns, or their names."""
    if cursor.take("HEADER"):
        return None, cursor.identifiers()
    count = cursor.whole_number()
    cursor.expect("COLUMNS")
    return count, None


def _delimiter(cursor: Cursor, enclosed: bool = False) -> str | None:
    if enclosed:
        cursor.take(",")
    return cursor.string() if cursor.take("DELIMITED BY") else None


# Schemas in the statement or in a registry


def _avro(cursor: Cursor, cls: type[FormatOptions]) -> Format:
    """Read a schema in the statement, or where the registry is."""
    if not cursor.take("USING SCHEMA"):
        return registry_format(cursor, "AVRO", cls)
    schema = cursor.string()
    return AvroInline(schema, o.options(cursor, InlineFormatOptions) if cursor.at("(") else InlineFormatOptions())


def _protobuf(cursor: Cursor, cls: type[FormatOptions]) -> Format:
    """Read a .proto text in the statement, or where the registry is."""
    message = cursor.string() if cursor.take("MESSAGE") else None
    if message is not None and cursor.take("USING SCHEMA"):
        return ProtobufInline(message, cursor.string())
    return registry_format(cursor, "PROTOBUF", cls, message)
