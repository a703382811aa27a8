"""The task of a materialization INTO POSTGRES: a topic or a materialized view as its input, the relation as its plan, and a table as its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.connectors.connections import Clients
from headgate.errors import InternalError
from headgate.plan.definitions import MaterializedDefinition, TaskDefinition
from headgate.plan.target_definitions import TableDefinition
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Append, Batch, Changes, Diff, LedgerStore, Limit, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.rejected_rows import Refusal, TargetRejects, problem_of, with_refusals
from headgate.runtime.sink_task import SinkPlan, task_input
from headgate.runtime.step import Part, TargetStep
from headgate.runtime.targets.errors import RowRefused
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.postgres_merge import Merge
from headgate.runtime.task import Task
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.view_task import ViewFiles


def table_task(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    *,
    files: QuarantineFiles | None = None,
    views: ViewFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Task:
    """The task of a table, ready to begin. Opens clients, but asks nobody yet. ``files`` is where many bad records go, and
    ``views`` where materialized views are stored."""
    source, table, uuid = definition.source, definition.sink, store.task_uuid(definition.id)
    assert isinstance(table, TableDefinition)
    stored = isinstance(source, MaterializedDefinition)
    target = PostgresTarget(
        table, clients.postgres(table.connection), definition.id, uuid, on_notice, name=definition.definition,
        in_pieces=stored, is_dropped=lambda: is_dropped(store, definition.id),
    )  # fmt: skip
    plan = SinkPlan(definition)
    input_, rows = task_input(definition, clients, store, files, views, f'materialization "{definition.name}"')
    return Task(
        definition.id, definition.name, {source.id: input_}, plan, target, store,
        step=TargetStep(rows, plan, TableParts(target), on_notice), rejects=TableRejects(definition, input_, target, files),
        guard=guard, on_notice=on_notice,
    )  # fmt: skip


def is_dropped(store: LedgerStore, task: int) -> bool:
    """Whether the catalog has dropped the task, and has forgotten what identifies it."""
    try:
        store.task_uuid(task)
    except InternalError:
        return True
    return False


class TableRejects(TargetRejects):
    """The rows of one table that do not fit their fields, or that the database does not take."""

    refusal = RowRefused

    def __init__(
        self,
        definition: TaskDefinition,
        input_: KafkaInput | LogInput,
        target: PostgresTarget,
        files: QuarantineFiles | None,
    ) -> None:
        super().__init__(definition, input_, files)
        self._target = target

    def count(self) -> int:
        return self._target.misfits + len(self._target.refused)

    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        """What the database refused is known by the hash of what was staged."""
        ready, problem, hash_ = self._target.rows.problems(rows)
        refusals = (Refusal(str(one.hash), one.path, one.expected, one.reason) for one in self._target.refused)
        ready, told = with_refusals(ready, hash_.cast("string"), refusals)
        own = problem_of(problem["path"], problem["expected"], problem["reason"])
        return ready, F.when(problem.isNotNull(), own).otherwise(told)

    def written(self) -> DataFrame | None:
        return self._target.offered


class TableParts:
    """A table as the target of a step: rows that differ are written, and keys that are gone are deleted. A table without a key is
    emptied by the first part and then filled again."""

    def __init__(self, target: PostgresTarget) -> None:
        self._target = target

    @property
    def by_key(self) -> bool:
        return self._target.keyed

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
            self._refill(output, part, batch, before_commit)
            return 0
        assert not isinstance(output, Append | Diff), "only keyed relations have keyed tables"
        return self._merge(output, part, batch, before_commit)

    def _merge(self, output: Upsert | None, part: Part, batch: Batch, before_commit: Callable[[], None]) -> int:
        """With the last part, the keys that the relation does not have are deleted, or counted if only the query was replaced: nobody
        knows what it would give for records that the topic no longer has."""
        staged: Sequence[DataFrame] = ()
        known, left = None, 0
        if output is not None:
            staged = self._target.parts(part.changes(output))
            if part.is_last:
                known = self._target.rows.known_keys(output.unmarked().rows)

        def settle(merge: Merge) -> None:
            nonlocal left
            if part.is_last and part.anew and not self._target.adopted:
                merge.delete_unstaged()
            elif part.is_last:
                left = merge.count_unstaged()

        self._target.write_parts(staged, batch, before_commit, settle, known=known)
        return left

    def _refill(self, output: Changes | None, part: Part, batch: Batch, before_commit: Callable[[], None]) -> None:
        def empty(merge: Merge) -> None:
            if part.is_first and not self._target.adopted:
                merge.delete_all()

        staged = () if output is None else self._target.parts(output)
        self._target.write_parts(staged, batch, before_commit, empty)

    def notice(self, missing: int, *, anew: bool) -> str | None:
        return f"{missing} keys of the table are not in its relation and were left as they are."
