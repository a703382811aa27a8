"""Rows that a target does not take: which records they come from, and what is wrong with them.

The write counts them (`KafkaTarget.records`). Only if there are some, the batch is computed once more, with the position of
the record beside each row.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.errors import HeadgateError
from headgate.plan.definitions import AT, TaskDefinition, spark_name
from headgate.runtime.decode import REJECTED
from headgate.runtime.errors import RowNotEncodable, RowUnfit
from headgate.runtime.failures import message_of
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import NOTHING_REJECTED, ManyRejected, Rejected
from headgate.runtime.quarantine import QuarantineFiles, quarantined
from headgate.runtime.targets.kafka import BAD_ROW, KafkaTarget
from headgate.runtime.views.log_input import LogInput
from headgate.schema.names import internal_name
from headgate.schema.render import spark_identifier

log = logging.getLogger(__name__)

_REFUSED, _TOLD = internal_name("refused"), internal_name("told")
_PROBLEM = "struct<schema_id: bigint, path: string, expected: string, reason: string>"

NO_BYTES = "CAST(NULL AS binary) AS raw"  # the row is computed, and its record is in the topic
# One row for each record, whatever number of its rows is wrong. In SQL for the reason that `source.latest_per_key` gives.
FIRST = """
SELECT hg_first.* FROM (
  SELECT min_by(struct(*), path) AS hg_first FROM {unfit} GROUP BY topic, partition, offset
)"""


class TargetRejects(ABC):
    """The rows of one task that its target does not take. ``files`` is where many of them go."""

    refusal: ClassVar[type[RowUnfit]]  # the error of a row that halts the task

    def __init__(
        self,
        definition: TaskDefinition,
        input_: KafkaInput | LogInput,
        files: QuarantineFiles | None,
    ) -> None:
        self._definition = definition
        self._input = input_
        self._files = files

    @abstractmethod
    def count(self) -> int:
        """How many rows the last write has left out."""

    @abstractmethod
    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        """The rows, perhaps with more columns, and what is wrong with each: struct<schema_id, path, expected, reason>, NULL if
        nothing is."""

    def error(
        self,
        reason: str,
        path: str | None = None,
        expected: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> HeadgateError:
        """The error of a row that halts the task."""
        return self.refusal(self._definition.sink.name, reason, path, expected, topic, partition, offset)

    def written(self) -> DataFrame | None:
        """The rows that the target was given last, if it keeps them: those of a materialized view can be looked at again."""
        return None

    def _explain_stored(self, error: BaseException) -> BaseException:
        """The error of a row of a materialized view, which has no position."""
        rows = self.written()
        if rows is None:
            return self.error("it does not fit its schema")
        ready, problem = self.problems(rows)
        found = ready.select(problem.alias("hg_problem")).where("hg_problem IS NOT NULL").first()
        if found is None:
            return self.error("it does not fit its schema")
        return self.error(found[0]["reason"], found[0]["path"], found[0]["expected"])

    @property
    def finds_records(self) -> bool:
        """Whether the records of rows can be found. Otherwise a row may come from several of them."""
        return self._definition.positioned_sql is not None

    def rejected(self, session: SparkSession) -> Rejected:
        count = self.count()
        if count == 0:
            return NOTHING_REJECTED
        records = self._input.accepted()
        if self._definition.sink.on_error == "SKIP" or records is None or isinstance(self._input, LogInput):
            return Rejected(count)
        task, unfit, files = self._definition.id, self.unfit(session, records), self._files
        if files is not None and files.takes(count, 0, self._input.in_catalog()):
            return Rejected(many=ManyRejected(task, count, lambda folder: files.write(unfit, folder)))
        return Rejected(records=(quarantined(row, task, task) for row in unfit.toLocalIterator()))

    def unfit(self, session: SparkSession, records: DataFrame) -> DataFrame:
        """The records among these, accepted by their source, that give a row which the target does not take: topic, partition, offset,
        time, schema id, path, expected type, reason, and no bytes."""
        rows, problem = self.problems(self._rows(session, records))
        found = rows.select(f"{spark_identifier(AT)}.*", problem.alias("hg_problem")).where("hg_problem IS NOT NULL")
        place = ("topic", "partition", "offset", "unix_micros(timestamp) AS time")
        return session.sql(FIRST, unfit=found.selectExpr(*place, "hg_problem.*", NO_BYTES))

    def _rows(self, session: SparkSession, records: DataFrame) -> DataFrame:
        """The rows of the task's relation, with their positions."""
        sql, source = self._definition.positioned_sql, spark_name(self._definition.source.id)
        assert sql is not None, "the planner refuses a quarantine without positions"
        assert isinstance(self._input, KafkaInput), "rows of a view have no positions"
        self._input.reader.positioned(records).createOrReplaceTempView(source)
        try:
            return session.sql(sql)
        finally:
            session.catalog.dropTempView(source)

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        if BAD_ROW not in message_of(error):
            return error
        if isinstance(self._input, LogInput):
            return self._explain_stored(error)
        records = self._input.accepted()
        if records is None or not self.finds_records:
            return self.error("it does not fit its schema")
        try:
            row = self.unfit(session, records).first()
        except Exception:  # that the row cannot be written is known; where it is cannot be said
            log.exception("task %s: the row that cannot be written was not found", self._definition.name)
            row = None
        if row is None:
            return self.error("it does not fit its schema")
        return self.error(row["reason"], row["path"], row["expected"], row["topic"], row["partition"], row["offset"])


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a target says of one row. ``row`` identifies it."""

    row: str
    path: str | None
    expected: str | None
    reason: str


def with_refusals(rows: DataFrame, row: Column, refusals: Iterable[Refusal]) -> tuple[DataFrame, Column]:
    """The rows with one more column, which says what the target has refused of each: a problem, or NULL. ``row`` is what identifies a
    row. They are joined: a condition for each of thousands of refusals is more than Spark can plan."""
    told = list({one.row: (one.row, one.path, one.expected, one.reason) for one in refusals}.values())
    if not told:
        return rows, F.lit(None).cast(_PROBLEM)
    names = (_REFUSED, "path", "expected", "reason")
    columns = pa.table([pa.array(values, pa.string()) for values in zip(*told, strict=True)], names=names)
    problem = problem_of(F.col("path"), F.col("expected"), F.col("reason")).cast(_PROBLEM)
    known = rows.sparkSession.createDataFrame(columns).select(_REFUSED, problem.alias(_TOLD))
    joined = rows.withColumn(_REFUSED, row).join(F.broadcast(known), _REFUSED, "left")
    return joined, F.col(_TOLD)


def problem_of(path: Column, expected: Column, reason: Column) -> Column:
    """What is wrong with a row of a table or an index, which has no schema id."""
    id_ = F.lit(None).cast("bigint").alias("schema_id")
    return F.struct(id_, path.alias("path"), expected.alias("expected"), reason.alias("reason"))


class SinkRejects(TargetRejects):
    """The rows of one sink that cannot be encoded."""

    refusal = RowNotEncodable

    def __init__(
        self,
        definition: TaskDefinition,
        input_: KafkaInput | LogInput,
        target: KafkaTarget,
        files: QuarantineFiles | None,
    ) -> None:
        super().__init__(definition, input_, files)
        self._target = target

    def count(self) -> int:
        """Spark counts nothing for an output that needs no record."""
        observed = self._target.observed
        if observed is None:
            return 0
        try:
            return int(observed.get[REJECTED])
        except Exception as error:  # noqa: BLE001 - Spark gives an empty row, which PySpark cannot read
            log.debug("the write has counted no rows: %s", type(error).__name__)
            return 0

    def problems(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        return rows, self._target.columns.problem
