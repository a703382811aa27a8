"""The door of the printer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.errors import InternalError
from headgate.sql.ast import (
    alter,
    comments,
    drop,
    explain,
    insert,
    session,
)
from headgate.sql.ast import (
    captures as captures_ast,
)
from headgate.sql.ast import (
    collections as collections_ast,
)
from headgate.sql.ast import (
    connections as connections_ast,
)
from headgate.sql.ast import (
    databases as databases_ast,
)
from headgate.sql.ast import (
    materializations as materializations_ast,
)
from headgate.sql.ast import (
    queries as queries_ast,
)
from headgate.sql.ast import (
    show as show_ast,
)
from headgate.sql.ast import (
    sinks as sinks_ast,
)
from headgate.sql.ast import (
    sources as sources_ast,
)
from headgate.sql.ast import (
    streams as streams_ast,
)
from headgate.sql.ast import (
    types as types_ast,
)
from headgate.sql.ast import (
    views as views_ast,
)
from headgate.sql.ast.statement import Statement
from headgate.sql.render import (
    captures,
    collections,
    connections,
    databases,
    materializations,
    objects,
    queries,
    show,
    sinks,
    sources,
    streams,
    types,
    views,
)


def render(statement: Statement) -> str:
    """The statement in its normal form, ended by a semicolon."""
    return render_inner(statement) + ";"


def render_inner(statement: Statement) -> str:
    """The same without the semicolon, as it stands inside another statement."""
    match statement:
        case explain.Explain():
            return show.explain(statement, render_inner)
        case explain.ExplainChange():
            return show.explain_change(statement, render_inner)
    print_ = PRINTERS.get(type(statement))
    if print_ is None:
        raise InternalError(f"no printer for {type(statement).__name__}")
    return print_(statement)


# Any: each printer takes its own class, and the table is what brings the two together.
PRINTERS: dict[type[Statement], Callable[[Any], str]] = {
    connections_ast.CreateSecret: connections.create_secret,
    connections_ast.AlterSecret: connections.alter_secret,
    connections_ast.CreateConnection: connections.create_connection,
    connections_ast.AlterConnection: connections.alter_connection,
    connections_ast.ValidateConnection: connections.validate_connection,
    databases_ast.CreateDatabase: databases.create_database,
    databases_ast.CreateSchema: databases.create_schema,
    sources_ast.CreateSource: sources.create_source,
    sources_ast.AcceptSchemaChange: sources.accept_schema_change,
    types_ast.CreateType: types.create_type,
    views_ast.CreateView: views.create_view,
    views_ast.CreateMaterializedView: views.create_materialized_view,
    sinks_ast.CreateSink: sinks.create_sink,
    sinks_ast.AlterSinkDocs: sinks.alter_sink_docs,
    sinks_ast.AlterSinkFrom: sinks.alter_sink_from,
    sinks_ast.CreateSinkPolicy: sinks.create_sink_policy,
    sinks_ast.AlterSinkPolicy: sinks.alter_sink_policy,
    streams_ast.CreateStream: streams.create_stream,
    streams_ast.CreateStreamAs: streams.create_stream_as,
    collections_ast.CreateCollection: collections.create_collection,
    collections_ast.ResetCollection: collections.reset_collection,
    collections_ast.SetCollectionSchema: collections.set_collection_schema,
    captures_ast.CreateCapture: captures.create_capture,
    captures_ast.DiscoverCapture: captures.discover_capture,
    materializations_ast.CreateMaterialization: materializations.create_materialization,
    materializations_ast.BackfillMaterialization: materializations.backfill,
    materializations_ast.SetMaterializationFields: materializations.set_fields,
    comments.CommentOn: objects.comment_on,
    alter.RenameObject: objects.rename_object,
    alter.ChangeTaskState: objects.change_task_state,
    drop.DropObject: objects.drop_object,
    insert.InsertValues: queries.insert_values,
    insert.InsertQuery: queries.insert_query,
    queries_ast.Select: queries.select,
    queries_ast.Subscribe: queries.subscribe,
    session.SetSearchPath: queries.set_search_path,
    session.ShowSearchPath: queries.show_search_path,
    show_ast.ShowObjects: show.show_objects,
    show_ast.ShowCreate: show.show_create,
    show_ast.ShowLineage: show.show_lineage,
    show_ast.ShowCollectionSchema: show.show_collection_schema,
    show_ast.ShowSchemaHistory: show.show_schema_history,
    show_ast.Describe: show.describe,
    show_ast.ReplayQuarantine: show.replay_quarantine,
    explain.ExplainObject: show.explain_object,
    explain.ExplainSchema: show.explain_schema,
    explain.ExplainSubjectChange: show.explain_subject_change,
}
