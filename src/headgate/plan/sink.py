"""A sink: the schemas that it publishes and how a row becomes a record. Pure, from a purified CREATE SINK and the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from headgate.catalog.catalog import Catalog
from headgate.catalog.comments import column_comment, object_comment
from headgate.catalog.errors import UnknownColumn
from headgate.catalog.names import SearchPath, resolve, resolve_column
from headgate.catalog.objects import RELATIONS, Column, Growth, Object
from headgate.plan.chain import source_of
from headgate.plan.definitions import RecordEncoding, SinkDefinition, SinkEnvelope
from headgate.plan.encodings import format_words
from headgate.plan.errors import (
    ColumnTwice,
    KeyWithoutFormat,
    NotSupportedYet,
    SinkFormatNeedsOneColumn,
    SinkKeyMissing,
    SinkKeyNotUnique,
)
from headgate.plan.relations import dropped_key, key_columns, named_types, withheld_fields
from headgate.purify.topics import topic_name
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.types import Array, Field, Map, Record, Type
from headgate.schema.written import WrittenSchema
from headgate.sql.formats import BytesFormat, Format, JsonFormat, TextFormat, frozen_schemas
from headgate.sql.kafka import KafkaConnection
from headgate.sql.options import BooleanLiteral, Choice, StringLiteral, option
from headgate.sql.registry_formats import DocOn, RegistryFormat, RegistryUrl, Side
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from headgate.text.cursor import Identifier


def subjects(sink: SinkDefinition) -> tuple[tuple[str, WrittenSchema], ...]:
    """The schemas that a sink registers, by subject."""
    sides = (("key", sink.key), ("value", sink.value))
    return tuple(
        (f"{sink.topic}-{suffix}", WrittenSchema(side.schema))
        for suffix, side in sides
        if side is not None and side.schema is not None
    )


def plan_sink(catalog: Catalog, path: SearchPath, statement: CreateSink) -> SinkDefinition:
    relation = resolve(catalog, path, statement.relation, *sorted(RELATIONS))
    name = statement.name.parts[-1].name if statement.name else f"{relation.name}_sink"
    _refuse_later_features(statement)
    source = source_of(catalog, relation.id)
    if withheld := withheld_fields(relation):
        raise withheld[0]
    keys = _key(catalog, relation, statement)
    envelope = _envelope(statement, name, keys)
    if envelope == "UPSERT":
        _check_unique(source, relation, statement, name, keys)
    value_columns = [c for c in relation.columns if not _left_out(statement, c.name, keys)]
    value = _side(catalog, relation, statement.formats.value, "VALUE", value_columns, name)
    key_format = statement.formats.key or statement.formats.value
    key = _side(catalog, relation, key_format, "KEY", keys, name) if keys else None
    if statement.formats.key is not None and not keys:
        raise KeyWithoutFormat(name)
    assert isinstance(statement.kafka, KafkaConnection)
    connection = resolve(catalog, path, statement.kafka.connection, Kind.CONNECTION)
    return SinkDefinition(
        name,
        relation.id,
        topic_of(statement),
        connection.id,
        registry_of(catalog, path, statement),
        value,
        key,
        envelope,
    )


def topic_of(statement: CreateSink) -> str:
    return topic_name(statement.kafka)


def registry_of(catalog: Catalog, path: SearchPath, statement: CreateSink) -> int | None:
    """The one registry that the sink's schemas are in."""
    found: list[int] = []
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat):
            if isinstance(format_.registry, RegistryUrl):
                raise NotSupportedYet("a registry by its address in a sink")
            found.append(resolve(catalog, path, format_.registry, Kind.CONNECTION).id)
    if len(set(found)) > 1:
        raise NotSupportedYet("a registry of its own for each side of a sink")
    return found[0] if found else None


def _refuse_later_features(statement: CreateSink) -> None:
    """What the grammar has and no sink does yet is refused, never passed over."""
    if not isinstance(statement.kafka, KafkaConnection):
        raise NotSupportedYet("KAFKA BROKER in a sink")
    if statement.headers is not None:
        raise NotSupportedYet("HEADERS of a sink")
    if statement.envelope == "DEBEZIUM":
        raise NotSupportedYet("ENVELOPE DEBEZIUM of a sink")
    for name in ("DELIVERY", "LATENCY", "SNAPSHOT"):
        given = option(statement.with_options, name)
        if given is not None and given not in (StringLiteral("at least once"), BooleanLiteral(True)):
            raise NotSupportedYet(f"{name} of a sink")
    if option(statement.with_options, "ON ERROR") not in (None, Choice("HALT")):
        raise NotSupportedYet("ON ERROR of a sink")
    for name in ("PARTITION BY", "COMPRESSION TYPE"):
        if option(statement.kafka.options, name) is not None:
            raise NotSupportedYet(f"{name} of a sink")
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat):
            _refuse_later_options(format_)


def _refuse_later_options(format_: RegistryFormat) -> None:
    if any(isinstance(o, DocOn) for o in format_.options):
        raise NotSupportedYet("DOC ON of a sink")
    for name in ("KEY SCHEMA ID", "VALUE SCHEMA ID", "IGNORE COMMENTS"):
        if option(format_.options, name) not in (None, BooleanLiteral(False)):
            raise NotSupportedYet(f"{name} of a sink")


def _key(catalog: Catalog, relation: Object, statement: CreateSink) -> list[Column]:
    if statement.key is None:
        return []
    columns: list[Column] = []
    for identifier in statement.key.columns:
        column = _key_column(catalog, relation, Identifier(identifier.name, identifier.quoted))
        if column in columns:
            raise ColumnTwice(column.name, relation.name)
        columns.append(column)
    return columns


def _key_column(catalog: Catalog, relation: Object, identifier: Identifier) -> Column:
    try:
        return resolve_column(catalog, relation, identifier)
    except UnknownColumn as unknown:
        advice = {name.lower(): why for name, why in dropped_key(relation)}
        told = advice.get(identifier.name.lower())
        raise UnknownColumn(unknown.column, unknown.kind, unknown.name, unknown.similar, told) from None


def _envelope(statement: CreateSink, name: str, keys: Sequence[Column]) -> SinkEnvelope:
    if statement.envelope == "UPSERT" and not keys:
        raise SinkKeyMissing(name)
    return "UPSERT" if keys and statement.envelope != "NONE" else "NONE"


def _check_unique(
    source: Object, relation: Object, statement: CreateSink, name: str, keys: Sequence[Column]
) -> None:
    """UPSERT needs a key that holds a key of the relation, or the user's word for it. A deletion in a keyed source has
    its key alone: the sink's can be no other then."""
    known = key_columns(relation) if relation.growth is Growth.KEYED else []
    given = {c.name for c in keys}
    if known and set(known) < given:
        raise NotSupportedYet("a key of a sink with more columns than the relation's")
    if source.growth is Growth.KEYED and any(_holds_map(c.parsed) for c in keys):
        raise NotSupportedYet("a key of a sink that holds a map")  # equal ones can be different bytes
    if set(known) == given:
        return
    if statement.key is not None and statement.key.enforced:
        raise SinkKeyNotUnique(name, tuple(c.name for c in keys), tuple(known), source.growth is Growth.KEYED)
    if source.growth is Growth.KEYED:
        raise NotSupportedYet(f'a key of sink "{name}" other than the key of source "{source.name}"')


def _holds_map(type_: Type) -> bool:
    match type_:
        case Map():
            return True
        case Array():
            return _holds_map(type_.element)
        case Record():
            return any(_holds_map(f.type) for f in type_.fields)
        case _:
            return False


def _left_out(statement: CreateSink, column: str, keys: Sequence[Column]) -> bool:
    in_value = option(statement.with_options, "KEY IN VALUE")
    return in_value == BooleanLiteral(False) and any(k.name == column for k in keys)


def _side(
    catalog: Catalog, relation: Object, format_: Format, side: Side, columns: Sequence[Column], sink: str
) -> RecordEncoding:
    record = _record(catalog, relation, columns)
    names = tuple(c.name for c in columns)
    match format_:
        case RegistryFormat(kind="AVRO"):
            return _avro(catalog, format_, side, record, names)
        case JsonFormat():
            return RecordEncoding("JSON", names, record)
        case TextFormat() | BytesFormat():
            word: Literal["TEXT", "BYTES"] = "TEXT" if isinstance(format_, TextFormat) else "BYTES"
            if len(columns) != 1:
                raise SinkFormatNeedsOneColumn(sink, word, side.lower(), len(columns))
            return RecordEncoding(word, names, record)
        case _:
            raise NotSupportedYet(f"FORMAT {format_words(format_)} of a sink")


def _record(catalog: Catalog, relation: Object, columns: Sequence[Column]) -> Record:
    fields = tuple(Field(c.name, c.parsed, c.nullable, column_comment(catalog, c)) for c in columns)
    return Record(fields, doc=object_comment(relation))


def _avro(
    catalog: Catalog, format_: RegistryFormat, side: Side, record: Record, names: tuple[str, ...]
) -> RecordEncoding:
    full = option(format_.options, f"AVRO {side} FULLNAME")
    name = full.value if isinstance(full, StringLiteral) else ("row" if side == "KEY" else "envelope")
    defaults = option(format_.options, "NULL DEFAULTS") == BooleanLiteral(True)
    made = to_avro(record, name=name, null_defaults=defaults, resolve=named_types(catalog))
    seed = next(iter(frozen_schemas(format_, side)), None)
    schema = seed.schema if seed is not None else json.dumps(made.json, ensure_ascii=False)
    fields = tuple(made.renames.get((n,), n) for n in names)
    return RecordEncoding("AVRO", names, record, schema, seed.id if seed else None, fields)
