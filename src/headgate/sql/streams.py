"""CREATE STREAM and CREATE TABLE, with columns or AS SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql.options import (
    CONFIRM,
    ON_ERROR,
    ON_SCHEMA_CHANGE,
    Option,
    OptionRule,
    OptionTable,
    ValueKind,
    print_with_options,
    with_options,
)
from headgate.sql.queries import read_expression, read_query, take_emit_changes
from headgate.sql.statement import (
    Expression,
    Kind,
    ObjectName,
    Query,
    Statement,
    block,
    clauses,
    column_type,
    if_not_exists,
    object_name,
    print_identifier,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.types import print_full_type
from headgate.text.cursor import Cursor, Identifier

ColumnRole: TypeAlias = Literal["KEY", "PRIMARY KEY", "HEADERS", "HEADER"]


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """``header`` is the key of the header, if the role is HEADER."""

    name: Identifier
    type: Type
    role: ColumnRole | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class CreateStream(Statement):
    kind: Kind
    name: ObjectName
    columns: tuple[StreamColumn, ...] = ()
    properties: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def sql(self) -> str:
        columns = block([_print_column(column) for column in self.columns]) if self.columns else ""
        return clauses(words(_print_head(self), columns), print_with_options(self.properties))


@dataclass(frozen=True, slots=True)
class CreateStreamAs(Statement):
    kind: Kind
    name: ObjectName
    query: Query
    properties: tuple[Option, ...] = ()
    partition_by: tuple[Expression, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def sql(self) -> str:
        head = _print_head(self)
        partition_by = ", ".join([expression.text for expression in self.partition_by])
        return clauses(
            head if self.properties else f"{head} AS",
            f"{print_with_options(self.properties)} AS" if self.properties else "",
            self.query.text,
            f"PARTITION BY {partition_by}" if partition_by else "",
        )


_FORMATS = ("avro", "protobuf", "json_sr", "json", "kafka", "delimited", "none")

PROPERTIES = OptionTable(
    "the stream or table",
    (
        OptionRule("kafka_topic", ValueKind.STRING),
        OptionRule("partitions", ValueKind.INTEGER),
        OptionRule("replicas", ValueKind.INTEGER),
        OptionRule("retention_ms", ValueKind.INTEGER),
        OptionRule("format", ValueKind.STRING, _FORMATS),
        OptionRule("key_format", ValueKind.STRING, _FORMATS),
        OptionRule("value_format", ValueKind.STRING, _FORMATS),
        OptionRule("key_schema_id", ValueKind.INTEGER),
        OptionRule("value_schema_id", ValueKind.INTEGER),
        OptionRule("key_schema_full_name", ValueKind.STRING),
        OptionRule("value_schema_full_name", ValueKind.STRING, aliases=("value_avro_schema_full_name",)),
        OptionRule("wrap_single_value", ValueKind.BOOLEAN),
        OptionRule("key_delimiter", ValueKind.STRING),
        OptionRule("value_delimiter", ValueKind.STRING),
        OptionRule("timestamp", ValueKind.STRING),
        OptionRule("timestamp_format", ValueKind.STRING),
        OptionRule(
            "on_error", ValueKind.STRING, tuple(c.lower() for c in ON_ERROR.choices), aliases=("on_invalid",)
        ),
        OptionRule("on_schema_change", ValueKind.STRING, tuple(c.lower() for c in ON_SCHEMA_CHANGE.choices)),
        OptionRule("connection", ValueKind.STRING),
        OptionRule("registry", ValueKind.STRING),
        OptionRule("confirm", CONFIRM.kind),
    ),
)

TABLES = {"property": PROPERTIES}
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
    return _create(cursor, Kind.STREAM, or_replace)


def create_table(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create(cursor, Kind.TABLE, or_replace)


def _create(cursor: Cursor, kind: Kind, or_replace: bool) -> CreateStream | CreateStreamAs:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = _columns(cursor)
    properties = with_options(cursor, PROPERTIES)
    if columns or not cursor.take("AS"):
        return CreateStream(kind, name, columns, properties, or_replace, exists)
    query = read_query(cursor, before_partition_by=True)
    partition_by = _partition_by(cursor)
    take_emit_changes(cursor)
    return CreateStreamAs(kind, name, query, properties, partition_by, or_replace, exists)


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
    type_ = column_type(cursor)
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


def _partition_by(cursor: Cursor) -> tuple[Expression, ...]:
    if not cursor.take("PARTITION BY"):
        return ()
    expressions = [read_expression(cursor)]
    while cursor.take(","):
        expressions.append(read_expression(cursor))
    return tuple(expressions)


def _print_head(node: CreateStream | CreateStreamAs) -> str:
    create = f"CREATE OR REPLACE {node.kind.words}" if node.or_replace else f"CREATE {node.kind.words}"
    return words(create, print_if_not_exists(node.if_not_exists), print_name(node.name))


def _print_column(node: StreamColumn) -> str:
    header = f"({print_string(node.header)})" if node.header is not None else ""
    return words(print_identifier(node.name), print_full_type(node.type), (node.role or "") + header)
