"""How an object is read from a topic: a source, and a stream or table, which is a source that Headgate owns. And how rows are
written to the topic of a stream or table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypeAlias

from headgate.catalog.objects import Object
from headgate.errors import InternalError
from headgate.plan import definitions as d
from headgate.plan.definitions import RecordEncoding, SourceColumn
from headgate.plan.encodings import encodings
from headgate.plan.errors import ColumnNameTaken
from headgate.plan.fitting import misfits, shown_fields, stands_for
from headgate.plan.source import (
    METADATA,
    SourcePlan,
    describe_origin,
    key_change_policy,
    plan_source,
    schema_change_policy,
)
from headgate.resolve import stream_errors as errors
from headgate.resolve.streams import REGISTRY, StreamSide, header_columns, holds_map, key_side, own_name, value_side
from headgate.schema import encodings as e, types as t
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record
from headgate.sql import formats as f
from headgate.sql.registry_formats import PendingId, RegistryFormat, Side
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Create, Kind
from headgate.sql.streams import AnyStream, CreateStream, CreateStreamAs

ROWKEY, ROWVALUE = "ROWKEY", "ROWVALUE"


def layout_of(entry: Object) -> SourcePlan:
    """How a record becomes a row of the object."""
    return layout_of_statement(entry.definition)


def source_layout(relation: Object) -> SourcePlan | None:
    """How records become rows of the relation at the end of a chain; None for a materialized view, which has its own rows."""
    return None if relation.kind is Kind.MATERIALIZED_VIEW else layout_of(relation)


def layout_of_statement(statement: Create | None) -> SourcePlan:
    match statement:
        case CreateSource():
            return plan_source(statement)
        case CreateStream() | CreateStreamAs():
            return stream_layout(statement)
        case _:
            raise InternalError("this statement is not read from a topic")


@lru_cache(maxsize=1024)  # every query that reads the stream needs the layout again
def stream_layout(statement: AnyStream) -> SourcePlan:
    """How a record becomes a row of a stream or table: key columns, value columns, headers. All but the key of a table are
    nullable. Raises for columns that do not fit their schema."""
    reads = statement.reads
    assert reads is not None
    value, key = encodings(reads.formats)
    key = key if reads.formats.key is not None else None
    on_change = schema_change_policy(reads)
    value = e.filling(e.by_format_rules(value) if on_change == "PIN" else value)
    is_table = statement.kind is Kind.TABLE
    keys = [] if key is None else _columns(statement, key_side(statement), key)
    _check_key(statement, keys)
    keys = [replace(column, key=is_table, nullable=not is_table) for column in keys]
    values = _columns(statement, value_side(statement), value)
    first = len(_columns(statement, value_side(statement), e.without_followed_schemas(value)))
    created = [*keys, *values[:first], *_headers(statement)]
    _check_twice(statement, created)
    if not created:
        raise errors.NoFieldInSchema(*own_name(statement))
    taken = {column.name: column.origin for column in created}
    grown = [column for column in values[first:] if column.name not in taken]
    without = [_name_taken(statement, c, taken[c.name]) for c in values[first:] if c.name in taken]
    place = len(keys) + first
    return SourcePlan(
        own_name(statement)[1],
        (*created[:place], *grown, *created[place:]),
        value,
        key,
        "UPSERT" if is_table else "NONE",
        reads.with_options.on_error,
        on_change,
        key_change_policy(reads),
        e.decoded_type(value).doc,
        tuple(without),
    )


def _columns(statement: AnyStream, side: StreamSide, encoding: e.Encoding) -> list[d.SourceColumn]:
    """The columns of one side: the fields of its record, or one column for the whole of it."""
    section: d.Section = "key" if side.side == "KEY" else "value"
    place = e.decoded_type(encoding)
    declared = _declared(side)
    if not declared and isinstance(statement, CreateStreamAs):
        return []  # a query of key columns alone
    if _is_whole(statement, side, place.type):
        default = ROWKEY if section == "key" else ROWVALUE
        name = declared[0].name if len(declared) == 1 else default
        _check_whole(statement, side, declared, place)
        type_ = declared[0].type if declared else place.type
        return [d.SourceColumn(name, type_, True, d.Origin(section), place.doc if declared == () else None)]
    assert isinstance(place.type, t.Record)
    fields = {field.name: field for field in place.type.fields}
    if declared:
        check_fit(statement, side, declared, place.type.fields)
    names = [(column.name, column.type) for column in declared] or [(f.name, f.type) for f in place.type.fields]
    return [
        d.SourceColumn(
            name, type_, True, d.Origin(section, name), fields[name].doc, default=fields[name].default
        )
        for name, type_ in names
    ]  # fmt: skip


def _check_key(statement: AnyStream, keys: Sequence[d.SourceColumn]) -> None:
    """Raises TableWithoutKey for a table whose keys have no fields, and MapInKey for a map."""
    if not keys and statement.kind is Kind.TABLE:
        raise errors.TableWithoutKey(*own_name(statement))
    for column in keys:
        if holds_map(column.type):
            raise errors.MapInKey(*own_name(statement), column.name, print_type(column.type))


def _declared(side: StreamSide) -> tuple[t.Field, ...]:
    return side.record.fields


def _is_whole(statement: AnyStream, side: StreamSide, type_: t.Type) -> bool:
    """Whether the side is one column. A declared key column of a record type is the whole key."""
    if not isinstance(type_, t.Record):
        return True
    if side.side == "VALUE":
        return statement.properties.wrap_single_value is False
    (first, *others) = _declared(side) or (None,)
    return first is not None and not others and stands_for(first, type_)


def _check_whole(statement: AnyStream, side: StreamSide, declared: Sequence[t.Field], place: t.Field) -> None:
    who = own_name(statement)
    has_schema = side.format in REGISTRY
    if side.side == "VALUE" and has_schema and statement.properties.wrap_single_value is not False:
        raise errors.SchemaNotRecord(*who, print_type(place.type))
    if declared and has_schema:
        whole = t.Field(declared[0].name, place.type, place.nullable)
        check_fit(statement, side, declared, (whole,))


def check_fit(statement: AnyStream, side: StreamSide, columns: Sequence[t.Field], fields: Sequence[t.Field]) -> None:
    """Raises ColumnsNotInSchema unless the columns are a subset of the fields in their order."""
    problems = misfits(columns, fields)
    if problems:
        _check_generated(statement, side, columns, fields)
        schema = "the schema of its subject" if side.schema_id is None else f"schema {side.schema_id}"
        raise errors.ColumnsNotInSchema(
            *own_name(statement), side.word, schema, problems, shown_fields(columns), shown_fields(fields)
        )


def _check_generated(
    statement: AnyStream, side: StreamSide, columns: Sequence[t.Field], fields: Sequence[t.Field]
) -> None:
    """Raises TypeNotInFormat for a schema that this statement generates: then the columns differ from it by their types alone."""
    reads = statement.reads
    assert reads is not None
    schemas = f.frozen_schemas(f.format_of(reads.formats, side.side), side.side)
    if side.schema_id is not None or not schemas or not isinstance(schemas[-1].id, PendingId):
        return
    known = {field.name: field for field in fields}
    for column in columns:
        field = known.get(column.name)
        if field is not None and misfits((column,), (field,)):
            raise errors.TypeNotInFormat(
                *own_name(statement), side.word, side.format or "", column.name, print_type(column.type), print_type(field.type)
            )  # fmt: skip


def _headers(statement: AnyStream) -> list[d.SourceColumn]:
    found = []
    for column in header_columns(statement):
        if column.header is None:
            type_, origin = METADATA["HEADERS"].type, d.Origin("metadata", "HEADERS")
        else:
            type_, origin = t.Bytes(), d.Origin("header", column.header, as_bytes=True)
        found.append(d.SourceColumn(column.name.name, type_, True, origin))
    return found


def _check_twice(statement: AnyStream, columns: Sequence[d.SourceColumn]) -> None:
    seen: dict[str, d.SourceColumn] = {}
    for column in columns:
        first = seen.setdefault(column.name, column)
        if first is not column:
            raise errors.StreamColumnTwice(
                *own_name(statement), column.name, describe_origin(first.origin), describe_origin(column.origin)
            )


def _name_taken(statement: AnyStream, column: d.SourceColumn, other: d.Origin) -> ColumnNameTaken:
    name = own_name(statement)[1]
    return ColumnNameTaken(
        name, column.name, describe_origin(column.origin), describe_origin(other), "another name for the column"
    )


EncodingName: TypeAlias = Literal["AVRO", "JSON SCHEMA", "PROTOBUF", "JSON", "TEXT", "BYTES", "PRIMITIVE", "DELIMITED"]
_PLAIN: Mapping[type[f.Format], EncodingName] = {
    f.JsonInline: "JSON",
    f.JsonFormat: "JSON",
    f.TextFormat: "TEXT",
    f.BytesFormat: "BYTES",
    f.PrimitiveFormat: "PRIMITIVE",
    f.CsvFormat: "DELIMITED",
}


def written_sides(statement: AnyStream) -> tuple[RecordEncoding | None, RecordEncoding]:
    """The encodings of keys and values. None for a stream whose records have no keys."""
    reads, layout = statement.reads, stream_layout(statement)
    assert reads is not None
    keys = [column for column in layout.columns if column.origin.section == "key"]
    values = [column for column in layout.columns if column.origin.section == "value"]
    key = None if reads.formats.key is None or not keys else _side(reads.formats.key, "KEY", keys)
    return key, _side(reads.formats.value, "VALUE", values)


def _side(format_: f.Format, side: Side, columns: Sequence[SourceColumn]) -> RecordEncoding:
    names = tuple(column.name for column in columns)
    record = Record(tuple(Field(column.name, column.type) for column in columns))
    whole = len(columns) == 1 and columns[0].origin.name is None
    if isinstance(format_, RegistryFormat):
        schema = f.frozen_schemas(format_, side)[-1]
        return RecordEncoding(
            format_.kind, names, record, schema.schema, schema.known_id, given=True,
            references=schema.references, message=format_.message, whole=whole,
        )  # fmt: skip
    delimiter = (format_.delimiter if isinstance(format_, f.CsvFormat) else None) or ","
    return RecordEncoding(_PLAIN[type(format_)], names, record, whole=whole, delimiter=delimiter)
