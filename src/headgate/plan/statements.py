"""A purified statement and a catalog -> what it would do. One function per family, found by the statement's class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import cast

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import (
    Change,
    CommentSet,
    DefinitionChanged,
    ObjectCreated,
    ObjectDropped,
    SecretChanged,
    TaskStateSet,
)
from headgate.catalog.definitions import SEARCH_PATH, purified_text
from headgate.catalog.errors import UnknownObject
from headgate.catalog.graph import check_droppable, downstream, drop_order
from headgate.catalog.names import (
    SearchPath,
    find,
    parent_and_name,
    resolve,
    resolve_column_of,
    resolve_database,
    resolve_schema,
)
from headgate.catalog.objects import Comment, Dependency, DependencyKind, DesiredTaskState, Growth, Object
from headgate.catalog.secrets import SecretSource
from headgate.plan.columns import source_columns, withheld_facts
from headgate.plan.definitions import SinkDefinition
from headgate.plan.encodings import encodings
from headgate.plan.errors import NotSupportedYet
from headgate.plan.loops import check_loops
from headgate.plan.planned import CreateTopic, Planned, RegisterSchema
from headgate.plan.relations import WITHHELD
from headgate.plan.rename import rename
from headgate.plan.sink import plan_sink, subjects
from headgate.plan.source import SourcePlan, check_schema_change, plan_source
from headgate.plan.views import (
    derive_growth,
    query_dependencies,
    replaced_columns,
    type_definition,
    view_columns,
)
from headgate.purify.sinks import sink_name
from headgate.schema.encodings import fields_of
from headgate.schema.types import Type
from headgate.schema.written import CompatibilityLevel
from headgate.sql.connections import AlterSecret, CreateConnection, CreateSecret
from headgate.sql.kafka import KafkaConnection
from headgate.sql.objects import (
    ChangeTaskState,
    CommentOn,
    CreateDatabase,
    CreateSchema,
    DropObject,
    RenameObject,
)
from headgate.sql.options import Choice, MapLiteral, NumberLiteral, SecretReference, option
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, ObjectName, Statement, print_statement
from headgate.sql.types import CreateType
from headgate.sql.views import CreateView

CREATED: dict[type[Statement], Kind] = {
    CreateDatabase: Kind.DATABASE,
    CreateSchema: Kind.SCHEMA,
    CreateSecret: Kind.SECRET,
    CreateConnection: Kind.CONNECTION,
    CreateType: Kind.TYPE,
    CreateSource: Kind.SOURCE,
    CreateView: Kind.VIEW,
    CreateSink: Kind.SINK,
}
"""What each CREATE statement makes."""


def plan(
    statement: Statement,
    catalog: Catalog,
    path: SearchPath,
    written: str,
    sealed: SecretSource | None = None,
    asked: Sequence[Type] = (),
) -> Planned:
    """What a purified statement would do. ``written`` is its text; ``sealed`` the value of a secret; ``asked`` the types
    of a view's columns as Spark told them, where we do not know all."""
    planned = skipped(statement, catalog, path)
    return planned or _Planner(catalog, path, written, sealed, asked).plan(statement)


def skipped(statement: Statement, catalog: Catalog, path: SearchPath) -> Planned | None:
    """The plan of a CREATE … IF NOT EXISTS of what exists: known before anything is asked of the outside."""
    kind = CREATED.get(type(statement))
    if kind is None or not getattr(statement, "if_not_exists", False):
        return None
    named = getattr(statement, "name", None)
    name = sink_name(catalog, path, statement) if isinstance(statement, CreateSink) else named
    assert isinstance(name, ObjectName)
    known = find_object(catalog, path, kind, name)
    if known is None:
        return None
    notice = f'{known.kind} "{known.name}" exists already, skipped'
    return Planned(statement, f"CREATE {kind.words}", notices=(notice,), skipped=True)


def named_object(catalog: Catalog, path: SearchPath, kind: Kind, name: ObjectName) -> Object:
    """The object of that kind and name, a database or schema too."""
    if kind is Kind.DATABASE:
        return resolve_database(catalog, name)
    if kind is Kind.SCHEMA:
        return resolve_schema(catalog, path, name)
    return resolve(catalog, path, name, kind)


def find_object(catalog: Catalog, path: SearchPath, kind: Kind, name: ObjectName) -> Object | None:
    """Likewise, or None where there is none."""
    if kind not in (Kind.SCHEMA, Kind.DATABASE):
        return find(catalog, path, name, kind)
    try:
        return named_object(catalog, path, kind, name)
    except UnknownObject:
        return None


class _Planner:
    def __init__(
        self,
        catalog: Catalog,
        path: SearchPath,
        written: str,
        sealed: SecretSource | None,
        asked: Sequence[Type],
    ) -> None:
        self.catalog = catalog
        self.path = path
        self.written = written
        self.sealed = sealed
        self.asked = asked

    def plan(self, statement: Statement) -> Planned:
        match statement:
            case CreateDatabase():
                return self._container(statement, statement.name, Kind.DATABASE)
            case CreateSchema():
                return self._container(statement, statement.name, Kind.SCHEMA)
            case CreateSecret():
                return self._create(statement, statement.name, Kind.SECRET, secret=self.sealed)
            case AlterSecret():
                return self._rotate(statement)
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
        parent, exact = parent_and_name(self.catalog, self.path, name, kind)
        purified = purified_text(statement, cast("dict[str, object]", more.pop("facts", {})))
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
        return Planned(statement, f"CREATE {kind.words}", (ObjectCreated(made, secret),))

    def _container(self, statement: Statement, name: ObjectName, kind: Kind) -> Planned:
        return self._create(statement, name, kind)

    def _rotate(self, statement: AlterSecret) -> Planned:
        secret = resolve(self.catalog, self.path, statement.name, Kind.SECRET)
        assert self.sealed is not None
        return Planned(statement, "ALTER SECRET", (SecretChanged(secret.id, self.sealed),))

    def _connection(self, statement: CreateConnection) -> Planned:
        secrets = [o.value.name for o in statement.options if isinstance(o.value, SecretReference)]
        ids = [resolve(self.catalog, self.path, name, Kind.SECRET).id for name in secrets]
        needs = tuple(Dependency(id_, DependencyKind.SECRET) for id_ in dict.fromkeys(ids))
        return self._create(statement, statement.name, Kind.CONNECTION, dependencies=needs)

    def _type(self, statement: CreateType) -> Planned:
        columns, body, needs = type_definition(self.catalog, self.path, statement)
        return self._create(
            statement, statement.name, Kind.TYPE, columns=columns, body=body, dependencies=needs
        )

    def _source(self, statement: CreateSource) -> Planned:
        check_schema_change(statement)
        planned = plan_source(statement)
        growth = Growth.KEYED if any(c.key for c in planned.columns) else Growth.APPEND
        facts = {"dropped_key": _dropped_key(statement, planned), WITHHELD: withheld_facts(planned)}
        made = self._object(
            statement.name,
            Kind.SOURCE,
            statement,
            columns=source_columns(planned),
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
        return tuple(Dependency(id_, DependencyKind.CONNECTION) for id_ in dict.fromkeys(ids))

    def _view(self, statement: CreateView) -> Planned:
        analysed, needs = query_dependencies(self.catalog, self.path, statement.query)
        columns = view_columns(analysed, statement.columns, statement.name.parts[-1].name, self.asked)
        growth, columns = derive_growth(self.catalog, analysed, columns)
        old = find(self.catalog, self.path, statement.name, Kind.VIEW) if statement.or_replace else None
        if old is not None:
            columns = replaced_columns(self.catalog, old, columns)
            purified = purified_text(statement, {SEARCH_PATH: self.path.entries})
            change = DefinitionChanged(old.id, self.written, purified, needs, columns, growth)
            readers = [o.id for o in downstream(self.catalog, old.id) if o.kind is Kind.SINK]
            check_loops(apply(self.catalog, change), readers)
            return Planned(statement, "CREATE OR REPLACE VIEW", (change,))
        return self._create(
            statement,
            statement.name,
            Kind.VIEW,
            columns=columns,
            growth=growth,
            dependencies=needs,
            facts={SEARCH_PATH: self.path.entries},
        )

    def _sink(self, statement: CreateSink) -> Planned:
        sink = plan_sink(self.catalog, self.path, statement)
        needs = (Dependency(sink.relation, DependencyKind.READS), *self._connections(statement))
        made = self._object(
            sink_name(self.catalog, self.path, statement), Kind.SINK, statement, dependencies=needs
        )
        check_loops(apply(self.catalog, ObjectCreated(made)), [made.id])
        topic = _new_topic(statement, sink)
        assert sink.registry is not None or not subjects(sink)
        register = [
            RegisterSchema(sink.registry or 0, subject, schema, _level(statement, subject))
            for subject, schema in subjects(sink)
        ]
        return Planned(statement, "CREATE SINK", (ObjectCreated(made),), (topic, *register))

    # what changes them

    def _comment(self, statement: CommentOn) -> Planned:
        if statement.kind is None:
            owner, column = resolve_column_of(self.catalog, self.path, statement.name)
            change = CommentSet(owner.id, column.id, statement.comment)
        else:
            owner = self._named(statement.kind, statement.name)
            change = CommentSet(owner.id, None, statement.comment)
        return Planned(statement, "COMMENT", (change,))

    def _named(self, kind: Kind, name: ObjectName) -> Object:
        return named_object(self.catalog, self.path, kind, name)

    def _missing(self, statement: DropObject | RenameObject | ChangeTaskState, tag: str) -> Planned | None:
        """The plan of an IF EXISTS of what does not exist."""
        kind = statement.kind
        if not statement.if_exists or find_object(self.catalog, self.path, kind, statement.name) is not None:
            return None
        notice = f'{kind} "{statement.name}" does not exist, skipped'
        return Planned(statement, tag, notices=(notice,), skipped=True)

    def _drop(self, statement: DropObject) -> Planned:
        tag = f"DROP {statement.kind.words}"
        if missing := self._missing(statement, tag):
            return missing
        target = self._named(statement.kind, statement.name)
        if not statement.cascade:
            check_droppable(self.catalog, target.id)
            return Planned(statement, tag, (ObjectDropped(target.id),))
        order = drop_order(self.catalog, [target.id])
        notices = tuple(
            f'{o.kind} "{self.catalog.shown(o.id)}" is dropped too' for o in order if o.id != target.id
        )
        return Planned(statement, tag, tuple(ObjectDropped(o.id) for o in order), notices=notices)

    def _rename(self, statement: RenameObject) -> Planned:
        tag = f"ALTER {statement.kind.words}"
        if missing := self._missing(statement, tag):
            return missing
        target = self._named(statement.kind, statement.name)
        if target.name == statement.new_name.name:
            notice = f'{target.kind} "{target.name}" is called so already, skipped'
            return Planned(statement, tag, notices=(notice,), skipped=True)
        return Planned(statement, tag, rename(self.catalog, target, statement.new_name))

    def _task_state(self, statement: ChangeTaskState) -> Planned:
        if statement.binding is not None:
            raise NotSupportedYet("a binding of a capture")
        tag = f"ALTER {statement.kind.words}"
        if missing := self._missing(statement, tag):
            return missing
        target = self._named(statement.kind, statement.name)
        desired = DesiredTaskState.PAUSED if statement.action == "PAUSE" else DesiredTaskState.RUNNING
        change: Change = TaskStateSet(target.id, desired)
        return Planned(statement, tag, (change,))


def _dropped_key(statement: CreateSource, planned: SourcePlan) -> list[str]:
    """The columns that INCLUDE KEY would add to a source without it."""
    kept = {c.name for c in planned.columns}
    if planned.key is not None:
        return []
    key = encodings(statement.formats)[1]
    if key is None:
        return []
    names = [f.name for f in fields_of(key) or ()] or ["key"]
    return [name for name in names if name not in kept]


def _new_topic(statement: CreateSink, sink: SinkDefinition) -> CreateTopic:
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


def _level(statement: CreateSink, subject: str) -> CompatibilityLevel | None:
    side = "KEY" if subject.endswith("-key") else "VALUE"
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat):
            level = option(format_.options, f"{side} COMPATIBILITY LEVEL")
            if isinstance(level, Choice):
                return CompatibilityLevel(level.words)
    return None


def _spoken(statement: Statement) -> str:
    """A statement as its first words say it, up to the name of what it speaks of."""
    name = getattr(statement, "name", None) or getattr(statement, "relation", None)
    ends = {part.name for part in name.parts} if isinstance(name, ObjectName) else set()
    ends |= {"FOR", "IF", "TO"}
    words = print_statement(statement).replace("(", " ( ").replace(";", " ").split()
    spoken = takewhile(lambda word: word.isalpha() and word.isupper() and word not in ends, words)
    return " ".join(islice(spoken, 4)) or type(statement).__name__
