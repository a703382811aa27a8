"""The engine of a project: its catalog, its Spark session, its tasks, and the way in for statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import LeaseLost
from headgate.catalog.information_schema import SYSTEM_RELATIONS
from headgate.catalog.names import SearchPath
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.control.cancellation import Cancellation
from headgate.control.controller import Controller
from headgate.control.definitions import columns_read, select_definition
from headgate.control.embedded import make_connections
from headgate.control.executor import Executor, Session
from headgate.control.following import Follower
from headgate.control.results import Done, Notice, Result, ResultColumns, ResultRows
from headgate.runtime.errors import SparkGone
from headgate.runtime.relations import column_types_from_spark
from headgate.runtime.replay import Replayed
from headgate.runtime.select import BatchQuery, SourceGrew
from headgate.runtime.session import Spark
from headgate.schema.types import Record, Type
from headgate.sql.queries import Select
from headgate.sql.query.scope import AnalysedQuery

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
        spark_gone: Callable[[], None] = lambda: None,
        fenced: Callable[[LeaseLost], None] = lambda _: None,
    ) -> None:
        """``spark_gone`` and ``fenced`` are told what this process cannot live on with: see ``Controller``."""
        self.project = project
        self._spark = spark
        project.state.mkdir(parents=True, exist_ok=True)
        self.store = SqliteStore(project.state / "catalog.db")
        if project.address is not None:
            make_connections(self.store)
        self._connections = Connections(self.store.keys.reveal, project.address)
        checkpoints = project.state / "checkpoints"
        self.follower = Follower(self.store, self._connections, self.types)
        self._executor = Executor(self.store, self._connections, self, self.follower)
        self._controller = Controller(
            self.store,
            self._connections,
            spark.session,
            checkpoints,
            spark_gone,
            fenced,
            follow=self.follower.follow,
            catch_up=self.follower.catch_up,
        )
        self._spark_gone = spark_gone

    def start(self) -> None:
        self._controller.start()

    def close(self) -> None:
        self._controller.stop()
        self._connections.close()
        self.store.close()

    def run(self, text: str, session: Session, cancellation: Cancellation | None = None) -> Iterator[Result]:
        """The answers to a script, as they come."""
        try:
            yield from self._executor.run(text, session, cancellation or Cancellation())
        finally:
            self._controller.wake()

    def select(
        self, catalog: Catalog, path: SearchPath, statement: Select, cancellation: Cancellation
    ) -> Iterator[Result]:
        for _ in range(REGROWTHS):
            try:
                return (yield from self._select(catalog, path, statement, cancellation))
            except SourceGrew:
                catalog = self.store.load()
        yield from self._select(catalog, path, statement, cancellation)

    def _select(
        self, catalog: Catalog, path: SearchPath, statement: Select, cancellation: Cancellation
    ) -> Iterator[Result]:
        query = BatchQuery(
            self._spark.session(),
            select_definition(catalog, path, statement.query),
            self._connections.of(catalog),
            lambda name: self._system_rows(catalog, name),
            self.follower.follow,
        )
        try:
            with cancellation.stops(query.cancel):
                yield from _answer(query, catalog)
        except SparkGone:
            self._spark_gone()
            raise
        query.close()

    def replay(self, task: int, name: str) -> Replayed:
        return self._controller.replay(task, name)

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """The types of a query's columns, from Spark."""
        relations = columns_read(catalog, analysed)
        return column_types_from_spark(self._spark.session(), analysed.spark_sql, relations)

    def _system_rows(self, catalog: Catalog, name: str) -> tuple[Record, Iterable[Sequence[object]]]:
        relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
        return relation.columns, relation.read(catalog, self.store).rows


def _answer(query: BatchQuery, catalog: Catalog) -> Iterator[Result]:
    columns, chunks = query.run()
    yield ResultColumns(columns)
    count = 0
    for chunk in chunks:
        count += len(chunk)
        yield ResultRows(chunk)
    for source, bad in query.bad_records.items():
        if bad:
            those = "1 record" if bad == 1 else f"{bad} records"
            verb = "is" if bad == 1 else "are"
            name = catalog.shown(source)
            yield Notice(f'{those} of source "{name}" could not be decoded and {verb} left out')
    yield Done(f"SELECT {count}")
