"""What each statement asks of the systems outside, and how the answers are frozen into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import DependencyKind, Object, definition_of
from headgate.connectors.connections import ConnectionRef
from headgate.connectors.kafka import Topic
from headgate.purify.lookups import Lookups
from headgate.purify.same_topics import topic_ids
from headgate.purify.streams import freeze_given_schemas, given_schemas, purify_stream
from headgate.resolve import errors
from headgate.resolve.statements import (
    Context,
    Ends,
    altered_connection,
    check_connections,
    check_target_connection,
    kafka_server,
    object_id,
    registry_server,
    topic_name,
)
from headgate.resolve.streams import READ_KINDS, read_statement
from headgate.schema.encodings import SchemaEncoding, needed_past
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql import registry_formats as f
from headgate.sql.connections import AlterConnection, CreateConnection, Kafka, ReadOptions
from headgate.sql.formats import Format, Formats, frozen_schemas
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.options import OptionRule, Timestamp, given_options
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.show import Explain
from headgate.sql.sinks import AlterSinkFrom, CreateSink
from headgate.sql.sources import AcceptSchemaChange, CreateSource, DebeziumEnvelope, IncludeMetadata, UpsertEnvelope
from headgate.sql.statement import Kind, ObjectName, Statement
from headgate.sql.streams import CreateStream, CreateStreamAs


def purify(statement: Statement, context: Context, lookups: Lookups) -> tuple[Statement, Context]:
    """The resolved statement with every outside answer in it, and the context with those answers that the statement has
    no place for."""
    purified, answered = _purify(statement, context, lookups)
    topics = topic_ids(purified, context, lookups.topic)
    return purified, replace(answered, answers=replace(answered.answers, topics=topics))


def _purify(statement: Statement, context: Context, lookups: Lookups) -> tuple[Statement, Context]:
    match statement:
        case CreateConnection():
            return _purify_connection(statement, context, lookups), context
        case AlterConnection(name=ObjectName(id=int())):
            _purify_connection(altered_connection(context.catalog, statement), context, lookups)
            return statement, context
        case CreateSource():
            return purify_source(statement, context, lookups), context
        case CreateSink():
            return purify_sink(statement, context, lookups), context
        case CreateMaterialization():
            check_target_connection(context.catalog, statement)
            return statement, context
        case CreateStream():
            return purify_stream(statement, context, lookups), context
        case CreateStreamAs():
            schemas = given_schemas(statement, context, lookups)
            return statement, replace(context, answers=replace(context.answers, schemas=schemas))
        case Explain(statement=CreateStreamAs() as explained):
            return statement, purify(explained, context, lookups)[1]
        case AlterSinkFrom(name=ObjectName(id=int(sink)), relation=relation):
            ends = _ends_of_other_source(context, lookups, sink, relation)
            return statement, replace(context, answers=replace(context.answers, ends=ends))
        case AcceptSchemaChange(name=ObjectName(id=int(source))):
            schemas = lookups.changed_schemas(context.catalog, source)
            return statement, replace(context, answers=replace(context.answers, schemas=schemas))
        case _:
            return statement, context


def _purify_connection(statement: CreateConnection, context: Context, lookups: Lookups) -> CreateConnection:
    """Check that no secret is written out, and that the system answers."""
    for rule, value in given_options(statement.options):
        if isinstance(value, str) and _contains_secret(rule, value):
            raise errors.SecretWrittenOut(rule.name, str(statement.name))
    if statement.with_options.validate:
        lookups.check(context.catalog, statement)
    return statement


def _contains_secret(rule: OptionRule, value: str) -> bool:
    if rule.field == "ssl_key":  # the path of a file that holds the key is no secret
        return "-----BEGIN" in value
    return rule.sensitive or (rule.field == "url" and has_password(value))


# CREATE SOURCE: its topic exists, and its schemas and start offsets are frozen into it

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = 253_402_300_799_999  # the end of the year 9999, in milliseconds

Offsets = Callable[[int | None], tuple[int, ...]]  # of every partition, since a time or the end
_PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]+@")


def purify_source(statement: CreateSource, context: Context, lookups: Lookups) -> CreateSource:
    catalog, formats = context.catalog, statement.formats
    topic, server = topic_name(statement.kafka), kafka_server(statement.kafka)
    check_connections(catalog, statement)
    existing = lookups.topic(catalog, server, topic)
    kafka = _freeze_start_offsets(
        statement.kafka, existing, context.now, lambda since: lookups.offsets(catalog, server, existing, since)
    )
    freezer = _SchemaFreezer(context, lookups, topic, _needs_key(statement))
    value, key = formats.value, formats.key
    frozen = (
        Formats(freezer.bare(value)) if key is None else Formats(freezer.one(value, "VALUE"), freezer.one(key, "KEY"))
    )
    return replace(statement, kafka=kafka, formats=frozen)


def _needs_key(statement: CreateSource) -> bool:
    match statement.envelope:
        case DebeziumEnvelope() | UpsertEnvelope(key=()):
            return True
    return any(isinstance(i, IncludeMetadata) and i.what == "KEY" for i in statement.include)


class _SchemaFreezer:
    """Puts SEED clauses into formats: the schemas that keys and values are read with from now on."""

    def __init__(self, context: Context, lookups: Lookups, topic: str, needs_key: bool) -> None:
        self.catalog = context.catalog
        self.lookups = lookups
        self.topic = topic
        self.needs_key = needs_key

    def bare(self, format_: Format) -> Format:
        """FORMAT without KEY and VALUE: values must have a schema, keys may have one."""
        value = self.one(format_, "VALUE")
        if not isinstance(value, f.RegistryFormat):
            return value
        return self._frozen(value, "KEY", required=False)

    def one(self, format_: Format, side: f.Side) -> Format:
        return self._frozen(format_, side, required=True) if isinstance(format_, f.RegistryFormat) else format_

    def _frozen(self, format_: f.RegistryFormat, side: f.Side, *, required: bool) -> f.RegistryFormat:
        if isinstance(format_.registry, f.RegistryUrl) and has_password(format_.registry.url):
            raise errors.PasswordInAddress(self.topic)
        if frozen_schemas(format_, side):
            return format_
        registry = registry_server(format_.registry)
        found = self._find(format_, side, registry)
        if found is None:
            if required:
                raise errors.NoSchemaForTopic(self.topic, self._subject(side), side.lower())
            return format_
        if found.format is not SchemaFormat.from_words(format_.kind):
            if not required and not self.needs_key:
                return format_
            raise errors.SchemaOfOtherType(self._subject(side), found.format.words, format_.kind)
        id_ = self._id(format_, side, registry, found)
        schema = f.FrozenSchema(side, id_, found.text, found.references)
        past = self._past(format_, side, registry, found)
        return replace(format_, frozen=(*format_.frozen, *past, schema))

    def _past(
        self, format_: f.RegistryFormat, side: f.Side, registry: ConnectionRef, latest: WrittenSchema
    ) -> Iterator[f.FrozenSchema]:
        """The earlier versions of the subject that change how records are read, for example by defaults of fields."""
        if side == "KEY" or not isinstance(format_.strategy(side) or f.LatestStrategy(), f.LatestStrategy):
            return  # keys with other fields are other keys, so that earlier versions do not matter
        versions = self.lookups.versions(self.catalog, registry, self._subject(side))
        earlier = list(takewhile(lambda version: version.id != latest.id, versions))
        encoding = SchemaEncoding(latest.format, (latest,), message=format_.message)
        for version in needed_past(encoding, [one for one in earlier if one.format is latest.format]):
            yield f.FrozenSchema(side, version.id or 0, version.text, version.references, past=True)

    def _id(
        self, format_: f.RegistryFormat, side: f.Side, registry: ConnectionRef, found: WrittenSchema
    ) -> int | f.PendingId:
        """The id of a schema. It is pending if an earlier statement of the script will register the schema."""
        if found.id is not None or isinstance(format_.strategy(side), f.InlineStrategy):
            return found.id or 0
        return f.PendingId(registry, self._subject(side))

    def _find(self, format_: f.RegistryFormat, side: f.Side, registry: ConnectionRef) -> WrittenSchema | None:
        match format_.strategy(side):
            case f.IdStrategy(schema_id):
                return self.lookups.by_id(self.catalog, registry, schema_id)
            case f.InlineStrategy(schema):
                return WrittenSchema(schema, format=SchemaFormat.from_words(format_.kind))
            case _:
                return self.lookups.latest(self.catalog, registry, self._subject(side))

    def _subject(self, side: f.Side) -> str:
        return f.subject_name(self.topic, side)


# CREATE SINK: without a snapshot, the present ends of its source are frozen into it


def purify_sink(statement: CreateSink, context: Context, lookups: Lookups) -> CreateSink:
    topic = topic_name(statement.kafka)
    check_connections(context.catalog, statement)
    for format_ in statement.formats.each():
        registry = format_.registry if isinstance(format_, RegistryFormat) else None
        if isinstance(registry, f.RegistryUrl) and has_password(registry.url):
            raise errors.PasswordInAddress(topic)
    return frozen_snapshot(freeze_given_schemas(statement, context, lookups), context, lookups)


def frozen_snapshot(statement: CreateSink, context: Context, lookups: Lookups) -> CreateSink:
    """Add `SEED OFFSET` to a sink without a snapshot: the next offset of each partition that its source reads. Over a
    materialized view, `SEED BATCH`: the last batch that the view has.

    Frozen at creation, like the start offsets of a source: what comes while no engine runs is not skipped.
    """
    options = statement.with_options
    if options.snapshot or options.seed_offset is not None or options.seed_batch is not None:
        return statement
    catalog, source = context.catalog, _source_below(context.catalog, statement.relation)
    if source is None:
        return statement
    if source.kind is Kind.MATERIALIZED_VIEW:
        return replace(statement, with_options=replace(options, seed_batch=lookups.last_batch(source.id)))
    kafka = read_statement(source).kafka
    topic = lookups.topic(catalog, kafka_server(kafka), topic_name(kafka))
    ends = lookups.offsets(catalog, kafka_server(kafka), topic, None)
    return replace(statement, with_options=replace(options, seed_offset=ends))


def _source_below(catalog: Catalog, relation: ObjectName) -> Object | None:
    """The one source or materialized view that a relation reads by way of views; None if it reads several, about which planning
    says what is wrong."""
    entry = catalog.get(object_id(relation))
    while entry.kind is Kind.VIEW:
        reads = [need.on for need in entry.dependencies if need.use is DependencyKind.READS]
        if len(reads) != 1:
            return None
        entry = catalog.get(reads[0])
    return entry if entry.kind in (*READ_KINDS, Kind.MATERIALIZED_VIEW) else None


def _ends_of_other_source(context: Context, lookups: Lookups, sink: int, relation: ObjectName) -> Ends | None:
    """Where a sink without a snapshot begins if it is to read another source."""
    statement, catalog = definition_of(context.catalog.get(sink), CreateSink), context.catalog
    if statement.with_options.snapshot:
        return None
    if _source_below(catalog, statement.relation) == _source_below(catalog, relation):
        return None
    options = replace(statement.with_options, seed_offset=None, seed_batch=None)
    begun = frozen_snapshot(replace(statement, relation=relation, with_options=options), context, lookups).with_options
    return Ends(begun.seed_offset, begun.seed_batch)


def has_password(url: str) -> bool:
    return _PASSWORD_IN_URL.search(url) is not None


# start offsets


def _freeze_start_offsets(
    kafka: Kafka[ReadOptions], topic: Topic, now: datetime, offsets: Offsets
) -> Kafka[ReadOptions]:
    """Add `SEED OFFSET`, unless the statement lists the offsets. Partitions that are added later are read from their start.

    Start offsets are frozen at creation. If every reader asked for LATEST again, records that arrive while no engine runs
    would be skipped, and a query would never see a row.
    """
    start, moment = kafka.options.start_offset, kafka.options.start_timestamp
    if start is not None and moment is not None:
        raise errors.StartTwice(topic.name)
    seed = kafka.options.seed_offset
    for name, given in (("START OFFSET", start), ("SEED OFFSET", seed)):
        if isinstance(given, tuple) and len(given) > topic.partitions:
            raise errors.TooManyOffsets(topic.name, len(given), topic.partitions, name)
    since = None if moment is None else _milliseconds(moment, topic.name, now)
    if seed is not None:
        return kafka
    match start:
        case int():
            found = (start,) * topic.partitions
        case "LATEST":
            found = offsets(None)
        case None if since is not None:
            found = offsets(since)
        case _:
            return kafka
    return replace(kafka, options=replace(kafka.options, seed_offset=found))


def _milliseconds(given: Timestamp, topic: str, now: datetime) -> int:
    """The milliseconds since 1970 of a time. A negative number counts from now, a text is a time in ISO form."""
    if isinstance(given, str):
        found = _since_1970(given)
    else:
        found = given if given >= 0 else max(0, (now - EPOCH) // timedelta(milliseconds=1) + given)
    if not 0 <= found <= LAST_MOMENT:
        raise errors.InvalidTimestamp("START TIMESTAMP", topic)
    return found


def _since_1970(text: str) -> int:
    """The milliseconds of a time in ISO form, rounded up; -1 if the text is no time. A time without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return -1
    return -((EPOCH - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))) // timedelta(milliseconds=1))
