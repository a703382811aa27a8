"""CREATE STREAM and CREATE TABLE: topics that Headgate owns, in the words of ksqlDB.

The rows of a stream are only added. Those of a table replace each other by their key. Either is read like a source and,
with AS, filled by a query like a sink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql import options as o, statement as s
from headgate.sql.connections import KafkaConnection
from headgate.sql.objects import print_full_type
from headgate.sql.queries import read_expression, read_query, take_emit_changes
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sources import CreateSource
from headgate.text.cursor import Cursor, Identifier

ColumnRole: TypeAlias = Literal["PRIMARY KEY", "KEY", "HEADERS", "HEADER"]
# PRIMARY KEY is tried before KEY, HEADERS before HEADER.
_ROLES: tuple[ColumnRole, ...] = ("PRIMARY KEY", "KEY", "HEADERS", "HEADER")


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """``header`` is the key of the header, if the role is HEADER."""

    name: Identifier
    type: Type
    role: ColumnRole | None = None
    header: str | None = None

    def sql(self) -> str:
        header = f"({s.print_string(self.header)})" if self.header is not None else ""
        return s.words(s.print_identifier(self.name), print_full_type(self.type), (self.role or "") + header)


StreamFormat: TypeAlias = Literal["avro", "protobuf", "json_sr", "json", "kafka", "delimited", "none"]


@dataclass(frozen=True, slots=True)
class StreamProperties(o.Options, owner="the stream or table"):
    """The properties of a stream or table, with the names of ksqlDB."""

    upper: ClassVar[bool] = False
    kafka_topic: str | None = o.option()
    partitions: int | None = o.option()
    replicas: int | None = o.option()
    retention_ms: int | None = o.option()
    format: StreamFormat | None = o.option()
    key_format: StreamFormat | None = o.option()
    value_format: StreamFormat | None = o.option()
    key_schema_id: int | None = o.option()
    value_schema_id: int | None = o.option()
    key_schema_full_name: str | None = o.option()
    value_schema_full_name: str | None = o.option(aliases=("value_avro_schema_full_name",))
    wrap_single_value: bool | None = o.option()
    key_delimiter: str | None = o.option()
    value_delimiter: str | None = o.option()
    timestamp: str | None = o.option()
    timestamp_format: str | None = o.option()
    on_error: Literal["halt", "quarantine", "skip"] = o.option("halt", aliases=("on_invalid",))
    on_schema_change: Literal["pin", "follow", "halt"] | None = o.option()
    connection: str | None = o.option()
    registry: str | None = o.option()
    confirm: bool = o.option(False)


@dataclass(frozen=True, slots=True)
class CreateStream(s.Create):
    """CREATE STREAM (columns): a topic whose records are rows that are only added.

    ``reads`` is how its records are read. Nobody writes it and it is not printed: only the catalog has it.
    """

    kind = s.Kind.STREAM
    columns: tuple[StreamColumn, ...] = ()
    properties: StreamProperties = StreamProperties()
    reads: CreateSource | None = None

    def sql(self) -> str:
        columns = s.block([column.sql() for column in self.columns]) if self.columns else ""
        return s.clauses(s.words(self.head(), columns), o.print_with_options(_with_connections(self)))


@dataclass(frozen=True, slots=True)
class CreateTable(CreateStream):
    """CREATE TABLE (columns): a topic whose records are rows by their key."""

    kind = s.Kind.TABLE


@dataclass(frozen=True, slots=True)
class CreateStreamAs(s.Create):
    """CREATE STREAM … AS query: a topic that the query fills.

    ``reads`` is how its records are read, ``projection`` what the query returned when the statement was made, and ``settled``
    are the properties with the formats of the query's source. Nobody writes these and they are not printed: only the
    catalog has them.
    """

    kind = s.Kind.STREAM
    query: s.Query
    properties: StreamProperties = StreamProperties()
    partition_by: tuple[s.Expression, ...] = ()
    projection: tuple[StreamColumn, ...] = ()
    settled: StreamProperties | None = None
    reads: CreateSource | None = None

    @property
    def columns(self) -> tuple[StreamColumn, ...]:
        """The columns of the stream."""
        return self.projection

    def sql(self) -> str:
        given = o.print_with_options(_with_connections(self))
        partition_by = ", ".join([expression.text for expression in self.partition_by])
        return s.clauses(
            self.head() if given else f"{self.head()} AS",
            f"{given} AS" if given else "",
            self.query.text,
            f"PARTITION BY {partition_by}" if partition_by else "",
        )


@dataclass(frozen=True, slots=True)
class CreateTableAs(CreateStreamAs):
    """CREATE TABLE … AS query."""

    kind = s.Kind.TABLE


AnyStream: TypeAlias = CreateStream | CreateStreamAs
"""CREATE STREAM and CREATE TABLE, with and without AS."""


def _with_connections(statement: AnyStream) -> StreamProperties:
    """The properties, with the names that the connections have now, and with the topic if that is not the stream's name."""
    given, reads = statement.properties, statement.reads
    if reads is None:
        return given
    topic = reads.kafka.options.topic
    if given.kafka_topic is None and topic != statement.name.parts[-1].name:
        given = replace(given, kafka_topic=topic)
    if given.connection is not None and isinstance(reads.kafka, KafkaConnection):
        given = replace(given, connection=s.print_name(reads.kafka.connection))
    registries = [f.registry for f in reads.formats.each() if isinstance(f, RegistryFormat)]
    if given.registry is not None and registries and isinstance(registries[0], s.ObjectName):
        given = replace(given, registry=s.print_name(registries[0]))
    return given


def create_stream(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create_stream(cursor, or_replace, CreateStream, CreateStreamAs)


def create_table(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create_stream(cursor, or_replace, CreateTable, CreateTableAs)


def _create_stream(
    cursor: Cursor, or_replace: bool, plain: type[CreateStream], as_select: type[CreateStreamAs]
) -> CreateStream | CreateStreamAs:
    """Read what follows the kind. Columns and AS exclude each other."""
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = _columns(cursor)
    properties = o.with_options(cursor, StreamProperties)
    # With AS the query decides the columns.
    if columns or not cursor.take("AS"):
        return plain(name, columns, properties, or_replace=or_replace, if_not_exists=exists)
    query = read_query(cursor, before_partition_by=True)
    partition_by = cursor.several(read_expression) if cursor.take("PARTITION BY") else ()
    take_emit_changes(cursor)
    return as_select(name, query, properties, partition_by, or_replace=or_replace, if_not_exists=exists)


def _columns(cursor: Cursor) -> tuple[StreamColumn, ...]:
    if cursor.at("("):
        return cursor.in_parentheses(_column)
    cursor.expecting("(")
    return ()


def _column(cursor: Cursor) -> StreamColumn:
    """Read a column of a stream or table."""
    name = cursor.identifier()
    type_ = s.column_type(cursor)
    role = cursor.choose(*_ROLES)
    header: str | None = None
    if role == "HEADER":
        cursor.expect("(")
        header = cursor.string()
        cursor.expect(")")
    return StreamColumn(name, type_, role, header)
