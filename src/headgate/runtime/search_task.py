"""The task of a materialization INTO ELASTICSEARCH: a topic as its input, the relation as its plan, and an index as its target."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Position, Positions, distance, limited
from headgate.connectors.connections import Clients
from headgate.errors import HeadgateError
from headgate.plan.definitions import AT, DefinitionName, SourceDefinition, TaskDefinition
from headgate.plan.target_definitions import IndexDefinition
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Append, Batch, Changes, LedgerStore, Limit, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.rejected_rows import TargetRejects
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.step import PART_ROWS
from headgate.runtime.targets.search import SearchTarget
from headgate.runtime.targets.search_documents import ID, PROBLEM
from headgate.runtime.targets.table_errors import RowRefused
from headgate.runtime.task import Task
from headgate.schema.render import spark_identifier


def search_task(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    *,
    files: QuarantineFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Task:
    """The task of an index, ready to begin. Opens clients, but asks nobody yet. ``files`` is where many bad records go."""
    source, index, uuid = definition.source, definition.sink, store.task_uuid(definition.id)
    assert isinstance(index, IndexDefinition)
    assert isinstance(source, SourceDefinition)
    input_ = PositionedInput(
        source, clients, definition.id, f'materialization "{definition.name}"', clients.kafka(source.connection).brokers,
        f"headgate-{uuid}", files, lambda: store.count_in_catalog(definition.id),
    )  # fmt: skip

    def is_new() -> bool:
        ledger = store.ledger(definition.id)
        return ledger is None or ledger.number == 0

    target = SearchTarget(index, clients.elasticsearch(index.connection), uuid, is_new)
    plan = IndexPlan(definition)
    return Task(
        definition.id, definition.name, {source.id: input_}, plan, target, store,
        step=IndexStep(input_, plan, target, on_notice), rejects=IndexRejects(definition, input_, target, files),
        guard=guard, on_notice=on_notice,
    )  # fmt: skip


class PositionedInput(KafkaInput):
    """A topic whose rows, where they have no key, come with the position of their record."""

    def changes(self, accepted: DataFrame, *, in_one_part: bool = False) -> Changes:
        if self.reader.layout.envelope == "NONE":
            return Append(self.reader.positioned(accepted), in_one_part)
        return super().changes(accepted, in_one_part=in_one_part)


class IndexPlan(SinkPlan):
    """The relation of an index. Its rows keep the position of their record if they have no key."""

    def output(self, session: SparkSession, changed: Changes) -> Changes:
        if not isinstance(changed, Append):
            return super().output(session, changed)
        sql = self._task.positioned_sql
        assert sql is not None, "a row without a key is made of one record"
        return Append(self._marked_rows(session, changed.rows, sql), changed.in_one_part)


class IndexRejects(TargetRejects):
    """The rows of one index that do not fit their fields, or that the index refuses."""

    def __init__(
        self, definition: TaskDefinition, input_: KafkaInput, target: SearchTarget, files: QuarantineFiles | None
    ) -> None:
        super().__init__(definition, input_, files)
        self._target = target

    def count(self) -> int:
        return len(self._target.rejected)

    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        """What the index has refused is known by its `_id`, or by its position."""
        target = self._target
        at = F.col(AT)
        ready = target.documents.frame(rows, at)
        problem = F.col(PROBLEM)
        found = F.when(problem.isNotNull(), _problem(problem["path"], problem["expected"], problem["reason"]))
        for one in target.refused:
            told = _problem(F.lit(one.path), F.lit(one.expected), F.lit(one.reason))
            same = F.col(ID) == F.lit(one.id)
            if one.record is not None:
                same = (at["partition"] == F.lit(one.record.partition)) & (at["offset"] == F.lit(one.record.offset))
            found = found.when(same, told)
        return ready, found

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        """A row without a key has its position with it; that of another one is looked for."""
        found = self._target.explain(error)
        if isinstance(found, RowRefused) and found.topic is not None:
            return found
        return super().explain(session, error)

    def error(
        self,
        reason: str,
        path: str | None = None,
        expected: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> HeadgateError:
        return RowRefused(self._target.definition.name, reason, path, expected, topic, partition, offset)


def _problem(path: Column, expected: Column, reason: Column) -> Column:
    id_ = F.lit(None).cast("bigint").alias("schema_id")
    texts = (column.cast("string").alias(name) for name, column in (("path", path), ("expected", expected)))
    return F.struct(id_, *texts, reason.alias("reason"))


class IndexStep:
    """Brings an index in step with its relation: every row is written again, and documents of keys that are gone are deleted.

    An index of a keyed relation is written in parts of its keys, and readers never see it empty. One of rows without a key is
    emptied by the first part and then filled again, range by range of its input.
    """

    def __init__(
        self,
        input_: KafkaInput,
        plan: IndexPlan,
        target: SearchTarget,
        on_notice: Callable[[str], None],
        part_rows: int = PART_ROWS,
    ) -> None:
        self._input = input_
        self._plan = plan
        self._target = target
        self._on_notice = on_notice
        self._part_rows = part_rows
        self._done = 0  # parts that were written
        self._parts = 0  # 0: not known yet

    def is_last(self, positions: Positions) -> bool:
        """The number of parts is chosen with the first one, and stays."""
        if self._parts == 0:
            start, end = self._input.begin(), positions[self._input.reader.id]
            self._parts = max(1, -(-distance(start, end) // self._rows_of_part(start, end)))
        return self._done + 1 >= self._parts

    def _rows_of_part(self, start: KafkaPosition, end: Position) -> int:
        assert isinstance(end, KafkaPosition)
        limit = self._target.bounded(Limit(self._part_rows))
        return max(1, min(limit.rows, self._input.fitting_rows(start, end, limit.bytes)))

    def input_ends(self) -> Positions:
        return {self._input.reader.id: self._input.end()}

    def write(
        self, session: SparkSession, batch: Batch, written: str, before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Write the next part. The same call again, after a crash, begins with the first one."""
        end = batch.end[self._input.reader.id]
        assert isinstance(end, KafkaPosition)
        self._input.reader.refresh()
        if self._target.definition.key:
            self._write_keys(session, batch, written, end)
        else:
            self._write_range(session, batch, end)
        self._done += 1

    def _output(self, session: SparkSession, start: KafkaPosition, end: KafkaPosition) -> Changes | None:
        if distance(start, end) == 0:
            return None
        return self._plan.output(session, self._input.read(session, start, end))

    # With a key

    def _write_keys(self, session: SparkSession, batch: Batch, written: str, end: KafkaPosition) -> None:
        """The keys are divided by a hash. With the last part, the documents that the relation does not have are deleted, or
        counted if the query was replaced: nobody knows what it would give for records that the topic no longer has."""
        output = self._output(session, self._input.begin(), end)
        if output is not None:
            assert isinstance(output, Upsert), "only keyed relations have keys"
            self._target.write_rows(self._target.rows(self._part(output)), batch)
        if self._done + 1 >= self._parts:
            anew = DefinitionName.of(written).keys != DefinitionName.of(self._plan.definition).keys
            self._settle_missing(session, batch, output, anew)

    def _part(self, output: Upsert) -> Upsert:
        if self._parts == 1:
            return output
        names = [F.col(spark_identifier(name)) for name in output.key]
        mine = F.pmod(F.xxhash64(*names), F.lit(self._parts)) == self._done
        changed = None if output.changed is None else output.changed.where(mine)
        return Upsert(output.rows.where(mine), output.key, changed, output.marked)

    def _settle_missing(self, session: SparkSession, batch: Batch, output: Changes | None, anew: bool) -> None:
        held = self._target.ids(session)
        missing = held
        if isinstance(output, Upsert):
            rows = output.unmarked().rows
            missing = held.join(rows.select(self._target.documents.id.alias(ID)), ID, "left_anti")
        ids = [row[0] for row in missing.toLocalIterator()]
        if anew and not self._target.definition.adopt:
            self._target.delete(ids, batch)
        elif ids:
            self._on_notice(f"{len(ids)} documents of the index are not in its relation and were left as they are.")

    # Without a key

    def _write_range(self, session: SparkSession, batch: Batch, end: KafkaPosition) -> None:
        start = self._input.begin()
        rows = -(-distance(start, end) // self._parts)
        for _ in range(self._done):
            start = limited(start, end, max(1, rows))
        until = end if self._done + 1 >= self._parts else limited(start, end, max(1, rows))
        if self._done == 0 and not self._target.definition.adopt:
            self._target.delete((row[0] for row in self._target.ids(session).toLocalIterator()), batch)
        output = self._output(session, start, until)
        self._target.write_rows(None if output is None else self._target.rows(output), batch)
