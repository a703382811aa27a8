"""What DESCRIBE and EXPLAIN say of a stream or table (its topic, and its logical and physical schema), and of a materialization
(its fields, where each comes from, and what it is in the target)."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Comment, DependencyKind, Object
from headgate.connectors.connections import Clients
from headgate.errors import HeadgateError
from headgate.plan.definitions import RecordEncoding
from headgate.plan.indexes import mapped_leaves
from headgate.plan.materializations import existing_materialization
from headgate.plan.materialized_fields import print_pointer
from headgate.plan.on_demand import service_word
from headgate.plan.on_demand_messages import PACKAGE
from headgate.plan.reading import written_sides
from headgate.plan.record_times import known_time
from headgate.plan.target_definitions import MaterializationDefinition, OnDemandDefinition, TableDefinition
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryError, SchemaIdNotFound
from headgate.resolve.statements import registry_server, topic_name
from headgate.resolve.streams import key_side, read_statement, value_side
from headgate.runtime.values import Json
from headgate.schema import types as t
from headgate.schema.encodings import type_of_schema
from headgate.schema.render import print_type
from headgate.schema.types import Enum, Field, Record
from headgate.sql.formats import format_of
from headgate.sql.registry_formats import RegistryFormat, Side, subject_name
from headgate.sql.streams import CreateStream, CreateStreamAs


def stream_properties(found: Object, clients: Clients) -> Iterator[list[Json]]:
    """The properties that a stream or table has beyond those of every object. The registry is asked for versions."""
    definition = found.definition
    if not isinstance(definition, CreateStream | CreateStreamAs):
        return
    reads = read_statement(found)
    topic = topic_name(reads.kafka)
    yield ["topic", topic]
    if (time := known_time(definition)) is not None:
        pattern = "" if time.format is None else f", a text as {time.format}"
        yield ["record time", f"column {time.column}{pattern}"]
    key, value = written_sides(definition)
    sides: tuple[tuple[Side, RecordEncoding | None, str | None], ...] = (
        ("KEY", key, key_side(definition).format), ("VALUE", value, value_side(definition).format),
    )  # fmt: skip
    for side, encoded, format_ in sides:
        if encoded is not None:
            yield [f"{side.lower()} format", format_]
            of_side = format_of(reads.formats, side)
            if isinstance(of_side, RegistryFormat):
                yield from _schema(side, encoded, topic, clients.registry(registry_server(of_side.registry)))


def _schema(side: Side, encoded: RecordEncoding, topic: str, registry: RegistryClient) -> Iterator[list[Json]]:
    written, word = encoded.written, side.lower()
    assert written is not None
    whole = type_of_schema(written.format, written, encoded.message)
    yield [f"{word} schema id", encoded.schema_id]
    yield [f"{word} subject", subject_name(topic, side)]
    yield [f"{word} version", _version(registry, subject_name(topic, side), encoded)]
    yield [f"{word} schema type", written.format.words]
    if isinstance(whole.type, Record | Enum) and whole.type.name:
        yield [f"{word} full name", whole.type.name]
    if isinstance(whole.type, Record) and not encoded.whole:
        for field in whole.type.fields:
            column = encoded.record.field(field.name)
            logical = "no column" if column is None else print_type(column.type)
            yield [f"{word} field {field.name}", f"{logical} | {_physical(field)}"]
    else:
        column = encoded.record.fields[0]
        yield [f"{word} of column {column.name}", f"{print_type(column.type)} | {_physical(whole)}"]
    yield [f"{word} schema", written.text]


def _version(registry: RegistryClient, subject: str, encoded: RecordEncoding) -> Json:
    """The version of the subject that has the schema; None if it has been deleted. DESCRIBE works without the registry, too."""
    assert encoded.schema_id is not None
    try:
        return registry.version_of(subject, registry.schema_by_id(encoded.schema_id))
    except SchemaIdNotFound:
        return None
    except RegistryError as error:
        return f"unknown: {error.message()}"


def _physical(field: Field) -> str:
    default = "" if field.default is None else f" default {field.default}"
    return f"{print_type(field.type)}{'' if field.nullable else ' not null'}{default}"


def materialized_columns(catalog: Catalog, entry: Object) -> tuple[Column, ...]:
    """The fields of a materialization as columns. Those of its relation if it can no longer be planned, because DESCRIBE must work
    then too."""
    try:
        planned = existing_materialization(catalog, entry)
    except HeadgateError:
        return catalog.get(next(d.on for d in entry.dependencies if d.use is DependencyKind.READS)).columns
    if isinstance(planned, TableDefinition):
        found = [(name, c.field.type, c.nullable, c.field.key, c.doc) for name, c in planned.all_columns()]
    else:
        found = [(f.name, f.type, f.nullable, f.key, f.doc) for f in planned.fields]
    return tuple(
        Column(number, name, type_, nullable, key, comment=Comment(explicit=doc))
        for number, (name, type_, nullable, key, doc) in enumerate(found, start=1)
    )


def mapping(catalog: Catalog, entry: Object) -> Iterator[tuple[str, str]]:
    """The target, and for every field the path in the row, the type there, and the type in the target."""
    try:
        planned = existing_materialization(catalog, entry)
    except HeadgateError as error:
        yield "cannot run", error.message()
        return
    yield from described(planned)


def described(planned: MaterializationDefinition) -> Iterator[tuple[str, str]]:
    """The properties of a planned materialization."""
    if isinstance(planned, OnDemandDefinition):
        yield from _on_demand(planned)
        return
    if not isinstance(planned, TableDefinition):
        yield "writes index", planned.index
        yield "on error", planned.on_error
        for path, leaf, type_ in mapped_leaves(planned):
            pointer = "" if leaf.path is None else print_pointer(leaf.path.tokens)
            source = "" if leaf.source is None else f" {print_type(t.plain(leaf.source))}"
            yield f"field {path}", f"{pointer}{source} -> {type_}{'' if leaf.nullable else ' not null'}"
        return
    yield "writes table", str(planned.table)
    for child in planned.children:
        yield "writes table", f"{child.table}{' with a row for each element' if child.is_array else ''}"
    yield "on error", planned.on_error
    for name, column in planned.all_columns():
        field = column.field
        pointer = "" if field.path is None else print_pointer(field.path.tokens)
        origin = "" if field.source is None else f"{pointer} {print_type(t.plain(field.source))} -> "
        nullable = "" if column.nullable else " not null"
        yield f"field {name}", f"{origin}{column.postgres}{nullable}"


def _on_demand(planned: OnDemandDefinition) -> Iterator[tuple[str, str]]:
    """The service, and for every leaf its path in the row, the type there, and the type that clients get."""
    yield "is served by", f"{PACKAGE}.{service_word(planned.name)}"
    yield "on error", planned.on_error
    for field in planned.fields:
        for above, leaf in field.leaves():
            pointer = "" if leaf.path is None else print_pointer(leaf.path.tokens)
            source = "" if leaf.source is None else f" {print_type(t.plain(leaf.source))}"
            nullable = "" if leaf.nullable or any(one.nullable for one in above) else " not null"
            path = ".".join(one.name for one in (*above, leaf))
            yield f"field {path}", f"{pointer}{source} -> {print_type(t.plain(leaf.type))}{nullable}"
