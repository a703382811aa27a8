"""The task of a Kafka sink: a topic as its input, the relation of the sink as its plan, and a topic as its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import KafkaCluster
from headgate.plan.definitions import OLD, MaterializedDefinition, SinkDefinition, TaskDefinition, spark_name
from headgate.runtime.computation import ComputedQuery, Rerun, located, queries_below
from headgate.runtime.errors import ComputationFailed
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.live_input import LiveInput, LiveTarget
from headgate.runtime.ports import Append, Batch, Changes, Diff, InputRange, LedgerStore, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.rejected_rows import SinkRejects
from headgate.runtime.relations import RelationFrames
from headgate.runtime.step import LogRows, StepInput, TargetStep, TopicParts, TopicRows
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.targets.kafka_progress import ProgressTopic
from headgate.runtime.targets.kafka_transactions import KafkaTransactions
from headgate.runtime.task import Task
from headgate.runtime.views.change_events import change_events
from headgate.runtime.views.log_input import Form, LogInput
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.view_task import ViewFiles, log_input
from headgate.schema.render import spark_identifier

LOCATE_SECONDS = 30.0  # for finding the record that cannot be computed


def sink_task(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    *,
    files: QuarantineFiles | None = None,
    views: ViewFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Task:
    """The task of a sink, ready to begin. Opens clients, but asks nobody yet. ``files`` is where many bad records go, and
    ``views`` where materialized views are stored."""
    source, sink = definition.source, definition.sink
    assert isinstance(sink, SinkDefinition)
    cluster = clients.kafka(sink.connection)
    target, plan = _target(definition, cluster, store), SinkPlan(definition)
    live = definition.latency.way == "real time"
    form: Form = "signed" if isinstance(source, MaterializedDefinition) and sink.old_rows else "rows"
    input_, rows = task_input(
        definition, clients, store, files, views, f'sink "{definition.name}"',
        form=form, of_topic=LiveInput if live else KafkaInput, written=cluster,
    )  # fmt: skip
    keyed = sink.envelope == "UPSERT" if form == "signed" else bool(definition.source_key)
    return Task(
        definition.id, definition.name, {source.id: input_}, plan, target, store,
        step=TargetStep(rows, plan, TopicParts(target, known_only=definition.view_start is not None), on_notice) if keyed else None,
        rejects=SinkRejects(definition, input_, target, files), guard=guard, on_notice=on_notice,
    )  # fmt: skip


def task_input(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    files: QuarantineFiles | None,
    views: ViewFiles | None,
    reader: str,
    *,
    form: Form = "rows",
    of_topic: type[KafkaInput] = KafkaInput,
    written: KafkaCluster | None = None,
) -> tuple[KafkaInput | LogInput, StepInput]:
    """What a task reads, a topic or the changes of a materialized view, and the same as the input of a step. ``reader`` names the
    task in errors, and ``written`` is the cluster that it writes to."""
    source = definition.source
    if isinstance(source, MaterializedDefinition):
        assert views is not None, "a task over a materialized view needs its storage"
        log = log_input(source, views, store, form, reader, definition.view_start)
        return log, LogRows(log)
    brokers = [clients.kafka(source.connection).brokers, *([] if written is None else [written.brokers])]
    topic = of_topic(
        source, clients, definition.id, reader, " or ".join(dict.fromkeys(brokers)),
        f"headgate-{store.task_uuid(definition.id)}", files, lambda: store.count_in_catalog(definition.id),
    )  # fmt: skip
    return topic, TopicRows(topic)


def _target(definition: TaskDefinition, cluster: KafkaCluster, store: LedgerStore) -> KafkaTarget:
    sink, id_ = definition.sink, definition.id
    assert isinstance(sink, SinkDefinition)
    if sink.delivery == "at least once":
        return (LiveTarget if definition.latency.way == "real time" else KafkaTarget)(sink, cluster)
    progress = ProgressTopic(cluster, store.progress_slot(id_), store.task_uuid(id_), sink.name)
    return KafkaTransactions(sink, cluster, id_, progress)


class SinkPlan:
    """The relation of a sink over the changes of its one source."""

    def __init__(self, task: TaskDefinition) -> None:
        self._task = task
        self.definition = task.definition

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        return self.output(session, changes[self._task.source.id])

    def output(self, session: SparkSession, changed: Changes) -> Changes:
        """The changes of the sink's relation. A key of a keyed sink that was changed and has no row is deleted: its row was
        deleted, or no longer passes a filter."""
        names, one_pass = self._task.source_key, self._task.marked_sql
        if isinstance(changed, Diff):
            events = self._events(session, changed.rows)
            sink = self._task.sink
            if not isinstance(sink, SinkDefinition) or sink.envelope != "UPSERT":
                return Append(events)
            return Upsert(events.drop(OLD), tuple(self._task.event_key), marked=True)
        if not isinstance(changed, Upsert):
            return Append(self._rows(session, changed.rows), isinstance(changed, Append) and changed.in_one_part)
        if changed.marked and names and one_pass is not None:
            return Upsert(self._marked_rows(session, changed.rows, one_pass), tuple(names), marked=True)
        # All columns: a column of the sink's key may be another one than those of the source's key.
        every = changed.rows if changed.marked else changed.changed
        rows = self._rows(session, changed.unmarked().rows)
        if every is None or not names:
            return Append(rows)
        keys = every.select(*[F.col(spark_identifier(of)).alias(name) for name, of in names.items()])
        return Upsert(rows, tuple(names), keys)

    def _events(self, session: SparkSession, signed: DataFrame) -> DataFrame:
        """The changes of the sink's relation, with the rows before the changes."""
        came, went = (
            self._rows(session, signed.where(f"{spark_identifier(WEIGHT)} {sign} 0").drop(WEIGHT)) for sign in "><"
        )
        return change_events(came, went, self._task.event_key)

    def _marked_rows(self, session: SparkSession, marked: DataFrame, sql: str) -> DataFrame:
        name = spark_name(self._task.source.id)
        marked.createOrReplaceTempView(name)
        try:
            return session.sql(sql)
        finally:
            session.catalog.dropTempView(name)

    def _rows(self, session: SparkSession, current: DataFrame, relation: int | None = None) -> DataFrame:
        """The rows of a relation of the chain over rows of the source. The default is the sink's relation."""
        frames = RelationFrames(session, self._task.relations, lambda _: current, materialized=lambda _: current)
        try:
            return frames.relation(self._task.sink.relation if relation is None else relation)
        finally:
            frames.close()

    def locate(
        self, session: SparkSession, failed: ComputationFailed, error: BaseException, ranges: Mapping[int, InputRange]
    ) -> ComputationFailed:
        queries = list(queries_below(self._task.relations, [self._task.sink.relation]))
        range_ = ranges[self._task.source.id]
        if not queries or not isinstance(range_.start, KafkaPosition) or not isinstance(range_.end, KafkaPosition):
            return failed

        def rows(query: ComputedQuery, start: KafkaPosition, end: KafkaPosition) -> DataFrame:
            read = range_.read(start, end)
            return self._rows(session, read.unmarked().rows if isinstance(read, Upsert) else read.rows, query.relation)

        source = self._task.source
        keyed = not isinstance(source, MaterializedDefinition) and source.layout.envelope != "NONE"
        return located(failed, error, queries, Rerun(range_.start, range_.end, keyed, rows), LOCATE_SECONDS)
