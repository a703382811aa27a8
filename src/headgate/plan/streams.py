"""Plans of CREATE STREAM and CREATE TABLE: their columns, the schemas that are registered for their topics, and the topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from headgate.catalog import changes
from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import parts_of
from headgate.catalog.names import find
from headgate.catalog.objects import Column, Comment, Dependency, DependencyKind, Growth, Object
from headgate.errors import joined
from headgate.plan import plans
from headgate.plan.definitions import ConnectionRef
from headgate.plan.publish import given
from headgate.plan.reading import stream_layout, written_sides
from headgate.plan.record_times import stream_time, time_notices, topic_settings, written_columns
from headgate.plan.source import SourcePlan, keep_column_ids, source_columns
from headgate.plan.views import plan_replacement
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import Context, kafka_server, object_id, registry_server, topic_name
from headgate.resolve.streams import READ_KINDS, StreamSide, key_side, own_name, read_statement, value_side
from headgate.schema import encodings as e, types as t
from headgate.schema.formats.avro.write import to_avro
from headgate.schema.formats.jsonschema.write import to_json_schema
from headgate.schema.formats.protobuf import print_proto, read_files, to_protobuf
from headgate.schema.render import print_type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.connections import Kafka, KafkaConnection, ReadOptions, WriteOptions
from headgate.sql.formats import Formats, format_of, frozen_schemas, with_frozen_schemas
from headgate.sql.registry_formats import FrozenSchema, IdStrategy, PendingId, RegistryFormat, Side, subject_name
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, ObjectName
from headgate.sql.streams import AnyStream, CreateStream

SIDES: tuple[Side, ...] = ("KEY", "VALUE")
RECORD_NAMES: dict[Side, str] = {"KEY": "row", "VALUE": "envelope"}
"""What the record of a side is called unless a full name says otherwise, as for sinks."""


def with_schemas(statement: CreateStream) -> CreateStream:
    """The statement with schemas for the sides with declared columns that the registry has no schema for. Their ids are
    pending."""
    reads = statement.reads
    assert reads is not None
    formats = reads.formats
    for side in (key_side(statement), value_side(statement)):
        format_ = format_of(formats, side.side)
        if side.columns and isinstance(format_, RegistryFormat) and not frozen_schemas(format_, side.side):
            pending = PendingId(registry_server(format_.registry), subject_name(topic_name(reads.kafka), side.side))
            schema = FrozenSchema(side.side, pending, generated(statement, side))
            formats = with_frozen_schemas(formats, side.side, (schema,))
    return replace(statement, reads=replace(reads, formats=formats))


def generated(statement: AnyStream, side: StreamSide) -> str:
    """The schema of declared columns. One column of the key stands alone, as in ksqlDB, except in Protobuf."""
    record, name = side.record, side.full_name or RECORD_NAMES[side.side]
    single = len(record.fields) == 1 and side.side == "KEY"
    single = single or (side.side == "VALUE" and statement.properties.wrap_single_value is False)
    whole: t.Type = record.fields[0].type if single else record
    match side.format:
        case "avro":
            made = to_avro(whole, name=name, null_defaults=True)
            check_names(statement, made.renames)
            return json.dumps(made.json, ensure_ascii=False)
        case "json_sr":
            return json.dumps(to_json_schema(whole), ensure_ascii=False)
        case _:
            package, _, last = name.rpartition(".")
            return print_proto(to_protobuf(record, name=last, package=package))


def check_names(statement: AnyStream, renames: Collection[tuple[str, ...]]) -> None:
    """Raises NameNotInFormat if a generated Avro schema calls a field otherwise than its column."""
    for path in renames:
        raise errors.NameNotInFormat(*own_name(statement), ".".join(path))


# effects


def effects(statement: AnyStream) -> tuple[plans.Effect, ...]:
    """The topic if it may have to be created, and the schemas that its subjects get: those of given ids, and generated ones."""
    reads, given = statement.reads, statement.properties
    assert reads is not None
    topic, found = topic_name(reads.kafka), list[plans.Effect]()
    config = topic_settings(given)
    if given.partitions is not None or given.replicas is not None or config:
        found.append(plans.CreateTopic(kafka_server(reads.kafka), topic, given.partitions, given.replicas, config))
    for side in SIDES:
        format_ = format_of(reads.formats, side)
        if isinstance(format_, RegistryFormat) and (side == "VALUE" or reads.formats.key is not None):
            found += _registered(format_, side, subject_name(topic, side))
    return tuple(found)


def _registered(format_: RegistryFormat, side: Side, subject: str) -> Iterator[plans.Effect]:
    registry, strategy = registry_server(format_.registry), format_.strategy(side)
    for schema in frozen_schemas(format_, side):
        written = WrittenSchema(
            schema.schema, schema.references, schema.known_id, SchemaFormat.from_words(format_.kind)
        )
        if isinstance(strategy, IdStrategy):
            yield plans.ReuseSchema(registry, subject, written)
        elif schema.id == PendingId(registry, subject) and not schema.references:
            yield plans.RegisterSchema(registry, subject, written)


# what a catalog keeps


def connections_of(reads: CreateSource) -> tuple[Dependency, ...]:
    names: list[ObjectName] = [reads.kafka.connection] if isinstance(reads.kafka, KafkaConnection) else []
    registries = [format_.registry for format_ in reads.formats.each() if isinstance(format_, RegistryFormat)]
    names += [registry for registry in registries if isinstance(registry, ObjectName)]
    return tuple(Dependency(id_, DependencyKind.CONNECTION) for id_ in dict.fromkeys(map(object_id, names)))


def growth_of(statement: AnyStream) -> Growth:
    return Growth.KEYED if statement.kind is Kind.TABLE else Growth.APPEND


def check_full_names(statement: AnyStream) -> None:
    """Raises OtherFullName if an Avro schema with an id has another name than the one that is given beside the id."""
    reads = statement.reads
    assert reads is not None
    for side in (key_side(statement), value_side(statement)):
        if side.full_name is None or side.schema_id is None or side.format != "avro":
            continue
        for schema in frozen_schemas(format_of(reads.formats, side.side), side.side):
            type_ = e.type_of_schema(SchemaFormat.AVRO, WrittenSchema(schema.schema, schema.references)).type
            found = type_.name if isinstance(type_, t.Record | t.Enum) else print_type(type_)
            if found != side.full_name:
                who = own_name(statement)
                raise errors.OtherFullName(*who, f"{side.word}_schema_full_name", side.full_name, found or "")


def check_replacement(old: Object, reads: CreateSource, columns: tuple[Column, ...]) -> None:
    """Raises StreamChangesColumns unless every column stays: others use it, and the topic holds its values. Raises
    StreamChangesTopic for another topic: those who read the stream know how far they have read the one that it has."""
    before = read_statement(old).kafka
    if (kafka_server(before), topic_name(before)) != (kafka_server(reads.kafka), topic_name(reads.kafka)):
        raise errors.StreamChangesTopic(old.kind.value, old.name, topic_name(before), topic_name(reads.kafka))
    new = {column.name: column for column in columns}
    changed = [
        f"{column.name} {print_type(column.type)}"
        for column in old.columns
        if column.name not in new
        or t.plain(new[column.name].type) != t.plain(column.type)
        or new[column.name].key != column.key
    ]
    if changed:
        raise errors.StreamChangesColumns(old.kind.value, old.name, tuple(changed))


def redefined(
    old: Object, text: str, statement: AnyStream, needs: tuple[Dependency, ...], columns: tuple[Column, ...]
) -> changes.DefinitionChanged:
    """The change of a stream or table that is replaced. Raises if its columns or its topic would be others."""
    assert statement.reads is not None
    check_replacement(old, statement.reads, columns)
    return changes.DefinitionChanged(
        old.id, text, statement, needs, keep_column_ids(old, columns), growth_of(statement)
    )


def replacing(tag: str) -> str:
    return tag.replace("CREATE", "CREATE OR REPLACE")


# what nulls do


def null_notices(statement: AnyStream) -> Iterator[str]:
    """Which fields of the schemas take no null, and which write their default instead."""
    key, value = written_sides(statement)
    kind, name = own_name(statement)
    whole = f'{kind} "{name}"'
    if key is not None:
        yield from given.null_notices(whole, key, "key")
    yield from given.null_notices(whole, value, "value")


def message_notices(statement: AnyStream) -> Iterator[str]:
    """Which message of a Protobuf file with several is used, if the statement names none, and which schema has a message that the
    given one imports."""
    reads = statement.reads
    assert reads is not None
    for side in (key_side(statement), value_side(statement)):
        if side.format != "protobuf" or side.schema_id is None:
            continue
        for schema in frozen_schemas(format_of(reads.formats, side.side), side.side):
            if side.full_name is not None:
                yield from _import_notices(statement, side, side.full_name, schema.known_id)
                continue
            file = read_files(schema.schema, schema.references)[0]
            first, *others = [".".join(filter(None, (file.package, one.name))) for one in file.message_type]
            if others:
                kind, name = own_name(statement)
                listed = joined([f'"{other}"' for other in others], "or")
                yield (
                    f'the {side.word} of {kind} "{name}" is message "{first}", the first one of schema {side.schema_id}; '
                    f"{side.word}_schema_full_name chooses another one: {listed}"
                )


def _import_notices(statement: AnyStream, side: StreamSide, message: str, id_: int | None) -> Iterator[str]:
    if id_ != side.schema_id:
        kind, name = own_name(statement)
        yield (
            f'message "{message}" stands in schema {id_}, which schema {side.schema_id} imports: the {side.word}s of {kind} "{name}" '
            f"are written with id {id_}"
        )


# DROP … DELETE TOPIC


def topic_deletion(catalog: Catalog, stream: Object) -> plans.DeleteTopic:
    """Deletes the topic of a stream and the subjects of its schemas. Raises TopicStillUsed if others use the topic."""
    reads = read_statement(stream)
    server, topic = kafka_server(reads.kafka), topic_name(reads.kafka)
    users, own = [], {stream.id, *(part.id for part in parts_of(catalog, stream))}
    for other in catalog.objects.values():
        if other.id in own:
            continue
        kafka: Kafka[ReadOptions] | Kafka[WriteOptions] | None = None
        if other.kind in READ_KINDS:
            kafka = read_statement(other).kafka
        elif isinstance(other.definition, CreateSink):
            kafka = other.definition.kafka
        if kafka is not None and topic_name(kafka) == topic and kafka_server(kafka) == server:
            users.append(f'{other.kind} "{catalog.display_name(other.id)}"')
    if users:
        raise errors.TopicStillUsed(stream.kind.value, stream.name, topic, tuple(users))
    return plans.DeleteTopic(server, topic, tuple(_subjects(reads.formats, topic)))


def _subjects(formats: Formats, topic: str) -> Iterator[tuple[ConnectionRef, str]]:
    for side in SIDES:
        format_ = format_of(formats, side)
        if isinstance(format_, RegistryFormat) and (side == "VALUE" or formats.key is not None):
            yield registry_server(format_.registry), subject_name(topic, side)


def plan_stream(statement: CreateStream, context: Context, make: Callable[..., Object]) -> plans.ChangeCatalog:
    """The plan of CREATE STREAM or TABLE without AS. ``make`` makes the object, with its name and its id."""
    statement, layout = created(statement)
    assert statement.reads is not None
    time = stream_time(statement, written_columns(statement), context.answers.is_pattern)
    columns, needs, growth = source_columns(layout), connections_of(statement.reads), growth_of(statement)
    old = find(context.catalog, context.path, statement.name, statement.kind) if statement.or_replace else None
    tag, outside = statement.words, effects(statement)
    notices = (*null_notices(statement), *message_notices(statement), *time_notices(statement, time, by_task=False))
    if old is not None:
        change = redefined(old, context.text, statement, needs, columns)
        done = plan_replacement(context.catalog, change, context.answers.topics)
        dropped = (changes.ObjectDropped(part.id) for part in parts_of(context.catalog, old))
        return plans.ChangeCatalog(
            replacing(tag), (*done.changes, *dropped), outside, done.consequences, notices=notices
        )
    made = make(statement, columns=columns, growth=growth, dependencies=needs, comment=Comment(imported=layout.doc))
    return plans.ChangeCatalog(tag, (changes.ObjectCreated(made),), outside, notices=notices)


def created(statement: CreateStream) -> tuple[CreateStream, SourcePlan]:
    """The statement with all its schemas, and the layout of its rows."""
    statement = with_schemas(statement)
    check_full_names(statement)
    return statement, stream_layout(statement)
