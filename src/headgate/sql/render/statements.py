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
            return show.print_explain(statement, render_inner)
        case explain.ExplainChange():
            return show.print_explain_change(statement, render_inner)
    print_ = PRINTERS.get(type(statement))
    if print_ is None:
        raise InternalError(f"no printer for {type(statement).__name__}")
    return print_(statement)


# Any: each printer takes its own class, and the table is what brings the two together.
PRINTERS: dict[type[Statement], Callable[[Any], str]] = {
    connections_ast.CreateSecret: connections.print_create_secret,
    connections_ast.AlterSecret: connections.print_alter_secret,
    connections_ast.CreateConnection: connections.print_create_connection,
    connections_ast.AlterConnection: connections.print_alter_connection,
    connections_ast.ValidateConnection: connections.print_validate_connection,
    databases_ast.CreateDatabase: databases.print_create_database,
    databases_ast.CreateSchema: databases.print_create_schema,
    sources_ast.CreateSource: sources.print_create_source,
    sources_ast.AcceptSchemaChange: sources.print_accept_schema_change,
    types_ast.CreateType: types.print_create_type,
    views_ast.CreateView: views.print_create_view,
    views_ast.CreateMaterializedView: views.print_create_materialized_view,
    sinks_ast.CreateSink: sinks.print_create_sink,
    sinks_ast.AlterSinkDocs: sinks.print_alter_sink_docs,
    sinks_ast.AlterSinkFrom: sinks.print_alter_sink_from,
    sinks_ast.CreateSinkPolicy: sinks.print_create_sink_policy,
    sinks_ast.AlterSinkPolicy: sinks.print_alter_sink_policy,
    streams_ast.CreateStream: streams.print_create_stream,
    streams_ast.CreateStreamAs: streams.print_create_stream_as,
    collections_ast.CreateCollection: collections.print_create_collection,
    collections_ast.ResetCollection: collections.print_reset_collection,
    collections_ast.SetCollectionSchema: collections.print_set_collection_schema,
    captures_ast.CreateCapture: captures.print_create_capture,
    captures_ast.DiscoverCapture: captures.print_discover_capture,
    materializations_ast.CreateMaterialization: materializations.print_create_materialization,
    materializations_ast.BackfillMaterialization: materializations.print_backfill,
    materializations_ast.SetMaterializationFields: materializations.print_set_fields,
    comments.CommentOn: objects.print_comment_on,
    alter.RenameObject: objects.print_rename_object,
    alter.ChangeTaskState: objects.print_change_task_state,
    drop.DropObject: objects.print_drop_object,
    insert.InsertValues: queries.print_insert_values,
    insert.InsertQuery: queries.print_insert_query,
    queries_ast.Select: queries.print_select,
    queries_ast.Subscribe: queries.print_subscribe,
    session.SetSearchPath: queries.print_set_search_path,
    session.ShowSearchPath: queries.print_show_search_path,
    show_ast.ShowObjects: show.print_show_objects,
    show_ast.ShowCreate: show.print_show_create,
    show_ast.ShowLineage: show.print_show_lineage,
    show_ast.ShowCollectionSchema: show.print_show_collection_schema,
    show_ast.ShowSchemaHistory: show.print_show_schema_history,
    show_ast.Describe: show.print_describe,
    show_ast.ReplayQuarantine: show.print_replay_quarantine,
    explain.ExplainObject: show.print_explain_object,
    explain.ExplainSchema: show.print_explain_schema,
    explain.ExplainSubjectChange: show.print_explain_subject_change,
}
