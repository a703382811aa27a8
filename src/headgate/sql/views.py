"""Relations that are defined in SQL: CREATE VIEW, MATERIALIZED VIEW, STREAM and TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from headgate.schema.types import Type
from headgate.sql import options as o, statement as s
from headgate.sql.objects import print_full_type
from headgate.sql.queries import read_expression, read_query, take_emit_changes
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class MaterializedViewOptions(o.Options, owner="the materialized view"):
    """Options of CREATE MATERIALIZED VIEW. CONFIRM is for a replacement that rewrites data."""

    also: ClassVar[tuple[str, ...]] = ("ASSERT NOT NULL",)
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))
    confirm: bool = o.option(False)


@dataclass(frozen=True, slots=True)
class CreateView(s.Create):
    """CREATE VIEW … AS query."""

    kind = s.Kind.VIEW
    query: s.Query
    columns: tuple[Identifier, ...] = ()
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        columns = s.print_identifiers(self.columns) if self.columns else ""
        return s.clauses(s.words(self.head(), columns, o.print_with_options(self.with_options), "AS"), self.query.text)


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(s.Create):
    """CREATE MATERIALIZED VIEW … AS query. ``assert_not_null`` are columns in which NULL is an error."""

    kind = s.Kind.MATERIALIZED_VIEW
    query: s.Query
    columns: tuple[Identifier, ...] = ()
    assert_not_null: tuple[Identifier, ...] = ()
    with_options: MaterializedViewOptions = MaterializedViewOptions()

    def sql(self) -> str:
        head = s.words(self.head(), s.print_identifiers(self.columns) if self.columns else "")
        given = [f"ASSERT NOT NULL {s.print_identifier(column)}" for column in self.assert_not_null]
        given += o.print_each_option(self.with_options)
        if not given:
            return s.clauses(f"{head} AS", self.query.text)
        return s.clauses(head, f"WITH {s.block(given)} AS", self.query.text)


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
    """CREATE STREAM (columns): a topic whose records are rows that are only added."""

    kind = s.Kind.STREAM
    columns: tuple[StreamColumn, ...] = ()
    properties: StreamProperties = StreamProperties()

    def sql(self) -> str:
        columns = s.block([column.sql() for column in self.columns]) if self.columns else ""
        return s.clauses(s.words(self.head(), columns), o.print_with_options(self.properties))


@dataclass(frozen=True, slots=True)
class CreateTable(CreateStream):
    """CREATE TABLE (columns): a topic whose records are rows by their key."""

    kind = s.Kind.TABLE


@dataclass(frozen=True, slots=True)
class CreateStreamAs(s.Create):
    """CREATE STREAM … AS query: a topic that the query fills."""

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
    """CREATE TABLE … AS query."""

    kind = s.Kind.TABLE


def create_view(cursor: Cursor, or_replace: bool) -> CreateView:
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = s.optional_columns(cursor)
    options = o.with_options(cursor, o.ChangeOptions)
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateView(name, query, columns, options, or_replace=or_replace, if_not_exists=exists)


def create_materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = s.optional_columns(cursor)
    asserted, options = _view_options(cursor) if cursor.take("WITH") else ((), MaterializedViewOptions())
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateMaterializedView(name, query, columns, asserted, options, or_replace=or_replace, if_not_exists=exists)


def _view_options(cursor: Cursor) -> tuple[tuple[Identifier, ...], MaterializedViewOptions]:
    """Read ``ASSERT NOT NULL c`` any number of times. After the first, further column names may follow without the
    words."""
    asserted: list[Identifier] = []
    found: dict[str, Any] = {}
    for _ in cursor.items():
        if cursor.take("ASSERT NOT NULL"):
            asserted.extend(cursor.identifiers() if cursor.at("(") else (cursor.identifier(),))
        elif asserted and not found and _at_lone_column(cursor):
            asserted.append(cursor.identifier())
        else:
            o.take_option(cursor, MaterializedViewOptions, found)
    return tuple(asserted), MaterializedViewOptions(**found)


def _at_lone_column(cursor: Cursor) -> bool:
    """Whether a name stands here that is no option and is followed by a comma or a parenthesis."""
    is_option = o.find_rule(MaterializedViewOptions, cursor.token.word) is not None
    return cursor.at_name() and not is_option and cursor.tokens[cursor.index + 1].word in (",", ")")


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
