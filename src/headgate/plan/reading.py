"""Plans of the statements that change nothing in the catalog. They come with every name resolved."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.names import search_path
from headgate.plan.errors import NotSupportedYet
from headgate.plan.plans import (
    CheckConnection,
    Plan,
    ReplayQuarantine,
    RunQuery,
    SetSearchPath,
    Show,
)
from headgate.plan.relations import analyse_query, resolved_query
from headgate.plan.sink import plan_sink
from headgate.resolve.context import Context
from headgate.resolve.statements import object_id
from headgate.sql import queries as sql_queries
from headgate.sql import show as sql_show
from headgate.sql.connections import ValidateConnection
from headgate.sql.queries import Select
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Query, Statement
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
            return ReplayQuarantine(_tasks_to_replay(object_id(statement.name), catalog))
        case ValidateConnection():
            return CheckConnection(object_id(statement.name))
        case (
            sql_show.ShowObjects()
            | sql_show.ShowCreate()
            | sql_show.ShowLineage()
            | sql_queries.ShowSearchPath()
            | sql_show.Describe()
        ):
            return Show(statement)
        case sql_show.Explain(statement=Select() | CreateView() as explained):
            resolved = replace(explained, query=_analysed(explained.query, context))
            return Show(replace(statement, statement=resolved))
        case sql_show.Explain():
            raise NotSupportedYet("EXPLAIN of this statement")
        case sql_show.ExplainSchema():
            return _explain_schema(statement, catalog)
        case _:
            return None


def _select(statement: Select, context: Context) -> RunQuery:
    if statement.emit_changes:
        raise NotSupportedYet("SELECT … EMIT CHANGES")
    return RunQuery(_analysed(statement.query, context))


def _analysed(query: Query, context: Context) -> Query:
    """The query with the ids of what it names. Raises now if it is wrong, before anything of the script is done."""
    analysed = analyse_query(context.catalog, context.path, query)
    return resolved_query(context.catalog, context.path, query, analysed)


def _explain_schema(statement: sql_show.ExplainSchema, catalog: Catalog) -> Show:
    if isinstance(statement.sink, CreateSink):
        plan_sink(catalog, statement.sink)  # raises now if it cannot be made
    return Show(statement)


def _tasks_to_replay(id_: int, catalog: Catalog) -> tuple[int, ...]:
    """The task of this id, or all tasks over the source of this id."""
    if id_ in catalog.desired:
        return (id_,)
    found = catalog.get(id_)
    return tuple(task for task in sorted(catalog.desired) if found in upstream(catalog, task))
