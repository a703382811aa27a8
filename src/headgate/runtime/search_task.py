"""The task of a materialization INTO ELASTICSEARCH: a topic or a materialized view as its input, the relation as its plan, and an index as its target."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.connectors.connections import Clients
from headgate.plan.definitions import AT, MaterializedDefinition, TaskDefinition
from headgate.plan.target_definitions import IndexDefinition
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Append, Batch, Changes, Diff, LedgerStore, Limit, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.rejected_rows import Refusal, TargetRejects, problem_of, with_refusals
from headgate.runtime.sink_task import SinkPlan, task_input
from headgate.runtime.step import Part, TargetStep
from headgate.runtime.table_task import is_dropped
from headgate.runtime.targets.errors import RowRefused
from headgate.runtime.targets.search import RejectedRow, SearchTarget
from headgate.runtime.targets.search_documents import ID, PROBLEM
from headgate.runtime.task import Task
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.view_task import ViewFiles


def search_task(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    *,
    files: QuarantineFiles | None = None,
    views: ViewFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Task:
    """The task of an index, ready to begin. Opens clients, but asks nobody yet. ``files`` is where many bad records go, and
    ``views`` where materialized views are stored."""
    source, index, uuid = definition.source, definition.sink, store.task_uuid(definition.id)
    assert isinstance(index, IndexDefinition)
    stored = isinstance(source, MaterializedDefinition)
    plan = SinkPlan(definition) if stored else IndexPlan(definition)
    input_, rows = task_input(
        definition, clients, store, files, views, f'materialization "{definition.name}"', of_topic=PositionedInput
    )

    def is_unfinished() -> bool:
        mark = store.mark(definition.id)
        return mark is not None and mark.end is not None

    target = SearchTarget(
        index, clients.elasticsearch(index.connection), uuid, lambda: store.ledger(definition.id), is_unfinished,
        name=plan.definition, in_pieces=stored, is_dropped=lambda: is_dropped(store, definition.id),
        on_notice=on_notice,
    )  # fmt: skip
    return Task(
        definition.id, definition.name, {source.id: input_}, plan, target, store,
        step=TargetStep(rows, plan, IndexParts(target), on_notice), rejects=IndexRejects(definition, input_, target, files),
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

    refusal = RowRefused

    def __init__(
        self,
        definition: TaskDefinition,
        input_: KafkaInput | LogInput,
        target: SearchTarget,
        files: QuarantineFiles | None,
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
        own = problem_of(*(problem[name].cast("string") for name in ("path", "expected", "reason")))
        row = F.col(ID) if target.definition.key else F.concat_ws(".", at["partition"], at["offset"])
        refusals = (Refusal(_row_of(one), one.path, one.expected, one.reason) for one in target.refused)
        ready, told = with_refusals(ready, row, refusals)
        return ready, F.when(problem.isNotNull(), own).otherwise(told)

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        """A row without a key has its position with it; that of another one is looked for. A row of a view has none."""
        found = self._target.explain(error)
        if isinstance(found, RowRefused) and (found.topic is not None or isinstance(self._input, LogInput)):
            return found
        return super().explain(session, error)


def _row_of(one: RejectedRow) -> str:
    return one.id if one.record is None else f"{one.record.partition}.{one.record.offset}"


class IndexParts:
    """An index as the target of a step: every row is written again, and documents of keys that are gone are deleted. An index of
    rows without a key is emptied by the first part and then filled again."""

    def __init__(self, target: SearchTarget) -> None:
        self._target = target

    @property
    def by_key(self) -> bool:
        return bool(self._target.definition.key)

    def bounded(self, limit: Limit) -> Limit:
        return self._target.bounded(limit)

    def write_part(
        self,
        session: SparkSession,
        output: Changes | None,
        part: Part,
        batch: Batch,
        before_commit: Callable[[], None],
    ) -> int:
        if not self.by_key:
            self._refill(session, output, part, batch)
            return 0
        assert not isinstance(output, Append | Diff), "only keyed relations have keys"
        if output is not None:
            self._target.write_rows(self._target.rows(part.changes(output)), batch)
        return self._settle_missing(session, batch, output, part) if part.is_last else 0

    def _settle_missing(self, session: SparkSession, batch: Batch, output: Upsert | None, part: Part) -> int:
        """The documents that the relation does not have are deleted, or counted if only the query was replaced: nobody knows what it
        would give for records that the topic no longer has."""
        missing = self._target.ids(session)
        if output is not None:
            rows = output.unmarked().rows
            missing = missing.join(rows.select(self._target.documents.id.alias(ID)), ID, "left_anti")
        ids = [row[0] for row in missing.toLocalIterator()]
        if not part.anew or self._target.index.adopted:
            return len(ids)
        self._target.delete(ids, batch)
        return 0

    def _refill(self, session: SparkSession, output: Changes | None, part: Part, batch: Batch) -> None:
        if part.is_first and not self._target.index.adopted:
            self._target.delete((row[0] for row in self._target.ids(session).toLocalIterator()), batch)
        self._target.write_rows(None if output is None else self._target.rows(output), batch)

    def notice(self, missing: int, *, anew: bool) -> str | None:
        return f"{missing} documents of the index are not in its relation and were left as they are."
