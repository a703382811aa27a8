"""The plan of CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headgate.catalog.changes import ObjectCreated
from headgate.catalog.names import find, parent_and_name
from headgate.catalog.objects import Dependency, DependencyKind, Object
from headgate.plan.errors import NotSupportedYet
from headgate.plan.materialized_views import asserted_columns, check_statement, creation_notice, kept_view
from headgate.plan.plans import ChangeCatalog
from headgate.plan.relations import resolved_query
from headgate.plan.stored_copies import copy_statement
from headgate.plan.view_errors import OldRowsNeeded
from headgate.plan.views import derive_growth, query_dependencies, view_columns
from headgate.resolve.statements import Context
from headgate.schema.types import Type
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Create, print_statement
from headgate.sql.views import CreateMaterializedView


def plan_materialized_view(statement: CreateMaterializedView, context: Context) -> ChangeCatalog:
    """The view, and before it stored copies of the sources whose rows it needs again, as far as there are none."""
    check_statement(statement)
    catalog, path, name = context.catalog, context.path, statement.name.parts[-1].name
    if statement.or_replace and find(catalog, path, statement.name, statement.kind) is not None:
        raise NotSupportedYet("CREATE OR REPLACE of a materialized view that exists")
    analysed, needs = query_dependencies(catalog, path, statement.query)
    columns = view_columns(analysed, statement.columns, name, _types(context, analysed))
    growth, columns = derive_growth(catalog, analysed, columns)
    asserted = asserted_columns(statement, columns)
    columns = tuple(replace(c, nullable=c.nullable and c.name not in asserted) for c in columns)
    try:
        kept = kept_view(catalog, name, analysed, columns)
    except OldRowsNeeded as needed:
        return _with_copy(statement, context, catalog.get(needed.source_id))
    copies = (Dependency(copy.id, DependencyKind.READS) for copy in kept.copies.values())
    statement = replace(statement, query=resolved_query(catalog, path, statement.query, analysed))
    parent, exact = parent_and_name(catalog, path, statement.name, statement.kind)
    made = Object(
        catalog.next_id, statement.kind, parent, exact, context.now, context.text, statement,
        columns=columns, growth=growth, dependencies=tuple(dict.fromkeys((*needs, *copies))),
    )  # fmt: skip
    return ChangeCatalog(statement.words, (ObjectCreated(made),), notices=(creation_notice(name, kept),))


def _with_copy(statement: CreateMaterializedView, context: Context, source: Object) -> ChangeCatalog:
    return after_copy(statement, context, source, lambda there: plan_materialized_view(statement, there))


def after_copy(
    statement: Create, context: Context, source: Object, rest: Callable[[Context], ChangeCatalog]
) -> ChangeCatalog:
    """Create a stored copy of a source, and then what needs it."""
    copy = copy_statement(context.catalog, source)
    made = plan_materialized_view(copy, replace(context, text=print_statement(copy)))
    planned = rest(context.after(made.changes))
    notice = (
        f'materialized view "{copy.name.parts[-1].name}" is created too: it keeps the rows of source "{source.name}", which '
        f'"{statement.name.parts[-1].name}" needs again'
    )
    return replace(planned, changes=(*made.changes, *planned.changes), notices=(notice, *planned.notices))


def _types(context: Context, analysed: AnalysedQuery) -> Sequence[Type]:
    """The types of all columns, if Spark must be asked for one of them."""
    if all(column.type is not None for column in analysed.columns):
        return ()
    return context.answers.types(context.catalog, analysed)
