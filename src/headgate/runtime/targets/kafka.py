"""A Kafka topic as the target of a task, at least once: the catalog keeps the ledger.

A topic cannot fence off an old writer. `delivery.timeout.ms` is therefore shorter than the lease: what a stopped engine
has handed to its producer expires before another engine may begin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.positions import lag
from headgate.connectors.kafka import KafkaCluster
from headgate.plan.definitions import PRESENT, RecordEncoding, SinkDefinition
from headgate.runtime.crash_points import crash_point, is_armed
from headgate.runtime.errors import RecordTooLarge, TargetTopicGone
from headgate.runtime.failures import record_is_too_large
from headgate.runtime.formats.writers import RecordWriter, row_of
from headgate.runtime.ports import Append, Batch, Changes, Diff, Ledger, Upsert, Written
from headgate.runtime.source import READER
from headgate.schema.render import spark_identifier

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

    def __init__(self, sink: SinkDefinition, cluster: KafkaCluster) -> None:
        self.sink = sink
        self.cluster = cluster

    @cached_property
    def _columns(self) -> tuple[Column, Column, Column]:
        """Topic, key and value over the columns of the relation. Made when Spark runs."""
        sink = self.sink
        key = F.lit(None).cast("binary") if sink.key is None else _encoded(sink.key)
        value = _encoded(sink.value)
        return F.lit(self.sink.topic).alias("topic"), key.alias("key"), value.alias("value")

    def begin(self, epoch: int) -> Ledger | None:
        self._check_topic()
        return None

    def _check_topic(self) -> None:
        """A producer would wait for a missing topic as for a broker."""
        if self.sink.topic not in self.cluster.topics({self.sink.topic}):
            raise TargetTopicGone(self.sink.topic, self.sink.name)

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        self._check_topic()
        records = self.records(changes, lag(batch.start, batch.end))
        if is_armed("in_write", batch.number):
            self.send(records.limit(max(1, records.count() // 2)))
            crash_point("in_write", batch.number)
        self.send(records)
        return Written()

    def records(self, changes: Changes, read: int) -> DataFrame:
        """Topic, key and value of the records to write. `read` is how many records of the inputs they are made of."""
        match changes:
            case Append(rows, in_one_part):
                records = rows.select(*self._columns)
                if self.sink.envelope == "UPSERT":
                    return records
                return compute_before_write(records, read, in_one_part=in_one_part)
            case Upsert(rows, _, _, marked=True):
                topic, key_bytes, value = self._columns
                return rows.select(topic, key_bytes, F.when(F.col(PRESENT), value).alias("value"))
            case Upsert(rows, key, changed):
                if changed is None:
                    return rows.select(*self._columns)
                return self._with_deletions(rows, key, changed)
            case Diff():
                raise AssertionError("a topic takes no signed changes")

    def streamed(self, changes: Changes) -> DataFrame:
        """The records of changes on a stream, each of which is a record of the input."""
        if isinstance(changes, Append):
            return changes.rows.select(*self._columns)
        assert isinstance(changes, Upsert)
        assert changes.marked, "a stream knows no other rows of a key"
        return self.records(changes, 0)

    def _with_deletions(self, rows: DataFrame, key: tuple[str, ...], changed: DataFrame) -> DataFrame:
        """A record for every changed key; its value is NULL if the key has no row any more. Values are encoded before the
        join, because behind it every column could be NULL."""
        names = [spark_identifier(name) for name in key]
        topic, key_bytes, value = self._columns
        same = [f"hg_key_{index}" for index in range(len(names))]
        own = [F.col(name).alias(alias) for name, alias in zip(names, same, strict=True)]
        encoded = rows.select(*own, value.alias("hg_value"))
        every = changed.select(*[F.col(name) for name in names])
        on = [F.col(name).eqNullSafe(F.col(alias)) for name, alias in zip(names, same, strict=True)]
        joined = every.join(encoded, reduce(Column.__and__, on), "left")
        return joined.select(topic, key_bytes, F.col("hg_value").alias("value"))

    def send(self, records: DataFrame) -> None:
        """Write records; all of them are acknowledged when it returns."""
        records.write.mode("append").format("kafka").options(**self.cluster.spark(), **WRITER).save()

    def contents(self, session: SparkSession) -> Upsert:
        """The last value of every key, as bytes. Keys that were deleted are not in it."""
        reader = session.read.format("kafka").options(**self.cluster.spark(), **READER)
        records = reader.option("subscribe", self.sink.topic).load().where("key IS NOT NULL")
        order = F.struct("timestamp", "partition", "offset")
        last = records.groupBy("key").agg(F.max_by("value", order).alias("value"))
        return Upsert(last.where("value IS NOT NULL"), ("key",))

    def explain(self, error: BaseException) -> BaseException:
        return RecordTooLarge(self.sink.topic, self.sink.name) if record_is_too_large(error) else error

    def close(self) -> None:
        """Producers belong to Spark."""


def _encoded(side: RecordEncoding) -> Column:
    return RecordWriter(side).encode(row_of(side))


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
