"""SELECT: a batch query over anything, as the query process runs it.

All of a query's Spark jobs carry its tag, so that ``cancel`` ends them and nothing else. Tags belong to a thread: one runs
the query, another sends its rows, a third may cancel it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import TypeAlias

import orjson
from pyspark.sql import Column, DataFrame, Observation, SparkSession, functions as F
from pyspark.sql.types import BooleanType, DataType, NumericType

from headgate.catalog.positions import KafkaPosition, LogPosition, Positions
from headgate.connectors.connections import Clients, ServerOptions
from headgate.errors import HeadgateError
from headgate.plan.definitions import MaterializedDefinition, SelectDefinition, SourceDefinition
from headgate.plan.target_definitions import OnDemandRows
from headgate.runtime.computation import ComputedQuery, Rerun, located, only_source, queries_below
from headgate.runtime.decode import REJECTED
from headgate.runtime.errors import ComputationFailed, QueryCancelled
from headgate.runtime.failures import records_are_gone, translated, unknown_schema_id
from headgate.runtime.push import Address, arrow_stream, push
from headgate.runtime.relations import RelationFrames, SystemRows
from headgate.runtime.session import LARGE_SETTINGS, SMALL_SETTINGS
from headgate.runtime.source import ArrivedSchema, SourceReader
from headgate.runtime.spool import Spool
from headgate.runtime.values import Json, json_rows, with_text_times
from headgate.runtime.views.change_events import signed_rows
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import view_store
from headgate.schema.formats.spark import from_spark
from headgate.schema.render import print_type, spark_identifier
from headgate.schema.types import Bigint, TimestampTz

log = logging.getLogger(__name__)

PIECE = 256 << 10  # bytes of rows that are sent to the engine at once
LEARN_TRIES = 3
# A LIMIT up to which the rows are collected, and the bytes that they may have together.
FEW_ROWS, COLLECTED_BYTES = 5_000, 32 << 20
LARGE_ROW = "headgate: a row is too large to be collected"
CHANGE_COLUMNS = (("hg_time", TimestampTz()), ("hg_diff", Bigint()))
SMALL_QUERY = 2_000  # records of all that a query reads; a join of so many with themselves is still quick
LOCATE_SECONDS = 10.0  # for finding the record that cannot be computed: the client waits for it


# what the query process is asked, and what it answers


@dataclass(frozen=True, slots=True)
class ChangesBetween:
    """Which changes of a materialized view a query is asked for: those of the batches behind ``after`` up to ``until``. Behind
    batch 0 these are all rows. ``now`` is the time that they are shown with."""

    view: int
    after: int
    until: int
    now: datetime


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query with all that it needs. ``system_rows`` has each system relation that it reads, ``folders`` the folder of each
    materialized view. With ``changes`` it gives the rows that came and went, with the columns hg_time and hg_diff before. With
    ``on_demand`` it gives the rows of a materialization as messages (`runtime.on_demand`)."""

    select: SelectDefinition
    servers: ServerOptions
    system_rows: Mapping[str, SystemRows]
    folders: Mapping[int, str] = field(default_factory=dict)
    changes: ChangesBetween | None = None
    on_demand: OnDemandRows | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Names, and types in their printed form. They come before the rows."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows, as the JSON text of an array of arrays."""

    count: int
    json: bytes


@dataclass(frozen=True, slots=True)
class Messages:
    """Some rows of a materialization ON DEMAND, each in the form that the client asked for."""

    rows: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Grown:
    """The query was not run, because sources must take up these schemas first. Nothing follows."""

    arrived: tuple[tuple[int, tuple[ArrivedSchema, ...]], ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """All rows were sent. ``bad_records`` says how many records of each source, by its id, were left out. ``reached`` has the
    positions of the inputs that each materialized view was shown with; None before its first batch. ``read`` has where the topic of
    each source ended, ``skipped`` the number of rows that do not fit their materialization."""

    bad_records: Mapping[int, int]
    reached: Mapping[int, Positions | None] = field(default_factory=dict)
    read: Positions = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing follows."""

    error: HeadgateError


Answer: TypeAlias = Columns | Rows | Messages | Grown | Finished | Failed


class SourceGrew(Exception):
    """Sources have more columns now: the query must be analysed anew."""


class BatchQuery:
    """One query over the state of all relations at this moment."""

    def __init__(self, session: SparkSession, request: QueryRequest, clients: Clients, spool: Spool) -> None:
        self._session = session.newSession()
        self._request = request
        self._clients = clients
        self._spool = spool
        self._sources: dict[int, SourceReader] = {}
        self._counts: dict[int, Observation] = {}
        self._arrived: dict[int, tuple[ArrivedSchema, ...]] = {}
        self._columns: tuple[tuple[str, str], ...] = ()
        self._types: list[DataType] = []
        self._bad_records: dict[int, int] = {}
        self._reached: dict[int, Positions | None] = {}
        self.cancelled = False
        self._tag = f"headgate-{uuid.uuid4().hex}"

    def cancel(self) -> None:
        """Called by another thread, again if need be: Spark cancels the jobs that it knows at this moment."""
        self.cancelled = True
        self._spool.fail(QueryCancelled())
        self._session.sparkContext.cancelJobsWithTag(self._tag)

    # the thread that runs the query

    def run(self, address: Address, pool: str) -> None:
        """Run the query, and let Spark push its rows into the spool, whose receiver is at ``address``."""
        context = self._session.sparkContext
        context.addJobTag(self._tag)
        context.setLocalProperty("spark.scheduler.pool", pool)
        context.setInterruptOnCancel(True)
        self._spool.start()
        try:
            self._run(address)
        except Exception as error:  # noqa: BLE001 - the thread that sends raises it
            self._spool.fail(error if isinstance(error, SourceGrew) else self._translated(error))
        finally:
            context.removeJobTag(self._tag)

    def _run(self, address: Address) -> None:
        """A schema that the registry did not list is learned and the query run again, as long as no row of it was read;
        so is a query whose first records were deleted meanwhile."""
        for tried in range(LEARN_TRIES + 1):
            try:
                frame = self._frame()
                self._types = [field.dataType for field in frame.schema.fields]
                self._columns = self._printed(frame)
                self._configure()
                self._send(with_text_times(frame), address)
                return
            except Exception as error:
                curable = records_are_gone(error) or unknown_schema_id(error) is not None
                if not curable or tried == LEARN_TRIES or not self._spool.restart():
                    raise
                self._learn(error)

    def _configure(self) -> None:
        """Run a query that reads little as a small batch, for which generated code costs more than it saves. One that reads
        nothing at all may make any number of rows by itself, and a materialized view may have any number."""
        system = self._request.system_rows.values()
        read = sum(source.record_count for source in self._sources.values()) + sum(len(each.rows) for each in system)
        reads_little = read <= SMALL_QUERY and not any(each.more for each in system) and not self._reached
        small = reads_little and bool(self._sources or system)
        for name, value in (SMALL_SETTINGS if small else LARGE_SETTINGS).items():
            self._session.conf.set(name, value)

    def _send(self, frame: DataFrame, address: Address) -> None:
        """Few rows are collected, because they need no Python worker: ten rows took 197 ms of CPU, and pushed 313. An
        observation is never completed by `toArrow`, so a query that counts bad records pushes its rows."""
        limit = self._request.select.query.limit
        if limit is not None and limit <= FEW_ROWS and not self._counts and self._collect(frame, limit):
            return
        pushed = push(frame, address, self._spool.token)
        self._bad_records = {id_: _counted(seen) for id_, seen in self._counts.items()}
        self._spool.finish({row["part"]: row["data"] for row in pushed})

    def _collect(self, frame: DataFrame, limit: int) -> bool:
        """Collect the rows, all at once. False if one is so large that all of them might not fit into memory."""
        try:
            rows = _with_small_rows(frame, COLLECTED_BYTES // max(1, limit)).toArrow()
        except Exception as error:
            if LARGE_ROW in str(error):
                return False
            raise
        self._spool.finish({0: arrow_stream(rows.schema, rows.to_batches())})
        return True

    def _frame(self) -> DataFrame:
        """All sources are looked at before the query is given up: those that grow do so at once."""
        self._counts, self._arrived = {}, {}
        select = self._request.select
        if self._request.changes is not None:
            return self._changed_rows(self._request.changes)
        frames = RelationFrames(
            self._session, select.relations, self._source, self._request.system_rows.__getitem__, self._materialized
        )
        frame = frames.query(select.query)
        if self._arrived:
            raise SourceGrew
        return frame

    def _source(self, source: SourceDefinition) -> DataFrame:
        if source.id not in self._sources:
            self._sources[source.id] = SourceReader(source, self._clients)
        reader = self._sources[source.id]
        reader.refresh()
        raw = reader.raw(self._session)
        if arrived := reader.arrived(lambda: raw):
            self._arrived[source.id] = tuple(arrived)
        decoded = reader.decode(raw)
        if reader.layout.on_error != "HALT":
            self._counts[source.id] = Observation()
            decoded = reader.count_rejected(decoded, self._counts[source.id])
        return reader.rows(decoded)

    def _materialized(self, view: MaterializedDefinition) -> DataFrame:
        """The rows of a view after its last batch, from its storage."""
        store = view_store(view, self._request.folders[view.id])
        pinned = store.pin(self._session)
        self._reached[view.id] = None if pinned is None or pinned.head.ledger is None else pinned.head.ledger.positions
        return store.nothing(self._session) if pinned is None else store.shown(self._session, pinned)

    def _changed_rows(self, between: ChangesBetween) -> DataFrame:
        """The rows of the query that came and went, each once. The query is computed row by row."""
        select = self._request.select
        view = select.relations[between.view]
        assert isinstance(view, MaterializedDefinition)
        log_ = LogInput(
            view, lambda _: view_store(view, self._request.folders[view.id]), lambda: None, "signed", "a subscription"
        )
        start, end = (LogPosition(view.id, 1, number) for number in (between.after, between.until))
        signed = log_.read(self._session, start, end).rows

        def rows(sign: str) -> DataFrame:
            some = signed.where(f"{spark_identifier(WEIGHT)} {sign} 0").drop(WEIGHT)
            return RelationFrames(self._session, select.relations, lambda _: some, materialized=lambda _: some).query(
                select.query
            )

        return signed_rows(rows(">"), rows("<"), between.now)

    def _printed(self, frame: DataFrame) -> tuple[tuple[str, str], ...]:
        """Names and types; those that only Spark could tell are its own."""
        more = () if self._request.changes is None else CHANGE_COLUMNS
        columns = zip((*more, *self._request.select.query.columns), frame.schema.fields, strict=True)
        return tuple((name, print_type(type_ or from_spark(f.dataType))) for (name, type_), f in columns)

    def _learn(self, error: BaseException) -> None:
        unknown = unknown_schema_id(error)
        if unknown is not None:
            for reader in self._sources.values():
                reader.learn(unknown)

    def _translated(self, error: BaseException) -> HeadgateError:
        failed = translated(error, self._sources.values())
        if isinstance(failed, ComputationFailed) and not self.cancelled:
            failed = self._located(failed, error)
        return QueryCancelled() if self.cancelled else failed

    def _located(self, failed: ComputationFailed, error: BaseException) -> HeadgateError:
        """The error with the expression and, for a query that computes row by row, the record."""
        select = self._request.select
        whole = ComputedQuery(select.query, tuple(name for name, _ in select.query.columns))
        queries = [whole, *queries_below(select.relations, select.query.relations)]
        try:
            return located(failed, error, queries, self._rerun(queries), LOCATE_SECONDS)
        except Exception:  # what failed is known, and that it cannot be said more exactly is no other failure
            log.exception("the record that cannot be computed was not found")
            return failed

    def _rerun(self, queries: Sequence[ComputedQuery]) -> Rerun | None:
        source = only_source(self._request.select.relations, queries)
        if source is None or source.id not in self._sources:
            return None
        reader = self._sources[source.id]
        topic = reader.cluster.topic(reader.topic_name)
        end = reader.cluster.offsets(topic, latest=True)
        start = {p: min(offset, end[p]) for p, offset in reader.start_offsets(topic).items()}

        def rows(query: ComputedQuery, first: KafkaPosition, last: KafkaPosition) -> DataFrame:
            raw = reader.between(self._session, first.by_partition, last.by_partition)
            current = reader.rows(reader.decode(raw))
            frames = RelationFrames(self._session, self._request.select.relations, lambda _: current)
            return frames.query(query.query) if query.relation is None else frames.relation(query.relation)

        first, last = (KafkaPosition(topic.name, topic.id, tuple(o[p] for p in sorted(o))) for o in (start, end))
        return Rerun(first, last, reader.layout.envelope != "NONE", rows)

    # the thread that sends the rows

    def answers(self) -> Iterator[Answer]:
        """Everything that the query answers, as it comes."""
        columns = False
        try:
            for piece in self._pieces():
                if not columns:
                    columns = True
                    yield Columns(self._columns)
                yield piece
                self._spool.was_read()
            if not columns:
                yield Columns(self._columns)
            yield self._finished()
        except SourceGrew:
            yield Grown(tuple(self._arrived.items()))
        except HeadgateError as error:
            yield Failed(error)

    def _finished(self) -> Finished:
        return Finished(self._bad_records, self._reached)

    def _pieces(self) -> Iterator[Rows | Messages]:
        """Rows in pieces of about ``PIECE`` bytes. Rows of small partitions go together, but none waits for the next."""
        held: list[tuple[Json, ...]] = []
        size = 0
        for batch in self._spool.batches():
            step = max(1, min(batch.num_rows, PIECE * batch.num_rows // max(1, batch.nbytes)))
            for first in range(0, batch.num_rows, step):
                part = batch.slice(first, step)
                held += json_rows(part, self._types)
                size += part.nbytes
                if size >= PIECE or not self._spool.has_next:
                    yield Rows(len(held), orjson.dumps(held))
                    held, size = [], 0
        if held:
            yield Rows(len(held), orjson.dumps(held))


def _with_small_rows(frame: DataFrame, most: int) -> DataFrame:
    """The same rows. A job that meets one of more than ``most`` bytes fails with `LARGE_ROW`."""
    growing = [
        F.col(spark_identifier(f.name))
        for f in frame.schema.fields
        if not isinstance(f.dataType, NumericType | BooleanType)
    ]
    sizes = [F.coalesce(F.octet_length(column.cast("string")), F.lit(0)).cast("bigint") for column in growing]
    if not sizes:
        return frame
    large = reduce(Column.__add__, sizes) > most
    return frame.where(F.when(large, F.raise_error(F.lit(LARGE_ROW)).cast("boolean")).otherwise(F.lit(True)))


def _counted(seen: Observation) -> int:
    """The bad records that the query met. A query whose answer needs no record (WHERE false, LIMIT 0) has read none, so that
    it has left none out."""
    try:
        return int(seen.get[REJECTED])
    except Exception as error:  # noqa: BLE001 - Spark gives an empty row then, which PySpark cannot read
        log.debug("no bad records were counted: %s", type(error).__name__)
        return 0
