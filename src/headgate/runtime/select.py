"""SELECT: a batch query over anything, its rows streamed as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Object
from headgate.catalog.snapshot import Catalog
from headgate.catalog.store import Reader
from headgate.connectors.connections import Connections
from headgate.plan.relations import analyse_query
from headgate.runtime.failures import translated, unknown_schema_id
from headgate.runtime.frames import Frames
from headgate.runtime.source import SourceReader
from headgate.runtime.values import Json, json_value
from headgate.schema.formats.spark import from_spark
from headgate.schema.render import print_type
from headgate.sql.ast.names import Query
from headgate.sql.query.relation import AnalysedQuery

CHUNK = 500  # rows per piece of the answer
LEARN_TRIES = 3


class BatchQuery:
    """One query over the state of all relations at this moment."""

    def __init__(
        self, session: SparkSession, catalog: Catalog, path: SearchPath, query: Query, connections: Connections,
        reader: Reader,
    ) -> None:  # fmt: skip
        self._session = session.newSession()
        self._catalog = catalog
        self._connections = connections
        self._reader = reader
        self._sources: dict[int, SourceReader] = {}
        self.analysed: AnalysedQuery = analyse_query(catalog, path, query)
        self.bad_records = 0

    def columns(self, frame: DataFrame) -> tuple[tuple[str, str], ...]:
        """Names and types; those that only Spark could tell are its own."""
        told = zip(self.analysed.columns, frame.schema.fields, strict=True)
        return tuple((c.name, print_type(c.type or from_spark(f.dataType))) for c, f in told)

    def run(self) -> tuple[tuple[tuple[str, str], ...], Iterator[tuple[tuple[Json, ...], ...]]]:
        """Columns and chunks of rows. A schema that the registry did not list is learned and the query run again."""
        for _ in range(LEARN_TRIES):
            try:
                frame = self._frame()
                return self.columns(frame), self._chunks(frame)
            except Exception as error:
                if not self._learned(error):
                    raise self._translated(error) from error
        frame = self._frame()
        return self.columns(frame), self._chunks(frame)

    def _frame(self) -> DataFrame:
        return Frames(self._session, self._catalog, self._reader, self._source).query(self.analysed)

    def _source(self, source: Object) -> DataFrame:
        if source.id not in self._sources:
            self._sources[source.id] = SourceReader(self._catalog, source, self._connections)
        reader = self._sources[source.id]
        decoded = reader.read(self._session)
        if reader.plan.on_error != "HALT":
            self.bad_records += decoded.where("hg_problem IS NOT NULL").count()
        return reader.rows(decoded)

    def _chunks(self, frame: DataFrame) -> Iterator[tuple[tuple[Json, ...], ...]]:
        types = [f.dataType for f in frame.schema.fields]
        chunk: list[tuple[Json, ...]] = []
        try:
            for row in frame.toLocalIterator(prefetchPartitions=True):
                chunk.append(tuple(json_value(v, t) for v, t in zip(row, types, strict=True)))
                if len(chunk) == CHUNK:
                    yield tuple(chunk)
                    chunk = []
        except Exception as error:
            raise self._translated(error) from error
        if chunk:
            yield tuple(chunk)

    def _learned(self, error: BaseException) -> bool:
        unknown = unknown_schema_id(error)
        if unknown is None:
            return False
        for reader in self._sources.values():
            reader.learn(unknown)
        return True

    def _translated(self, error: BaseException) -> BaseException:
        return translated(error, self._reader_of())

    def _reader_of(self) -> Callable[[str], SourceReader | None]:
        return lambda topic: next((r for r in self._sources.values() if r.topic_name == topic), None)
