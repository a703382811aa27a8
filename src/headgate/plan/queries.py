"""Plans of the statements that change nothing in the catalog: queries, INSERT, SHOW and EXPLAIN, among others."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.names import DEFAULT_PATH, is_name_of, search_path
from headgate.plan import plans
from headgate.plan.chain import chain_of
from headgate.plan.errors import ChangesNotKept, NotSupportedYet
from headgate.plan.insert import plan_insert, plan_insert_query
from headgate.plan.materializations import plan_materialization
from headgate.plan.new_materialized_views import with_copy_for_sink
from headgate.plan.on_demand import check_has_task
from headgate.plan.relations import analyse_query, relations_read, resolved_query
from headgate.plan.sink import plan_sink
from headgate.plan.sink_docs import check_docs, with_full_names
from headgate.plan.streams_as import explain_stream_as
from headgate.resolve.statements import Context, object_id
from headgate.sql import queries as sql_queries, show as sql_show
from headgate.sql.connections import ValidateConnection
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.queries import Select
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, ObjectName, Query, Statement, print_name, print_string
from headgate.sql.streams import CreateStreamAs
from headgate.sql.subscribe import Subscribe
from headgate.sql.views import CreateMaterializedView, CreateView


def plan_query(statement: Statement, context: Context) -> plans.Plan | None:
    """The plan of the statement, None if it is one that changes the catalog."""
    catalog, path = context.catalog, context.path
    match statement:
        case Select():
            return _select(statement, context)
        case sql_queries.InsertValues():
            return plan_insert(catalog, statement)
        case sql_queries.InsertQuery():
            analysed = analyse_query(catalog, path, statement.query)
            return plan_insert_query(catalog, statement, _analysed(statement.query, context), analysed)
        case Subscribe():
            query = _analysed(_all_of(statement.relation), context)
            return _follow_changes(catalog, query, snapshot=statement.with_options.snapshot)
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
        case sql_show.Explain(statement=CreateSink() as explained):
            _check_sink(explained, context)
            return plans.Show(statement)
        case sql_show.Explain(statement=CreateMaterialization() as explained):
            plan_materialization(catalog, explained)  # raises now if it cannot be made
            return plans.Show(statement)
        case sql_show.Explain(statement=CreateStreamAs() as explained):
            return explain_stream_as(explained, context, context.types_of)
        case sql_show.ExplainObject(kind=Kind.SINK | Kind.MATERIALIZATION | Kind.MATERIALIZED_VIEW):
            return plans.Show(statement)
        case sql_show.ExplainObject(kind=Kind.STREAM | Kind.TABLE):
            return plans.Show(statement)
        case sql_show.Explain() | sql_show.ExplainObject():
            raise NotSupportedYet("EXPLAIN of this statement")
        case sql_show.ExplainSchema():
            return _explain_schema(statement, context)
        case _:
            return None


def _select(statement: Select, context: Context) -> plans.RunQuery | plans.FollowChanges:
    query = _analysed(statement.query, context)
    return (
        _follow_changes(context.catalog, query, limit=statement.limit)
        if statement.emit_changes
        else plans.RunQuery(query)
    )


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


def _explain_schema(statement: sql_show.ExplainSchema, context: Context) -> plans.Show:
    if not isinstance(statement.sink, CreateSink):
        return plans.Show(statement)
    return plans.Show(replace(statement, sink=_check_sink(statement.sink, context)))


def _check_sink(statement: CreateSink, context: Context) -> CreateSink:
    """The sink with full names in its docs. Raises now if it cannot be made."""
    catalog = with_copy_for_sink(statement, context)
    sink = with_full_names(catalog, statement)
    check_docs(catalog, sink, plan_sink(catalog, sink))
    return sink


def _tasks_to_replay(id_: int, catalog: Catalog) -> tuple[int, ...]:
    """The task of this id, or all tasks over the source of this id that can send records through again."""
    if id_ in catalog.desired:
        return (id_,)
    found = catalog.get(id_)
    check_has_task(found, "REPLAY QUARANTINE")
    tasks = (task for task in sorted(catalog.desired) if catalog.get(task).kind is not Kind.MATERIALIZED_VIEW)
    return tuple(task for task in tasks if found in upstream(catalog, task))


def _follow_changes(
    catalog: Catalog, query: Query, *, snapshot: bool = True, limit: int | None = None
) -> plans.FollowChanges:
    """The plan of a resolved query that is computed row by row over one materialized view. Raises for others."""
    analysed = analyse_query(catalog, DEFAULT_PATH, query)
    reads = relations_read(analysed)
    if len(reads) != 1 or not analysed.row_by_row:
        raise ChangesNotKept("a query with groups, joins, windows or several relations")
    source = chain_of(catalog, reads[0]).source
    if source.kind is not Kind.MATERIALIZED_VIEW:
        raise ChangesNotKept(f"a {source.kind}")
    return plans.FollowChanges(query, source.id, snapshot, limit)


def _all_of(relation: ObjectName) -> Query:
    """The query for all rows of a relation."""
    return Query(f"SELECT * FROM {print_name(relation)}")
