"""The engine of a project: its catalog, its Spark session, its tasks, and the way in for statements."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import ObjectCreated
from headgate.catalog.errors import CatalogError
from headgate.catalog.names import DEFAULT_PATH, find, parent_and_name
from headgate.catalog.objects import Object
from headgate.catalog.positions import ClockPosition, KafkaPosition, LogPosition, Position, Positions
from headgate.catalog.store.lease import Heartbeat
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.system_tables import SYSTEM_RELATIONS
from headgate.connectors.connections import EMBEDDED, Connections
from headgate.control import sessions as results
from headgate.control.controller import Controller
from headgate.control.definitions import columns_read, select_definition, source_definition
from headgate.control.executor import Executor
from headgate.control.on_demand import OnDemand
from headgate.control.schema_changes import SchemaChanges
from headgate.control.subscriptions import follow
from headgate.control.view_cleaner import ViewCleaner
from headgate.control.view_tasks import last_batch, shown_generation
from headgate.control.web_hook import HookAddress, WebHook
from headgate.errors import InternalError
from headgate.plan import definitions as d
from headgate.plan.plans import FollowChanges
from headgate.runtime import query as query_answers
from headgate.runtime.live_queries import LiveQueries
from headgate.runtime.quarantine import FolderRows, NamedFolder, QuarantineCleaner, QuarantineFiles
from headgate.runtime.query_process import Queries
from headgate.runtime.record_times import SparkTimes
from headgate.runtime.relations import QueryTypes, SystemRows
from headgate.runtime.replay import Replayed
from headgate.runtime.session import SmallJobs, Spark, SparkJobs, kill_jvm_of
from headgate.runtime.source import SourceReader
from headgate.runtime.views.view_task import ViewFiles
from headgate.schema.types import Type
from headgate.sql import connections
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Kind, ObjectName, Query, print_statement
from headgate.text.cursor import Identifier

log = logging.getLogger(__name__)

QUARANTINE = "headgate_catalog.quarantine"
TASKS = "headgate_catalog.tasks"
REFRESH_TIMEOUT = 5.0  # seconds that a look at the tasks waits for the ends of their topics
CHANGE_TIMEOUT = 15.0  # seconds that a statement waits for queries in real time that it has changed
REGROWTHS = 3  # how often a query is begun anew because its sources got other columns meanwhile


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a catalog. ``address`` finds the services of the embedded world, if there is one."""

    folder: Path
    address: Callable[[str], str] | None = None

    @property
    def state(self) -> Path:
        return self.folder / ".headgate"


class Engine:
    """Holds the catalog's lease from ``open`` to ``close``."""

    def __init__(
        self,
        project: Project,
        spark: Spark,
        queries: Queries,
        spark_gone: Callable[[], None] = lambda: None,
        fenced: Callable[[CatalogError], None] = lambda _: None,
        files: QuarantineFiles | None = None,
        real_time_slots: int = 0,
        views: str | None = None,
        hook: HookAddress | None = None,
    ) -> None:
        """``queries`` runs SELECTs. ``real_time_slots`` are those of Spark's that tasks in real time may hold. ``spark_gone`` is called when Spark has died under the tasks. ``fenced`` is called when
        the lease of the catalog is lost: it must end this process and Spark at once. ``files`` is where many bad records
        go, and ``views`` is the address of materialized views; by default both are folders of the project. ``hook`` is where all events of the catalog are sent."""
        self.project = project
        self._spark = spark
        self._queries = queries
        self._files = files or QuarantineFiles(str(project.state / "warehouse" / "quarantine"))
        self._views = ViewFiles(views or str(project.state / "warehouse" / "views"), SmallJobs(spark.session).session)
        project.state.mkdir(parents=True, exist_ok=True)
        self.store = SqliteStore(project.state / "catalog.db")
        if (stopped := self.store.silent_holder) is not None:
            log.warning(
                "the engine with the process id %d was stopped and has lost its lease: its Spark ends", stopped.pid
            )
            kill_jvm_of(stopped.pid)
        self._heartbeat = Heartbeat(self.store, fenced)
        if project.address is not None:
            make_connections(self.store)
        self._query_types = QueryTypes(spark.session)
        self._times = SparkTimes(spark.session)
        self._connections = Connections(self.store.keys.reveal, project.address)
        self.follower = SchemaChanges(self.store, self._connections, self.types)
        self._executor = Executor(self.store, self._connections, self, self.follower.changed_schemas)
        self._controller = Controller(
            self.store,
            self._connections,
            SparkJobs(spark.session),
            project.state,
            files=self._files,
            views=self._views,
            follow=self.follower.follow,
            catch_up=self.follower.retry_registration,
            check=self._heartbeat.check,
            spark_death=spark.death,
            on_spark_death=spark_gone,
            on_lease_lost=fenced,
            queries=self._live_queries(real_time_slots),
        )
        self._hook = None if hook is None else WebHook(self.store, hook)
        self.on_demand = OnDemand(self.store, queries, self._request, self.follower.follow, self.follow_arrived)
        self._cleaner = QuarantineCleaner(
            self.store, self._files, spark.session, ViewCleaner(self.store, self._views).clean
        )

    def _live_queries(self, slots: int) -> LiveQueries | None:
        return LiveQueries(self._spark.session, self.project.state / "real_time", slots) if slots else None

    def start(self) -> None:
        self._heartbeat.start()
        self._controller.start()
        self._cleaner.start()
        if self._hook is not None:
            self._hook.start()

    def close(self) -> None:
        if self._hook is not None:
            self._hook.stop()
        self._cleaner.stop()
        self._controller.stop()
        self._connections.close()
        self._heartbeat.stop()
        self.store.close()

    def run(
        self, text: str, session: results.Session, cancellation: results.Cancellation | None = None
    ) -> Iterator[results.Result]:
        """The answers to a script, as they come."""
        try:
            for result in self._executor.run(text, session, cancellation or results.Cancellation()):
                if isinstance(result, results.Done):
                    self._await_queries()
                yield result
        finally:
            self.wake()

    def _await_queries(self) -> None:
        """Wait for queries in real time that a statement has changed: whatever comes after its success is written as it says.
        A query that does not end is not waited for longer than the scheduler does."""
        deadline = time.monotonic() + CHANGE_TIMEOUT
        self.wake()
        while self._controller.is_behind() and time.monotonic() < deadline:
            time.sleep(0.02)

    def wake(self) -> None:
        """Let the controller compare the catalog with what runs, now rather than at its next look."""
        self._controller.wake()

    def select(self, catalog: Catalog, query: Query, cancellation: results.Cancellation) -> Iterator[results.Result]:
        """The answer of the query process. A query whose sources must grow first is analysed anew when they have."""
        for _ in range(REGROWTHS):
            grown = yield from self._select(catalog, query, cancellation)
            if grown is None:
                return
            for source, arrived in grown.arrived:
                self.follower.follow(source, arrived)
            catalog = self.store.load()
        raise InternalError("the sources of a query get other columns again and again")

    def _select(
        self, catalog: Catalog, query: Query, cancellation: results.Cancellation
    ) -> Generator[results.Result, None, query_answers.Grown | None]:
        running = self._queries.open(self._request(catalog, select_definition(catalog, query)))
        count = 0
        with closing(running), cancellation.stops(running.cancel):
            for answer in running.answers():
                match answer:
                    case query_answers.Columns(columns):
                        yield results.ResultColumns(columns)
                    case query_answers.Rows(rows, text):
                        count += rows
                        yield results.JsonRows(text)
                    case query_answers.Messages():
                        raise InternalError("a SELECT gives no messages")
                    case query_answers.Finished(bad_records, reached):
                        yield from _notices(catalog, bad_records)
                        yield from _positions(catalog, reached)
                        yield results.Done(f"SELECT {count}")
                    case query_answers.Grown():
                        return answer
                    case query_answers.Failed(error):
                        raise error
                    case _:
                        assert_never(answer)
        return None

    def follow_changes(
        self, catalog: Catalog, plan: FollowChanges, cancellation: results.Cancellation
    ) -> Iterator[results.Result]:
        generation = shown_generation(self.store, plan.view)
        request = self._request(catalog, select_definition(catalog, plan.query))
        reached = partial(last_batch, self.store, plan.view, generation)
        return follow(plan, request, self._queries, reached, cancellation)

    def _request(self, catalog: Catalog, select: d.SelectDefinition) -> query_answers.QueryRequest:
        """The query with all that the query process, which has no catalog, needs for it."""
        sources = [r for r in select.relations.values() if isinstance(r, d.SourceDefinition)]
        registries = {server for s in sources for server in (s.key_registry, s.value_registry)} - {None}
        servers = self._connections.options(
            catalog, {s.connection for s in sources}, {server for server in registries if server is not None}
        )
        names = dict.fromkeys(n for query in _queries_of(select) for n in query.system_relations)
        hidden = {name for query in _queries_of(select) for name in query.with_hidden}
        rows = {name: self._system_rows(catalog, name, hidden=name in hidden) for name in names}
        stored = [r for r in select.relations.values() if isinstance(r, d.MaterializedDefinition)]
        folders = {view.id: self._view_folder(view.id) for view in stored}
        return query_answers.QueryRequest(select, servers, rows, folders)

    def _view_folder(self, view: int) -> str:
        return self._views.folder(self.store.task_uuid(view), shown_generation(self.store, view))

    def replay(self, task: int, name: str) -> Replayed:
        return self._controller.replay(task, name)

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """The types of a query's columns, from Spark."""
        relations = columns_read(catalog, analysed)
        return self._query_types.types(analysed.spark_sql, relations)

    def read_times(self, texts: Sequence[str], format_: str) -> Sequence[int | None]:
        return self._times(texts, format_)

    def is_time_pattern(self, format_: str) -> bool:
        return self._times.is_pattern(format_)

    def follow_arrived(self, catalog: Catalog, source: Object) -> bool:
        """Follow the schemas that records of a source have by now. Whether there were any."""
        reader = SourceReader(source_definition(source), self._connections.of(catalog))
        reader.refresh()
        arrived = reader.arrived(lambda: reader.raw(self._spark.session()))
        if arrived:
            self.follower.follow(source.id, arrived)
        return bool(arrived)

    def refresh_tasks(self) -> None:
        self._controller.refresh(REFRESH_TIMEOUT)

    def _system_rows(self, catalog: Catalog, name: str, *, hidden: bool) -> SystemRows:
        if name == TASKS:
            self.refresh_tasks()
        relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
        rows = [tuple(row) for row in relation.read(catalog, self.store, hidden=hidden).rows]
        more = self._folder_rows(catalog) if name == QUARANTINE else None
        return SystemRows(relation.columns, rows, more)

    def _folder_rows(self, catalog: Catalog) -> FolderRows | None:
        """The quarantined records that are not in the catalog. The query process reads them."""
        known = [
            f for f in self.store.quarantine_folders() if f.task in catalog.objects and f.object in catalog.objects
        ]
        named = [NamedFolder(f, catalog.display_name(f.object), catalog.display_name(f.task)) for f in known]
        return FolderRows(self._files, tuple(named)) if named else None


def _queries_of(select: d.SelectDefinition) -> list[d.QueryDefinition]:
    """The query, and those of the views below it."""
    return [select.query, *(r.query for r in select.relations.values() if isinstance(r, d.ViewDefinition))]


def _notices(catalog: Catalog, bad_records: Mapping[int, int]) -> Iterator[results.Notice]:
    for source, bad in bad_records.items():
        if bad:
            those = "1 record" if bad == 1 else f"{bad} records"
            verb = "is" if bad == 1 else "are"
            kind, name = catalog.get(source).kind, catalog.display_name(source)
            yield results.Notice(f'{those} of {kind} "{name}" could not be decoded and {verb} left out')


def _positions(catalog: Catalog, reached: Mapping[int, Positions | None]) -> Iterator[results.Notice]:
    """Up to where the materialized views that a query read have their inputs."""
    for view, positions in reached.items():
        name = catalog.display_name(view)
        if positions is None:
            yield results.Notice(f'materialized view "{name}" has not finished its first batch yet')
        elif positions:
            places = ", ".join(_place(catalog, id_, position) for id_, position in positions.items())
            yield results.Notice(f'materialized view "{name}" is shown as of {places}')


def _place(catalog: Catalog, relation: int, position: Position) -> str:
    match position:
        case KafkaPosition():
            offsets = ", ".join(map(str, position.offsets))
            return f"offset {offsets} of topic {position.topic}"
        case LogPosition():
            known = catalog.objects.get(relation)
            return f"batch {position.number} of {catalog.display_name(relation) if known else 'a dropped view'}"
        case ClockPosition():
            return f"{position.time:%Y-%m-%d %H:%M:%S} UTC"
        case _:
            raise InternalError("a materialized view has no other kinds of inputs")


# connections of the embedded world

CONNECTIONS: dict[str, connections.ConnectionOptions] = {
    "kafka": connections.KafkaConnectionOptions(broker=EMBEDDED),
    "registry": connections.RegistryConnectionOptions(url=EMBEDDED),
    "postgres": connections.PostgresConnectionOptions(url=EMBEDDED),
    "elasticsearch": connections.ElasticsearchConnectionOptions(url=EMBEDDED),
}


def make_connections(store: SqliteStore) -> None:
    """Create those that are missing. Their address is looked up when they are used: it may change."""
    for name, options in CONNECTIONS.items():
        catalog = store.load()
        written = ObjectName((Identifier(name),))
        if find(catalog, DEFAULT_PATH, written, Kind.CONNECTION) is not None:
            continue
        statement = connections.CreateConnection(written, options)
        parent, exact = parent_and_name(catalog, DEFAULT_PATH, written, Kind.CONNECTION)
        made = Object(
            catalog.next_id, Kind.CONNECTION, parent, exact, datetime.now(UTC), print_statement(statement), statement
        )
        store.commit([ObjectCreated(made)], cause="the embedded world")
