"""The topic and the sink of a task that runs in real time, as far as they differ from those of micro-batches.

A streaming query writes on after the ledger. When it ends, nobody knows exactly which of its last records are in the target.
One more batch from the ledger to where the query came settles that: it writes only what the target lacks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, KafkaRecord, Position, furthest, lag, limited
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.plan.definitions import PRESENT, SinkDefinition
from headgate.runtime.decode import Decoder, stops_at_other_ids
from headgate.runtime.errors import TargetTopicGone
from headgate.runtime.failures import StoppedAt
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Append, Batch, Changes, Ledger, Limit, Upsert, Written
from headgate.runtime.source import READER, ArrivedSchema, offsets_json
from headgate.runtime.targets.kafka import BAD_ROW, KafkaTarget

DELIVERY = 0.04  # seconds in which a producer sends what an ended query gave it, if nothing is in its way
LINGER = "5"  # ms; RUNTIME: with 0 the producer has a third of its throughput

# Both sides as one frame: the record that should be the last of its key, and the one that is. One shuffle instead of a join.
UNWRITTEN = """
SELECT hg_wanted.* FROM (
  SELECT max_by(hg_wanted, hg_order) FILTER (WHERE hg_is_wanted) AS hg_wanted,
    max_by(hg_held, hg_order) FILTER (WHERE NOT hg_is_wanted) AS hg_held
  FROM {both} GROUP BY key
) WHERE hg_wanted IS NOT NULL AND (hg_held IS NULL OR NOT ({same}))"""
SAME_VALUE = "hg_wanted.value <=> hg_held.value"
# A record without headers is read with NULL, and may be written with none.
NO_HEADERS = "CAST(array() AS array<struct<key: string, value: binary>>)"
SAME_HEADERS = f"coalesce(hg_wanted.headers, {NO_HEADERS}) <=> coalesce(hg_held.headers, {NO_HEADERS})"


class LiveInput(KafkaInput):
    """A source that a streaming query reads.

    While `bound` is set, a batch ends there, takes up no new schema, and fails at a record whose schema the query did not
    know: such a record was not written.
    """

    bound: KafkaPosition | None = None

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> KafkaPosition:  # fmt: skip
        if self.bound is None:
            return super().choose_end(session, start, limit, available, mark)
        assert isinstance(start, KafkaPosition)
        return limited(start, furthest(start, self.bound), limit.rows)

    def partitions(self) -> int:
        """How many partitions the topic has now."""
        return self._topic().partitions

    def _raw(self, session: SparkSession, start: KafkaPosition, end: KafkaPosition) -> DataFrame:
        raw = super()._raw(session, start, end)
        return raw if self.bound is None else raw.where(self._known_ids())

    def _known_ids(self) -> Column:
        """Fails at a record whose schema changes what the source gives, or may halt the task, or is not known."""
        guards = [stops_at_other_ids(self.reader.id, name, ids) for name, ids in self.passed_ids().items()]
        return reduce(Column.__and__, guards, F.lit(True))

    def passed_ids(self) -> dict[str, frozenset[int]]:
        """The schema ids of each side whose records a query passes on."""
        found: dict[str, frozenset[int]] = {}
        for name, side in self.reader.schemas.items():
            if side.uses_registry:
                writers = side.writers()
                growing = {schema.id for schema in side.followable()}
                safe = {*writers.known, *writers.unknown_ids} - growing - writers.halting - {*writers.unreadable_fields}
                found[name] = frozenset(id_ for id_ in safe if id_ is not None)
        return found

    def arrived_with(self, stopped: StoppedAt) -> ArrivedSchema | None:
        """The schema that the source must follow, if that is what stopped a query."""
        if stopped.side is None or stopped.schema_id is None:
            return None
        reader = self.reader
        reader.refresh()
        reader.schemas[stopped.side].learn(stopped.schema_id)
        growing = {schema.id: schema for schema in reader.schemas[stopped.side].followable()}
        place = KafkaRecord(reader.topic_name, stopped.partition, stopped.offset)
        schema = growing.get(stopped.schema_id)
        return None if schema is None else ArrivedSchema(schema, place, stopped.side)

    def knows_schema(self, stopped: StoppedAt) -> bool:
        """Whether a schema stopped a query, and the registry has it."""
        if stopped.side is None or stopped.schema_id is None:
            return False
        return self.reader.schemas[stopped.side].schema(stopped.schema_id) is not None

    def has_new_version(self) -> bool:
        """Whether a subject has a version that nobody has looked at. Any thread may ask."""
        return any(side.has_new_version() for side in self.reader.schemas.values())

    def stream(self, session: SparkSession, start: KafkaPosition) -> Changes:
        """The changes from ``start`` on, for ever. A bad record ends the query, under every policy: the batch after it deals
        with the record."""
        reader = self.reader
        options = reader.options()
        # Kafka's default of 500 ms. A broker answers at once when a record comes, and 10 ms would cost CPU for nothing.
        options.pop("kafka.fetch.max.wait.ms", None)
        source = session.readStream.format("kafka").options(**options).option("subscribe", reader.topic_name)
        source = source.option("groupIdPrefix", f"{self._group}-live")
        raw = source.option("startingOffsets", offsets_json(reader.topic_name, start.by_partition)).load()
        layout = replace(reader.layout, on_error="HALT")
        decoder = Decoder(layout, reader.schemas["key"].writers(), reader.schemas["value"].writers(), reader.id)
        accepted = decoder.accepted(decoder.decode_stream(raw.where(self._known_ids())))
        if layout.envelope == "NONE":
            return Append(decoder.columns(accepted))
        key = tuple(column.name for column in layout.columns if column.key)
        return Upsert(decoder.marked(accepted), key, marked=True)


class LiveTarget(KafkaTarget):
    """The topic of a sink that a streaming query writes.

    ``tail`` has the next offset of each partition at a moment before the records that may be there already; None if it is
    known which are. While it is set, only those records are written that are not the last of their key behind it.
    """

    def __init__(self, sink: SinkDefinition, cluster: KafkaCluster) -> None:
        super().__init__(sink, cluster)
        self.tail: Mapping[int, int] | None = None
        self._topic_id: str | None = None  # of the topic that a query writes

    def begin(self, epoch: int) -> Ledger | None:
        self._topic_id = None
        return super().begin(epoch)

    def ends(self) -> dict[int, int]:
        """The next offset of each partition now. Raises TargetTopicGone also if the topic was made anew since `begin`: a
        producer does not notice that."""
        return self.cluster.offsets(self._same_topic(), latest=True)

    def _same_topic(self) -> Topic:
        topic = self.cluster.topics({self.sink.topic}).get(self.sink.topic)
        if topic is None or self._topic_id not in (None, topic.id):
            raise TargetTopicGone(self.sink.topic, self.sink.name)
        self._topic_id = topic.id
        return topic

    def await_delivery(self) -> None:
        """Let the producer send what the query gave it. What comes later is not lost, but is written twice."""
        time.sleep(DELIVERY)
        before, deadline = self.ends(), time.monotonic() + 1.0
        while time.monotonic() < deadline:
            time.sleep(DELIVERY / 2)
            now = self.ends()
            if now == before:
                return
            before = now

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        if self.tail is None:
            return super().write(changes, batch, before_commit)
        self._check_topic()
        records = self.unwritten(self.records(changes, lag(batch.start, batch.end)), self.tail)
        return self._write(records, batch, before_commit)

    def unwritten(self, records: DataFrame, tail: Mapping[int, int]) -> DataFrame:
        """The records that the topic lacks. Of several records of a key only the last counts."""
        start, now = self.behind(tail)
        reader = records.sparkSession.read.format("kafka").options(**self.cluster.spark(), **READER)
        reader = reader.option("subscribe", self.sink.topic).option(
            "startingOffsets", offsets_json(self.sink.topic, start)
        )
        reader = reader.option("includeHeaders", str("headers" in records.columns).lower())
        found = reader.option("endingOffsets", offsets_json(self.sink.topic, now)).load()
        return lacking(records, found)

    def behind(self, tail: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """From where to where the records behind a tail are. The topic may have lost the first of them, or been made anew
        while the task was paused."""
        topic = self._same_topic()
        first, now = (self.cluster.offsets(topic, latest=latest) for latest in (False, True))
        return {p: min(max(tail.get(p, 0), first.get(p, 0)), end) for p, end in now.items()}, now

    def send(self, records: DataFrame) -> None:
        """While records of a query may still be in its producer, the same producer writes: it keeps their order."""
        if self.tail is None:
            super().send(records)
            return
        records.write.mode("append").format("kafka").options(**self.live_options()).save()

    def live_options(self) -> dict[str, str]:
        """The options of the writer of a query."""
        return {**self.options(), "kafka.linger.ms": LINGER}

    def streamed(self, changes: Changes) -> DataFrame:
        """The records of changes on a stream. A row that cannot be encoded ends the query, under every policy: the batch after
        it deals with the row."""
        columns, present = self.columns, None
        accepts = columns.accepts_key & columns.accepts_value
        if isinstance(changes, Upsert):
            assert changes.marked, "a stream knows no other rows of a key"
            present = F.col(PRESENT)
            accepts = columns.accepts_key & (~present | columns.accepts_value)
        rows = columns.partitioned(changes.rows)
        if columns.can_reject:
            rows = rows.where(F.when(accepts, F.lit(True)).otherwise(F.raise_error(F.lit(BAD_ROW)).cast("boolean")))
        return rows.select(*self._record(present))


def lacking(records: DataFrame, found: DataFrame) -> DataFrame:
    """The last record of each key, unless it is the last of what was ``found`` of that key in the topic."""
    columns = F.struct(*[F.col(name) for name in records.columns])
    compared = ["value", *(["headers"] if "headers" in records.columns else [])]
    nothing = F.struct(*[F.lit(None).cast(records.schema[name].dataType).alias(name) for name in compared])
    # A record of the topic comes after another by its offset, as a key stays in its partition; a wanted one by its place.
    wanted = records.withColumn("hg_order", F.monotonically_increasing_id()).select(
        "key", columns.alias("hg_wanted"), nothing.alias("hg_held"), "hg_order", F.lit(True).alias("hg_is_wanted")
    )
    held = found.select(
        "key",
        F.lit(None).cast(wanted.schema["hg_wanted"].dataType).alias("hg_wanted"),
        F.struct(*compared).alias("hg_held"),
        F.col("offset").alias("hg_order"),
        F.lit(False).alias("hg_is_wanted"),
    )
    same = " AND ".join([SAME_VALUE, *([SAME_HEADERS] if "headers" in compared else [])])
    return records.sparkSession.sql(UNWRITTEN.replace("{same}", same), both=wanted.unionAll(held))


def kafka_offsets(text: str, topic: str) -> dict[int, int]:
    """Offsets as Spark's Kafka source writes them."""
    return {int(partition): offset for partition, offset in json.loads(text)[topic].items()}
