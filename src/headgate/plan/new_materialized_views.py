"""The plan of CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, ObjectCreated
from headgate.catalog.names import find, parent_and_name
from headgate.catalog.objects import Dependency, DependencyKind, Object
from headgate.plan.materialized_views import asserted_columns, check_statement, creation_notice, kept_view
from headgate.plan.plans import ChangeCatalog
from headgate.plan.relations import resolved_query
from headgate.plan.source import keep_column_ids
from headgate.plan.stored_copies import copies_among, copy_statement
from headgate.plan.view_errors import OldRowsNeeded
from headgate.plan.views import (
    derive_growth,
    plan_replacement,
    query_dependencies,
    replacement_notices,
    view_columns,
)
from headgate.resolve.statements import Context
from headgate.schema.types import Type
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Create, print_statement
from headgate.sql.views import CreateMaterializedView


def plan_materialized_view(statement: CreateMaterializedView, context: Context) -> ChangeCatalog:
    """The view, and before it stored copies of the sources whose rows it needs again, as far as there are none."""
    check_statement(statement)
    catalog, path, name = context.catalog, context.path, statement.name.parts[-1].name
    old = find(catalog, path, statement.name, statement.kind) if statement.or_replace else None
    analysed, needs = query_dependencies(catalog, path, statement.query)
    columns = view_columns(analysed, statement.columns, name, _types(context, analysed))
    growth, columns = derive_growth(catalog, analysed, columns)
    asserted = asserted_columns(statement, columns)
    columns = tuple(replace(c, nullable=c.nullable and c.name not in asserted) for c in columns)
    try:
        copies = {} if old is None else copies_among(catalog, catalog.objects.keys() - {old.id})
        kept = kept_view(catalog, name, analysed, columns, None if old is None else copies)
    except OldRowsNeeded as needed:
        return _with_copy(statement, context, catalog.get(needed.source_id))
    statement = replace(statement, query=resolved_query(catalog, path, statement.query, analysed))
    reads = (Dependency(copy.id, DependencyKind.READS) for copy in kept.copies.values())
    dependencies = tuple(dict.fromkeys((*needs, *reads)))
    if old is not None:
        new = DefinitionChanged(old.id, context.text, statement, dependencies, keep_column_ids(old, columns), growth)
        return _replaced(catalog, old, new, creation_notice(name, kept))
    parent, exact = parent_and_name(catalog, path, statement.name, statement.kind)
    made = Object(
        catalog.next_id, statement.kind, parent, exact, context.now, context.text, statement,
        columns=columns, growth=growth, dependencies=dependencies,
    )  # fmt: skip
    return ChangeCatalog(statement.words, (ObjectCreated(made),), notices=(creation_notice(name, kept),))


def _replaced(catalog: Catalog, old: Object, new: DefinitionChanged, notice: str) -> ChangeCatalog:
    """The view is filled with the new query beside its old rows. Whatever reads it goes on with what differs."""
    made = plan_replacement(catalog, new)
    filled = f'the rows of materialized view "{old.name}" are those of the old query until the new one has caught up'
    notices = (notice, filled, *replacement_notices(catalog, made.consequences))
    return ChangeCatalog(
        "CREATE OR REPLACE MATERIALIZED VIEW", made.changes, consequences=made.consequences, notices=notices
    )


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
