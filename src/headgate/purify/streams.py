"""CREATE STREAM and CREATE TABLE: whether the topic exists, and the schemas that the registry has for keys and values."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.names import resolve
from headgate.connectors.errors import TopicNotFound
from headgate.purify.lookups import Lookups
from headgate.registry.errors import SchemaIdNotFound
from headgate.resolve import stream_errors as errors
from headgate.resolve.schema_errors import MessageInImport
from headgate.resolve.statements import (
    Context,
    TakenSchema,
    check_connections,
    kafka_server,
    registry_server,
    topic_name,
)
from headgate.resolve.streams import (
    FORMAT_NAMES,
    LARGEST_ID,
    StreamSide,
    check_properties,
    connection_name,
    key_side,
    own_name,
    resolve_stream,
    value_side,
)
from headgate.schema.encodings import SchemaEncoding, needed_past
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import Format, Formats, frozen_schemas
from headgate.sql.registry_formats import (
    FrozenSchema,
    PendingId,
    RegistryFormat,
    Side,
    WriteFormatOptions,
    subject_name,
)
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import Include, IncludeMetadata
from headgate.sql.statement import Kind
from headgate.sql.streams import CreateStream, CreateStreamAs


def purify_stream(statement: CreateStream, context: Context, lookups: Lookups) -> CreateStream:
    """The statement with the schemas of its sides. A side with declared columns whose subject does not exist has none yet."""
    if statement.reads is None:
        statement = resolve_stream(statement, context.catalog, context.path)
    reads = statement.reads
    assert reads is not None
    check_connections(context.catalog, reads)
    if statement.properties.partitions is None:
        try:
            lookups.topic(context.catalog, kafka_server(reads.kafka), topic_name(reads.kafka))
        except TopicNotFound:
            raise errors.StreamTopicMissing(*own_name(statement), topic_name(reads.kafka)) from None
    freezer = _Freezer(statement, topic_name(reads.kafka), context, lookups)
    value = freezer.frozen(reads.formats.value, value_side(statement))
    assert value is not None
    key = None if reads.formats.key is None else freezer.frozen(reads.formats.key, key_side(statement))
    include = tuple(each for each in reads.include if key is not None or not _is_key(each))
    return replace(statement, reads=replace(reads, formats=Formats(value, key), include=include))


def _is_key(include: Include) -> bool:
    return isinstance(include, IncludeMetadata) and include.what == "KEY"


class _Freezer:
    """Puts the schemas of the registry into the formats of a stream or table."""

    def __init__(self, statement: CreateStream, topic: str, context: Context, lookups: Lookups) -> None:
        self._statement = statement
        self._topic = topic
        self._catalog = context.catalog
        self._lookups = lookups

    def frozen(self, format_: Format, side: StreamSide) -> Format | None:
        """The format with its schema. None for keys that are not read, because the registry has no schema for them."""
        if not isinstance(format_, RegistryFormat) or frozen_schemas(format_, side.side):
            return format_
        found = self._find(format_, side)
        if found is None:
            return self._without_schema(format_, side)
        wanted = SchemaFormat.from_words(format_.kind)
        if found.format is not wanted:
            raise errors.SchemaIdOfOtherFormat(
                *own_name(self._statement), side.word, found.id or 0, found.format.words, format_.kind,
                FORMAT_NAMES[found.format.words],
            )  # fmt: skip
        found = self._with_message(format_, side, found)
        id_: int | PendingId = found.id or PendingId(registry_server(format_.registry), self._subject(side))
        schema = FrozenSchema(side.side, id_, found.text, found.references)
        return replace(format_, frozen=(*self._past(format_, side, found), schema))

    def _find(self, format_: RegistryFormat, side: StreamSide) -> WrittenSchema | None:
        registry = registry_server(format_.registry)
        if side.schema_id is None:
            return self._lookups.latest(self._catalog, registry, self._subject(side))
        try:
            return self._lookups.by_id(self._catalog, registry, side.schema_id)
        except SchemaIdNotFound:
            who = own_name(self._statement)
            raise errors.SchemaIdUnknown(*who, side.id_property, side.schema_id) from None

    def _with_message(self, format_: RegistryFormat, side: StreamSide, found: WrittenSchema) -> WrittenSchema:
        """The schema in which the named message stands. Columns that come from a subject need one of the subject itself."""
        if format_.message is None or found.id is None or found.format is not SchemaFormat.PROTOBUF:
            return found
        registry = registry_server(format_.registry)
        holding = self._lookups.with_message(self._catalog, registry, found.id, format_.message)
        if holding is None or holding.id == found.id or holding.id is None:
            return found
        if side.schema_id is None:
            raise MessageInImport(
                *own_name(self._statement), side.word, format_.message, self._subject(side), holding.id
            )
        return holding

    def _without_schema(self, format_: RegistryFormat, side: StreamSide) -> Format | None:
        if side.columns:
            return format_
        given = self._statement.properties
        # FORMAT means both sides, and many topics have values alone.
        if side.side == "KEY" and given.key_format is None and self._statement.kind is Kind.STREAM:
            return None
        raise errors.NoSchemaToInfer(*own_name(self._statement), side.word, self._subject(side))

    def _past(self, format_: RegistryFormat, side: StreamSide, latest: WrittenSchema) -> tuple[FrozenSchema, ...]:
        """The earlier versions that change how records are read, if the columns follow the subject."""
        if side.side == "KEY" or side.columns or side.schema_id is not None:
            return ()
        versions = self._lookups.versions(self._catalog, registry_server(format_.registry), self._subject(side))
        earlier = [one for one in versions if one.id != latest.id and one.format is latest.format]
        encoding = SchemaEncoding(latest.format, (latest,), message=format_.message)
        return tuple(
            FrozenSchema(side.side, version.id or 0, version.text, version.references, past=True)
            for version in needed_past(encoding, earlier)
        )

    def _subject(self, side: StreamSide) -> str:
        return subject_name(self._topic, side.side)


def given_schemas(statement: CreateStreamAs, context: Context, lookups: Lookups) -> tuple[TakenSchema, ...]:
    """The schemas of the ids that CREATE … AS is given."""
    check_properties(statement)
    given, who = statement.properties, own_name(statement)
    ids: dict[Side, int | None] = {"KEY": given.key_schema_id, "VALUE": given.value_schema_id}
    if not any(ids.values()):
        return ()
    name = connection_name(given.registry, "registry")
    registry = resolve(context.catalog, context.path, name, Kind.CONNECTION).id
    found: list[TakenSchema] = []
    for side, id_ in ids.items():
        if id_ is not None:
            try:
                schema = lookups.by_id(context.catalog, registry, id_)
            except SchemaIdNotFound:
                raise errors.SchemaIdUnknown(*who, f"{side.lower()}_schema_id", id_) from None
            message = given.key_schema_full_name if side == "KEY" else given.value_schema_full_name
            if message is not None and schema.format is SchemaFormat.PROTOBUF:
                schema = lookups.with_message(context.catalog, registry, id_, message) or schema
            found.append((side, schema))
    return tuple(found)


# KEY | VALUE SCHEMA ID of a sink


def freeze_given_schemas(statement: CreateSink, context: Context, lookups: Lookups) -> CreateSink:
    """The sink with the schemas of the ids that it is given."""
    value = _with_given_schemas(statement, statement.formats.value, context, lookups)
    key = statement.formats.key
    frozen = None if key is None else _with_given_schemas(statement, key, context, lookups)
    return replace(statement, formats=Formats(value, frozen))


def _with_given_schemas(statement: CreateSink, format_: Format, context: Context, lookups: Lookups) -> Format:
    if not isinstance(format_, RegistryFormat) or not isinstance(format_.options, WriteFormatOptions):
        return format_
    ids: dict[Side, int | None] = {"KEY": format_.options.key_schema_id, "VALUE": format_.options.value_schema_id}
    for side, id_ in ids.items():
        if id_ is None or frozen_schemas(format_, side):
            continue
        who = ("sink", statement.name.parts[-1].name)
        if not 1 <= id_ <= LARGEST_ID:
            raise errors.InvalidSchemaId(*who, f"{side} SCHEMA ID", id_)
        try:
            found = lookups.by_id(context.catalog, registry_server(format_.registry), id_)
        except SchemaIdNotFound:
            raise errors.SchemaIdUnknown(*who, f"{side} SCHEMA ID", id_) from None
        if found.format is not SchemaFormat.from_words(format_.kind):
            right = FORMAT_NAMES[found.format.words]
            raise errors.SchemaIdOfOtherFormat(*who, side.lower(), id_, found.format.words, format_.kind, right)
        schema = FrozenSchema(side, id_, found.text, found.references)
        format_ = replace(format_, frozen=(*format_.frozen, schema))
    return format_
