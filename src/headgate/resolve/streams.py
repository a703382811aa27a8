"""What the properties and columns of a stream or table mean, before anybody outside is asked: the format of each side, the
columns of each side, and the source that the stream is read as.

A stream is a source without envelope, a table one with UPSERT. Every rule about schema ids that needs no registry is checked
here; the others are checked in `headgate.purify.streams` and `headgate.plan.streams`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Object
from headgate.errors import InternalError
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import qualified_type, resolve_names
from headgate.schema.formats.jsonschema.write import to_json_schema
from headgate.schema.names import Found, find
from headgate.schema.render import print_type
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Map,
    Named,
    Real,
    Record,
    Text,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
    map_named,
)
from headgate.sql.connections import KafkaConnection, ReadOptions
from headgate.sql.formats import BytesFormat, CsvFormat, Format, Formats, JsonInline, PrimitiveFormat, TextFormat
from headgate.sql.options import OnError, OnSchemaChange
from headgate.sql.registry_formats import (
    IdStrategy,
    LatestStrategy,
    ReadFormatOptions,
    RegistryFormat,
    RegistryKind,
    SchemaStrategy,
    Side,
)
from headgate.sql.sources import (
    CreateSource,
    Include,
    IncludeHeader,
    IncludeMetadata,
    NoneEnvelope,
    SourceOptions,
    UpsertEnvelope,
)
from headgate.sql.statement import Create, Kind, ObjectName, Statement
from headgate.sql.streams import AnyStream, CreateStream, CreateStreamAs, StreamColumn, StreamFormat, StreamProperties
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import tokenize

REGISTRY: Mapping[StreamFormat, RegistryKind] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json_sr": "JSON SCHEMA"}
"""The formats with schemas in a registry, as other statements call them."""

FORMAT_NAMES: Mapping[str, str] = {words: name for name, words in REGISTRY.items()}
LARGEST_ID = 2**31 - 1
HEADERS = Array(Record((Field("key", Text()), Field("value", Bytes()))))
_ON_ERROR: Mapping[str, OnError] = {"halt": "HALT", "quarantine": "QUARANTINE", "skip": "SKIP"}
_ON_CHANGE: Mapping[str, OnSchemaChange] = {"pin": "PIN", "follow": "FOLLOW", "halt": "HALT"}
_PRIMITIVES: Mapping[type, Literal["integer", "bigint", "double"]] = {
    Integer: "integer", Bigint: "bigint", Double: "double",
}  # fmt: skip


KAFKA_TYPES = ("integer", "bigint", "double", "text", "bytes")
"""The types of the format kafka."""

DELIMITED = (Boolean, Integer, Bigint, Real, Double, Decimal, Text, Bytes, Date, Timestamp, TimestampTz, Uuid)
"""The types that have a text in delimited text."""

_DELIMITED_WORDS = (*(print_type(type_()) for type_ in DELIMITED if type_ is not Decimal), "decimal")

READ_KINDS = (Kind.SOURCE, Kind.STREAM, Kind.TABLE)
"""The kinds whose rows are in a topic."""


def read_statement(entry: Object) -> CreateSource:
    """The source that an object is read as."""
    match entry.definition:
        case CreateSource() as source:
            return source
        case CreateStream(reads=CreateSource() as source) | CreateStreamAs(reads=CreateSource() as source):
            return source
        case _:
            raise InternalError(f'{entry.kind} "{entry.name}" is not read from a topic')


def with_read_statement(entry: Object, source: CreateSource) -> Create:
    """The definition of the object, read as another source."""
    match entry.definition:
        case CreateStream() | CreateStreamAs() as stream:
            return replace(stream, reads=source)
        case _:
            return source


@dataclass(frozen=True, slots=True)
class StreamSide:
    """One side of the records of a stream or table. ``format`` is None for keys that are not read. ``columns`` are those that
    the statement declares; with a schema id there are none."""

    side: Side
    format: StreamFormat | None
    schema_id: int | None
    full_name: str | None
    columns: tuple[StreamColumn, ...]

    @property
    def word(self) -> str:
        return self.side.lower()

    @property
    def id_property(self) -> str:
        return f"{self.word}_schema_id"

    @property
    def record(self) -> Record:
        """The declared columns. All of them are nullable."""
        return Record(tuple(Field(column.name.name, column.type) for column in self.columns))


def settled(statement: AnyStream) -> StreamProperties:
    """The properties, with the formats that the statement does not name where they are known."""
    known = statement.settled if isinstance(statement, CreateStreamAs) else None
    return known or statement.properties


def own_name(statement: Statement) -> tuple[str, str]:
    """The kind and the name of a stream or table, as errors begin."""
    assert isinstance(statement, CreateStream | CreateStreamAs)
    return statement.kind.value, statement.name.parts[-1].name


def topic_of(statement: AnyStream) -> str:
    return statement.properties.kafka_topic or statement.name.parts[-1].name


def key_side(statement: AnyStream) -> StreamSide:
    """The keys. For CREATE … AS without the property, the format of the query's source is put in later."""
    given = settled(statement)
    columns = tuple(c for c in statement.columns if c.role in ("KEY", "PRIMARY KEY"))
    format_ = given.key_format or given.format
    if format_ is None and columns:
        format_ = "kafka"  # the default of ksqlDB
    if format_ == "none":
        format_ = None
    return StreamSide("KEY", format_, given.key_schema_id, given.key_schema_full_name, columns)


def value_side(statement: AnyStream) -> StreamSide:
    given = settled(statement)
    columns = tuple(c for c in statement.columns if c.role is None)
    format_ = given.value_format or given.format
    return StreamSide("VALUE", format_, given.value_schema_id, given.value_schema_full_name, columns)


def header_columns(statement: AnyStream) -> tuple[StreamColumn, ...]:
    return tuple(c for c in statement.columns if c.role in ("HEADERS", "HEADER"))


# CREATE without AS


def resolve_stream(statement: CreateStream, catalog: Catalog, path: SearchPath) -> CreateStream:
    """The statement with the source that it is read as, and with the definitions of named types in its columns."""
    statement = _with_types(statement, catalog, path)
    check_properties(statement)
    _check_columns(statement)
    key, value = key_side(statement), value_side(statement)
    for side in (key, value):
        check_side(statement, side)
        _check_declared(statement, side)
    reads = resolve_names(_source(statement, key, value), catalog, path)
    return replace(statement, reads=reads)


def _with_types(statement: CreateStream, catalog: Catalog, path: SearchPath) -> CreateStream:
    """Types of the catalog are replaced by what they mean: the stream keeps its columns whatever becomes of them."""

    def definition(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        assert found is not None
        return map_named(found.as_type(), definition)

    columns = (replace(c, type=map_named(qualified_type(catalog, path, c.type), definition)) for c in statement.columns)
    return replace(statement, columns=tuple(columns))


def check_properties(statement: AnyStream) -> None:
    """Raises for properties that contradict each other, or that have no effect."""
    given, who = statement.properties, own_name(statement)
    for name in ("key_format", "value_format"):
        if given.format is not None and getattr(given, name) is not None:
            raise errors.StreamFormatTwice(*who, name)
    for name in ("kafka_topic", "key_schema_full_name", "value_schema_full_name", "timestamp", "timestamp_format"):
        if getattr(given, name) == "":
            raise errors.PropertyWithoutMeaning(*who, name, "it is empty")
    for name in ("key_schema_id", "value_schema_id"):
        id_ = getattr(given, name)
        if id_ is not None and not 1 <= id_ <= LARGEST_ID:
            raise errors.InvalidSchemaId(*who, name, id_)
    if given.timestamp is None and given.timestamp_format is not None:
        raise errors.PropertyWithoutMeaning(*who, "timestamp_format", "there is no property timestamp")
    for side in ("key", "value"):
        format_ = getattr(settled(statement), f"{side}_format") or given.format
        # With AS the format may come from the source of the query, which is not known yet.
        known = format_ is not None or isinstance(statement, CreateStream)
        if known and getattr(given, f"{side}_delimiter") is not None and format_ != "delimited":
            raise errors.PropertyWithoutMeaning(*who, f"{side}_delimiter", "only the format delimited has delimiters")


def check_side(statement: AnyStream, side: StreamSide) -> None:
    """The rules for schema ids and full names that need no registry."""
    who = own_name(statement)
    if side.schema_id is not None:
        if side.format is None:
            raise errors.StreamFormatMissing(*who, side.word, "'protobuf' or 'json_sr', as the schema is")
        if side.format not in REGISTRY:
            raise errors.FormatWithoutSchemas(*who, side.word, side.format)
        if side.columns and isinstance(statement, CreateStream):
            names = tuple(c.name.name for c in side.columns)
            raise errors.ColumnsBesideSchemaId(*who, side.word, names)
    if side.full_name is not None and side.format not in ("avro", "protobuf"):
        reason = "only schemas of Avro and Protobuf have full names"
        raise errors.PropertyWithoutMeaning(*who, f"{side.word}_schema_full_name", reason)
    if side.side == "VALUE" and statement.properties.wrap_single_value is not None:
        if side.format == "protobuf":
            raise errors.PropertyWithoutMeaning(*who, "wrap_single_value", "a Protobuf message always has fields")
        if side.format not in (*REGISTRY, "json"):
            raise errors.PropertyWithoutMeaning(
                *who, "wrap_single_value", f"the format {side.format} has no fields that could be left out"
            )


def _check_columns(statement: CreateStream) -> None:
    who, is_table = own_name(statement), statement.kind is Kind.TABLE
    seen: list[str] = []
    for column in statement.columns:
        name = column.name.name
        if name in seen:
            raise errors.StreamColumnTwice(*who, name, "a declaration", "another declaration")
        seen.append(name)
        wrong, right = ("KEY", "PRIMARY KEY") if is_table else ("PRIMARY KEY", "KEY")
        if column.role == wrong:
            raise errors.KeyRoleOfOtherKind(*who, name, wrong, right)
        headers: dict[str | None, Type] = {"HEADERS": HEADERS, "HEADER": Bytes()}
        wanted = headers.get(column.role)
        if wanted is not None and print_type(column.type) != print_type(wanted):
            raise errors.HeaderType(*who, name, print_type(column.type), print_type(wanted))


def _check_declared(statement: CreateStream, side: StreamSide) -> None:
    """The rules for declared columns, and for a side without any."""
    who, format_, count = own_name(statement), side.format, len(side.columns)
    if format_ is None or (side.side == "VALUE" and format_ == "none"):
        if side.side == "VALUE" or side.columns:
            raise errors.StreamFormatMissing(*who, side.word)
        if statement.kind is Kind.TABLE:
            raise errors.TableWithoutKey(*who)
        return
    if format_ not in REGISTRY:
        if not side.columns:
            raise (
                errors.TableWithoutKey(*who)
                if side.side == "KEY" and statement.kind is Kind.TABLE
                else errors.StreamColumnsMissing(*who, side.word, format_)
            )
        if format_ == "kafka" and count != 1:
            raise errors.FormatOfOneColumn(*who, side.word, "kafka", count)
    if side.side == "VALUE" and statement.properties.wrap_single_value is False and count > 1:
        raise errors.PropertyWithoutMeaning(*who, "wrap_single_value", f"the value has {count} columns")


def holds_map(type_: Type) -> bool:
    match type_:
        case Map():
            return True
        case Array(element):
            return holds_map(element)
        case Record(fields):
            return any(holds_map(field.type) for field in fields)
        case _:
            return False


# the source that a stream is read as


def _source(statement: CreateStream, key: StreamSide, value: StreamSide) -> CreateSource:
    formats = Formats(read_format(statement, value), None if key.format is None else read_format(statement, key))
    return source_over(statement, formats)


def source_over(statement: AnyStream, formats: Formats) -> CreateSource:
    """The source over the topic of a stream or table."""
    given = statement.properties
    include: list[Include] = []
    if formats.key is not None:
        include.append(IncludeMetadata("KEY"))
    for column in header_columns(statement):
        if column.header is None:
            include.append(IncludeMetadata("HEADERS", column.name))
        else:
            include.append(IncludeHeader(column.header, column.name, as_bytes=True))
    return CreateSource(
        statement.name,
        KafkaConnection(connection_name(given.connection, "kafka"), ReadOptions(topic=topic_of(statement))),
        formats,
        include=tuple(include),
        envelope=UpsertEnvelope() if statement.kind is Kind.TABLE else NoneEnvelope(),
        with_options=SourceOptions(_on_schema_change(statement, formats.value), _ON_ERROR[given.on_error]),
    )


def connection_name(given: str | None, default: str) -> ObjectName:
    """The connection that a property names, which may have a schema and be quoted."""
    cursor = Cursor(given or default, tokenize(given or default))
    parts = [cursor.identifier()]
    while cursor.take("."):
        parts.append(cursor.identifier())
    return ObjectName(tuple(Identifier(part.name, part.quoted) for part in parts))


def _on_schema_change(statement: AnyStream, value: Format) -> OnSchemaChange | None:
    """With declared columns, with an id and with AS, the columns are fixed. Inferred columns follow the subject."""
    given = statement.properties.on_schema_change
    if given is not None:
        return _ON_CHANGE[given]
    if not isinstance(value, RegistryFormat):
        return None
    declared = any(column.role is None for column in statement.columns)
    fixed = declared or statement.properties.value_schema_id is not None or isinstance(statement, CreateStreamAs)
    return "PIN" if fixed else None


def read_format(statement: AnyStream, side: StreamSide) -> Format:
    """The format of one side. A schema of a registry is not in it yet."""
    who, format_ = own_name(statement), side.format
    match format_:
        case "avro" | "protobuf" | "json_sr":
            strategy = LatestStrategy() if side.schema_id is None else IdStrategy(side.schema_id)
            registry = connection_name(statement.properties.registry, "registry")
            message = side.full_name if format_ == "protobuf" else None
            strategies = () if side.schema_id is None else (SchemaStrategy(side.side, strategy),)
            return RegistryFormat(REGISTRY[format_], registry, ReadFormatOptions(), strategies, message=message)
        case "json":
            # A sink, which fills a stream made by AS, writes an object in any case.
            single = side.side == "KEY" and len(side.columns) == 1 and isinstance(statement, CreateStream)
            single = single or (side.side == "VALUE" and statement.properties.wrap_single_value is False)
            return JsonInline(_json_schema(side.record, single=single))
        case "kafka":
            return _primitive(who, side)
        case _:
            return delimited_format(statement, side)


def delimited_format(statement: AnyStream, side: StreamSide) -> CsvFormat:
    """Delimited text with the types of the columns. Raises FormatCannotHold for types that have no text of their own."""
    given = settled(statement)
    if not side.columns:
        reason = "the query has no columns but those of its key, and delimited text without a column is nothing"
        raise errors.PropertyWithoutMeaning(*own_name(statement), "value_format = 'delimited'", reason)
    for column in side.columns:
        if not isinstance(column.type, DELIMITED):
            found = print_type(column.type)
            raise errors.FormatCannotHold(
                *own_name(statement), side.word, "delimited", column.name.name, found, _DELIMITED_WORDS
            )
    delimiter = given.key_delimiter if side.side == "KEY" else given.value_delimiter
    names = {"SPACE": " ", "TAB": "\t"}  # as ksqlDB has them
    return CsvFormat(
        header=tuple(column.name for column in side.columns),
        delimiter=names.get(delimiter or "", delimiter),
        types=tuple(column.type for column in side.columns),
    )


def _json_schema(record: Record, *, single: bool) -> str:
    """The schema of declared columns. Objects may have further members, which are not read."""
    schema = _opened(to_json_schema(record))
    if single:
        (schema,) = schema["properties"].values()
    return json.dumps(schema, ensure_ascii=False)


def _opened(schema: Any) -> Any:
    match schema:
        case dict():
            return {k: _opened(v) for k, v in schema.items() if k != "additionalProperties" or v is not False}
        case list():
            return [_opened(item) for item in schema]
        case _:
            return schema


def _primitive(who: tuple[str, str], side: StreamSide) -> Format:
    column = side.columns[0]
    match column.type:
        case Text():
            return TextFormat()
        case Bytes():
            return BytesFormat()
        case Integer() | Bigint() | Double():
            return PrimitiveFormat(_PRIMITIVES[type(column.type)])
        case other:
            raise errors.FormatCannotHold(*who, side.word, "kafka", column.name.name, print_type(other), KAFKA_TYPES)


def find_name(written: Identifier, names: list[str]) -> str | None:
    """The one of the names that an identifier means; None if there is none, or several."""
    match find(written.name, written.quoted, names):
        case Found(name):
            return name
        case _:
            return None
