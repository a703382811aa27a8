"""The task of a materialized view: topics and other views as its inputs, its query as the plan, its storage as the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Position, Positions, lag
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
from headgate.runtime.views.filling import FillingStore
from headgate.runtime.views.log_input import Form, LogInput
from headgate.runtime.views.recent import RecentBatches
from headgate.runtime.views.store import FEW, WEIGHT, ViewStore, remove_folder, view_store
from headgate.runtime.views.target import NULL_FOUND, ViewTarget
from headgate.schema.render import spark_identifier

LOCATE_SECONDS = 30.0  # for finding the record that cannot be computed


@dataclass(frozen=True, slots=True)
class ViewFiles:
    """Where views are stored, on any file system of Hadoop's. ``session`` is for what happens outside of batches."""

    address: str
    session: Callable[[], SparkSession]
    recent: RecentBatches = field(default_factory=RecentBatches, compare=False)

    def folder(self, uuid: str, generation: int = 1) -> str:
        """The folder of one generation of a view, whose task is known by its uuid."""
        return f"{self.address.rstrip('/')}/{uuid}/{generation}"

    def remove(self, uuid: str, generation: int | None = None) -> None:
        """Remove one generation of a view, or by default all of them."""
        whole = f"{self.address.rstrip('/')}/{uuid}"
        remove_folder(self.session(), whole if generation is None else self.folder(uuid, generation))


def log_input(view: MaterializedDefinition, files: ViewFiles, store: LedgerStore, form: Form, reader: str) -> LogInput:
    """The changes of a view for a task that reads it."""
    uuid = store.task_uuid(view.id)
    return LogInput(view, partial(_generation, view, files, uuid), lambda: store.ledger(view.id), form, reader)


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
    needed: Callable[[], int | None] = lambda: None,
) -> Task:
    """The task of a materialized view, ready to begin. ``needed`` is the last batch that all readers of the view have read;
    None if nobody reads it."""
    uuid = store.task_uuid(definition.id)
    inputs = {each.id: _input(each, definition, clients, store, views, files) for each in definition.inputs}
    generation, is_new = _generation_to_write(definition, store, views, uuid)
    ledgers: LedgerStore = FillingStore(store, definition.id, partial(_ends, inputs)) if is_new else store
    stored = _generation(definition.view, views, uuid, generation)
    target = ViewTarget(
        stored,
        definition.name,
        f"{uuid}/{generation}",
        views.session,
        lambda: ledgers.ledger(definition.id),
        needed,
        definition.definition,
    )
    plan = ViewPlan(definition, stored, {id_: one for id_, one in inputs.items() if isinstance(one, LogInput)})
    return Task(
        definition.id, definition.name, inputs, plan, target, ledgers,
        begins_empty=True, generation=generation, guard=guard, on_notice=on_notice,
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
        first = batch.number == 1
        sql, reads = (self._view.first, self._view.first_reads) if first else (self._view.changed, self._view.reads)
        frames = RelationFrames(
            session, self._view.relations,
            lambda source: self._now(session, source.id, changes, batch),
            materialized=lambda view: self._now(session, view.id, changes, batch),
        )  # fmt: skip
        now = tuple(read.relation for read in reads if read.version == "now")
        named = self._named(session, reads, changes, batch)
        if not first and self._view.stored_name is not None:
            named[self._view.stored_name] = self._stored(session)
        try:
            for name, frame in named.items():
                frame.createOrReplaceTempView(name)
            rows = frames.query(QueryDefinition(sql, (), now))
        finally:
            frames.close()
            for name in named:
                session.catalog.dropTempView(name)
        return Diff(self._asserted(rows), self._view.view.key, self._is_small(batch))

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
        assert pinned is not None, "the target begins before the first batch"
        return self._store.rows(session, pinned)

    def _asserted(self, rows: DataFrame) -> DataFrame:
        """Fail the batch at a NULL in a column of ASSERT NOT NULL, in a row that comes."""
        for name in self._view.not_null:
            value = F.col(spark_identifier(name))
            found = value.isNull() & (F.col(WEIGHT) > 0)
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
        rerun = self._rerun(session, queries, ranges)
        if rerun is None:
            rows = self._query_rows(session, queries[0], lambda id_: self._read(session, ranges, id_))
            error = failure_of(rows) or error
        return located(failed, error, queries, rerun, LOCATE_SECONDS)

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
            return self._query_rows(session, query, lambda _: _present(range_.read(start, end)))

        return Rerun(range_.start, range_.end, source.layout.envelope != "NONE", rows)

    def _read(self, session: SparkSession, ranges: Mapping[int, InputRange], relation: int) -> DataFrame:
        stored = self._view.copies.get(relation, relation)
        range_ = ranges[stored]
        if stored in self._logs:
            return self._logs[stored].rows(session, range_.end)
        return _present(range_.read(range_.start, range_.end))

    def _query_rows(
        self, session: SparkSession, query: ComputedQuery, read: Callable[[int], DataFrame]
    ) -> DataFrame:  # fmt: skip
        """The rows of the view's query, or of a view below it."""
        frames = RelationFrames(
            session, self._view.relations, lambda source: read(source.id), materialized=lambda view: read(view.id)
        )
        try:
            return frames.query(query.query) if query.relation is None else frames.relation(query.relation)
        finally:
            frames.close()


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
