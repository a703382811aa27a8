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
from headgate.sql.query.clock import NOW, TIME
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
        files=files, guard=guard, on_notice=on_notice, readers=lambda: batches_read(store, view.id),
    )  # fmt: skip


def batches_read(store: SqliteStore, view: int) -> tuple[int, ...]:
    """The last batches of a materialized view that the tasks over it have read. Who has not begun takes all rows of the view,
    and needs no changes."""
    catalog = store.load()
    if view not in catalog.objects:
        return ()
    readers = [id_ for id_ in catalog.desired if id_ != view and catalog.get(view) in upstream(catalog, id_)]
    ledgers = [store.ledger(id_) for id_ in readers]
    read = [ledger.positions.get(view) for ledger in ledgers if ledger is not None]
    generation = shown_generation(store, view)
    positions = [position for position in read if isinstance(position, LogPosition) and position.number > 0]
    return tuple(position.number for position in positions if position.generation == generation)


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
    analysed = valid_query(catalog, view).pinned
    relations = {**relation_definitions(catalog, relations_read(analysed), pinned=True), **inputs}
    query_name = _query_name(catalog, view, relations, was_append=kept.was_append)
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
        query_definition(analysed),
        query_name,
        kept.clock,
        (NOW, TIME),
        (made.anew, STORED),
    )


def version_reads(reads: Iterable[tuple[int, Version]]) -> tuple[VersionRead, ...]:
    """The versions of relations that a query names, with their names in Spark."""
    return tuple(VersionRead(id_, version, version_name(d.spark_name(id_), version)) for id_, version in sorted(reads))


def _query_name(catalog: Catalog, view: Object, relations: Iterable[int], *, was_append: bool) -> str:
    """A name that changes when a query of the view or below it is replaced, that of the view also by the same query. RENAME does
    not change it. A materialized view below counts once, if the groups of the view are then stored in another way."""
    written = [(id_, catalog.get(id_).statement) for id_ in sorted([view.id, *relations])]
    queries = [(id_, text) for id_, text in written if catalog.get(id_).kind is Kind.VIEW or id_ == view.id]
    return _hash((view.fillings, queries, *(("was append",) if was_append else ())))


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
