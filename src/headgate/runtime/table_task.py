"""The task of a materialization INTO POSTGRES: a topic as its input, the relation as its plan, and a table as its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Position, Positions, distance, limited
from headgate.connectors.connections import Clients
from headgate.errors import HeadgateError
from headgate.plan.definitions import DefinitionName, SourceDefinition, TaskDefinition
from headgate.plan.target_definitions import TableDefinition
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Batch, Changes, LedgerStore, Limit, Upsert
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.rejected_rows import TargetRejects
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.step import PART_ROWS
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.postgres_merge import Merge
from headgate.runtime.targets.table_errors import RowRefused
from headgate.runtime.task import Task
from headgate.schema.render import spark_identifier


def table_task(
    definition: TaskDefinition,
    clients: Clients,
    store: LedgerStore,
    *,
    files: QuarantineFiles | None = None,
    guard: Callable[[], None] = lambda: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Task:
    """The task of a table, ready to begin. Opens clients, but asks nobody yet. ``files`` is where many bad records go."""
    source, table, uuid = definition.source, definition.sink, store.task_uuid(definition.id)
    assert isinstance(table, TableDefinition)
    assert isinstance(source, SourceDefinition)
    input_ = KafkaInput(
        source, clients, definition.id, f'materialization "{definition.name}"', clients.kafka(source.connection).brokers,
        f"headgate-{uuid}", files, lambda: store.count_in_catalog(definition.id),
    )  # fmt: skip
    target = PostgresTarget(table, clients.postgres(table.connection), definition.id, uuid, on_notice)
    plan = SinkPlan(definition)
    return Task(
        definition.id, definition.name, {source.id: input_}, plan, target, store,
        step=TableStep(input_, plan, target, on_notice), rejects=TableRejects(definition, input_, target, files),
        guard=guard, on_notice=on_notice,
    )  # fmt: skip


class TableRejects(TargetRejects):
    """The rows of one table that do not fit their fields, or that the database does not take."""

    def __init__(
        self, definition: TaskDefinition, input_: KafkaInput, target: PostgresTarget, files: QuarantineFiles | None
    ) -> None:
        super().__init__(definition, input_, files)
        self._target = target

    def count(self) -> int:
        return self._target.misfits + len(self._target.refused)

    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        """What the database refused is known by the hash of what was staged."""
        ready, problem, hash_ = self._target.rows.problems(rows)
        found = F.when(problem.isNotNull(), _problem(problem["path"], problem["expected"], problem["reason"]))
        for one in self._target.refused:
            told = _problem(F.lit(one.path), F.lit(one.expected), F.lit(one.reason))
            found = found.when(hash_ == F.lit(one.hash), told)
        return ready, found

    def error(
        self,
        reason: str,
        path: str | None = None,
        expected: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> HeadgateError:
        return RowRefused(self._target.table.name, reason, path, expected, topic, partition, offset)


def _problem(path: Column, expected: Column, reason: Column) -> Column:
    id_ = F.lit(None).cast("bigint").alias("schema_id")
    return F.struct(id_, path.alias("path"), expected.alias("expected"), reason.alias("reason"))


class TableStep:
    """Brings a table in step with its relation: rows that differ are written, and keys that are gone are deleted.

    A keyed table is written in parts of its keys, and readers never see it empty. A table without a key is emptied by the first part and
    then filled again, range by range of its input.
    """

    def __init__(
        self,
        input_: KafkaInput,
        plan: SinkPlan,
        target: PostgresTarget,
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
        if self._target.keyed:
            self._write_keys(session, batch, written, end, before_commit)
        else:
            self._write_range(session, batch, end, before_commit)
        self._done += 1

    def _output(self, session: SparkSession, start: KafkaPosition, end: KafkaPosition) -> Changes | None:
        if distance(start, end) == 0:
            return None
        return self._plan.output(session, self._input.read(session, start, end))

    # With a key

    def _write_keys(
        self, session: SparkSession, batch: Batch, written: str, end: KafkaPosition, before_commit: Callable[[], None]
    ) -> None:
        """The keys are divided by a hash. With the last part, the keys that the relation does not have are deleted, or counted if the
        query was replaced: nobody knows what it would give for records that the topic no longer has."""
        output = self._output(session, self._input.begin(), end)
        parts: list[DataFrame] = []
        last, anew = (
            self._done + 1 >= self._parts,
            DefinitionName.of(written).keys != DefinitionName.of(self._plan.definition).keys,
        )
        if output is not None:
            assert isinstance(output, Upsert), "only keyed relations have keyed tables"
            parts += self._target.parts(self._part(output))
            if last:
                parts.append(self._target.rows.known_keys(output.unmarked().rows))

        def settle(merge: Merge) -> None:
            if last and anew and not self._target.adopted:
                merge.delete_unstaged()
            elif last and (left := merge.count_unstaged()):
                self._on_notice(f"{left} keys of the table are not in its relation and were left as they are.")

        self._target.write_parts(parts, batch, before_commit, settle)

    def _part(self, output: Upsert) -> Upsert:
        if self._parts == 1:
            return output
        names = [F.col(spark_identifier(name)) for name in output.key]
        mine = F.pmod(F.xxhash64(*names), F.lit(self._parts)) == self._done
        changed = None if output.changed is None else output.changed.where(mine)
        return Upsert(output.rows.where(mine), output.key, changed, output.marked)

    # Without a key

    def _write_range(
        self, session: SparkSession, batch: Batch, end: KafkaPosition, before_commit: Callable[[], None]
    ) -> None:
        start = self._input.begin()
        rows = -(-distance(start, end) // self._parts) if self._parts else 1
        for _ in range(self._done):
            start = limited(start, end, max(1, rows))
        until = end if self._done + 1 >= self._parts else limited(start, end, max(1, rows))
        output = self._output(session, start, until)
        parts: Sequence[DataFrame] = () if output is None else self._target.parts(output)

        def empty(merge: Merge) -> None:
            if self._done == 0 and not self._target.adopted:
                merge.delete_all()

        self._target.write_parts(parts, batch, before_commit, empty)
