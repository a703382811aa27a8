"""The task of a sink, materialization or materialized view, made from the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Clients, Connections
from headgate.control.definitions import task_definition
from headgate.control.view_tasks import new_view_task
from headgate.plan.definitions import TargetDefinition, TaskDefinition
from headgate.plan.target_definitions import IndexDefinition, TableDefinition
from headgate.runtime.live_queries import LiveQueries
from headgate.runtime.ports import LedgerStore
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.scheduler import Scheduler
from headgate.runtime.search_task import search_task
from headgate.runtime.table_task import table_task
from headgate.runtime.task import Task
from headgate.runtime.views.view_task import ViewFiles
from headgate.sql.statement import Kind

NO_REAL_TIME = "micro-batch: this engine keeps no slots for real time"


class MakeTask(Protocol):
    """Makes a task: see `sink_task`."""

    def __call__(
        self,
        definition: TaskDefinition,
        clients: Clients,
        store: LedgerStore,
        *,
        files: QuarantineFiles | None,
        views: ViewFiles | None,
        guard: Callable[[], None],
        on_notice: Callable[[str], None],
    ) -> Task: ...


class TaskMaker:
    """Makes tasks that are ready to begin."""

    def __init__(
        self,
        store: SqliteStore,
        connections: Connections,
        *,
        files: QuarantineFiles | None,
        views: ViewFiles | None,
        queries: LiveQueries | None,
        guard: Callable[[], None],
        notice: Callable[[int, str], None],
        make_task: MakeTask,
    ) -> None:
        self._store = store
        self._connections = connections
        self._files = files
        self._views = views
        self._queries = queries
        self._guard = guard
        self._notice = notice
        self._make_task = make_task

    def _maker(self, target: TargetDefinition) -> MakeTask:
        """What makes the task of a target."""
        match target:
            case TableDefinition():
                return table_task
            case IndexDefinition():
                return search_task
            case _:
                return self._make_task

    def new_task(self, id_: int, catalog: Catalog, scheduler: Scheduler) -> tuple[Task | RealTimeTask, str | None]:
        """The task, and which way it runs."""
        entry = catalog.get(id_)
        if entry.kind is Kind.MATERIALIZED_VIEW:
            return self._new_view(id_, catalog), None
        return self._new_sink(id_, catalog, scheduler)

    def _new_view(self, id_: int, catalog: Catalog) -> Task:
        assert self._views is not None, "materialized views need storage"
        return new_view_task(
            catalog, catalog.get(id_), self._connections.of(catalog), self._store, self._views,
            files=self._files, guard=self._guard, on_notice=lambda text: self._notice(id_, text),
        )  # fmt: skip

    def _new_sink(self, id_: int, catalog: Catalog, scheduler: Scheduler) -> tuple[Task | RealTimeTask, str]:
        definition = task_definition(catalog, catalog.get(id_))
        make = self._maker(definition.sink)
        task = make(
            definition,
            self._connections.of(catalog),
            self._store,
            files=self._files,
            views=self._views,
            guard=self._guard,
            on_notice=lambda text: self._notice(id_, text),
        )
        if definition.latency.way != "real time":
            return task, str(definition.latency)
        if self._queries is None:
            return task, NO_REAL_TIME
        live = RealTimeTask(
            task, self._queries, definition.latency.reason,
            wake=scheduler.wake, report=scheduler.report_commit, fail=scheduler.report_failure,
        )  # fmt: skip
        return live, live.notice


def signature(catalog: Catalog, id_: int) -> tuple[object, ...]:
    """All that a task is made of, without names. When it changes, the task is made anew."""
    parts = [catalog.get(id_), *upstream(catalog, id_)]
    return tuple((o.id, o.definition, o.fillings, tuple((c.id, c.name, c.type) for c in o.columns)) for o in parts)
