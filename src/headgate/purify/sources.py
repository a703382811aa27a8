"""CREATE SOURCE: its topic exists, and its schemas are frozen into it."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import SearchPath
from headgate.connectors.connections import ConnectionRef
from headgate.purify.connections import has_password
from headgate.purify.errors import NoSchemaForTopic, PasswordInAddress, SchemaOfOtherType
from headgate.purify.outside import Outside
from headgate.purify.references import kafka_server, lasting_formats, lasting_kafka, registry_server
from headgate.purify.starts import with_seed_offset
from headgate.purify.topics import topic_name
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import Format, Formats, frozen_schemas
from headgate.sql.registry_formats import (
    FrozenSchema,
    IdStrategy,
    InlineStrategy,
    RegistryFormat,
    RegistryUrl,
    SchemaStrategy,
    Side,
)
from headgate.sql.sources import CreateSource, DebeziumEnvelope, IncludeMetadata, UpsertEnvelope


def purify_source(
    statement: CreateSource, catalog: Catalog, path: SearchPath, outside: Outside
) -> CreateSource:
    topic = topic_name(statement.kafka)
    kafka = lasting_kafka(catalog, path, statement.kafka)
    formats = lasting_formats(catalog, path, statement.formats)
    server = kafka_server(catalog, path, statement.kafka)
    there = outside.topic(catalog, server, topic)
    kafka = with_seed_offset(kafka, there, lambda since: outside.offsets(catalog, server, there, since))
    seeder = _Seeder(catalog, path, outside, topic, _needs_key(statement))
    value, key = formats.value, formats.key
    frozen = (
        Formats(seeder.bare(value))
        if key is None
        else Formats(seeder.one(value, "VALUE"), seeder.one(key, "KEY"))
    )
    return replace(statement, kafka=kafka, formats=frozen)


def _needs_key(statement: CreateSource) -> bool:
    match statement.envelope:
        case DebeziumEnvelope() | UpsertEnvelope(key=()):
            return True
    return any(isinstance(i, IncludeMetadata) and i.what == "KEY" for i in statement.include)


class _Seeder:
    """Puts SEED clauses into formats: which schema each side is read with, for ever."""

    def __init__(
        self, catalog: Catalog, path: SearchPath, outside: Outside, topic: str, needs_key: bool
    ) -> None:
        self.catalog = catalog
        self.path = path
        self.outside = outside
        self.topic = topic
        self.needs_key = needs_key

    def bare(self, format_: Format) -> Format:
        """FORMAT f alone: values must have a schema, keys may."""
        value = self.one(format_, "VALUE")
        if not isinstance(value, RegistryFormat):
            return value
        return self._seeded(value, "KEY", required=False)

    def one(self, format_: Format, side: Side) -> Format:
        return self._seeded(format_, side, required=True) if isinstance(format_, RegistryFormat) else format_

    def _seeded(self, format_: RegistryFormat, side: Side, *, required: bool) -> RegistryFormat:
        if isinstance(format_.registry, RegistryUrl) and has_password(format_.registry.url):
            raise PasswordInAddress(self.topic)
        if frozen_schemas(format_, side):
            return format_
        registry = registry_server(self.catalog, self.path, format_.registry)
        found = self._find(format_, side, registry)
        if found is None:
            if required:
                raise NoSchemaForTopic(self.topic, self._subject(side), side.lower())
            return format_
        if found.format is not SchemaFormat.from_words(format_.kind):
            if not required and not self.needs_key:
                return format_
            raise SchemaOfOtherType(self._subject(side), found.format.words, format_.kind)
        schema = FrozenSchema(side, found.id or 0, found.text, found.references)
        return replace(format_, options=(*format_.options, schema))

    def _find(self, format_: RegistryFormat, side: Side, registry: ConnectionRef) -> WrittenSchema | None:
        strategies = [o.strategy for o in format_.options if isinstance(o, SchemaStrategy) and o.side == side]
        match strategies:
            case [IdStrategy(schema_id)]:
                return self.outside.by_id(self.catalog, registry, schema_id)
            case [InlineStrategy(schema)]:
                return WrittenSchema(schema, format=SchemaFormat.from_words(format_.kind))
            case _:
                return self.outside.latest(self.catalog, registry, self._subject(side))

    def _subject(self, side: Side) -> str:
        return f"{self.topic}-{side.lower()}"
