"""Rows of a sink that cannot be encoded: which records they come from, and what is wrong with them.

The write counts them (`KafkaTarget.records`). Only if there are some, the batch is computed once more, with the position of
the record beside each row.
"""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, SparkSession

from headgate.plan.definitions import AT, TaskDefinition, spark_name
from headgate.runtime.decode import REJECTED
from headgate.runtime.errors import RowNotEncodable
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import NOTHING_REJECTED, ManyRejected, Rejected
from headgate.runtime.quarantine import QuarantineFiles, quarantined
from headgate.runtime.targets.kafka import BAD_ROW, KafkaTarget

log = logging.getLogger(__name__)

NO_BYTES = "CAST(NULL AS binary) AS raw"  # the row is computed, and its record is in the topic
# One row for each record, whatever number of its rows is wrong. In SQL for the reason that `source.latest_per_key` gives.
FIRST = """
SELECT hg_first.* FROM (
  SELECT min_by(struct(*), path) AS hg_first FROM {unfit} GROUP BY topic, partition, offset
)"""


class SinkRejects:
    """The rows of one sink that cannot be encoded. ``files`` is where many of them go."""

    def __init__(
        self,
        definition: TaskDefinition,
        input_: KafkaInput,
        target: KafkaTarget,
        files: QuarantineFiles | None,
    ) -> None:
        self._definition = definition
        self._input = input_
        self._target = target
        self._files = files

    @property
    def finds_records(self) -> bool:
        """Whether the records of rows can be found. Otherwise a row may come from several of them."""
        return self._definition.positioned_sql is not None

    def rejected(self, session: SparkSession) -> Rejected:
        count = self._count()
        if count == 0:
            return NOTHING_REJECTED
        records = self._input.accepted()
        if self._target.sink.on_error == "SKIP" or records is None:
            return Rejected(count)
        sink, unfit, files = self._definition.id, self.unfit(session, records), self._files
        if files is not None and files.takes(count, 0, self._input.in_catalog()):
            return Rejected(many=ManyRejected(sink, count, lambda folder: files.write(unfit, folder)))
        return Rejected(records=(quarantined(row, sink, sink) for row in unfit.toLocalIterator()))

    def _count(self) -> int:
        """How many rows the write has left out. Spark counts nothing for an output that needs no record."""
        observed = self._target.observed
        if observed is None:
            return 0
        try:
            return int(observed.get[REJECTED])
        except Exception as error:  # noqa: BLE001 - Spark gives an empty row, which PySpark cannot read
            log.debug("the write has counted no rows: %s", type(error).__name__)
            return 0

    def unfit(self, session: SparkSession, records: DataFrame) -> DataFrame:
        """The records among these, accepted by their source, that give a row which cannot be encoded: topic, partition, offset,
        time, schema id, path, expected type, reason, and no bytes."""
        rows = self._rows(session, records)
        found = rows.select(f"{AT}.*", self._target.columns.problem.alias("hg_problem")).where("hg_problem IS NOT NULL")
        place = ("topic", "partition", "offset", "unix_micros(timestamp) AS time")
        return session.sql(FIRST, unfit=found.selectExpr(*place, "hg_problem.*", NO_BYTES))

    def _rows(self, session: SparkSession, records: DataFrame) -> DataFrame:
        """The rows of the sink's relation, with their positions."""
        sql, source = self._definition.positioned_sql, spark_name(self._definition.source.id)
        assert sql is not None, "the planner refuses a quarantine without positions"
        self._input.reader.positioned(records).createOrReplaceTempView(source)
        try:
            return session.sql(sql)
        finally:
            session.catalog.dropTempView(source)

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        if BAD_ROW not in _words(error):
            return error
        name, records = self._target.sink.name, self._input.accepted()
        if records is None or not self.finds_records:
            return RowNotEncodable(name, "it does not fit its schema")
        try:
            row = self.unfit(session, records).first()
        except Exception:  # that the row cannot be encoded is known; where it is cannot be said
            log.exception("sink %s: the row that cannot be encoded was not found", name)
            row = None
        if row is None:
            return RowNotEncodable(name, "it does not fit its schema")
        place = row["topic"], row["partition"], row["offset"]
        return RowNotEncodable(name, row["reason"], row["path"], row["expected"], *place)


def _words(error: BaseException) -> str:
    """The text of an error. Spark is asked for the text of its own errors, and Spark may be dead by then."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - py4j has several for it
        return ""
