"""The task of a materialized view: topics and other views as its inputs, its query as the plan, its storage as the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import ClockPosition, KafkaPosition, LogPosition, Position, Positions, lag
from headgate.connectors.connections import Clients
from headgate.plan.definitions import (
    MaterializedDefinition,
    QueryDefinition,
    SourceDefinition,
)
from headgate.plan.view_definitions import VersionRead, ViewTaskDefinition
from headgate.runtime.computation import ComputedQuery, Rerun, failure_of, located, only_source, queries_below
from headgate.runtime.errors import ComputationFailed
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Append, Batch, Changes, Diff, Input, InputRange, LedgerStore, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.relations import RelationFrames
from headgate.runtime.task import Task
from headgate.runtime.views.clock import CLOCK_INPUT, ClockInput, next_batch
from headgate.runtime.views.commits import remove_folder
from headgate.runtime.views.compaction import SPARE
from headgate.runtime.views.errors import ViewStorageGone
from headgate.runtime.views.filling import FillingStore
from headgate.runtime.views.log_input import Form, LogInput
from headgate.runtime.views.recent import FEW, RecentBatches
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import ViewStore, view_store
from headgate.runtime.views.stored_columns import PRESENT
from headgate.runtime.views.target import NULL_FOUND, ViewTarget
from headgate.schema.render import spark_identifier

LOCATE_SECONDS = 30.0  # for finding the record that cannot be computed


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """Where views are stored, on any file system of Hadoop's. ``session`` is for what happens outside of batches. ``spare`` are
    the bytes that old files of a view may take beside three copies of it."""

    address: str
    session: Callable[[], SparkSession]
    recent: RecentBatches = field(default_factory=RecentBatches, compare=False)
    spare: int = SPARE

    def folder(self, uuid: str, generation: int = 1) -> str:
        """The folder of one generation of a view, whose task is known by its uuid."""
        return f"{self.address.rstrip('/')}/{uuid}/{generation}"

    def remove(self, uuid: str, generation: int | None = None) -> None:
        """Remove one generation of a view, or by default all of them."""
        whole = f"{self.address.rstrip('/')}/{uuid}"
        remove_folder(self.session(), whole if generation is None else self.folder(uuid, generation))


def log_input(
    view: MaterializedDefinition,
    files: ViewFiles,
    store: LedgerStore,
    form: Form,
    reader: str,
    start: tuple[int, int] | None = None,
) -> LogInput:
    """The changes of a view for a task that reads it. ``start`` is the generation and the batch behind which it begins."""
    uuid = store.task_uuid(view.id)
    begin = None if start is None else LogPosition(view.id, *start)
    return LogInput(view, partial(_generation, view, files, uuid), lambda: store.ledger(view.id), form, reader, begin)


def _generation(view: MaterializedDefinition, files: ViewFiles, uuid: str, generation: int) -> ViewStore:
    return view_store(view, files.folder(uuid, generation), files.recent)


def view_task(
    definition: ViewTaskDefinition,
    clients: Clients,
    store: LedgerStore,
    views: ViewFiles,
    *,
    files: QuarantineFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
    readers: Callable[[], Sequence[int]] = tuple,
) -> Task:
    """The task of a materialized view, ready to begin. ``readers`` gives the last batches that the tasks which read
    the view have read."""
    uuid = store.task_uuid(definition.id)
    inputs = {each.id: _input(each, definition, clients, store, views, files) for each in definition.inputs}
    if definition.clock is not None:
        inputs[CLOCK_INPUT] = ClockInput()
    generation, is_new = _generation_to_write(definition, store, views, uuid)
    ledgers: LedgerStore = FillingStore(store, definition.id, partial(_ends, inputs)) if is_new else store
    stored = _generation(definition.view, views, uuid, generation)
    target = ViewTarget(
        stored,
        definition.name,
        f"{uuid}/{generation}",
        views.session,
        lambda: ledgers.ledger(definition.id),
        readers,
        definition.definition,
        views.spare,
    )
    plan = ViewPlan(definition, stored, {id_: one for id_, one in inputs.items() if isinstance(one, LogInput)})
    return Task(
        definition.id, definition.name, inputs, plan, target, ledgers,
        begins_empty=True, generation=generation, guard=guard, on_notice=on_notice,
        stored_bytes=target.stored_bytes, told=target.costs.told,
        next_due=None if definition.clock is None else partial(next_batch, definition.clock),
        chores=target.compaction,
    )  # fmt: skip


def _generation_to_write(
    definition: ViewTaskDefinition, store: LedgerStore, views: ViewFiles, uuid: str
) -> tuple[int, bool]:
    """The generation of a view that its task keeps, and whether it is filled beside the one that readers see: the stored rows
    are then those of another query. A generation that an earlier replacement has begun is left alone."""
    shown = store.ledger(definition.id)
    if shown is None or shown.definition.startswith(definition.query_name):
        return 1 if shown is None else shown.generation, False
    generation = shown.generation + 1
    while True:
        head = _generation(definition.view, views, uuid, generation).head(views.session())
        if head is None or head.ledger is None or head.ledger.definition.startswith(definition.query_name):
            return generation, True
        generation += 1


def _ends(inputs: Mapping[int, Input]) -> Positions:
    """Where the inputs end now."""
    ends: dict[int, Position] = {}
    for id_, input_ in inputs.items():
        end = input_.end() if isinstance(input_, KafkaInput) else input_.known_end
        if end is not None:
            ends[id_] = end
    return ends


def _input(
    relation: SourceDefinition | MaterializedDefinition,
    view: ViewTaskDefinition,
    clients: Clients,
    store: LedgerStore,
    views: ViewFiles,
    files: QuarantineFiles | None,
) -> Input:
    name = f'materialized view "{view.name}"'
    if isinstance(relation, MaterializedDefinition):
        return log_input(relation, views, store, "signed", name)
    return KafkaInput(
        relation, clients, view.id, name, clients.kafka(relation.connection).brokers,
        f"headgate-{store.task_uuid(view.id)}", files, lambda: store.count_in_catalog(view.id),
    )  # fmt: skip


class ViewPlan:
    """The query of a view over the changes of its inputs. ``logs`` are the inputs that are views themselves."""

    def __init__(self, view: ViewTaskDefinition, store: ViewStore, logs: Mapping[int, LogInput]) -> None:
        self._view = view
        self._store = store
        self._logs = logs
        self.definition = view.definition

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        """The changes of the stored rows. The first batch is the query itself over all rows that there are by then."""
        view = self._view
        if batch.number == 1:
            rows = self._computed(session, changes, batch, view.first, view.first_reads, None)
        else:
            rows = self._computed(session, changes, batch, view.changed, view.reads, view.stored_name)
        is_kept = all(view.copies.get(read.relation, read.relation) in self._logs for read in view.first_reads)
        anew = batch.number > 1 and bool(view.anew[0]) and is_kept
        return Diff(
            rows, view.view.key, self._is_small(batch), partial(self._anew, session, changes, batch) if anew else None
        )

    def _anew(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> DataFrame:
        sql, stored = self._view.anew
        return self._computed(session, changes, batch, sql, self._view.first_reads, stored)

    def _computed(
        self,
        session: SparkSession,
        changes: Mapping[int, Changes],
        batch: Batch,
        sql: str,
        reads: Sequence[VersionRead],
        stored: str | None,
    ) -> DataFrame:
        """The rows of a query over these versions of relations, and over the stored rows of the view under this name."""
        frames = RelationFrames(
            session, self._view.relations,
            lambda source: self._now(session, source.id, changes, batch),
            materialized=lambda view: self._now(session, view.id, changes, batch),
        )  # fmt: skip
        now = tuple(read.relation for read in reads if read.version == "now")
        named = {**self._named(session, reads, changes, batch), **self._time(session, batch.end)}
        if stored is not None:
            named[stored] = self._stored(session)
        with closing(frames), _registered(session, named):
            return self._asserted(frames.query(QueryDefinition(sql, (), now)))

    def _time(self, session: SparkSession, end: Positions) -> dict[str, DataFrame]:
        """The relation with the time of a batch, if the view reads it."""
        now, (name, column) = end.get(CLOCK_INPUT), self._view.time
        if not isinstance(now, ClockPosition):
            return {}
        return {name: session.sql(f"SELECT timestamp_micros({now.micros}) AS {spark_identifier(column)}")}

    def _is_small(self, batch: Batch) -> bool:
        """Whether few rows are read of every input, so that few are likely to change."""
        return all(
            self._logs[id_].is_small(start, batch.end[id_])
            if id_ in self._logs
            else lag({id_: start}, {id_: batch.end[id_]}) <= FEW
            for id_, start in batch.start.items()
        )

    def _named(
        self, session: SparkSession, reads: Sequence[VersionRead], changes: Mapping[int, Changes], batch: Batch
    ) -> dict[str, DataFrame]:
        """The other versions of relations that the query names."""
        named: dict[str, DataFrame] = {}
        for read in reads:
            match read.version:
                case "changes":
                    named[read.name] = _signed(changes[read.relation])
                case "before":
                    named[read.name] = self._logs[read.relation].rows(session, batch.start[read.relation])
                case "keys":
                    named[read.name] = _keys(changes[read.relation])
        return named

    def _now(self, session: SparkSession, relation: int, changes: Mapping[int, Changes], batch: Batch) -> DataFrame:
        """The rows of an input after the batch. A topic gives only what came, which in the first batch is everything."""
        stored = self._view.copies.get(relation, relation)
        if stored in self._logs:
            return self._logs[stored].rows(session, batch.end[stored])
        assert batch.number == 1, "a query that needs old rows of a topic is refused"
        return _present(changes[relation])

    def _stored(self, session: SparkSession) -> DataFrame:
        pinned = self._store.pin(session)
        if pinned is None:
            raise ViewStorageGone(self._view.name, self._store.folder)
        return self._store.rows(session, pinned)

    def _asserted(self, rows: DataFrame) -> DataFrame:
        """Fail the batch at a NULL in a column of ASSERT NOT NULL, in a row that comes. Nothing is computed for a group that HAVING
        leaves out, which is stored too."""
        shown = F.col(PRESENT) if any(column.name == PRESENT for column in self._view.view.stored) else F.lit(True)
        for name in self._view.not_null:
            value = F.col(spark_identifier(name))
            found = shown & value.isNull() & (F.col(WEIGHT) > 0)
            rows = rows.withColumn(name, F.when(found, F.raise_error(F.lit(NULL_FOUND + name))).otherwise(value))
        return rows

    def locate(
        self, session: SparkSession, failed: ComputationFailed, error: BaseException, ranges: Mapping[int, InputRange]
    ) -> ComputationFailed:
        """The changes are computed by other SQL than the user's, so the query itself is computed once more, over what the batch
        read of topics and over all rows of other inputs."""
        query, relations = self._view.query, self._view.relations
        if query is None:
            return failed
        columns = tuple(column.name for column in self._view.view.stored if not column.hidden)
        queries = [ComputedQuery(query, columns, self._view.name), *queries_below(relations, query.relations)]
        rerun, rows = self._rerun(session, queries, ranges), None
        if rerun is None:
            ends = {id_: range_.end for id_, range_ in ranges.items()}
            rows = self._query_rows(session, queries[0], lambda id_: self._read(session, ranges, id_), ends)
            error = failure_of(rows) or error
        return located(failed, error, queries, rerun, LOCATE_SECONDS, rows)

    def _rerun(
        self, session: SparkSession, queries: Sequence[ComputedQuery], ranges: Mapping[int, InputRange]
    ) -> Rerun | None:
        """How to compute single records once more, if every row comes from one record of one topic."""
        source = only_source(self._view.relations, queries)
        if source is None or source.id not in ranges or len(ranges) > 1:
            return None
        range_ = ranges[source.id]
        assert isinstance(range_.start, KafkaPosition)
        assert isinstance(range_.end, KafkaPosition)

        def rows(query: ComputedQuery, start: KafkaPosition, end: KafkaPosition) -> DataFrame:
            return self._query_rows(session, query, lambda _: _present(range_.read(start, end)), {})

        return Rerun(range_.start, range_.end, source.layout.envelope != "NONE", rows)

    def _read(self, session: SparkSession, ranges: Mapping[int, InputRange], relation: int) -> DataFrame:
        stored = self._view.copies.get(relation, relation)
        range_ = ranges[stored]
        if stored in self._logs:
            return self._logs[stored].rows(session, range_.end)
        return _present(range_.read(range_.start, range_.end))

    def _query_rows(
        self, session: SparkSession, query: ComputedQuery, read: Callable[[int], DataFrame], ends: Positions
    ) -> DataFrame:  # fmt: skip
        """The rows of the view's query, or of a view below it."""
        frames = RelationFrames(
            session, self._view.relations, lambda source: read(source.id), materialized=lambda view: read(view.id)
        )
        with closing(frames), _registered(session, self._time(session, ends)):
            return frames.query(query.query) if query.relation is None else frames.relation(query.relation)


@contextmanager
def _registered(session: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Let queries name these frames. Frames that are made from them meanwhile stay valid."""
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name in frames:
            session.catalog.dropTempView(name)


def _present(changes: Changes) -> DataFrame:
    """The rows that changes of a topic have now."""
    return changes.unmarked().rows if isinstance(changes, Upsert) else changes.rows


def _signed(changes: Changes) -> DataFrame:
    """Changes as signed rows. Of a source with a key these are the present rows: the old ones are found in the store."""
    match changes:
        case Diff():
            return changes.rows
        case Append():
            return changes.rows.withColumn(WEIGHT, F.lit(1))
        case Upsert():
            return changes.unmarked().rows.withColumn(WEIGHT, F.lit(1))


def _keys(changes: Changes) -> DataFrame:
    assert isinstance(changes, Upsert)
    keys = changes.unmarked().changed
    assert keys is not None, "a source with a key names the keys that changed"
    return keys.select(*[spark_identifier(name) for name in changes.key]).distinct()
