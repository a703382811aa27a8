"""The questions that statements ask of the systems outside. `PlannedLookups` answers as if the statements that were planned before
had run already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from headgate.catalog.catalog import Catalog
from headgate.connectors.connections import ConnectionRef, Connections
from headgate.connectors.kafka import Topic
from headgate.registry.client import RegisteredSchema
from headgate.registry.errors import SubjectDeleted, SubjectNotFound
from headgate.resolve.statements import TakenSchema
from headgate.schema.written import WrittenSchema
from headgate.sql.connections import CreateConnection

T = TypeVar("T")


class Lookups(Protocol):
    """The questions that a statement may ask. Each raises the error of the system that cannot answer."""

    def check(self, catalog: Catalog, statement: CreateConnection) -> None: ...

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        """Raises TopicNotFound."""

    def offsets(self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None) -> tuple[int, ...]:
        """The first offset of every partition at or after a time in milliseconds; without a time, the end."""

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        """The newest schema of a subject, None if there is no such subject."""

    def versions(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> tuple[WrittenSchema, ...]:
        """All schemas of a subject, oldest first."""

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        """Raises SchemaIdNotFound."""

    def with_message(
        self, catalog: Catalog, registry: ConnectionRef, schema_id: int, message: str
    ) -> WrittenSchema | None:
        """The schema with the id, or the one of its imports in which a Protobuf message stands. None if it is in none of them."""

    def changed_schemas(self, catalog: Catalog, source: int) -> tuple[TakenSchema, ...]:
        """The schemas that the registry has for a source's topic and that the source does not read yet, oldest first."""

    def last_batch(self, view: int) -> tuple[int, int]:
        """The generation of a materialized view that readers see, and its last batch; 0 before the first."""


ChangedSchemas = Callable[[Catalog, int], tuple[TakenSchema, ...]]
LastBatch = Callable[[int], tuple[int, int]]


class LiveLookups:
    """Asks the systems themselves. ``changed`` returns the schemas of a source that its registry has and it does not read.
    ``last_batch`` returns the last committed batch of a materialized view."""

    def __init__(self, connections: Connections, changed: ChangedSchemas, last_batch: LastBatch) -> None:
        self._connections = connections
        self._changed = changed
        self._last_batch = last_batch

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        self._connections.check(catalog, statement)

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        return self._connections.kafka(catalog, connection).topic(name)

    def offsets(self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None) -> tuple[int, ...]:
        cluster = self._connections.kafka(catalog, connection)
        found = cluster.offsets(topic, latest=True) if since is None else cluster.offsets_at_time(topic, since)
        return tuple(found[partition] for partition in range(topic.partitions))

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        client = self._connections.registry(catalog, registry)
        try:
            found: RegisteredSchema = client.latest(subject)
        except (SubjectNotFound, SubjectDeleted):
            return None
        return client.written(found.schema, found.schema_id)

    def versions(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> tuple[WrittenSchema, ...]:
        client = self._connections.registry(catalog, registry)
        try:
            found = [client.version(subject, number) for number in client.versions(subject)]
        except (SubjectNotFound, SubjectDeleted):
            return ()
        return tuple(client.written(one.schema, one.schema_id) for one in found)

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        client = self._connections.registry(catalog, registry)
        return client.written(client.schema_by_id(schema_id), schema_id)

    def with_message(
        self, catalog: Catalog, registry: ConnectionRef, schema_id: int, message: str
    ) -> WrittenSchema | None:
        return self._connections.registry(catalog, registry).with_message(schema_id, message)

    def changed_schemas(self, catalog: Catalog, source: int) -> tuple[TakenSchema, ...]:
        return self._changed(catalog, source)

    def last_batch(self, view: int) -> tuple[int, int]:
        return self._last_batch(view)


@dataclass(slots=True)
class PlannedLookups:
    """Asks ``real`` each question once per script, and knows the topics and schemas that earlier statements will create."""

    real: Lookups
    topics: dict[tuple[ConnectionRef, str], int] = field(default_factory=dict)  # -> partitions
    schemas: dict[tuple[ConnectionRef, str], WrittenSchema] = field(default_factory=dict)
    _known: dict[tuple[object, ...], object] = field(default_factory=dict)

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        self.real.check(catalog, statement)

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        partitions = self.topics.get((connection, name))
        if partitions is not None:
            return Topic(name, "", partitions)
        key = ("topic", connection, name)
        return self._once(key, lambda: self.real.topic(catalog, connection, name))

    def offsets(self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None) -> tuple[int, ...]:
        if (connection, topic.name) in self.topics:
            return (0,) * topic.partitions
        key = ("offsets", connection, topic, since)
        return self._once(key, lambda: self.real.offsets(catalog, connection, topic, since))

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        schema = self.schemas.get((registry, subject))
        if schema is not None:
            return schema
        key = ("latest", registry, subject)
        return self._once(key, lambda: self.real.latest(catalog, registry, subject))

    def versions(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> tuple[WrittenSchema, ...]:
        schema = self.schemas.get((registry, subject))
        key = ("versions", registry, subject)
        known = self._once(key, lambda: self.real.versions(catalog, registry, subject))
        return known if schema is None else (*known, schema)

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        key = ("id", registry, schema_id)
        return self._once(key, lambda: self.real.by_id(catalog, registry, schema_id))

    def with_message(
        self, catalog: Catalog, registry: ConnectionRef, schema_id: int, message: str
    ) -> WrittenSchema | None:
        key = ("message", registry, schema_id, message)
        return self._once(key, lambda: self.real.with_message(catalog, registry, schema_id, message))

    def changed_schemas(self, catalog: Catalog, source: int) -> tuple[TakenSchema, ...]:
        return self.real.changed_schemas(catalog, source)

    def last_batch(self, view: int) -> tuple[int, int]:
        return self.real.last_batch(view)

    def _once(self, key: tuple[object, ...], ask: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = ask()
        return cast("T", self._known[key])
