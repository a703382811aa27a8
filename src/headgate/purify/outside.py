"""What purifying asks of the world, and the world as it would be after statements that are planned but not done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from headgate.catalog.catalog import Catalog
from headgate.connectors.connections import ConnectionRef, Connections
from headgate.connectors.kafka import Topic
from headgate.registry.errors import IncompatibleSchema, SubjectDeleted, SubjectNotFound
from headgate.registry.responses import RegisteredSchema
from headgate.registry.schemas import to_register
from headgate.schema.written import WrittenSchema
from headgate.sql.connections import CreateConnection


class Outside(Protocol):
    def check(self, catalog: Catalog, statement: CreateConnection) -> None: ...

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        """Raises TopicNotFound."""

    def offsets(
        self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None
    ) -> tuple[int, ...]:
        """Of every partition the first offset at or after a time, in milliseconds; the end without one."""

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        """The newest schema of a subject, None if there is no such subject."""

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        """Raises SchemaIdNotFound."""

    def check_compatible(
        self, catalog: Catalog, registry: ConnectionRef, subject: str, schema: WrittenSchema
    ) -> None:
        """Raises IncompatibleSchema if the subject would refuse the schema."""


class World:
    """The real one."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        self._connections.check(catalog, statement)

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        return self._connections.kafka(catalog, connection).topic(name)

    def offsets(
        self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None
    ) -> tuple[int, ...]:
        cluster = self._connections.kafka(catalog, connection)
        found = (
            cluster.offsets(topic, latest=True) if since is None else cluster.offsets_at_time(topic, since)
        )
        return tuple(found[partition] for partition in range(topic.partitions))

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        client = self._connections.registry(catalog, registry)
        try:
            found: RegisteredSchema = client.latest(subject)
        except (SubjectNotFound, SubjectDeleted):
            return None
        return client.written(found.schema, found.schema_id)

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        client = self._connections.registry(catalog, registry)
        return client.written(client.schema_by_id(schema_id), schema_id)

    def check_compatible(
        self, catalog: Catalog, registry: ConnectionRef, subject: str, schema: WrittenSchema
    ) -> None:
        client = self._connections.registry(catalog, registry)
        try:
            verdict = client.compatibility(subject, to_register(schema))
        except (SubjectNotFound, SubjectDeleted):
            return
        if not verdict.is_compatible:
            raise IncompatibleSchema(subject, tuple(verdict.messages))


@dataclass(slots=True)
class Planned:
    """The real world with the topics and subjects that a script's earlier statements will make."""

    real: Outside
    topics: dict[tuple[ConnectionRef, str], int] = field(
        default_factory=dict
    )  # connection, name -> partitions
    schemas: dict[tuple[ConnectionRef, str], WrittenSchema] = field(default_factory=dict)  # registry, subject

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        self.real.check(catalog, statement)

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        partitions = self.topics.get((connection, name))
        if partitions is not None:
            return Topic(name, "", partitions)
        return self.real.topic(catalog, connection, name)

    def offsets(
        self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None
    ) -> tuple[int, ...]:
        if (connection, topic.name) in self.topics:
            return (0,) * topic.partitions
        return self.real.offsets(catalog, connection, topic, since)

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        schema = self.schemas.get((registry, subject))
        if schema is not None:
            return schema
        return self.real.latest(catalog, registry, subject)

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        return self.real.by_id(catalog, registry, schema_id)

    def check_compatible(
        self, catalog: Catalog, registry: ConnectionRef, subject: str, schema: WrittenSchema
    ) -> None:
        if (registry, subject) not in self.schemas:
            self.real.check_compatible(catalog, registry, subject, schema)
