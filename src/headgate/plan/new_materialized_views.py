"""The plan of CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, ObjectCreated, apply
from headgate.catalog.names import find, parent_and_name
from headgate.catalog.objects import Dependency, DependencyKind, Object
from headgate.plan.chain import chain_of
from headgate.plan.errors import OldRowsNeeded
from headgate.plan.materialized_views import asserted_columns, check_statement, creation_notice, kept_view
from headgate.plan.plans import ChangeCatalog
from headgate.plan.relations import resolved_query
from headgate.plan.sink_errors import DebeziumNeedsState, SinkKeyNotOfSource
from headgate.plan.source import keep_column_ids
from headgate.plan.stored_copies import copies_among, copy_statement, made_copy, with_old_rows
from headgate.plan.views import (
    derive_growth,
    plan_replacement,
    query_dependencies,
    replacement_notices,
    view_columns,
)
from headgate.resolve.statements import Context, object_id
from headgate.sql.sinks import AlterSinkFrom, CreateSink
from headgate.sql.statement import Create, print_statement
from headgate.sql.views import CreateMaterializedView


def plan_materialized_view(statement: CreateMaterializedView, context: Context) -> ChangeCatalog:
    """The view, and before it stored copies of the sources whose rows it needs again, as far as there are none."""
    check_statement(statement)
    catalog, path, name = context.catalog, context.path, statement.name.parts[-1].name
    old = find(catalog, path, statement.name, statement.kind) if statement.or_replace else None
    analysed, needs = query_dependencies(catalog, path, statement.query)
    columns = view_columns(analysed, statement.columns, name, context.types_of(analysed))
    growth, columns = derive_growth(catalog, analysed, columns)
    asserted = asserted_columns(statement, columns)
    columns = tuple(replace(c, nullable=c.nullable and c.name not in asserted) for c in columns)
    try:
        copies = {} if old is None else copies_among(catalog, catalog.objects.keys() - {old.id})
        kept = kept_view(catalog, name, analysed, columns, None if old is None else copies)
    except OldRowsNeeded as needed:
        return _with_copy(statement, context, catalog.get(needed.source_id))
    confirmed, options = statement.with_options.confirm, replace(statement.with_options, confirm=False)
    query = resolved_query(catalog, path, statement.query, analysed)
    statement = replace(statement, query=query, with_options=options)
    reads = (Dependency(copy.id, DependencyKind.READS) for copy in kept.copies.values())
    dependencies = tuple(dict.fromkeys((*needs, *reads)))
    if old is not None:
        new = DefinitionChanged(
            old.id, context.text, statement, dependencies, keep_column_ids(old, columns), growth, fills=True
        )
        return _replaced(context, old, new, creation_notice(name, kept), confirmed=confirmed)
    parent, exact = parent_and_name(catalog, path, statement.name, statement.kind)
    made = Object(
        catalog.next_id, statement.kind, parent, exact, context.now, context.text, statement,
        columns=columns, growth=growth, dependencies=dependencies,
    )  # fmt: skip
    return ChangeCatalog(statement.words, (ObjectCreated(made),), notices=(creation_notice(name, kept),))


def _replaced(context: Context, old: Object, new: DefinitionChanged, notice: str, *, confirmed: bool) -> ChangeCatalog:
    """The view is filled with the new query beside its old rows. Whatever reads it goes on with what differs."""
    catalog = context.catalog
    made = plan_replacement(catalog, new, context.answers.topics, confirmed=confirmed)
    filled = f'the rows of materialized view "{old.name}" are those of the old query until the new one has caught up'
    notices = (notice, filled, *replacement_notices(catalog, made.consequences))
    return ChangeCatalog(
        "CREATE OR REPLACE MATERIALIZED VIEW", made.changes, consequences=made.consequences, notices=notices
    )


def with_copy_for_sink(statement: CreateSink, context: Context) -> Catalog:
    """The catalog as it would be with the stored copy that CREATE SINK makes. EXPLAIN plans with it and creates nothing."""
    catalog = context.catalog
    try:
        with_old_rows(catalog, chain_of(catalog, object_id(statement.relation)), statement)
    except (DebeziumNeedsState, SinkKeyNotOfSource) as needed:
        if needed.source_id is None:
            raise
        copy = copy_statement(catalog, catalog.get(needed.source_id))
        return apply(catalog, *plan_materialized_view(copy, replace(context, text=print_statement(copy))).changes)
    return catalog


def _with_copy(statement: CreateMaterializedView, context: Context, source: Object) -> ChangeCatalog:
    return after_copy(statement, context, source, lambda there: plan_materialized_view(statement, there))


def after_copy(
    statement: Create | AlterSinkFrom, context: Context, source: Object, rest: Callable[[Context], ChangeCatalog]
) -> ChangeCatalog:
    """Create a stored copy of a source, and then what needs it. The answers from outside are those to the whole statement."""
    copy = copy_statement(context.catalog, source)
    made = plan_materialized_view(copy, replace(context, text=print_statement(copy)))
    (created,) = made.changes
    assert isinstance(created, ObjectCreated)
    new = replace(made, changes=(replace(created, object=made_copy(created.object, source)),))
    planned = rest(replace(context.after(new.changes), answers=context.answers))
    notice = (
        f'materialized view "{copy.name.parts[-1].name}" is created too: it keeps the rows of {source.kind.value} "{source.name}", which '
        f'"{statement.name.parts[-1].name}" needs again'
    )
    return replace(planned, changes=(*new.changes, *planned.changes), notices=(notice, *planned.notices))
