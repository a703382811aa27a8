"""A Kafka topic as the target of a task, at least once: the catalog keeps the ledger.

A topic cannot fence off an old writer. `delivery.timeout.ms` is therefore shorter than the lease: what a stopped engine
has handed to its producer expires before another engine may begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, Observation, SparkSession, functions as F

from headgate.catalog.positions import lag
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.crash_points import crash_point, is_armed
from headgate.plan.definitions import PRESENT, SinkDefinition
from headgate.runtime.decode import REJECTED
from headgate.runtime.errors import RecordTooLarge, TargetTopicGone
from headgate.runtime.failures import record_is_too_large
from headgate.runtime.ports import Append, Batch, Changes, Diff, Ledger, Limit, Upsert, Written
from headgate.runtime.sink_records import SinkRecords
from headgate.runtime.source import READER
from headgate.schema.names import internal_name
from headgate.schema.render import spark_identifier

BAD_ROW = "headgate cannot encode a row"  # the error by which such a row fails a job under HALT
VALUE, HEADERS = internal_name("value"), internal_name("headers")
TIME, ACCEPTED = internal_name("time"), internal_name("accepted")
SINGLE_WORKER_ROWS = 10_000  # a batch of at most so many records is sorted by one worker, without a second stage

# RUNTIME: linger.ms and batch.size alone bring 205 to 283 thousand records a second.
WRITER = {
    "kafka.enable.idempotence": "true",
    "kafka.max.request.size": "100000000",  # bytes, about what a broker takes at most
    "kafka.linger.ms": "20",
    "kafka.batch.size": "524288",
    "kafka.delivery.timeout.ms": "20000",
    "kafka.request.timeout.ms": "10000",  # must be smaller than the delivery timeout
}


class KafkaTarget:
    """The topic of a sink. Rows become visible record by record."""

    takes: frozenset[type[Changes]] = frozenset({Append, Upsert})
    commit: Literal["own", "catalog"] = "catalog"
    atomic = False  # whether the records of a batch become visible together
    strict = False  # whether a row that cannot be encoded fails its job whatever ON ERROR says

    def __init__(self, sink: SinkDefinition, cluster: KafkaCluster) -> None:
        self.sink = sink
        self.cluster = cluster
        self.columns = SinkRecords(sink)
        self.observed: Observation | None = None  # counts the rows that were left out of what was written last
        self._partitions = 0  # 0: not known yet

    @property
    def keyed(self) -> bool:
        """Whether a record that is written again replaces the one before it."""
        return self.sink.envelope == "UPSERT"

    def begin(self, epoch: int) -> Ledger | None:
        self._check_topic()
        return None

    def _check_topic(self) -> Topic:
        """A producer would wait for a missing topic as for a broker."""
        topic = self.cluster.topics({self.sink.topic}).get(self.sink.topic)
        if topic is None:
            raise TargetTopicGone(self.sink.topic, self.sink.name)
        self._partitions = topic.partitions
        return topic

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        self._check_topic()
        return self._write(self.records(changes, lag(batch.start, batch.end)), batch, before_commit)

    def write_records(
        self, records: DataFrame | None, batch: Batch, before_commit: Callable[[], None] = lambda: None
    ) -> Written:
        """Write the records of a batch, as `write` does; None for a batch that has none."""
        self._check_topic()
        return self._write(records, batch, before_commit)

    def _write(self, records: DataFrame | None, batch: Batch, before_commit: Callable[[], None]) -> Written:
        """Write records to a topic that was checked."""
        if records is None:
            return Written(0)
        if is_armed("in_write", batch.task, batch.number):
            self.send(records.limit(max(1, records.count() // 2)))
            crash_point("in_write", batch.task, batch.number)
        self.send(records)
        return Written()

    def records(self, changes: Changes, read: int) -> DataFrame:
        """Topic, key and value of the records to write. `read` is how many records of the inputs they are made of.

        Rows that cannot be encoded are left out and counted by the job that reads the result, or fail it under HALT. A key
        keeps the value that it has in the topic then.
        """
        columns = self.columns
        match changes:
            case Append(rows, in_one_part):
                records = self._accepted(rows, columns.accepts_key & columns.accepts_value).select(*self._record())
                if self.sink.envelope == "UPSERT" or self.atomic:
                    return records
                return compute_before_write(records, read, in_one_part=in_one_part)
            case Upsert(rows, _, _, marked=True):
                present = F.col(PRESENT)
                accepts = columns.accepts_key & (~present | columns.accepts_value)
                return self._accepted(rows, accepts).select(*self._record(present))
            case Upsert(rows, key, changed):
                if changed is None:
                    return self._accepted(rows, columns.accepts_key & columns.accepts_value).select(*self._record())
                return self._with_deletions(rows, key, changed)
            case Diff():
                raise AssertionError("a topic takes no signed changes")

    def _accepted(self, rows: DataFrame, accepts: Column) -> DataFrame:
        """The rows that can be encoded, with the columns that choose the partition."""
        checked = self._checked(self.columns.partitioned(rows), accepts)
        return checked if self.observed is None else checked.where(accepts)

    def _record(self, present: Column | None = None) -> list[Column]:
        """The columns of a record. Only its key counts where there is no row."""
        value, headers = self.columns.value, self.columns.headers
        if present is not None:
            value = F.when(present, value)
            headers = None if headers is None else F.when(present, headers)
        found = [F.lit(self.sink.topic).alias("topic"), self.columns.key.alias("key"), value.alias("value")]
        return [
            *found,
            *self._partition(),
            *([] if headers is None else [headers.alias("headers")]),
            *self._time(present),
        ]

    def _time(self, present: Column | None = None) -> list[Column]:
        """The time of a record; NULL for a deletion whose time is not in its key. Spark's writer does not know this column."""
        columns = self.columns
        if columns.time is None:
            return []
        assert self.atomic, "Spark's writer cannot set the time of a record"
        time = columns.time.column()
        return [(time if present is None or columns.time_of_key else F.when(present, time)).alias("timestamp")]

    def _partition(self) -> list[Column]:
        if self.sink.partition_by is not None and not self._partitions:
            self._check_topic()
        return self.columns.partition(self._partitions)

    def _with_deletions(self, rows: DataFrame, key: tuple[str, ...], changed: DataFrame) -> DataFrame:
        """A record for every changed key; its value is NULL if the key has no row any more. Values are encoded before the
        join, because behind it every column could be NULL. A row that cannot be encoded is no deletion: its key is left
        out."""
        names, columns = [spark_identifier(name) for name in key], self.columns
        same = [internal_name(f"key_{index}") for index in range(len(names))]
        own = [F.col(name).alias(alias) for name, alias in zip(names, same, strict=True)]
        accepts = columns.accepts_key & columns.accepts_value
        encoded = self._checked(rows, accepts).select(
            *own,
            F.when(accepts, columns.value).alias(VALUE),
            (F.lit(None) if columns.headers is None else F.when(accepts, columns.headers)).alias(HEADERS),
            (F.lit(None) if columns.time is None else F.when(accepts, columns.time.column())).alias(TIME),
            accepts.alias(ACCEPTED),
        )
        every = changed.select(*[F.col(name) for name in names])
        on = [F.col(name).eqNullSafe(F.col(alias)) for name, alias in zip(names, same, strict=True)]
        joined = every.join(encoded, reduce(Column.__and__, on), "left")
        kept = joined.where(F.coalesce(F.col(ACCEPTED), columns.accepts_key))
        topic, key_bytes = F.lit(self.sink.topic).alias("topic"), columns.key.alias("key")
        headers = [] if columns.headers is None else [F.col(HEADERS).alias("headers")]
        if columns.time is not None:
            headers += self._time() if columns.time_of_key else [F.col(TIME).alias("timestamp")]
        return columns.partitioned(kept).select(
            topic, key_bytes, F.col(VALUE).alias("value"), *self._partition(), *headers
        )

    def _checked(self, rows: DataFrame, accepts: Column) -> DataFrame:
        """All rows. Those that cannot be encoded are counted, or fail the job under HALT and while it is `strict`."""
        self.observed = None
        if not self.columns.can_reject:
            return rows
        if self.strict or self.sink.on_error == "HALT":
            return rows.where(F.when(accepts, F.lit(True)).otherwise(F.raise_error(F.lit(BAD_ROW)).cast("boolean")))
        self.observed = Observation()
        return rows.observe(self.observed, F.count_if(~accepts).alias(REJECTED))

    def send(self, records: DataFrame) -> None:
        """Write records; all of them are acknowledged when it returns."""
        records.write.mode("append").format("kafka").options(**self.options()).save()

    def options(self) -> dict[str, str]:
        """The options of Spark's Kafka writer."""
        codec = {} if self.sink.compression is None else {"kafka.compression.type": self.sink.compression}
        return {**self.cluster.spark(), **WRITER, **codec}

    def contents(self, session: SparkSession) -> Upsert:
        """The last value of every key, as bytes, with its headers if the sink writes some, and its partition. Keys that were
        deleted are not in it."""
        values = ["value", *([] if self.sink.headers is None else ["headers"])]
        reader = session.read.format("kafka").options(**self.cluster.spark(), **READER)
        reader = reader.option("includeHeaders", str("headers" in values).lower())
        return Upsert(last_of_keys(reader.option("subscribe", self.sink.topic).load(), values), ("key",))

    def explain(self, error: BaseException) -> BaseException:
        return RecordTooLarge(self.sink.topic, self.sink.name) if record_is_too_large(error) else error

    def close(self) -> None:
        """Producers belong to Spark."""


def last_of_keys(records: DataFrame, values: Sequence[str]) -> DataFrame:
    """The last record of every key that is not deleted: key, partition and some values. Offsets order within a partition, and
    times only between partitions: the clock of a producer may go back, or be another machine's."""
    last = F.max_by(F.struct("timestamp", *values), "offset").alias("last")
    of_partition = records.where("key IS NOT NULL").groupBy("key", "partition").agg(last)
    order = F.struct(F.col("last.timestamp"), F.col("partition"))
    found = of_partition.groupBy("key").agg(
        F.max_by("last", order).alias("last"), F.max_by("partition", order).alias("partition")
    )
    return found.select("key", "partition", *[f"last.{name}" for name in values]).where("value IS NOT NULL")


def compute_before_write(records: DataFrame, most: int, *, in_one_part: bool = False) -> DataFrame:
    """Compute every record before the first is written. Otherwise a record that fails half-way leaves others written, and an
    append topic gets them again on every retry.

    The order is kept. At most `most` records come out. A few are sorted by one worker, which needs no second stage. Every
    further step costs Spark a look at the whole plan, which with many small tasks is most of a batch's time; so the column
    that it sorts by stays, and the writer ignores it.
    """
    if most <= SINGLE_WORKER_ROWS:
        ordered = records.withColumn("hg_order", F.monotonically_increasing_id())
        return (ordered if in_one_part else ordered.coalesce(1)).sortWithinPartitions("hg_order")
    return records.withColumn("hg_partition", F.spark_partition_id()).repartition("hg_partition")
