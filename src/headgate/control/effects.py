"""Effects: what a plan does outside the catalog. Each effect can be checked in advance, done, and undone.

A statement leaves nothing behind if it fails: an effect that fails cleans up after itself, and the effects before it are
undone in reverse order. What existed before the statement is never touched by undoing.

An effect that the controller makes later, such as a table of a target, needs only ``check`` here: its ``do`` does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, assert_never

from headgate.catalog.changes import Change, DefinitionChanged, ObjectCreated
from headgate.connectors.connections import Clients
from headgate.connectors.errors import TopicNotFound
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.control.target_effects import Indexes, IndexReleases, Releases, Tables
from headgate.errors import HeadgateError, InternalError
from headgate.plan.plans import (
    CreateTopic,
    DeleteTopic,
    Effect,
    ProvisionIndex,
    ProvisionTable,
    RegisterSchema,
    ReleaseIndex,
    ReleaseTable,
    ReuseSchema,
    SetCompatibility,
)
from headgate.plan.sink_errors import TopicDiffers
from headgate.registry.client import RegistryClient
from headgate.registry.errors import IncompatibleSchema, SchemaNotFound, SubjectDeleted, SubjectNotFound
from headgate.registry.schemas import Schema, to_register
from headgate.resolve.stream_errors import SchemaGotOtherId
from headgate.schema.written import CompatibilityLevel
from headgate.sql.formats import Format, Formats
from headgate.sql.registry_formats import FrozenSchema, PendingId, RegistryFormat
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Create
from headgate.sql.streams import CreateStream, CreateStreamAs

log = logging.getLogger(__name__)

E = TypeVar("E", contravariant=True)
D = TypeVar("D")
Defined = TypeVar("Defined", bound=Create)


class EffectHandler(Protocol[E, D]):
    """``check`` raises what ``do`` would raise, as far as that can be known, and changes nothing. ``do`` returns what
    ``undo`` needs; if it raises, nothing is left of it."""

    def check(self, effect: E, clients: Clients) -> None: ...

    def do(self, effect: E, clients: Clients) -> D: ...

    def undo(self, effect: E, done: D, clients: Clients) -> None: ...


class Topics:
    """Creates topics. ``do`` returns whether the topic is new. One that exists must have the settings that are given."""

    def check(self, effect: CreateTopic, clients: Clients) -> None:
        kafka = clients.kafka(effect.connection)
        kafka.check_new_topic(effect.topic, _options(effect))  # first, because it tells what is wrong with a name
        _has_topic(kafka, effect)

    def do(self, effect: CreateTopic, clients: Clients) -> bool:
        kafka = clients.kafka(effect.connection)
        new = not _has_topic(kafka, effect)
        try:
            return kafka.create_topic(effect.topic, _options(effect))
        except HeadgateError:
            # A broker that does not answer in time may have created the topic all the same.
            _undo(self, effect, new, clients)
            raise

    def undo(self, effect: CreateTopic, done: bool, clients: Clients) -> None:
        """Deletes the topic if we created it and nobody has written to it since."""
        kafka = clients.kafka(effect.connection)
        topic = kafka.topics([effect.topic]).get(effect.topic) if done else None
        if topic is not None and not any(kafka.offsets(topic, latest=True).values()):
            kafka.delete_topic(effect.topic)


def _options(effect: CreateTopic) -> NewTopicOptions:
    partitions, replicas = effect.partitions, effect.replicas
    return NewTopicOptions(1 if partitions is None else partitions, -1 if replicas is None else replicas, effect.config)


def _has_topic(kafka: KafkaCluster, effect: CreateTopic) -> bool:
    """Whether the topic exists. Raises TopicDiffers if it has other settings than those that are given."""
    topic = kafka.topics([effect.topic]).get(effect.topic)
    if topic is None:
        return False
    counts = (("TOPIC PARTITION COUNT", effect.partitions, topic.partitions),
              ("TOPIC REPLICATION FACTOR", effect.replicas, topic.replicas))  # fmt: skip
    found = [(option, str(wanted), str(has)) for option, wanted, has in counts if wanted not in (None, has)]
    config = kafka.topic_config(effect.topic) if effect.config else {}
    found += [(key, wanted, config.get(key, "unknown")) for key, wanted in effect.config if config.get(key) != wanted]
    if found:
        raise TopicDiffers(effect.topic, tuple(found))
    return True


class Levels:
    """Sets compatibility levels. ``do`` returns the level that the subject had, None if it had none of its own."""

    def check(self, effect: SetCompatibility, clients: Clients) -> None:
        clients.registry(effect.connection).own_level(effect.subject)

    def do(self, effect: SetCompatibility, clients: Clients) -> CompatibilityLevel | None:
        registry = clients.registry(effect.connection)
        before = registry.own_level(effect.subject)
        try:
            registry.set_level(effect.level, effect.subject)
        except HeadgateError:
            _undo(self, effect, before, clients)
            raise
        return before

    def undo(self, effect: SetCompatibility, done: CompatibilityLevel | None, clients: Clients) -> None:
        registry = clients.registry(effect.connection)
        if registry.own_level(effect.subject) != done:
            registry.set_level(done, effect.subject)


@dataclass(frozen=True, slots=True)
class Registered:
    id: int
    new: bool


class Schemas:
    """Registers schemas. ``do`` returns the id of the schema, and whether the subject did not have it before."""

    def check(self, effect: RegisterSchema, clients: Clients) -> None:
        """Raises IncompatibleSchema if the subject would refuse the schema."""
        _check_compatible(clients.registry(effect.connection), effect.subject, to_register(effect.schema))

    def do(self, effect: RegisterSchema, clients: Clients) -> Registered:
        registry = clients.registry(effect.connection)
        held = _held(registry, effect.subject, to_register(effect.schema))
        if held is not None:
            return Registered(held, new=False)
        try:
            return Registered(registry.register(effect.subject, to_register(effect.schema)), new=True)
        except HeadgateError:
            # A registry that does not answer may have registered the schema all the same.
            _undo(self, effect, Registered(0, new=True), clients)
            raise

    def undo(self, effect: RegisterSchema, done: Registered, clients: Clients) -> None:
        """Deletes the version softly if we registered it: its id stays readable for whoever has seen it."""
        registry = clients.registry(effect.connection)
        version = registry.version_of(effect.subject, to_register(effect.schema)) if done.new else None
        if version is not None:
            registry.delete_version(effect.subject, version)


def _check_compatible(registry: RegistryClient, subject: str, schema: Schema) -> None:
    """Raises IncompatibleSchema if the subject would refuse the schema. One that the subject has is not checked again, however later
    versions differ from it."""
    try:
        verdict = registry.compatibility(subject, schema)
    except (SubjectNotFound, SubjectDeleted):
        return
    if not verdict.is_compatible and _held(registry, subject, schema) is None:
        raise IncompatibleSchema(subject, tuple(verdict.messages))


def _held(registry: RegistryClient, subject: str, schema: Schema) -> int | None:
    """The id that the schema has in the subject; None if the subject does not have it. To register it would change nothing, and
    needs a permission that not everybody has."""
    try:
        return registry.look_up(subject, schema).schema_id
    except (SubjectNotFound, SubjectDeleted, SchemaNotFound):
        return None


class ReusedSchemas:
    """Registers schemas that have an id for further subjects. ``do`` returns the version if the subject did not have it."""

    def check(self, effect: ReuseSchema, clients: Clients) -> None:
        """Raises IncompatibleSchema if the subject would refuse the schema."""
        registry = clients.registry(effect.connection)
        _check_compatible(registry, effect.subject, _by_id(registry, effect))

    def do(self, effect: ReuseSchema, clients: Clients) -> Schema | None:
        registry = clients.registry(effect.connection)
        schema = _by_id(registry, effect)
        held = _held(registry, effect.subject, schema)
        new = schema if held is None else None
        try:
            found = registry.register(effect.subject, schema) if held is None else held
        except HeadgateError:
            # A registry that does not answer may have registered the schema all the same.
            _undo(self, effect, new, clients)
            raise
        if found != effect.schema.id:
            _undo(self, effect, new, clients)
            raise SchemaGotOtherId(effect.subject, effect.schema.id or 0, found)
        return new

    def undo(self, effect: ReuseSchema, done: Schema | None, clients: Clients) -> None:
        """Deletes the version softly if we registered it."""
        registry = clients.registry(effect.connection)
        version = None if done is None else registry.version_of(effect.subject, done)
        if version is not None:
            registry.delete_version(effect.subject, version)


def _by_id(registry: RegistryClient, effect: ReuseSchema) -> Schema:
    assert effect.schema.id is not None
    return registry.schema_by_id(effect.schema.id)


class DeletedTopics:
    """Deletes topics and their subjects, once the catalog has forgotten the stream: a topic that is gone cannot be brought back,
    and a stream must not lose its topic to a commit that fails. What is gone already is no error."""

    def check(self, effect: DeleteTopic, clients: Clients) -> None:
        clients.kafka(effect.connection).topics([effect.topic])

    def delete(self, effect: DeleteTopic, clients: Clients) -> Iterator[str]:
        """Delete all that can be deleted. Gives a sentence for each part that stays."""
        try:
            with suppress(TopicNotFound):
                clients.kafka(effect.connection).delete_topic(effect.topic)
        except HeadgateError as error:
            yield _left(f'topic "{effect.topic}"', error)
        for registry, subject in effect.subjects:
            try:
                with suppress(SubjectNotFound, SubjectDeleted):
                    clients.registry(registry).delete_subject(subject)
            except HeadgateError as error:
                yield _left(f'subject "{subject}"', error)


def _left(what: str, error: HeadgateError) -> str:
    """What is left of a stream that was dropped, and what can be done about it."""
    log.warning("%s was not deleted: %s", what, error)
    return f"{what} was not deleted, and nothing in the catalog uses it any more; delete it yourself: {error.message()}"


# all effects of a statement

_TOPICS, _LEVELS, _SCHEMAS, _REUSED, _DELETED = Topics(), Levels(), Schemas(), ReusedSchemas(), DeletedTopics()
_TABLES, _RELEASES = Tables(), Releases()
_INDEXES, _INDEX_RELEASES = Indexes(), IndexReleases()

SchemaIds = Mapping[PendingId, int]


def check_effect(effect: Effect, clients: Clients) -> None:
    match effect:
        case CreateTopic():
            _TOPICS.check(effect, clients)
        case SetCompatibility():
            _LEVELS.check(effect, clients)
        case RegisterSchema():
            _SCHEMAS.check(effect, clients)
        case ProvisionTable():
            _TABLES.check(effect, clients)
        case ReleaseTable():
            _RELEASES.check(effect, clients)
        case ProvisionIndex():
            _INDEXES.check(effect, clients)
        case ReleaseIndex():
            _INDEX_RELEASES.check(effect, clients)
        case ReuseSchema():
            _REUSED.check(effect, clients)
        case DeleteTopic():
            _DELETED.check(effect, clients)
        case _:
            assert_never(effect)


@contextmanager
def effects_done(effects: Sequence[Effect], clients: Clients) -> Iterator[SchemaIds]:
    """Do the effects in order. If one of them fails, or the block does, undo those that are done and raise that error.
    Gives the ids of the schemas that were registered."""
    undo: list[Callable[[], None]] = []
    ids: dict[PendingId, int] = {}
    try:
        for effect in effects:
            match effect:
                case CreateTopic():
                    undo.append(_do(_TOPICS, effect, clients)[1])
                case SetCompatibility():
                    undo.append(_do(_LEVELS, effect, clients)[1])
                case RegisterSchema():
                    registered, back = _do(_SCHEMAS, effect, clients)
                    undo.append(back)
                    ids[effect.id] = registered.id
                case ProvisionTable():
                    _TABLES.do(effect, clients)
                case ProvisionIndex():
                    _INDEXES.do(effect, clients)
                case ReleaseTable() | ReleaseIndex() | DeleteTopic():
                    pass  # `last_effects`
                case ReuseSchema():
                    undo.append(_do(_REUSED, effect, clients)[1])
                case _:
                    assert_never(effect)
        yield ids
    except BaseException:
        for back in reversed(undo):
            back()
        raise


def released_tasks(effects: Sequence[Effect]) -> frozenset[int]:
    """The ids of the tasks whose targets are given up."""
    return frozenset(effect.task for effect in effects if isinstance(effect, ReleaseTable | ReleaseIndex))


def last_effects(effects: Sequence[Effect], clients: Clients, uuids: Mapping[int, str]) -> Iterator[str]:
    """Do the effects that cannot be undone: those that give targets up, and those that delete topics. The catalog has committed, so that a failure cannot fail the
    statement any more; gives a sentence for each. ``uuids`` are those of `released_tasks`, which the catalog has forgotten."""
    for effect in effects:
        try:
            match effect:
                case ReleaseTable():
                    _RELEASES.give_up(effect, clients, uuids[effect.task])
                case ReleaseIndex():
                    _INDEX_RELEASES.give_up(effect, clients, uuids[effect.task])
                case DeleteTopic():
                    yield from _DELETED.delete(effect, clients)
                case _:
                    pass
        except HeadgateError as error:
            log.warning("could not do %s: %s", effect, error)
            yield f"{_target(effect)}: {error.message()}"


def _target(effect: Effect) -> str:
    assert isinstance(effect, ReleaseTable | ReleaseIndex)
    name = f'table "{effect.table}"' if isinstance(effect, ReleaseTable) else f'index "{effect.index}"'
    return f"{name} was not {'dropped' if effect.drop else 'given up'}"


def _do(handler: EffectHandler[E, D], effect: E, clients: Clients) -> tuple[D, Callable[[], None]]:
    """The result of the effect, and how to undo it."""
    done = handler.do(effect, clients)
    return done, lambda: _undo(handler, effect, done, clients)


def _undo(handler: EffectHandler[E, D], effect: E, done: D, clients: Clients) -> None:
    """The statement's own error is the one to report, so a failure to undo is only logged."""
    try:
        handler.undo(effect, done, clients)
    except HeadgateError as error:
        log.warning("could not undo %s: %s", effect, error)


# ids of schemas


def with_schema_ids(change: Change, ids: SchemaIds) -> Change:
    """The change with the ids of registered schemas in place of pending ones."""
    match change:
        case ObjectCreated(object=made) if made.definition is not None:
            return replace(change, object=replace(made, definition=_filled(made.definition, ids)))
        case DefinitionChanged():
            return replace(change, definition=_filled(change.definition, ids))
        case _:
            return change


def _filled(definition: Defined, ids: SchemaIds) -> Defined:
    if isinstance(definition, CreateStream | CreateStreamAs) and definition.reads is not None:
        return replace(definition, reads=_filled(definition.reads, ids))
    if not isinstance(definition, CreateSource | CreateSink):
        return definition
    value, key = definition.formats.value, definition.formats.key
    formats = Formats(_format(value, ids), None if key is None else _format(key, ids))
    return replace(definition, formats=formats)


def _format(format_: Format, ids: SchemaIds) -> Format:
    if not isinstance(format_, RegistryFormat):
        return format_
    return replace(format_, frozen=tuple(_schema(schema, ids) for schema in format_.frozen))


def _schema(schema: FrozenSchema, ids: SchemaIds) -> FrozenSchema:
    if isinstance(schema.id, int):
        return schema
    if schema.id not in ids:
        raise InternalError(f'no schema was registered for subject "{schema.id.subject}"')
    return replace(schema, id=ids[schema.id])
