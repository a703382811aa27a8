"""The engine of a project: its catalog, its Spark session, its tasks, and the way in for statements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.information_schema import SYSTEM_RELATIONS
from headgate.catalog.objects import Object
from headgate.catalog.store.lease import Heartbeat
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.control.controller import Controller
from headgate.control.definitions import columns_read, select_definition, source_definition
from headgate.control.embedded import make_connections
from headgate.control.executor import Executor
from headgate.control.schema_changes import SchemaChanges
from headgate.control.sessions import Cancellation, Done, JsonRows, Notice, Result, ResultColumns, Session
from headgate.errors import InternalError
from headgate.plan.definitions import QueryDefinition, SelectDefinition, SourceDefinition, ViewDefinition
from headgate.runtime.query import Columns, Failed, Finished, Grown, QueryRequest, Rows
from headgate.runtime.query_process import Queries
from headgate.runtime.relations import QueryTypes
from headgate.runtime.replay import Replayed
from headgate.runtime.session import Spark
from headgate.runtime.source import SourceReader
from headgate.runtime.spark_jobs import SparkJobs
from headgate.schema.types import Record, Type
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Query

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
    ) -> None:
        """``queries`` runs SELECTs. ``spark_gone`` is called when Spark has died under the tasks. ``fenced`` is called when
        the lease of the catalog is lost: it must end this process and Spark at once."""
        self.project = project
        self._spark = spark
        self._queries = queries
        project.state.mkdir(parents=True, exist_ok=True)
        self.store = SqliteStore(project.state / "catalog.db")
        self._heartbeat = Heartbeat(self.store, fenced)
        if project.address is not None:
            make_connections(self.store)
        self._query_types = QueryTypes(spark.session)
        self._connections = Connections(self.store.keys.reveal, project.address)
        self.follower = SchemaChanges(self.store, self._connections, self.types)
        self._executor = Executor(self.store, self._connections, self, self.follower.changed_schemas)
        self._controller = Controller(
            self.store,
            self._connections,
            SparkJobs(spark.session),
            project.state,
            follow=self.follower.follow,
            catch_up=self.follower.retry_registration,
            check=self._heartbeat.check,
            spark_has_died=lambda: spark.has_died,
            on_spark_death=spark_gone,
            on_lease_lost=fenced,
        )

    def start(self) -> None:
        self._heartbeat.start()
        self._controller.start()

    def close(self) -> None:
        self._controller.stop()
        self._connections.close()
        self._heartbeat.stop()
        self.store.close()

    def run(self, text: str, session: Session, cancellation: Cancellation | None = None) -> Iterator[Result]:
        """The answers to a script, as they come."""
        try:
            yield from self._executor.run(text, session, cancellation or Cancellation())
        finally:
            self.wake()

    def wake(self) -> None:
        """Let the controller compare the catalog with what runs, now rather than at its next look."""
        self._controller.wake()

    def select(self, catalog: Catalog, query: Query, cancellation: Cancellation) -> Iterator[Result]:
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
        self, catalog: Catalog, query: Query, cancellation: Cancellation
    ) -> Generator[Result, None, Grown | None]:
        running = self._queries.open(self._request(catalog, select_definition(catalog, query)))
        count = 0
        with closing(running), cancellation.stops(running.cancel):
            for answer in running.answers():
                match answer:
                    case Columns(columns):
                        yield ResultColumns(columns)
                    case Rows(rows, text):
                        count += rows
                        yield JsonRows(text)
                    case Finished(bad_records):
                        yield from _notices(catalog, bad_records)
                        yield Done(f"SELECT {count}")
                    case Grown():
                        return answer
                    case Failed(error):
                        raise error
                    case _:
                        assert_never(answer)
        return None

    def _request(self, catalog: Catalog, select: SelectDefinition) -> QueryRequest:
        """The query with all that the query process, which has no catalog, needs for it."""
        sources = [r for r in select.relations.values() if isinstance(r, SourceDefinition)]
        registries = {server for s in sources for server in (s.key_registry, s.value_registry)} - {None}
        servers = self._connections.options(
            catalog, {s.connection for s in sources}, {server for server in registries if server is not None}
        )
        names = dict.fromkeys(n for query in _queries_of(select) for n in query.system_relations)
        return QueryRequest(select, servers, {name: self._system_rows(catalog, name) for name in names})

    def replay(self, task: int, name: str) -> Replayed:
        return self._controller.replay(task, name)

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """The types of a query's columns, from Spark."""
        relations = columns_read(catalog, analysed)
        return self._query_types.types(analysed.spark_sql, relations)

    def follow_arrived(self, catalog: Catalog, source: Object) -> bool:
        """Follow the schemas that records of a source have by now. Whether there were any."""
        reader = SourceReader(source_definition(source), self._connections.of(catalog))
        reader.refresh()
        arrived = reader.arrived(lambda: reader.raw(self._spark.session()))
        if arrived:
            self.follower.follow(source.id, arrived)
        return bool(arrived)

    def _system_rows(self, catalog: Catalog, name: str) -> tuple[Record, Sequence[Sequence[object]]]:
        relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
        return relation.columns, [tuple(row) for row in relation.read(catalog, self.store).rows]


def _queries_of(select: SelectDefinition) -> list[QueryDefinition]:
    """The query, and those of the views below it."""
    return [select.query, *(r.query for r in select.relations.values() if isinstance(r, ViewDefinition))]


def _notices(catalog: Catalog, bad_records: Mapping[int, int]) -> Iterator[Notice]:
    for source, bad in bad_records.items():
        if bad:
            those = "1 record" if bad == 1 else f"{bad} records"
            verb = "is" if bad == 1 else "are"
            name = catalog.display_name(source)
            yield Notice(f'{those} of source "{name}" could not be decoded and {verb} left out')
