"""From a purified statement and its context to its plan. The class of the statement decides which function plans it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headgate.catalog import changes
from headgate.catalog.changes import apply
from headgate.catalog.graph import check_droppable, drop_order, hidden_parts, parts_of
from headgate.catalog.names import find, owned_column, parent_and_name, resolve_fields
from headgate.catalog.objects import (
    Comment,
    Dependency,
    DependencyKind,
    DesiredTaskState,
    Growth,
    Object,
    definition_of,
)
from headgate.catalog.secrets import SecretSource
from headgate.plan import plans, streams
from headgate.plan.chain import check_loops
from headgate.plan.definitions import SinkDefinition
from headgate.plan.errors import NotSupportedYet
from headgate.plan.impact import definition, plan_follow, with_schemas_to_register
from headgate.plan.materialization_changes import plan_backfill, plan_create, plan_set_fields, released_targets
from headgate.plan.new_materialized_views import after_copy, plan_materialized_view
from headgate.plan.on_demand import check_has_task
from headgate.plan.plans import ChangeCatalog, Skip
from headgate.plan.queries import plan_query
from headgate.plan.relations import resolved_query
from headgate.plan.rename import rename, rename_column
from headgate.plan.set_from import plan_set_from
from headgate.plan.sink import plan_new_sink, reused, subjects
from headgate.plan.sink_doc_changes import plan_doc_changes, policy_notices
from headgate.plan.sink_docs import check_docs, check_length, types_named, with_frozen_docs, with_full_names
from headgate.plan.sink_errors import DebeziumNeedsState, SinkKeyNotOfSource
from headgate.plan.sink_options import SIDES
from headgate.plan.sink_policies import check_policies, undocumented
from headgate.plan.source import check_schema_change, keep_column_ids, plan_source, source_columns
from headgate.plan.stored_copies import copies_left, reads_of_sink
from headgate.plan.streams_as import plan_stream_as
from headgate.plan.views import (
    derive_growth,
    plan_replacement,
    query_dependencies,
    replacement_notices,
    type_definition,
    view_columns,
)
from headgate.resolve.statements import Context, altered_connection, find_object, object_id
from headgate.schema.written import CompatibilityLevel
from headgate.sql import objects
from headgate.sql.connections import AlterConnection, AlterSecret, CreateConnection, CreateSecret, KafkaConnection
from headgate.sql.materializations import BackfillMaterialization, CreateMaterialization, SetMaterializationFields
from headgate.sql.objects import DropObject
from headgate.sql.options import ChangeOptions, SecretReference, given_options
from headgate.sql.registry_formats import RegistryFormat, Side
from headgate.sql.sinks import AlterSinkDocs, AlterSinkFrom, AlterSinkPolicy, CreateSink, CreateSinkPolicy
from headgate.sql.sources import AcceptSchemaChange, CreateSource, RenameColumn
from headgate.sql.statement import Alter, Create, Kind, ObjectName, Statement
from headgate.sql.streams import CreateStream, CreateStreamAs
from headgate.sql.views import CreateMaterializedView, CreateView


def plan(statement: Statement, context: Context) -> plans.Plan:
    """The plan of a resolved and purified statement."""
    return plan_query(statement, context) or _Planner(context).change(statement)


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
                return self._create(statement, dependencies=_secrets(statement))
            case AlterConnection():
                return _missing(statement) or _alter_connection(statement, self.context)
            case objects.CreateType():
                return self._type(statement)
            case CreateSource():
                return self._source(statement)
            case CreateView():
                return self._view(statement)
            case CreateStream():
                return streams.plan_stream(statement, self.context, self._object)
            case CreateStreamAs():
                return plan_stream_as(statement, self.context, self.context.types_of)
            case CreateMaterializedView():
                return plan_materialized_view(statement, self.context)
            case CreateSink():
                return self._sink(statement)
            case CreateMaterialization():
                return plan_create(statement, self.context, self._object(statement))
            case BackfillMaterialization():
                return _missing(statement) or plan_backfill(statement, self.context)
            case SetMaterializationFields():
                return _missing(statement) or plan_set_fields(statement, self.context)
            case AlterSinkDocs():
                return self._sink_docs(statement)
            case CreateSinkPolicy():
                return self._sink_policy(statement)
            case AlterSinkPolicy():
                return self._alter_sink_policy(statement)
            case objects.CommentOn():
                return self._comment(statement)
            case DropObject():
                return self._drop(statement)
            case objects.RenameObject():
                return self._rename(statement)
            case objects.ChangeTaskState():
                return self._task_state(statement)
            case AlterSinkFrom():
                return _missing(statement) or self._set_from(statement)
            case AcceptSchemaChange():
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
        columns = view_columns(
            analysed, statement.columns, statement.name.parts[-1].name, self.context.types_of(analysed)
        )
        growth, columns = derive_growth(self.catalog, analysed, columns)
        old = find(self.catalog, self.path, statement.name, Kind.VIEW) if statement.or_replace else None
        query = resolved_query(self.catalog, self.path, statement.query, analysed)
        confirmed = statement.with_options.confirm
        statement = replace(statement, query=query, with_options=ChangeOptions())
        if old is not None:
            columns = keep_column_ids(old, columns)
            change = changes.DefinitionChanged(old.id, self.context.text, statement, needs, columns, growth, fills=True)
            made = plan_replacement(self.catalog, change, self.context.answers.topics, confirmed=confirmed)
            notices = tuple(replacement_notices(self.catalog, made.consequences))
            return ChangeCatalog(
                "CREATE OR REPLACE VIEW", made.changes, consequences=made.consequences, notices=notices
            )
        return self._create(statement, columns=columns, growth=growth, dependencies=needs)

    def _sink(self, statement: CreateSink) -> ChangeCatalog:
        statement = with_full_names(self.catalog, statement)
        try:
            sink, notices = plan_new_sink(self.catalog, statement, self.context.answers.types)
        except (DebeziumNeedsState, SinkKeyNotOfSource) as needed:
            if needed.source_id is None:
                raise
            source = self.catalog.get(needed.source_id)
            return after_copy(statement, self.context, source, lambda there: _Planner(there)._sink(statement))
        check_docs(self.catalog, statement, sink)
        schema, _ = parent_and_name(self.catalog, self.path, statement.name, statement.kind)
        check_policies(sink.name, undocumented(self.catalog, schema, statement, sink, comments=True))
        statement = with_frozen_docs(self.catalog, statement, sink)
        register = [
            (side, plans.RegisterSchema(sink.registry(SIDES[side]), subject, schema))
            for side, subject, schema in subjects(sink)
        ]
        frozen = with_schemas_to_register(statement, sink, register)
        types = (Dependency(id_, DependencyKind.TYPE) for id_ in types_named(self.catalog, statement))
        needs = (*reads_of_sink(self.catalog, statement, sink), *self._connections(statement), *types)
        made = self._object(frozen, dependencies=needs)
        check_loops(apply(self.catalog, changes.ObjectCreated(made)), [made.id], self.context.answers.topics)
        effects: list[plans.Effect] = [_new_topic(statement, sink)]
        effects += [
            plans.ReuseSchema(sink.registry(SIDES[side]), subject, schema) for side, subject, schema in reused(sink)
        ]
        for side, effect in register:
            if (level := _level(statement, side)) is not None:
                effects.append(plans.SetCompatibility(effect.connection, effect.subject, level))
            effects.append(effect)
        return ChangeCatalog("CREATE SINK", (changes.ObjectCreated(made),), tuple(effects), notices=notices)

    def _set_from(self, statement: AlterSinkFrom) -> ChangeCatalog | Skip:
        try:
            return plan_set_from(statement, self.context)
        except (DebeziumNeedsState, SinkKeyNotOfSource) as needed:
            if needed.source_id is None:
                raise
            source = self.catalog.get(needed.source_id)

        def rest(there: Context) -> ChangeCatalog:
            planned = plan_set_from(statement, there)
            assert isinstance(planned, ChangeCatalog), "a sink that needs a copy does not read this relation yet"
            return planned

        return after_copy(statement, self.context, source, rest)

    def _sink_docs(self, statement: AlterSinkDocs) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        planned = plan_doc_changes(self.catalog, self._named(statement.name), statement)
        if planned.change is None:
            return Skip(statement.words, "the docs of the sink stay as they are")
        return ChangeCatalog(statement.words, (planned.change,), planned.effects, notices=planned.notices)

    def _sink_policy(self, statement: CreateSinkPolicy) -> ChangeCatalog:
        scope = () if statement.scope is None else (Dependency(object_id(statement.scope.name), DependencyKind.SCOPE),)
        made = self._create(statement, dependencies=scope)
        return replace(made, notices=tuple(policy_notices(apply(self.catalog, *made.changes), self.catalog.next_id)))

    def _alter_sink_policy(self, statement: AlterSinkPolicy) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        policy = self._named(statement.name)
        old = definition_of(policy, CreateSinkPolicy)
        change = definition(policy, replace(old, format=statement.format, requires=statement.requires), ())
        notices = tuple(policy_notices(apply(self.catalog, change), policy.id))
        return ChangeCatalog(statement.words, (change,), notices=notices)

    # changes of existing objects

    def _comment(self, statement: objects.CommentOn) -> ChangeCatalog:
        owner, text = self._named(statement.name), statement.comment
        if text is not None:
            check_length(statement.target(), text)
        if statement.kind is not None:
            return ChangeCatalog(statement.words, (changes.CommentSet(owner.id, None, text),))
        column = owned_column(self.catalog, owner, statement.name)
        path = resolve_fields(self.catalog, column, statement.fields)
        return ChangeCatalog(statement.words, (changes.CommentSet(owner.id, column.id, text, path),))

    def _named(self, name: ObjectName) -> Object:
        return self.catalog.get(object_id(name))

    def _drop(self, statement: DropObject) -> ChangeCatalog | Skip:
        if missing := _missing(statement):
            return missing
        tag, target = statement.words, self._named(statement.name)
        effects = (streams.topic_deletion(self.catalog, target),) if statement.delete_topic else ()
        if statement.cascade:
            order = drop_order(self.catalog, [target.id])
        else:
            check_droppable(self.catalog, target.id)
            order = (target,)
        ids = dict.fromkeys([o.id for o in order] + [part.id for o in order for part in parts_of(self.catalog, o)])
        order = (*order, *copies_left(self.catalog, ids))
        shown = [o for o in order if o.id not in {target.id, *hidden_parts(self.catalog)}]
        notices = tuple(f'{o.kind} "{self.catalog.display_name(o.id)}" is dropped too' for o in shown)
        ids |= dict.fromkeys(o.id for o in order)
        released = released_targets(order, drop=statement.drop_target)
        return ChangeCatalog(tag, tuple(map(changes.ObjectDropped, ids)), (*effects, *released), notices=notices)

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
        target = self._named(statement.name)
        parts = [part for part in parts_of(self.catalog, target) if part.id in self.catalog.desired] or [target]
        check_has_task(parts[0], statement.action)
        return ChangeCatalog(statement.words, tuple(changes.TaskStateSet(part.id, desired) for part in parts))

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
        """A line for each column downstream that gets another type, each view whose rows come in another way, and each sink that
        a policy keeps from writing a new field."""
        for one in consequences:
            if one.outcome in (plans.Outcome.WIDENS, plans.Outcome.OTHER_GROWTH, plans.Outcome.LEAVES_OUT):
                kind, name = self.catalog.get(one.object).kind, self.catalog.display_name(one.object)
                yield f'{kind} "{name}" {one.outcome} {one.detail}'


def _missing(statement: Alter | DropObject) -> Skip | None:
    """The plan of IF EXISTS for an object that does not exist: its name has no id."""
    if statement.name.id is not None:
        return None
    return Skip(statement.words, f'{statement.kind} "{statement.name}" does not exist, skipped')


def _new_topic(statement: CreateSink, sink: SinkDefinition) -> plans.CreateTopic:
    options = statement.kafka.options
    return plans.CreateTopic(
        sink.connection,
        sink.topic,
        options.topic_partition_count,
        options.topic_replication_factor,
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


def _secrets(connection: CreateConnection) -> tuple[Dependency, ...]:
    """The secrets that a connection uses."""
    values = [value for _, value in given_options(connection.options)]
    ids = [object_id(value.name) for value in values if isinstance(value, SecretReference)]
    return tuple(Dependency(id_, DependencyKind.SECRET) for id_ in dict.fromkeys(ids))


def _alter_connection(statement: AlterConnection, context: Context) -> ChangeCatalog:
    """ALTER CONNECTION. Every task that uses the connection is started anew with it."""
    entry = context.catalog.get(object_id(statement.name))
    altered = altered_connection(context.catalog, statement)
    change = replace(definition(entry, altered, entry.columns), dependencies=_secrets(altered))
    return ChangeCatalog(statement.words, (change,))
