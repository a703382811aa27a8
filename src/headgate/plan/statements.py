"""From a purified statement and its context to its plan. The class of the statement decides which function plans it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headgate.catalog import changes
from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import check_droppable, drop_order, upstream
from headgate.catalog.names import find, is_name_of, owned_column, parent_and_name, search_path
from headgate.catalog.objects import Comment, Dependency, DependencyKind, DesiredTaskState, Growth, Object
from headgate.catalog.secrets import SecretSource
from headgate.plan import plans
from headgate.plan.definitions import SinkDefinition
from headgate.plan.errors import NotSupportedYet
from headgate.plan.impact import plan_follow, with_schemas_to_register
from headgate.plan.loops import check_loops
from headgate.plan.materialized_views import asserted_columns, check_statement, creation_notice, kept_view
from headgate.plan.plans import ChangeCatalog, Skip
from headgate.plan.relations import analyse_query, resolved_query
from headgate.plan.rename import rename, rename_column
from headgate.plan.sink import plan_new_sink, plan_sink, subjects
from headgate.plan.source import check_schema_change, keep_column_ids, plan_source, source_columns
from headgate.plan.views import (
    derive_growth,
    plan_replacement,
    query_dependencies,
    replacement_notices,
    type_definition,
    view_columns,
)
from headgate.resolve.statements import Context, find_object, object_id
from headgate.schema.types import Type
from headgate.schema.written import CompatibilityLevel
from headgate.sql import objects
from headgate.sql import queries as sql_queries
from headgate.sql import show as sql_show
from headgate.sql.connections import AlterSecret, CreateConnection, CreateSecret, KafkaConnection, ValidateConnection
from headgate.sql.objects import DropObject
from headgate.sql.options import SecretReference, given_options
from headgate.sql.queries import Select
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import RegistryFormat, Side
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import AcceptSchemaChange, CreateSource, RenameColumn
from headgate.sql.statement import Alter, Create, Kind, ObjectName, Query, Statement, print_string
from headgate.sql.views import CreateMaterializedView, CreateView


def plan(statement: Statement, context: Context) -> plans.Plan:
    """The plan of a resolved and purified statement."""
    return _plan_reading(statement, context) or _Planner(context).change(statement)


def skip_existing(statement: Statement, context: Context) -> Skip | None:
    """The plan of CREATE … IF NOT EXISTS if the object exists. Nothing else in the statement is looked at then."""
    if not isinstance(statement, Create) or not statement.if_not_exists:
        return None
    known = find_object(context.catalog, context.path, statement.kind, statement.name)
    if known is None:
        return None
    return Skip(statement.words, f'{known.kind} "{known.name}" exists already, skipped')


class _Planner:
    """Plans the statements that change the catalog."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.catalog = context.catalog
        self.path = context.path

    def change(self, statement: Statement) -> ChangeCatalog | Skip:
        match statement:
            case objects.CreateDatabase():
                return self._create(statement)
            case objects.CreateSchema():
                return self._create(statement)
            case CreateSecret():
                return self._create(statement, secret=self.context.answers.secret)
            case AlterSecret():
                return self._alter_secret(statement)
            case CreateConnection():
                return self._connection(statement)
            case objects.CreateType():
                return self._type(statement)
            case CreateSource():
                return self._source(statement)
            case CreateView():
                return self._view(statement)
            case CreateMaterializedView():
                return self._materialized_view(statement)
            case CreateSink():
                return self._sink(statement)
            case objects.CommentOn():
                return self._comment(statement)
            case DropObject():
                return self._drop(statement)
            case objects.RenameObject():
                return self._rename(statement)
            case objects.ChangeTaskState():
                return self._task_state(statement)
            case AcceptSchemaChange(kind=Kind.SOURCE):
                return self._accept(statement)
            case RenameColumn():
                return self._rename_column(statement)
            case _:
                raise NotSupportedYet(statement.words)

    # objects

    def _object(self, statement: Create, **more: object) -> Object:
        """The object that the statement creates. Raises if its name is taken."""
        kind = statement.kind
        parent, exact = parent_and_name(self.catalog, self.path, statement.name, kind)
        made = Object(self.catalog.next_id, kind, parent, exact, self.context.now, self.context.text, statement)
        return replace(made, **more)  # type: ignore[arg-type]

    def _create(self, statement: Create, *, secret: SecretSource | None = None, **more: object) -> ChangeCatalog:
        return ChangeCatalog(statement.words, (changes.ObjectCreated(self._object(statement, **more), secret),))

    def _alter_secret(self, statement: AlterSecret) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        secret = self.context.answers.secret
        assert secret is not None
        return ChangeCatalog(statement.words, (changes.SecretChanged(object_id(statement.name), secret),))

    def _connection(self, statement: CreateConnection) -> ChangeCatalog:
        values = [value for _, value in given_options(statement.options)]
        ids = [object_id(value.name) for value in values if isinstance(value, SecretReference)]
        needs = tuple(Dependency(id_, DependencyKind.SECRET) for id_ in dict.fromkeys(ids))
        return self._create(statement, dependencies=needs)

    def _type(self, statement: objects.CreateType) -> ChangeCatalog:
        columns, body, needs = type_definition(self.catalog, self.path, statement)
        return self._create(statement, columns=columns, body=body, dependencies=needs)

    def _source(self, statement: CreateSource) -> ChangeCatalog:
        check_schema_change(statement)
        planned = plan_source(statement)
        growth = Growth.KEYED if any(c.key for c in planned.columns) else Growth.APPEND
        return self._create(
            statement,
            columns=source_columns(planned),
            growth=growth,
            dependencies=self._connections(statement),
            comment=Comment(imported=planned.doc),
        )

    def _connections(self, statement: CreateSource | CreateSink) -> tuple[Dependency, ...]:
        names: list[ObjectName] = []
        if isinstance(statement.kafka, KafkaConnection):
            names.append(statement.kafka.connection)
        formats = [f for f in (statement.formats.value, statement.formats.key) if isinstance(f, RegistryFormat)]
        names.extend(f.registry for f in formats if isinstance(f.registry, ObjectName))
        ids = map(object_id, names)
        return tuple(Dependency(id_, DependencyKind.CONNECTION) for id_ in dict.fromkeys(ids))

    def _view(self, statement: CreateView) -> ChangeCatalog:
        analysed, needs = query_dependencies(self.catalog, self.path, statement.query)
        columns = view_columns(analysed, statement.columns, statement.name.parts[-1].name, self._types(analysed))
        growth, columns = derive_growth(self.catalog, analysed, columns)
        old = find(self.catalog, self.path, statement.name, Kind.VIEW) if statement.or_replace else None
        query = resolved_query(self.catalog, self.path, statement.query, analysed)
        statement = replace(statement, query=query)
        if old is not None:
            columns = keep_column_ids(old, columns)
            change = changes.DefinitionChanged(old.id, self.context.text, statement, needs, columns, growth)
            made = plan_replacement(self.catalog, change)
            notices = tuple(replacement_notices(self.catalog, made.consequences))
            return ChangeCatalog(
                "CREATE OR REPLACE VIEW", made.changes, consequences=made.consequences, notices=notices
            )
        return self._create(statement, columns=columns, growth=growth, dependencies=needs)

    def _materialized_view(self, statement: CreateMaterializedView) -> ChangeCatalog:
        check_statement(statement)
        name = statement.name.parts[-1].name
        if statement.or_replace and find(self.catalog, self.path, statement.name, statement.kind) is not None:
            raise NotSupportedYet("CREATE OR REPLACE of a materialized view that exists")
        analysed, needs = query_dependencies(self.catalog, self.path, statement.query)
        columns = view_columns(analysed, statement.columns, name, self._types(analysed))
        growth, columns = derive_growth(self.catalog, analysed, columns)
        asserted = asserted_columns(statement, columns)
        columns = tuple(replace(c, nullable=c.nullable and c.name not in asserted) for c in columns)
        kept = kept_view(self.catalog, name, analysed, columns)
        query = resolved_query(self.catalog, self.path, statement.query, analysed)
        made = self._create(replace(statement, query=query), columns=columns, growth=growth, dependencies=needs)
        return replace(made, notices=(creation_notice(name, kept),))

    def _types(self, analysed: AnalysedQuery) -> Sequence[Type]:
        """The types of all columns, if Spark must be asked for one of them."""
        if all(column.type is not None for column in analysed.columns):
            return ()
        return self.context.answers.types(self.catalog, analysed)

    def _sink(self, statement: CreateSink) -> ChangeCatalog:
        sink, notices = plan_new_sink(self.catalog, statement)
        register = [
            (side, plans.RegisterSchema(_registry(sink), subject, schema)) for side, subject, schema in subjects(sink)
        ]
        frozen = with_schemas_to_register(statement, register)
        needs = (Dependency(sink.relation, DependencyKind.READS), *self._connections(statement))
        made = self._object(frozen, dependencies=needs)
        check_loops(apply(self.catalog, changes.ObjectCreated(made)), [made.id])
        effects: list[plans.Effect] = [_new_topic(statement, sink)]
        for side, effect in register:
            if (level := _level(statement, side)) is not None:
                effects.append(plans.SetCompatibility(effect.connection, effect.subject, level))
            effects.append(effect)
        return ChangeCatalog("CREATE SINK", (changes.ObjectCreated(made),), tuple(effects), notices=notices)

    # changes of existing objects

    def _comment(self, statement: objects.CommentOn) -> ChangeCatalog:
        owner = self._named(statement.name)
        column = None if statement.kind else owned_column(self.catalog, owner, statement.name).id
        return ChangeCatalog(statement.words, (changes.CommentSet(owner.id, column, statement.comment),))

    def _named(self, name: ObjectName) -> Object:
        return self.catalog.get(object_id(name))

    def _drop(self, statement: DropObject) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        tag, target = statement.words, self._named(statement.name)
        if not statement.cascade:
            check_droppable(self.catalog, target.id)
            return ChangeCatalog(tag, (changes.ObjectDropped(target.id),))
        order = drop_order(self.catalog, [target.id])
        notices = tuple(
            f'{o.kind} "{self.catalog.display_name(o.id)}" is dropped too' for o in order if o.id != target.id
        )
        return ChangeCatalog(tag, tuple(changes.ObjectDropped(o.id) for o in order), notices=notices)

    def _rename(self, statement: objects.RenameObject) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        tag, target = statement.words, self._named(statement.name)
        if target.name == statement.new_name.name:
            return Skip(tag, f'{target.kind} "{target.name}" has this name already, skipped')
        return ChangeCatalog(tag, rename(self.catalog, target, statement.new_name))

    def _rename_column(self, statement: RenameColumn) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        source = self._named(statement.name)
        renamed = rename_column(self.catalog, source, statement.column, statement.new_name)
        return ChangeCatalog(statement.words, renamed)

    def _task_state(self, statement: objects.ChangeTaskState) -> ChangeCatalog | Skip:
        if statement.binding is not None:
            raise NotSupportedYet("a binding of a capture")
        if missing := _missing(statement):
            return missing
        desired = DesiredTaskState.PAUSED if statement.action == "PAUSE" else DesiredTaskState.RUNNING
        return ChangeCatalog(statement.words, (changes.TaskStateSet(object_id(statement.name), desired),))

    def _accept(self, statement: AcceptSchemaChange) -> ChangeCatalog | Skip:
        """ACCEPT SCHEMA CHANGE. Raises if a view or sink downstream cannot follow."""
        if missing := _missing(statement):
            return missing
        tag, source = statement.words, self._named(statement.name)
        schemas = self.context.answers.schemas
        if not schemas:
            return Skip(tag, "there is no change to accept")
        taken = plan_follow(self.catalog, source, schemas, self.context.answers.types, all_fit=True)
        ids = ", ".join(str(schema.id or 0) for _, schema in schemas)
        return ChangeCatalog(
            tag,
            (*taken.changes, *(sink.change() for sink in taken.sinks)),
            tuple(effect for sink in taken.sinks for _, effect in sink.register),
            taken.consequences,
            (f"schema id {ids} is accepted", *self._changed_types(taken.consequences)),
            cause=f"schema id {ids} accepted",
        )

    def _changed_types(self, consequences: Sequence[plans.Consequence]) -> Iterator[str]:
        """A line for each column downstream that gets another type, and each view whose rows come in another way."""
        for one in consequences:
            if one.outcome in (plans.Outcome.WIDENS, plans.Outcome.OTHER_GROWTH):
                kind, name = self.catalog.get(one.object).kind, self.catalog.display_name(one.object)
                yield f'{kind} "{name}" {one.outcome} {one.detail}'


def _missing(statement: Alter | DropObject) -> Skip | None:
    """The plan of IF EXISTS for an object that does not exist: its name has no id."""
    if statement.name.id is not None:
        return None
    return Skip(statement.words, f'{statement.kind} "{statement.name}" does not exist, skipped')


def _registry(sink: SinkDefinition) -> int:
    assert sink.registry is not None
    return sink.registry


def _new_topic(statement: CreateSink, sink: SinkDefinition) -> plans.CreateTopic:
    options = statement.kafka.options
    partitions, replicas = options.topic_partition_count, options.topic_replication_factor
    return plans.CreateTopic(
        sink.connection,
        sink.topic,
        1 if partitions is None else partitions,
        -1 if replicas is None else replicas,
        options.topic_config or (),
    )


def _level(statement: CreateSink, side: Side) -> CompatibilityLevel | None:
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat):
            options = format_.write_options
            level = options.key_compatibility_level if side == "KEY" else options.value_compatibility_level
            if level is not None:
                return CompatibilityLevel(level)
    return None


# statements that change nothing in the catalog


def _plan_reading(statement: Statement, context: Context) -> plans.Plan | None:
    """The plan of the statement, None if it is one that changes the catalog."""
    catalog, path = context.catalog, context.path
    match statement:
        case Select():
            return _select(statement, context)
        case sql_queries.SetSearchPath():
            return plans.SetSearchPath(search_path(catalog, path, statement.path))
        case sql_show.ReplayQuarantine():
            return plans.ReplayQuarantine(_tasks_to_replay(object_id(statement.name), catalog))
        case ValidateConnection():
            return plans.CheckConnection(object_id(statement.name))
        case sql_show.ShowObjects(what="QUARANTINE"):
            return _select(_quarantine_query(statement, context), context)
        case (
            sql_show.ShowObjects()
            | sql_show.ShowCreate()
            | sql_show.ShowLineage()
            | sql_queries.ShowSearchPath()
            | sql_show.Describe()
        ):
            return plans.Show(statement)
        case sql_show.Explain(statement=Select() | CreateView() | CreateMaterializedView() as explained):
            resolved = replace(explained, query=_analysed(explained.query, context))
            return plans.Show(replace(statement, statement=resolved))
        case sql_show.ExplainObject(kind=Kind.MATERIALIZED_VIEW):
            return plans.Show(statement)
        case sql_show.Explain():
            raise NotSupportedYet("EXPLAIN of this statement")
        case sql_show.ExplainSchema():
            return _explain_schema(statement, catalog)
        case _:
            return None


def _select(statement: Select, context: Context) -> plans.RunQuery:
    if statement.emit_changes:
        raise NotSupportedYet("SELECT … EMIT CHANGES")
    return plans.RunQuery(_analysed(statement.query, context))


def _quarantine_query(statement: sql_show.ShowObjects, context: Context) -> Select:
    """SHOW QUARANTINE as a query: bad records may be in the warehouse, and may be many."""
    text = "SELECT * FROM headgate_catalog.quarantine"
    if (subject := statement.subject) is not None:
        shown = map(context.catalog.display_name, context.catalog.objects)
        names = ", ".join(print_string(name) for name in shown if is_name_of(subject, name)) or "NULL"
        text += f" WHERE object IN ({names}) OR task IN ({names})"
    query = parse_statement(f"{text} ORDER BY task, topic, partition, offset")
    assert isinstance(query, Select)
    return query


def _analysed(query: Query, context: Context) -> Query:
    """The query with the ids of what it names. Raises now if it is wrong, before anything of the script is done."""
    analysed = analyse_query(context.catalog, context.path, query)
    return resolved_query(context.catalog, context.path, query, analysed)


def _explain_schema(statement: sql_show.ExplainSchema, catalog: Catalog) -> plans.Show:
    if isinstance(statement.sink, CreateSink):
        plan_sink(catalog, statement.sink)  # raises now if it cannot be made
    return plans.Show(statement)


def _tasks_to_replay(id_: int, catalog: Catalog) -> tuple[int, ...]:
    """The task of this id, or all tasks over the source of this id."""
    if id_ in catalog.desired:
        return (id_,)
    found = catalog.get(id_)
    return tuple(task for task in sorted(catalog.desired) if found in upstream(catalog, task))
