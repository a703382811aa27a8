"""Plans of the statements that change nothing in the catalog."""

from __future__ import annotations

from headgate.catalog.graph import upstream
from headgate.catalog.information_schema import system_relation
from headgate.catalog.names import find, resolve, resolve_schema, search_path
from headgate.plan.errors import NotSupportedYet
from headgate.plan.plans import (
    CheckConnection,
    Plan,
    ReplayQuarantine,
    RunQuery,
    SetSearchPath,
    Show,
    ShowStatement,
)
from headgate.plan.relations import analyse_query
from headgate.plan.sink import plan_sink
from headgate.resolve.context import Context
from headgate.resolve.objects import described_object, is_name_of, named_object
from headgate.resolve.statements import resolve_names
from headgate.sql import queries as sql_queries
from headgate.sql import show as sql_show
from headgate.sql.connections import ValidateConnection
from headgate.sql.queries import Select
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, ObjectName, Statement, print_string
from headgate.sql.views import CreateView


def plan_reading(statement: Statement, context: Context) -> Plan | None:
    """The plan of the statement, None if it is one that changes the catalog."""
    catalog, path = context.catalog, context.path
    match statement:
        case Select():
            return _select(statement, context)
        case sql_queries.SetSearchPath():
            return SetSearchPath(search_path(catalog, path, statement.path))
        case sql_show.ReplayQuarantine():
            return ReplayQuarantine(_tasks_to_replay(statement, context))
        case ValidateConnection():
            return CheckConnection(resolve(catalog, path, statement.name, Kind.CONNECTION).id)
        case sql_show.ShowObjects(what="QUARANTINE"):
            return _select(_quarantine_query(statement, context), context)
        case (
            sql_show.ShowObjects()
            | sql_show.ShowCreate()
            | sql_show.ShowLineage()
            | sql_queries.ShowSearchPath()
            | sql_show.Describe()
            | sql_show.Explain()
            | sql_show.ExplainSchema()
        ):
            _check_names(statement, context)
            return Show(statement)
        case _:
            return None


def _select(statement: Select, context: Context) -> RunQuery:
    if statement.emit_changes:
        raise NotSupportedYet("SELECT … EMIT CHANGES")
    analyse_query(context.catalog, context.path, statement.query)
    return RunQuery(statement)


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


def _check_names(statement: ShowStatement, context: Context) -> None:
    """Find what the statement names, so that a script with an unknown name fails before anything is done."""
    catalog, path = context.catalog, context.path
    match statement:
        case sql_show.ShowObjects(within=ObjectName() as within):
            resolve_schema(catalog, path, within)
        case sql_show.ShowCreate():
            named_object(catalog, path, statement.kind, statement.name)
        case sql_show.ShowLineage():
            described_object(catalog, path, statement.kind, statement.name)
        case sql_show.Describe():
            if system_relation(path, statement.name) is None:
                described_object(catalog, path, statement.kind, statement.name)
        case sql_show.Explain(statement=Select() | CreateView() as explained):
            analyse_query(catalog, path, explained.query)
        case sql_show.Explain():
            raise NotSupportedYet("EXPLAIN of this statement")
        case sql_show.ExplainSchema(sink=ObjectName() as name):
            resolve(catalog, path, name, Kind.SINK)
        case sql_show.ExplainSchema(sink=CreateSink() as sink):
            plan_sink(catalog, resolve_names(sink, catalog, path))
        case _:
            pass


def _tasks_to_replay(statement: sql_show.ReplayQuarantine, context: Context) -> tuple[int, ...]:
    """The task of that name, or all tasks over a source. A name that both a sink and a source have means the sink."""
    catalog, path = context.catalog, context.path
    kinds = (statement.kind,) if statement.kind else (Kind.SINK, Kind.SOURCE)
    found = None if statement.kind else find(catalog, path, statement.name, Kind.SINK)
    if found is None:
        found = resolve(catalog, path, statement.name, *kinds)
    if found.id in catalog.desired:
        return (found.id,)
    return tuple(task for task in sorted(catalog.desired) if found in upstream(catalog, task))
