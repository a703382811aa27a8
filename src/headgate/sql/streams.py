"""CREATE STREAM and CREATE TABLE, with columns or AS SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql import options as o
from headgate.sql import statement as s
from headgate.sql.objects import print_full_type
from headgate.sql.queries import read_expression, read_query, take_emit_changes
from headgate.text.cursor import Cursor, Identifier

ColumnRole: TypeAlias = Literal["KEY", "PRIMARY KEY", "HEADERS", "HEADER"]


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """``header`` is the key of the header, if the role is HEADER."""

    name: Identifier
    type: Type
    role: ColumnRole | None = None
    header: str | None = None


StreamFormat: TypeAlias = Literal["avro", "protobuf", "json_sr", "json", "kafka", "delimited", "none"]


@dataclass(frozen=True, slots=True)
class StreamProperties(o.Options):
    """The properties of a stream or table, with the names of ksqlDB."""

    owner: ClassVar[str] = "the stream or table"
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
    kind = s.Kind.STREAM
    columns: tuple[StreamColumn, ...] = ()
    properties: StreamProperties = StreamProperties()

    def sql(self) -> str:
        columns = s.block([_print_column(column) for column in self.columns]) if self.columns else ""
        return s.clauses(s.words(self.head(), columns), o.print_with_options(self.properties))


@dataclass(frozen=True, slots=True)
class CreateTable(CreateStream):
    kind = s.Kind.TABLE


@dataclass(frozen=True, slots=True)
class CreateStreamAs(s.Create):
    kind = s.Kind.STREAM
    query: s.Query
    properties: StreamProperties = StreamProperties()
    partition_by: tuple[s.Expression, ...] = ()

    def sql(self) -> str:
        given = o.print_with_options(self.properties)
        partition_by = ", ".join([expression.text for expression in self.partition_by])
        return s.clauses(
            self.head() if given else f"{self.head()} AS",
            f"{given} AS" if given else "",
            self.query.text,
            f"PARTITION BY {partition_by}" if partition_by else "",
        )


@dataclass(frozen=True, slots=True)
class CreateTableAs(CreateStreamAs):
    kind = s.Kind.TABLE


OPTION_LISTS: dict[str, type[o.Options]] = {"property": StreamProperties}
RULES = {
    "stream column": "<column> <type> [KEY | HEADERS | HEADER (<string>)]",
    "table column": "<column> <type> [PRIMARY KEY | HEADERS | HEADER (<string>)]",
}
_AS = " [WITH (<property> [, ...])] AS <query> [PARTITION BY <expression>] [EMIT CHANGES]"
_ALTER = "{ACCEPT SCHEMA CHANGE [WITH (<change option>)] | <task state> | RENAME TO <new name>}"
SYNOPSES = {
    "CREATE STREAM": (
        "CREATE {STREAM [IF NOT EXISTS] | OR REPLACE STREAM} <name> [(<stream column> [, ...])]"
        " [WITH (<property> [, ...])]"
    ),
    "CREATE STREAM AS SELECT": "CREATE {STREAM [IF NOT EXISTS] | OR REPLACE STREAM} <name>" + _AS,
    "CREATE TABLE": (
        "CREATE {TABLE [IF NOT EXISTS] | OR REPLACE TABLE} <name> [(<table column> [, ...])]"
        " [WITH (<property> [, ...])]"
    ),
    "CREATE TABLE AS SELECT": "CREATE {TABLE [IF NOT EXISTS] | OR REPLACE TABLE} <name>" + _AS,
    "ALTER STREAM": "ALTER STREAM [IF EXISTS] <name> " + _ALTER,
    "ALTER TABLE": "ALTER TABLE [IF EXISTS] <name> " + _ALTER,
}


def create_stream(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create(cursor, or_replace, CreateStream, CreateStreamAs)


def create_table(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create(cursor, or_replace, CreateTable, CreateTableAs)


def _create(
    cursor: Cursor, or_replace: bool, plain: type[CreateStream], as_select: type[CreateStreamAs]
) -> CreateStream | CreateStreamAs:
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = _columns(cursor)
    properties = o.with_options(cursor, StreamProperties)
    if columns or not cursor.take("AS"):
        return plain(name, columns, properties, or_replace=or_replace, if_not_exists=exists)
    query = read_query(cursor, before_partition_by=True)
    partition_by = _partition_by(cursor)
    take_emit_changes(cursor)
    return as_select(name, query, properties, partition_by, or_replace=or_replace, if_not_exists=exists)


def _columns(cursor: Cursor) -> tuple[StreamColumn, ...]:
    if not cursor.take("("):
        return ()
    columns = [_column(cursor)]
    while cursor.take(","):
        columns.append(_column(cursor))
    cursor.expect(")")
    return tuple(columns)


def _column(cursor: Cursor) -> StreamColumn:
    name = cursor.identifier()
    type_ = s.column_type(cursor)
    role: ColumnRole | None = None
    header: str | None = None
    if cursor.take("PRIMARY KEY"):
        role = "PRIMARY KEY"
    elif cursor.take("KEY"):
        role = "KEY"
    elif cursor.take("HEADERS"):
        role = "HEADERS"
    elif cursor.take("HEADER"):
        cursor.expect("(")
        role, header = "HEADER", cursor.string()
        cursor.expect(")")
    return StreamColumn(name, type_, role, header)


def _partition_by(cursor: Cursor) -> tuple[s.Expression, ...]:
    if not cursor.take("PARTITION BY"):
        return ()
    expressions = [read_expression(cursor)]
    while cursor.take(","):
        expressions.append(read_expression(cursor))
    return tuple(expressions)


def _print_column(node: StreamColumn) -> str:
    header = f"({s.print_string(node.header)})" if node.header is not None else ""
    return s.words(s.print_identifier(node.name), print_full_type(node.type), (node.role or "") + header)
