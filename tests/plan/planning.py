"""Statements planned one after another over an outside that is a few dictionaries: no service, no clock, no thread."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import Object
from headgate.catalog.secrets import FromEnvironment, SecretSource
from headgate.connectors.connections import ConnectionRef
from headgate.connectors.errors import BrokerUnreachable, TopicNotFound
from headgate.connectors.kafka import Topic
from headgate.errors import similar_names
from headgate.plan.definitions import RecordEncoding, SinkDefinition, SourceColumn
from headgate.plan.errors import ColumnOfUnknownType
from headgate.plan.plans import ChangeCatalog, Plan, Skip
from headgate.plan.sink import plan_sink
from headgate.plan.source import SourcePlan, plan_source
from headgate.plan.statements import plan, skip_existing
from headgate.purify.statements import purify
from headgate.registry.errors import SchemaIdNotFound
from headgate.resolve.statements import Answers, Context, TakenSchema, resolve_names, resolve_statement
from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.connections import CreateConnection, CreateSecret
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, Statement
from tests.catalog.building import START

CONNECTIONS = """
CREATE CONNECTION kafka TO KAFKA (BROKER 'broker:9092');
CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL 'http://registry:8081');
"""


REGISTRY = "USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
AVRO = f"FORMAT AVRO {REGISTRY}"
TO = "INTO KAFKA CONNECTION kafka (TOPIC 'out')"

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)


def _nobody_knows(_: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
    raise ColumnOfUnknownType(next(c.name for c in analysed.columns if c.type is None))


def _is_pattern(pattern: str) -> bool:
    return pattern != "no pattern"


@dataclass
class MemoryOutside:
    """Topics and subjects of one cluster and one registry; what was checked is written down."""

    topics: dict[str, int] = field(default_factory=dict)
    subjects: dict[str, WrittenSchema] = field(default_factory=dict)
    past: dict[str, tuple[WrittenSchema, ...]] = field(default_factory=dict)  # earlier versions, oldest first
    changed: tuple[TakenSchema, ...] = ()
    checked: list[str] = field(default_factory=list)
    elsewhere: dict[ConnectionRef, str | None] = field(
        default_factory=dict
    )  # another cluster; None if it does not answer

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
        cluster = self.elsewhere.get(connection, "")
        if cluster is None:
            raise BrokerUnreachable("far:9092", "No answer.")
        return Topic(name, f"id of {name}{cluster}", self.topics[name])

    def offsets(self, catalog: Catalog, connection: ConnectionRef, topic: Topic, since: int | None) -> tuple[int, ...]:
        """As if every partition had ten records, one each millisecond from 1970 on."""
        return (10 if since is None else min(10, since),) * topic.partitions

    def latest(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> WrittenSchema | None:
        return self.subjects.get(subject)

    def versions(self, catalog: Catalog, registry: ConnectionRef, subject: str) -> tuple[WrittenSchema, ...]:
        latest = self.subjects.get(subject)
        return (*self.past.get(subject, ()), latest) if latest is not None else ()

    def by_id(self, catalog: Catalog, registry: ConnectionRef, schema_id: int) -> WrittenSchema:
        for known in self.subjects.values():
            if known.id == schema_id:
                return known
        raise SchemaIdNotFound(schema_id)

    def with_message(
        self, catalog: Catalog, registry: ConnectionRef, schema_id: int, message: str
    ) -> WrittenSchema | None:
        return self.by_id(catalog, registry, schema_id)

    def last_batch(self, view: int) -> tuple[int, int]:
        return (1, 7)

    def changed_schemas(self, catalog: Catalog, source: int) -> tuple[TakenSchema, ...]:
        return self.changed


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

    def plan(self, text: str) -> Plan:
        statement = parse_statement(text)
        sealed = FromEnvironment("SECRET") if isinstance(statement, CreateSecret) else None
        context = self.context(text, sealed)
        if (skip := skip_existing(statement, context)) is not None:
            return skip
        return plan(*purify(resolve_statement(statement, context), context, self.outside))

    def context(self, text: str = "", sealed: SecretSource | None = None) -> Context:
        return Context(self.catalog, self.path, NOW, text, Answers(sealed, types=_nobody_knows, is_pattern=_is_pattern))

    def change(self, text: str) -> ChangeCatalog:
        planned = self.plan(text)
        assert isinstance(planned, ChangeCatalog)
        return planned

    def skip(self, text: str) -> Skip:
        planned = self.plan(text)
        assert isinstance(planned, Skip)
        return planned

    def do(self, script: str) -> list[ChangeCatalog]:
        """The plans of the script that change something."""
        done = []
        for statement in parse_script(script):
            planned = self.plan(script[statement.span.start : statement.span.end])
            if isinstance(planned, ChangeCatalog):
                self.catalog = apply(self.catalog, *planned.changes)
                done.append(planned)
        return done

    def pure(self, statement: Statement) -> Statement:
        context = self.context()
        return purify(resolve_statement(statement, context), context, self.outside)[0]

    def source(self, text: str) -> SourcePlan:
        """The plan of `CREATE SOURCE s <text>`, a column list before it included."""
        pure = self.pure(parse_statement(f"CREATE SOURCE s {text}"))
        assert isinstance(pure, CreateSource)
        return plan_source(pure)

    def named(self, name: str, *kinds: Kind) -> Object:
        found = [o for o in self.catalog.objects.values() if o.name == name and (not kinds or o.kind in kinds)]
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
        f"{c.name} {print_type(c.type)}{'' if c.nullable else ' not null'}{' key' if c.key else ''}" for c in columns
    ]


def sink(world: Planning, text: str) -> SinkDefinition:
    """The plan of CREATE SINK, which is not stored."""
    statement = parse_statement(f"CREATE SINK {text}")
    assert isinstance(statement, CreateSink)
    return plan_sink(world.catalog, resolve_names(statement, world.catalog, world.path))


def schema(side: RecordEncoding | None) -> Any:
    """The Avro schema of a side, read."""
    assert side is not None
    assert side.schema is not None
    return json.loads(side.schema)
