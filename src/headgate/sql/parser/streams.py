"""CREATE STREAM and CREATE TABLE, with columns or AS SELECT."""

from __future__ import annotations

from headgate.sql.ast.names import Expression, object_name
from headgate.sql.ast.streams import ColumnRole, CreateStream, CreateStreamAs, StreamColumn, StreamKind
from headgate.sql.parser import body
from headgate.sql.parser.clauses import CONFIRM, ON_ERROR, ON_SCHEMA_CHANGE, column_type, if_not_exists
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind
from headgate.sql.parser.values import with_options
from headgate.text.cursor import Cursor

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
    return _create(cursor, "STREAM", or_replace)


def create_table(cursor: Cursor, or_replace: bool) -> CreateStream | CreateStreamAs:
    return _create(cursor, "TABLE", or_replace)


def _create(cursor: Cursor, kind: StreamKind, or_replace: bool) -> CreateStream | CreateStreamAs:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = _columns(cursor)
    properties = with_options(cursor, PROPERTIES)
    if columns or not cursor.take("AS"):
        return CreateStream(kind, name, columns, properties, or_replace, exists)
    query = body.query(cursor, before_partition_by=True)
    partition_by = _partition_by(cursor)
    body.take_emit_changes(cursor)
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
    expressions = [body.expression(cursor)]
    while cursor.take(","):
        expressions.append(body.expression(cursor))
    return tuple(expressions)
