"""Statements planned one after another over an outside that is a few dictionaries: no service, no clock, no thread."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import Object
from headgate.catalog.secrets import FromEnvironment
from headgate.connectors.connections import ConnectionRef
from headgate.connectors.errors import TopicNotFound
from headgate.connectors.kafka import Topic
from headgate.errors import similar_names
from headgate.plan.definitions import SourceColumn
from headgate.plan.planned import Planned
from headgate.plan.source import SourcePlan, plan_source
from headgate.plan.statements import plan, skipped
from headgate.purify.statements import purify
from headgate.registry.errors import IncompatibleSchema, SchemaIdNotFound
from headgate.schema.render import print_type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.connections import CreateConnection, CreateSecret
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind
from tests.catalog.building import START

CONNECTIONS = """
CREATE CONNECTION kafka TO KAFKA (BROKER 'broker:9092');
CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL 'http://registry:8081');
"""


@dataclass
class MemoryOutside:
    """Topics and subjects of one cluster and one registry; what was checked is written down."""

    topics: dict[str, int] = field(default_factory=dict)
    subjects: dict[str, WrittenSchema] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    checked: list[str] = field(default_factory=list)

    def add_subject(self, subject: str, schema: object, type_: SchemaFormat = SchemaFormat.AVRO) -> int:
        schema_id = len(self.subjects) + 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.subjects[subject] = WrittenSchema(text, id=schema_id, format=type_)
        return schema_id

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        self.checked.append(str(statement.name))

    def topic(self, catalog: Catalog, connection: ConnectionRef, name: str) -> Topic:
        if name not in self.topics:
            raise TopicNotFound(name, similar_names(name, self.topics))
        return Topic(name, f"id of {name}", self.topics[name])

    def offsets(
        self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None
    ) -> tuple[int, ...]:
        """As if every partition had ten records, one each millisecond from 1970 on."""
        return (10 if since is None else min(10, since),) * topic.partitions

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        return self.subjects.get(subject)

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        for known in self.subjects.values():
            if known.id == schema_id:
                return known
        raise SchemaIdNotFound(schema_id)

    def check_compatible(
        self, catalog: Catalog, registry: ConnectionRef, subject: str, schema: WrittenSchema
    ) -> None:
        if subject in self.refused:
            raise IncompatibleSchema(subject, ("a field is gone",))


class Planning:
    """A catalog that grows by statements. The connections `kafka` and `registry` are there."""

    def __init__(self) -> None:
        self.outside = MemoryOutside()
        self.catalog = START
        self.path: SearchPath = DEFAULT_PATH
        self.do(CONNECTIONS)
        self.outside.checked.clear()

    def topic(self, name: str, *, key: object = None, value: object = None) -> None:
        self.outside.topics[name] = 1
        for side, schema in (("key", key), ("value", value)):
            if schema is not None:
                self.outside.add_subject(f"{name}-{side}", schema)

    def plan(self, text: str) -> Planned:
        statement = parse_statement(text)
        if (skip := skipped(statement, self.catalog, self.path)) is not None:
            return skip
        pure = purify(statement, self.catalog, self.path, self.outside)
        sealed = FromEnvironment("SECRET") if isinstance(statement, CreateSecret) else None
        return plan(pure, self.catalog, self.path, text, sealed)

    def do(self, script: str) -> list[Planned]:
        done = []
        for statement in parse_script(script):
            planned = self.plan(script[statement.span.start : statement.span.end])
            self.catalog = apply(self.catalog, *planned.changes)
            done.append(planned)
        return done

    def source(self, text: str) -> SourcePlan:
        """The plan of `CREATE SOURCE s <text>`, a column list before it included."""
        pure = purify(parse_statement(f"CREATE SOURCE s {text}"), self.catalog, self.path, self.outside)
        assert isinstance(pure, CreateSource)
        return plan_source(pure)

    def named(self, name: str, *kinds: Kind) -> Object:
        found = [
            o for o in self.catalog.objects.values() if o.name == name and (not kinds or o.kind in kinds)
        ]
        assert len(found) == 1, [o.kind for o in found]
        return found[0]


def with_orders(value: object, key: object = None) -> Planning:
    """A world with the topic `orders`, whose values and keys have these schemas."""
    world = Planning()
    world.topic("orders", key=key, value=value)
    return world


def record(name: str, *fields: tuple[str, object], doc: str | None = None) -> dict[str, object]:
    """An Avro record; a field is its name and its type."""
    made: list[dict[str, object]] = [{"name": n, "type": t} for n, t in fields]
    told: dict[str, object] = {"type": "record", "name": name, "fields": made}
    return told if doc is None else {**told, "doc": doc}


def shown(columns: Iterable[SourceColumn]) -> list[str]:
    """Columns as `name type [not null] [key]`."""
    return [
        f"{c.name} {print_type(c.type)}{'' if c.nullable else ' not null'}{' key' if c.key else ''}"
        for c in columns
    ]
