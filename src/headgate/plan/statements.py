"""A purified statement and a catalog -> what it would do. One function per family, found by the statement's class."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from headgate.catalog.changes import (
    Change,
    CommentSet,
    DefinitionChanged,
    ObjectCreated,
    ObjectDropped,
    ObjectRenamed,
    TaskTold,
)
from headgate.catalog.errors import UnknownObject
from headgate.catalog.graph import check_droppable, drop_order, type_dependencies
from headgate.catalog.names import (
    SearchPath,
    find,
    place,
    resolve,
    resolve_column_of,
    resolve_database,
    resolve_schema,
)
from headgate.catalog.objects import (
    Column,
    Comment,
    Dependency,
    Desired,
    Growth,
    Kind,
    Object,
    Use,
)
from headgate.catalog.secrets import SecretSource
from headgate.catalog.snapshot import Catalog
from headgate.plan.errors import NotSupportedYet
from headgate.plan.planned import CreateTopic, Planned, RegisterSchema
from headgate.plan.sink import SinkPlan, plan_sink
from headgate.plan.source import plan_source, sides
from headgate.plan.views import derive_growth, query_dependencies, type_definition, view_columns
from headgate.registry.compatibility.levels import Level
from headgate.schema.formats.avro.read import columns_of
from headgate.schema.render import print_type
from headgate.sql.ast.alter import ChangeTaskState, RenameObject
from headgate.sql.ast.comments import CommentOn
from headgate.sql.ast.connections import CreateConnection, CreateSecret
from headgate.sql.ast.databases import CreateDatabase, CreateSchema
from headgate.sql.ast.drop import DropObject
from headgate.sql.ast.formats import RegistryFormat
from headgate.sql.ast.kafka import KafkaConnection
from headgate.sql.ast.names import Identifier, ObjectName
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.ast.sources import CreateSource
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.types import CreateType
from headgate.sql.ast.values import Choice, MapLiteral, NumberLiteral, SecretReference, option
from headgate.sql.ast.views import CreateView
from headgate.sql.json import to_json
from headgate.sql.render.statements import render


def plan(
    statement: Statement, catalog: Catalog, path: SearchPath, written: str, sealed: SecretSource | None = None
) -> Planned:
    """What a purified statement would do. ``written`` is its text; ``sealed`` the value of a secret to be created."""
    name = getattr(statement, "name", None)
    kind = _created_kind(statement)
    if kind is not None and getattr(statement, "if_not_exists", False) and isinstance(name, ObjectName):
        known = find(catalog, path, name, kind) if kind not in (Kind.DATABASE, Kind.SCHEMA) else None
        if known is not None:
            tag = f"CREATE {kind.value.upper()}"
            notice = f'{known.kind} "{known.name}" exists already, skipped'
            return Planned(statement, tag, notices=(notice,), skipped=True)
    return _Planner(catalog, path, written, sealed).plan(statement)


def _created_kind(statement: Statement) -> Kind | None:
    name = type(statement).__name__
    if not name.startswith("Create"):
        return None
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name.removeprefix("Create")).strip()
    return Kind(words) if words in set(Kind) else None


class _Planner:
    def __init__(self, catalog: Catalog, path: SearchPath, written: str, sealed: SecretSource | None) -> None:
        self.catalog = catalog
        self.path = path
        self.written = written
        self.sealed = sealed

    def plan(self, statement: Statement) -> Planned:
        match statement:
            case CreateDatabase():
                return self._container(statement, statement.name, Kind.DATABASE)
            case CreateSchema():
                return self._container(statement, statement.name, Kind.SCHEMA)
            case CreateSecret():
                return self._create(statement, statement.name, Kind.SECRET, secret=self.sealed)
            case CreateConnection():
                return self._connection(statement)
            case CreateType():
                return self._type(statement)
            case CreateSource():
                return self._source(statement)
            case CreateView():
                return self._view(statement)
            case CreateSink():
                return self._sink(statement)
            case CommentOn():
                return self._comment(statement)
            case DropObject():
                return self._drop(statement)
            case RenameObject():
                return self._rename(statement)
            case ChangeTaskState():
                return self._task_state(statement)
            case _:
                raise NotSupportedYet(_spoken(statement))

    # objects

    def _object(self, name: ObjectName, kind: Kind, statement: Statement, **more: object) -> Object:
        parent, exact = place(self.catalog, self.path, name, kind)
        purified = json.dumps(
            {"statement": to_json(statement), **cast("dict[str, object]", more.pop("facts", {}))}
        )
        made = Object(self.catalog.next_id, kind, parent, exact, datetime.now(UTC), self.written, purified)
        return replace(made, **more)  # type: ignore[arg-type]

    def _create(
        self,
        statement: Statement,
        name: ObjectName,
        kind: Kind,
        *,
        secret: SecretSource | None = None,
        **more: object,
    ) -> Planned:
        made = self._object(name, kind, statement, **more)
        return Planned(statement, f"CREATE {kind.value.upper()}", (ObjectCreated(made, secret),))

    def _container(self, statement: Statement, name: ObjectName, kind: Kind) -> Planned:
        return self._create(statement, name, kind)

    def _connection(self, statement: CreateConnection) -> Planned:
        secrets = [o.value.name for o in statement.options if isinstance(o.value, SecretReference)]
        ids = [resolve(self.catalog, self.path, name, Kind.SECRET).id for name in secrets]
        needs = tuple(Dependency(id_, Use.SECRET) for id_ in dict.fromkeys(ids))
        return self._create(statement, statement.name, Kind.CONNECTION, dependencies=needs)

    def _type(self, statement: CreateType) -> Planned:
        columns, body, needs = type_definition(self.catalog, self.path, statement)
        return self._create(
            statement, statement.name, Kind.TYPE, columns=columns, body=body, dependencies=needs
        )

    def _source(self, statement: CreateSource) -> Planned:
        planned = plan_source(statement)
        columns = tuple(
            Column(
                position,
                c.name,
                print_type(c.type, full=True),
                c.nullable,
                c.key,
                comment=Comment(imported=c.doc),
            )
            for position, c in enumerate(planned.columns, start=1)
        )
        growth = Growth.KEYED if any(c.key for c in planned.columns) else Growth.APPEND
        facts = {"dropped_key": _dropped_key(statement, {c.name for c in planned.columns})}
        made = self._object(
            statement.name,
            Kind.SOURCE,
            statement,
            columns=columns,
            growth=growth,
            dependencies=self._connections(statement),
            comment=Comment(imported=planned.doc),
            facts=facts,
        )
        return Planned(statement, "CREATE SOURCE", (ObjectCreated(made),))

    def _connections(self, statement: CreateSource | CreateSink) -> tuple[Dependency, ...]:
        names: list[ObjectName] = []
        if isinstance(statement.kafka, KafkaConnection):
            names.append(statement.kafka.connection)
        formats = [
            f for f in (statement.formats.value, statement.formats.key) if isinstance(f, RegistryFormat)
        ]
        names.extend(f.registry for f in formats if isinstance(f.registry, ObjectName))
        ids = [resolve(self.catalog, self.path, name, Kind.CONNECTION).id for name in names]
        return tuple(Dependency(id_, Use.CONNECTION) for id_ in dict.fromkeys(ids))

    def _view(self, statement: CreateView) -> Planned:
        analysed, needs = query_dependencies(self.catalog, self.path, statement.query)
        columns = view_columns(analysed, statement.columns, statement.name.parts[-1].name)
        growth, columns = derive_growth(self.catalog, analysed, columns)
        types = type_dependencies(self.catalog, [c.parsed for c in columns])
        old = find(self.catalog, self.path, statement.name, Kind.VIEW) if statement.or_replace else None
        if old is not None:
            purified = json.dumps({"statement": to_json(statement), "search_path": self.path.entries})
            change = DefinitionChanged(old.id, self.written, purified, (*needs, *types), columns, growth)
            return Planned(statement, "CREATE OR REPLACE VIEW", (change,))
        return self._create(
            statement,
            statement.name,
            Kind.VIEW,
            columns=columns,
            growth=growth,
            dependencies=(*needs, *types),
            facts={"search_path": self.path.entries},
        )

    def _sink(self, statement: CreateSink) -> Planned:
        sink = plan_sink(self.catalog, self.path, statement)
        needs = (Dependency(sink.relation, Use.READS), *self._connections(statement))
        name = statement.name or ObjectName(
            (*statement.relation.parts[:-1], Identifier(sink.name, quoted=True))
        )
        made = self._object(name, Kind.SINK, statement, dependencies=needs)
        topic = _new_topic(statement, sink)
        assert sink.registry is not None or not sink.subjects()
        register = [
            RegisterSchema(sink.registry or 0, subject, schema, _level(statement, subject))
            for subject, schema in sink.subjects()
        ]
        return Planned(statement, "CREATE SINK", (ObjectCreated(made),), (topic, *register))

    # what changes them

    def _comment(self, statement: CommentOn) -> Planned:
        if statement.kind == "COLUMN":
            owner, column = resolve_column_of(self.catalog, self.path, statement.name)
            change = CommentSet(owner.id, column.id, statement.comment)
        else:
            owner = self._named(statement.kind, statement.name)
            change = CommentSet(owner.id, None, statement.comment)
        return Planned(statement, "COMMENT", (change,))

    def _named(self, kind: str, name: ObjectName) -> Object:
        wanted = Kind(kind.lower())
        if wanted is Kind.DATABASE:
            return resolve_database(self.catalog, name)
        if wanted is Kind.SCHEMA:
            return resolve_schema(self.catalog, self.path, name)
        return resolve(self.catalog, self.path, name, wanted)

    def _drop(self, statement: DropObject) -> Planned:
        tag = f"DROP {statement.kind}"
        kind = Kind(statement.kind.lower())
        if statement.if_exists and self._is_missing(kind, statement.name):
            notice = f'{kind} "{statement.name}" does not exist, skipped'
            return Planned(statement, tag, notices=(notice,), skipped=True)
        target = self._named(statement.kind, statement.name)
        if not statement.cascade:
            check_droppable(self.catalog, target.id)
            return Planned(statement, tag, (ObjectDropped(target.id),))
        order = drop_order(self.catalog, [target.id])
        notices = tuple(
            f'{o.kind} "{self.catalog.shown(o.id)}" is dropped too' for o in order if o.id != target.id
        )
        return Planned(statement, tag, tuple(ObjectDropped(o.id) for o in order), notices=notices)

    def _is_missing(self, kind: Kind, name: ObjectName) -> bool:
        if kind in (Kind.SCHEMA, Kind.DATABASE):
            try:
                self._named(kind.value, name)
            except UnknownObject:
                return True
            return False
        return find(self.catalog, self.path, name, kind) is None

    def _rename(self, statement: RenameObject) -> Planned:
        tag = f"ALTER {statement.kind}"
        kind = Kind(statement.kind.lower())
        if statement.if_exists and self._is_missing(kind, statement.name):
            return Planned(
                statement, tag, notices=(f'{kind} "{statement.name}" does not exist, skipped',), skipped=True
            )
        target = self._named(statement.kind, statement.name)
        return Planned(statement, tag, (ObjectRenamed(target.id, statement.new_name.name),))

    def _task_state(self, statement: ChangeTaskState) -> Planned:
        if statement.binding is not None:
            raise NotSupportedYet("a binding of a capture")
        target = self._named(statement.kind, statement.name)
        desired = Desired.PAUSED if statement.action == "PAUSE" else Desired.RUNNING
        change: Change = TaskTold(target.id, desired)
        return Planned(statement, f"ALTER {statement.kind}", (change,))


def _dropped_key(statement: CreateSource, kept: set[str]) -> list[str]:
    """Fields of a key that the source knows of and does not include."""
    key = sides(statement)[1]
    reader = getattr(key, "reader", None)
    if key is None or reader is None:
        return []
    fields = columns_of(reader, getattr(key, "references", ()), column="key")
    return [f.name for f in fields if f.name not in kept]


def _new_topic(statement: CreateSink, sink: SinkPlan) -> CreateTopic:
    assert isinstance(statement.kafka, KafkaConnection)
    options = statement.kafka.options
    partitions = option(options, "TOPIC PARTITION COUNT")
    replicas = option(options, "TOPIC REPLICATION FACTOR")
    config = option(options, "TOPIC CONFIG")
    return CreateTopic(
        sink.connection,
        sink.topic,
        int(partitions.text) if isinstance(partitions, NumberLiteral) else 1,
        int(replicas.text) if isinstance(replicas, NumberLiteral) else -1,
        config.entries if isinstance(config, MapLiteral) else (),
    )


def _level(statement: CreateSink, subject: str) -> Level | None:
    side = "KEY" if subject.endswith("-key") else "VALUE"
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat):
            level = option(format_.options, f"{side} COMPATIBILITY LEVEL")
            if isinstance(level, Choice):
                return Level(level.words)
    return None


def _spoken(statement: Statement) -> str:
    """A statement as its first words say it."""
    words = []
    for word in render(statement).replace("(", " ").split():
        if not word.isupper():
            break
        words.append(word.rstrip(";"))
    return " ".join(words[:4]) or type(statement).__name__
