"""SELECT: a batch query over anything, its rows streamed as they come.

All of a query's Spark jobs carry its tag, so that ``cancel`` ends them and nothing else. Tags belong to a thread: a query
is run and read by one, and cancelled by another.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import chain

from pyspark.sql import DataFrame, SparkSession

from headgate.connectors.connections import Clients
from headgate.plan.definitions import SelectDefinition, SourceDefinition
from headgate.runtime.decode import count_rows
from headgate.runtime.errors import QueryCancelled
from headgate.runtime.failures import records_are_gone, translated, unknown_schema_id
from headgate.runtime.relations import RelationFrames, SystemRows
from headgate.runtime.source import Follow, SourceReader
from headgate.runtime.values import Json, json_value, spelled
from headgate.schema.formats.spark import from_spark
from headgate.schema.render import print_type

CHUNK = 500  # rows per piece of the answer
LEARN_TRIES = 3

Chunk = tuple[tuple[Json, ...], ...]


class SourceGrew(Exception):
    """A source has more columns now: the query must be analysed anew."""


class BatchQuery:
    """One query over the state of all relations at this moment."""

    def __init__(
        self,
        session: SparkSession,
        select: SelectDefinition,
        clients: Clients,
        system_rows: SystemRows,
        follow: Follow,
    ) -> None:
        """``follow`` is called with schemas that records have and the source does not know yet."""
        self._session = session.newSession()
        self._select = select
        self._clients = clients
        self._system_rows = system_rows
        self._follow = follow
        self._sources: dict[int, SourceReader] = {}
        self.bad_records: dict[int, int] = {}  # how many records of each source are left out, by its id
        self._grew = self._cancelled = False
        self._tag = f"headgate-{uuid.uuid4().hex}"

    def cancel(self) -> None:
        """Called by another thread, again if need be: Spark cancels the jobs that it knows at this moment."""
        self._cancelled = True
        self._session.sparkContext.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """Called by the thread that ran the query, if it goes on to run others."""
        self._session.sparkContext.removeJobTag(self._tag)

    def columns(self, frame: DataFrame) -> tuple[tuple[str, str], ...]:
        """Names and types; those that only Spark could tell are its own."""
        columns = zip(self._select.query.columns, frame.schema.fields, strict=True)
        return tuple((name, print_type(type_ or from_spark(f.dataType))) for (name, type_), f in columns)

    def run(self) -> tuple[tuple[tuple[str, str], ...], Iterator[Chunk]]:
        """Columns and chunks of rows. A schema that the registry did not list is learned and the query run again, as
        long as no row of it was given; so is one whose first records were deleted meanwhile."""
        context = self._session.sparkContext
        context.addJobTag(self._tag)
        context.setInterruptOnCancel(True)
        for tried in range(LEARN_TRIES + 1):
            try:
                frame = self._frame()
                chunks = self._chunks(frame)
                first = next(chunks, ())
                return self.columns(frame), chain([first] if first else [], self._told(chunks))
            except SourceGrew:
                raise
            except Exception as error:
                curable = records_are_gone(error) or self._learned(error)
                if tried == LEARN_TRIES or self._cancelled or not curable:
                    raise self._translated(error) from error
        raise AssertionError("the last try returns or raises")

    def _frame(self) -> DataFrame:
        """All sources are looked at before the query is given up: those that grow do so at once."""
        self.bad_records, self._grew = {}, False
        frames = RelationFrames(self._session, self._select.relations, self._source, self._system_rows)
        frame = frames.query(self._select.query)
        if self._grew:
            raise SourceGrew
        return frame

    def _source(self, source: SourceDefinition) -> DataFrame:
        if source.id not in self._sources:
            self._sources[source.id] = SourceReader(source, self._clients)
        reader = self._sources[source.id]
        reader.refresh()
        raw = reader.raw(self._session)
        if arrived := reader.arrived(lambda: raw):
            self._follow(source.id, arrived)
            self._grew = True
        decoded = reader.decode(raw)
        if reader.layout.on_error != "HALT" and not self._grew:
            bad = count_rows(decoded.where("hg_problem IS NOT NULL"))
            self.bad_records[source.id] = bad
        return reader.rows(decoded)

    def _chunks(self, frame: DataFrame) -> Iterator[Chunk]:
        types = [f.dataType for f in frame.schema.fields]
        chunk: list[tuple[Json, ...]] = []
        for row in spelled(frame).toLocalIterator(prefetchPartitions=True):
            if self._cancelled:
                raise QueryCancelled
            chunk.append(tuple(json_value(v, t) for v, t in zip(row, types, strict=True)))
            if len(chunk) == CHUNK:
                yield tuple(chunk)
                chunk = []
        if chunk:
            yield tuple(chunk)

    def _told(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        try:
            yield from chunks
        except Exception as error:
            raise self._translated(error) from error

    def _learned(self, error: BaseException) -> bool:
        unknown = unknown_schema_id(error)
        if unknown is None:
            return False
        for reader in self._sources.values():
            reader.learn(unknown)
        return True

    def _translated(self, error: BaseException) -> BaseException:
        return QueryCancelled() if self._cancelled else translated(error, self._sources.values())
