"""The tasks of materialized views, made from the catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.objects import Object, definition_of
from headgate.catalog.positions import LogPosition
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Clients
from headgate.control.definitions import query_definition, relation_definitions
from headgate.plan import definitions as d
from headgate.plan.chain import valid_query
from headgate.plan.materialized_views import asserted_columns, materialized, materialized_definition
from headgate.plan.relations import relations_read
from headgate.plan.view_changes import stored_form
from headgate.plan.view_definitions import VersionRead, ViewTaskDefinition
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.task import Task
from headgate.runtime.views.errors import ViewReplaced
from headgate.runtime.views.view_task import ViewFiles, view_task
from headgate.sql.query.kept_groups import STORED
from headgate.sql.query.tree import Version
from headgate.sql.query.tree_sql import version_name
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView


def new_view_task(
    catalog: Catalog,
    view: Object,
    clients: Clients,
    store: SqliteStore,
    views: ViewFiles,
    *,
    files: QuarantineFiles | None,
    guard: Callable[[], None],
    on_notice: Callable[[str], None],
) -> Task:
    """The task that keeps a view equal to its query, ready to begin."""
    return view_task(
        view_task_definition(catalog, view), clients, store, views,
        files=files, guard=guard, on_notice=on_notice, needed=lambda: read_by_all(store, view.id),
    )  # fmt: skip


def read_by_all(store: SqliteStore, view: int) -> int | None:
    """The last batch of a materialized view that all tasks over it have read; None if none of them has read any. Who has not
    begun takes all rows of the view, and needs no changes."""
    catalog = store.load()
    if view not in catalog.objects:
        return None
    readers = [id_ for id_ in catalog.desired if id_ != view and catalog.get(view) in upstream(catalog, id_)]
    ledgers = [store.ledger(id_) for id_ in readers]
    read = [ledger.positions.get(view) for ledger in ledgers if ledger is not None]
    generation = shown_generation(store, view)
    positions = [position for position in read if isinstance(position, LogPosition) and position.number > 0]
    return min((position.number for position in positions if position.generation == generation), default=None)


def shown_generation(store: SqliteStore, view: int) -> int:
    """The generation of a materialized view that readers see."""
    ledger = store.ledger(view)
    return 1 if ledger is None else ledger.generation


def last_batch(store: SqliteStore, view: int, generation: int) -> int | None:
    """The last batch of a materialized view that a client follows; None if it was dropped. Raises if it was replaced."""
    entry, ledger = store.load().objects.get(view), store.ledger(view)
    if entry is None:
        return None
    if ledger is not None and ledger.generation != generation:
        raise ViewReplaced(entry.name)
    return 0 if ledger is None else ledger.number


def view_task_definition(catalog: Catalog, view: Object) -> ViewTaskDefinition:
    """Everything that the task of a materialized view needs."""
    kept = materialized(catalog, view)
    made = kept.maintenance
    inputs = relation_definitions(catalog, [entry.id for entry in kept.inputs])
    relations = {**relation_definitions(catalog, relations_read(valid_query(catalog, view))), **inputs}
    query_name = _query_name(catalog, view, relations)
    return ViewTaskDefinition(
        view.id,
        view.name,
        materialized_definition(catalog, view, kept),
        made.first,
        made.changed,
        tuple(each for each in inputs.values() if not isinstance(each, d.ViewDefinition)),
        version_reads(made.first_reads),
        version_reads(made.reads),
        STORED if made.reads_stored else None,
        relations,
        asserted_columns(definition_of(view, CreateMaterializedView), view.columns),
        {source: copy.id for source, copy in kept.copies.items()},
        # Another one too when a schema change gives other values for old rows.
        f"{query_name}-{_hash(stored_form(catalog, view, view.columns))}",
        query_definition(valid_query(catalog, view)),
        query_name,
    )


def version_reads(reads: Iterable[tuple[int, Version]]) -> tuple[VersionRead, ...]:
    """The versions of relations that a query names, with their names in Spark."""
    return tuple(VersionRead(id_, version, version_name(d.spark_name(id_), version)) for id_, version in sorted(reads))


def _query_name(catalog: Catalog, view: Object, relations: Iterable[int]) -> str:
    """A name that changes when a query of the view or below it is replaced. RENAME does not change it."""
    written = [(id_, catalog.get(id_).statement) for id_ in sorted([view.id, *relations])]
    return _hash([(id_, text) for id_, text in written if catalog.get(id_).kind is Kind.VIEW or id_ == view.id])


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
