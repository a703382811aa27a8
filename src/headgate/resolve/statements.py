"""The resolve stage: every name in a statement gets the id of its object, once. No later stage looks up a name again.

Which fields of a CREATE statement name other objects is declared with the fields (`names` in `headgate.sql.statement`).
The names in a query are resolved by its analysis when it is planned, because only that knows which of them are aliases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, apply
from headgate.catalog.errors import CatalogError, UnknownObject
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import SearchPath, find, resolve, resolve_database, resolve_owner, resolve_schema, type_name
from headgate.catalog.objects import Object, definition_of
from headgate.catalog.secrets import SecretSource
from headgate.catalog.system_tables import system_relation
from headgate.errors import InternalError, similar_names
from headgate.resolve.errors import ConnectionOfOtherKind, TopicMissing
from headgate.schema.types import Named, Type, map_named
from headgate.schema.written import WrittenSchema
from headgate.sql.connections import (
    AlterConnection,
    AlterSecret,
    ConnectionOptions,
    ConnectionSystem,
    CreateConnection,
    Kafka,
    KafkaConnection,
    ReadOptions,
    ValidateConnection,
    WriteOptions,
)
from headgate.sql.errors import RepeatedOption, UnknownOption
from headgate.sql.materializations import (
    BackfillMaterialization,
    CreateMaterialization,
    ElasticsearchTarget,
    PostgresTarget,
    SetMaterializationFields,
)
from headgate.sql.objects import ChangeTaskState, CommentOn, DropObject, RenameObject
from headgate.sql.options import OptionRule, given_options, rules
from headgate.sql.queries import InsertQuery, InsertValues
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import RegistryFormat, RegistryUrl, Side
from headgate.sql.show import (
    Describe,
    Explain,
    ExplainObject,
    ExplainSchema,
    ReplayQuarantine,
    ShowCreate,
    ShowLineage,
    ShowObjects,
)
from headgate.sql.sinks import AlterSinkDocs, AlterSinkFrom, AlterSinkPolicy, CreateSink, CreateSinkPolicy, PolicyScope
from headgate.sql.sources import AcceptSchemaChange, CreateSource, RenameColumn
from headgate.sql.statement import (
    RELATIONS,
    TYPES,
    Create,
    DataField,
    Kind,
    ObjectName,
    Statement,
    kinds_named,
    rewrite,
)
from headgate.text.cursor import Identifier

TakenSchema: TypeAlias = tuple[Side, WrittenSchema]
"""A new schema for the keys or the values of a source."""

SparkTypes: TypeAlias = Callable[[Catalog, AnalysedQuery], Sequence[Type]]
"""Asks Spark for the types of a query's columns. Needed if our own table of functions lacks one of them."""


def _no_types(_catalog: Catalog, _analysed: AnalysedQuery) -> Sequence[Type]:
    raise InternalError("this context has no way to ask Spark for types")


TopicIds: TypeAlias = Mapping[tuple[int | str, str], str]
"""The ids of topics, by connection or address and name."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a relation ends now: the next offsets of its topic, or generation and number of its view's last batch."""

    offsets: tuple[int, ...] | None = None
    batch: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from outside that have no field in the statement itself.

    ``secret`` is the encrypted value of a secret. ``schemas`` are the schemas that ACCEPT SCHEMA CHANGE accepts, or those of
    the ids that CREATE STREAM … AS is given. ``ends`` is where a sink without a snapshot begins after SET FROM; None if it
    goes on. ``topics`` are ids of topics that have one name at several servers, as far as
    they are known. ``is_pattern`` says whether Spark can read times by a pattern.
    """

    secret: SecretSource | None = None
    schemas: tuple[TakenSchema, ...] = ()
    ends: Ends | None = None
    topics: TopicIds = field(default_factory=dict)
    types: SparkTypes = field(default=_no_types, compare=False)
    is_pattern: Callable[[str], bool] = field(default=lambda _: True, compare=False)


@dataclass(frozen=True, slots=True)
class Context:
    """``now`` is the time of the whole script, and ``text`` the statement as it is stored, without secrets."""

    catalog: Catalog
    path: SearchPath
    now: datetime
    text: str = ""
    answers: Answers = field(default_factory=Answers)

    def after(self, changes: Sequence[Change]) -> Context:
        """The context of the next statement."""
        answers = replace(self.answers, schemas=(), ends=None, topics={})
        return replace(self, catalog=apply(self.catalog, *changes), answers=answers)

    def types_of(self, analysed: AnalysedQuery) -> Sequence[Type]:
        """The types of all columns of a query, if Spark must be asked for one of them. Otherwise none."""
        if all(column.type is not None for column in analysed.columns):
            return ()
        return self.answers.types(self.catalog, analysed)


Resolved = TypeVar("Resolved", bound=Statement)


def resolve_statement(statement: Statement, context: Context) -> Statement:
    """The statement with the ids of the objects that it names, except in queries. Raises for a name without an object.

    A name has no id if it belongs to a system relation, which then has its full name, or if the object does not exist
    and the statement says IF EXISTS. Statements that are not supported yet are left as they are.
    """
    match statement:
        case CreateSinkPolicy(scope=PolicyScope() as scope):
            return replace(statement, scope=replace(scope, name=_resolved(context, scope.name, scope.kind)))
        case InsertValues() | InsertQuery():
            found = resolve(context.catalog, context.path, statement.relation, *RELATIONS)
            return replace(statement, relation=replace(statement.relation, id=found.id))
        case Create():
            return resolve_names(statement, context.catalog, context.path)
        case ChangeTaskState(binding=str()):
            return statement
        case (
            RenameObject()
            | RenameColumn()
            | ChangeTaskState()
            | AcceptSchemaChange()
            | AlterConnection()
            | AlterSecret()
            | AlterSinkDocs()
            | AlterSinkPolicy()
            | BackfillMaterialization()
            | SetMaterializationFields()
            | DropObject()
        ):
            if (
                statement.if_exists
                and find_object(context.catalog, context.path, statement.kind, statement.name) is None
            ):
                return statement
            named = replace(statement, name=_resolved(context, statement.name, statement.kind))
            return resolve_names(named, context.catalog, context.path)
        case AlterSinkFrom():
            if statement.if_exists and find(context.catalog, context.path, statement.name, Kind.SINK) is None:
                return statement
            relation = resolve(context.catalog, context.path, statement.relation, *RELATIONS)
            sink = _resolved(context, statement.name, Kind.SINK)
            return replace(statement, name=sink, relation=replace(statement.relation, id=relation.id))
        case CommentOn(kind=None, name=column):
            owner = resolve_owner(context.catalog, context.path, column)
            return replace(statement, name=replace(column, id=owner.id))
        case CommentOn() | ShowCreate() | ShowLineage() | ExplainObject():
            return replace(statement, name=_resolved(context, statement.name, statement.kind))
        case Describe():
            return replace(statement, name=_described(context, statement))
        case ReplayQuarantine():
            return replace(statement, name=_replayed(context, statement))
        case ValidateConnection():
            return replace(statement, name=_resolved(context, statement.name, Kind.CONNECTION))
        case ShowObjects(within=ObjectName() as within):
            return replace(statement, within=_resolved(context, within, Kind.SCHEMA))
        case ExplainSchema(sink=ObjectName() as sink):
            return replace(statement, sink=_resolved(context, sink, Kind.SINK))
        case ExplainSchema(sink=CreateSink() as sink):
            return replace(statement, sink=resolve_names(sink, context.catalog, context.path))
        case Explain(statement=CreateSink() | CreateMaterialization() as sink):
            return replace(statement, statement=resolve_names(sink, context.catalog, context.path))
        case Explain():
            return replace(statement, statement=resolve_statement(statement.statement, context))
        case _:
            return statement


def _resolved(context: Context, name: ObjectName, kind: Kind | None) -> ObjectName:
    return replace(name, id=named_object(context.catalog, context.path, kind, name).id)


def _described(context: Context, statement: Describe) -> ObjectName:
    system = system_relation(context.path, statement.name)
    if system is None:
        return _resolved(context, statement.name, statement.kind)
    return ObjectName((Identifier(system.schema), Identifier(system.name)), span=statement.name.span)


def _replayed(context: Context, statement: ReplayQuarantine) -> ObjectName:
    """Without a kind, a name that both a task and a source have means the task."""
    tasks = (Kind.SINK, Kind.MATERIALIZATION)
    kinds = (statement.kind,) if statement.kind else (*tasks, Kind.SOURCE, Kind.STREAM, Kind.TABLE)
    for kind in () if statement.kind else tasks:
        found = find(context.catalog, context.path, statement.name, kind)
        if found is not None:
            return replace(statement.name, id=found.id)
    return replace(statement.name, id=resolve(context.catalog, context.path, statement.name, *kinds).id)


def named_object(catalog: Catalog, path: SearchPath, kind: Kind | None, name: ObjectName) -> Object:
    """The object of this name: of this kind if one is given, which may be a database or a schema."""
    match kind:
        case None:
            return resolve(catalog, path, name)
        case Kind.DATABASE:
            return resolve_database(catalog, name)
        case Kind.SCHEMA:
            return resolve_schema(catalog, path, name)
        case _:
            return resolve(catalog, path, name, kind)


def find_object(catalog: Catalog, path: SearchPath, kind: Kind, name: ObjectName) -> Object | None:
    """Like `named_object`, or None if there is none."""
    if kind not in (Kind.SCHEMA, Kind.DATABASE):
        return find(catalog, path, name, kind)
    try:
        return named_object(catalog, path, kind, name)
    except UnknownObject:
        return None


def resolve_names(statement: Resolved, catalog: Catalog, path: SearchPath, *, must_exist: bool = True) -> Resolved:
    """The statement with ids in the names of other objects, and with full names of types.

    A name that has an id keeps it. Raises for a name that means nothing, or with ``must_exist=False`` leaves it alone.
    """

    def change(value: Any, field: DataField | None) -> Any:
        kinds = kinds_named(field)
        try:
            if isinstance(value, ObjectName) and kinds and value.id is None:
                return replace(value, id=resolve(catalog, path, value, *kinds).id)
            if isinstance(value, TYPES):
                full = qualified_type(catalog, path, value)
                return value if full == value else full  # `rewrite` keeps a part in which nothing changes
        except CatalogError:
            if must_exist:
                raise
        return value

    return rewrite(statement, change)


def qualified_type(catalog: Catalog, path: SearchPath, type_: Type) -> Type:
    """The type with the full names of the catalog's types that it mentions."""
    return map_named(type_, lambda named: Named(catalog.path(find_type(catalog, path, named).id)))


def find_type(catalog: Catalog, path: SearchPath, named: Named) -> Object:
    """The type that a name in a statement means. A full name finds the type whatever the search path is."""
    known = type_by_path(catalog, named.parts) if len(named.parts) == 3 else None
    return known or resolve(catalog, path, type_name(named), Kind.TYPE)


def object_id(name: ObjectName) -> int:
    """The id of a name that was resolved."""
    if name.id is None:
        raise InternalError(f"name {name} was not resolved")
    return name.id


def topic_name(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str:
    """The topic that a statement reads or writes."""
    topic = kafka.options.topic
    if not isinstance(kafka, KafkaConnection):
        if topic is not None:
            raise RepeatedOption("TOPIC", "the topic")
        return kafka.topic
    if not topic:
        raise TopicMissing(str(kafka.connection)).at(kafka.connection.span)
    return topic


def kafka_server(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> int | str:
    """The cluster that a resolved statement names: the id of a connection, or an address."""
    return object_id(kafka.connection) if isinstance(kafka, KafkaConnection) else kafka.broker


def registry_server(registry: ObjectName | RegistryUrl) -> int | str:
    """The registry that a resolved statement names: the id of a connection, or an address."""
    return object_id(registry) if isinstance(registry, ObjectName) else registry.url


def check_connections(catalog: Catalog, statement: CreateSource | CreateSink) -> None:
    """Check that the connections of a source or sink are to Kafka and to registries. Raises ConnectionOfOtherKind."""
    if isinstance(statement.kafka, KafkaConnection):
        _check_system(catalog, statement.kafka.connection, "KAFKA")
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat) and isinstance(format_.registry, ObjectName):
            _check_system(catalog, format_.registry, "CONFLUENT SCHEMA REGISTRY")


def check_target_connection(catalog: Catalog, statement: CreateMaterialization) -> None:
    """Check that the connection of a materialization is to the system that it writes. Raises ConnectionOfOtherKind."""
    match statement.target:
        case PostgresTarget(connection=connection):
            _check_system(catalog, connection, "POSTGRES")
        case ElasticsearchTarget(connection=connection):
            _check_system(catalog, connection, "ELASTICSEARCH")


def _check_system(catalog: Catalog, name: ObjectName, system: ConnectionSystem) -> None:
    found = catalog.get(object_id(name))
    other = definition_of(found, CreateConnection).options.system
    if other != system:
        raise ConnectionOfOtherKind(found.name, other, system).at(name.span)


def altered_connection(catalog: Catalog, statement: AlterConnection) -> CreateConnection:
    """The connection with the options that the statement sets and without those that it resets. Raises UnknownOption for an option
    that its system does not have: ALTER does not name the system, so that its parser takes all of them."""
    known = definition_of(catalog.get(object_id(statement.name)), CreateConnection)
    options = known.options
    changed: dict[str, object] = {
        _rule(options, given.name).field: value for given, value in given_options(statement.set_options)
    }
    for name in statement.reset_options:
        rule = _rule(options, name)
        changed[rule.field] = rule.default
    return replace(known, options=replace(options, **changed), with_options=statement.with_options)  # type: ignore[arg-type]


def _rule(options: ConnectionOptions, name: str) -> OptionRule:
    """The option of this name or alias."""
    known = rules(type(options))
    for rule in known:
        if name in (rule.name, *rule.aliases):
            return rule
    names = tuple(rule.name for rule in known)
    raise UnknownOption(name, f"the {options.system.lower()} connection", names, similar_names(name, names))
