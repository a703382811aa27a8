"""A sink at work: from records of its source's topic to records of its own, and the ledger of how far it came.

The ledger is the truth about progress. A batch writes its intent first, then its output, then the ledger: after a
crash the batch is computed again from the ledger's offsets, so that nothing is lost and a keyed topic ends up the
same. Which query brings the records is the group's business (``task_group``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.store import Store
from headgate.catalog.tasks import Intent, Ledger, PartitionOffset, Quarantined
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.errors import HeadgateError
from headgate.plan.definitions import TaskDefinition
from headgate.runtime.decode import count_rows
from headgate.runtime.deletes import deleted_keys
from headgate.runtime.encode import encode
from headgate.runtime.errors import (
    RecordsLost,
    RecordTooLarge,
    TargetTopicGone,
    TopicReplaced,
    TopicTruncated,
)
from headgate.runtime.failures import bad_record, path_of, record_is_too_large, records_are_gone, translated
from headgate.runtime.relations import RelationFrames
from headgate.runtime.source import SourceReader, Suspect

FURTHER = 10_000  # records of a partition that came since a batch's end was fixed, and are taken along
FEW = 10_000  # records of a batch that one worker does alone
BEFORE_THE_FIRST = -1  # number of the batch that a new task's ledger tells of
CHUNK = 500  # bad records that are put into the quarantine at once

SMALL = 1_000  # bytes of a bad record that Spark hands over; it keeps all of a batch in memory at once
LARGEST_KEPT = 100_000  # bytes of a bad record that are kept in the quarantine

_RAW = "CASE hg_problem.side WHEN 'key' THEN key ELSE value END"
QUARANTINED = (
    "topic",
    "partition",
    "offset",
    "unix_micros(timestamp) AS time",
    "hg_problem.side AS side",
    "hg_problem.reason AS reason",
    "hg_problem.schema_id AS schema_id",
    f"{_RAW} IS NOT NULL AND length({_RAW}) > {SMALL} AS large",
    f"CASE WHEN length({_RAW}) <= {SMALL} THEN {_RAW} END AS raw",
)

LARGEST_REQUEST = 100_000_000  # bytes, about what a broker takes at most
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Offsets = Mapping[int, int]


@dataclass(slots=True)
class Progress:
    """What a task tells of itself while it runs."""

    batch: int | None = None
    rows: int = 0
    skipped: int = 0
    lag: int | None = None
    batches: int = 0
    batch_seconds: float = 0.0  # of all batches together
    last_commit: datetime | None = None


class SinkTask:
    """One sink. ``begin`` finds where it left off; then, for every batch, ``intend``, ``records`` and ``finish``."""

    def __init__(
        self,
        task: TaskDefinition,
        clients: Clients,
        store: Store,
        told: Callable[[Progress], None],
    ) -> None:
        self.id = task.id
        self.name = task.name
        self.definition = task
        self.sink = task.sink
        self.source = SourceReader(task.source, clients)
        self.target = clients.kafka(task.sink.connection)
        self.progress = Progress()
        self.topic: Topic
        self.reached: dict[int, int] = {}
        self.there: dict[int, int] = {}  # where the topic ended when the task began
        self.store = store
        self._told = told
        self._generation = 0
        self._began = 0.0
        self._decoded: DataFrame | None = None
        self._record: tuple[Column, Column, Column] | None = None
        self._proven: set[Suspect] = set()  # schemas that change nothing that the task uses
        self._tried: Suspect | None = None

    @property
    def group(self) -> tuple[str, str]:
        """Tasks with the same are run by one query."""
        return self.source.cluster.brokers, self.target.brokers

    # where it stands

    def begin(self) -> None:
        """Look at the topic and the ledger. A new generation, because a new query counts its batches from 0. Where a new
        task begins is written down at once: what is deleted before its first batch would else not be missed."""
        self.topic = self.source.cluster.topic(self.source.topic_name)
        self.check_target(self.target.topics({self.sink.topic}))
        ledger = self.store.ledger(self.id)
        self._generation = (ledger.generation if ledger else 0) + 1
        self.there = self.source.cluster.offsets(self.topic, latest=True)
        self.reached = self._start(ledger)
        if ledger is None:
            begin = self._partition_offsets(self.reached)
            self.store.advance(Ledger(self.id, self._generation, BEFORE_THE_FIRST, begin))
        self.progress.lag = self.waiting(self.there)

    def check_target(self, topics: Collection[str]) -> None:
        """That its own topic is among those that the target has. A producer would wait for it as for a broker."""
        if self.sink.topic not in topics:
            raise TargetTopicGone(self.sink.topic, self.name)

    def _start(self, ledger: Ledger | None) -> dict[int, int]:
        """The ledger's offsets; partitions that it does not know were added, and begin at 0. A topic that is another one
        is refused, and so is one that has lost some of its records, whether they were read or not."""
        if ledger is None or not ledger.offsets:
            return self.source.start_offsets(self.topic)
        known = {o.partition: o for o in ledger.offsets}
        if any(o.topic_id not in (None, self.topic.id) for o in known.values()):
            raise self._replaced()
        earliest = self.source.cluster.offsets(self.topic, latest=False)
        start = {p: known[p].offset if p in known else 0 for p in earliest}
        if trouble := self._lost(start, earliest) or self._cut(start):
            raise trouble
        return start

    def wants(self, end: Offsets) -> bool:
        return self.waiting(end) > 0

    def waiting(self, end: Offsets) -> int:
        """How many offsets there are up to a batch's end."""
        return sum(max(0, offset - self.reached.get(p, 0)) for p, offset in end.items())

    # a batch

    def intend(self, batch: int, end: Offsets, topic: Topic | None) -> None:
        """Say durably what the batch will read, of the topic that is there now. Raises TopicReplaced: offsets do not
        identify a topic's records."""
        if topic is None or topic.id != self.topic.id:
            raise self._replaced()
        self._began = time.monotonic()
        offsets = self._partition_offsets(end)
        now = datetime.now(UTC)
        self.store.intend(
            Intent(self.id, self._generation, batch, offsets, (), (), self.definition.catalog_version, now)
        )

    def end_before_halt(self, end: Offsets, raw: Callable[[], DataFrame]) -> Offsets:
        """Where the batch ends, so that nothing is written twice if a schema halts the task: before the first record that
        may do it. That one is then tried alone; if it does not, the task has no use for what its schema changed."""
        first = self.source.suspects(raw, self._proven)
        before = {p: min(o, first[p][0]) if p in first else o for p, o in end.items()}
        if not first or self.wants(before):
            return before
        partition = min(first)
        offset, self._tried = first[partition]
        return {**before, partition: offset + 1}

    def records(self, raw: DataFrame, end: Offsets) -> DataFrame:
        """Topic, key and value of what is to be written for raw records of the source's topic, which are those up to
        ``end``."""
        self._decoded = self.source.decode(raw)
        records = self.outgoing(raw.sparkSession, self.source.changes(self._decoded))
        if self.sink.envelope == "UPSERT":
            return records
        read = sum(offset > self.reached.get(p, 0) for p, offset in end.items())  # partitions
        in_one_part = read == 1 and self.source.layout.envelope == "NONE"  # a keyed source is shuffled
        return all_or_none(records, self.waiting(end), in_one_part=in_one_part)

    def outgoing(self, session: SparkSession, changed: DataFrame) -> DataFrame:
        """Topic, key and value of what is to be written for changes of the source."""
        current = self.source.current(changed)
        frames = RelationFrames(session, self.definition.relations, lambda _: current)
        rows = frames.relation(self.sink.relation)
        written = rows.select(*self._encoded())
        deleted = deleted_keys(self.definition, self.source, changed, rows)
        return written if deleted is None else written.unionByName(deleted)

    def _encoded(self) -> tuple[Column, Column, Column]:
        if self._record is None:
            key = encode(self.sink.key) if self.sink.key is not None else F.lit(None).cast("binary")
            value = encode(self.sink.value)
            self._record = F.lit(self.sink.topic).alias("topic"), key.alias("key"), value.alias("value")
        return self._record

    def finish(self, batch: int, end: Offsets, latest: Offsets) -> None:
        """The batch is written and its bad records are aside: move the ledger, tell. ``latest`` is where the topic ends."""
        self.store.advance(Ledger(self.id, self._generation, batch, self._partition_offsets(end)))
        self.progress.rows += self.waiting(end)
        self.reached = dict(end)
        if self._tried is not None:
            self._proven.add(self._tried)
            self._tried = None
        self.progress.batch = batch
        self.progress.batches += 1
        self.progress.batch_seconds += time.monotonic() - self._began
        self.progress.last_commit = datetime.now(UTC)
        self.progress.lag = self.waiting(latest)
        self._told(self.progress)

    def _partition_offsets(self, offsets: Offsets) -> tuple[PartitionOffset, ...]:
        topic = self.topic
        return tuple(
            PartitionOffset(topic.name, p, offset, topic.id) for p, offset in sorted(offsets.items())
        )

    # what is wrong

    def translated(self, error: BaseException) -> HeadgateError:
        if records_are_gone(error) and (told := self._what_is_gone()) is not None:
            return told
        if record_is_too_large(error):
            return RecordTooLarge(self.sink.topic, self.name)
        brokers = dict.fromkeys((self.source.cluster.brokers, self.target.brokers))
        return translated(error, [self.source], " or ".join(brokers))

    def _what_is_gone(self) -> HeadgateError | None:
        """Why the topic lacks what was asked of it, as far as that can be told now."""
        try:
            if self.source.cluster.topic(self.source.topic_name).id != self.topic.id:
                return self._replaced()
            earliest = self.source.cluster.offsets(self.topic, latest=False)
            self.there = self.source.cluster.offsets(self.topic, latest=True)
        except HeadgateError as away:
            return away
        return self._lost(self.reached, earliest) or self._cut(self.reached)

    def _lost(self, reached: Offsets, earliest: Offsets) -> RecordsLost | None:
        """What was deleted before it was read: of the first partition that it happened to."""
        for partition, first in sorted(earliest.items()):
            if (wanted := reached.get(partition, 0)) < first:
                return RecordsLost(self.topic.name, partition, wanted, first)
        return None

    def _cut(self, reached: Offsets) -> TopicTruncated | None:
        """A partition that ends before what was read of it. One that begins at an offset which it does not have yet was
        not read."""
        begins = self.source.start_at
        for partition, offset in sorted(reached.items()):
            end = self.there[partition]
            if offset > end and offset > begins.get(partition, 0):
                return TopicTruncated(self.topic.name, partition, offset, end, f'sink "{self.name}"')
        return None

    def _replaced(self) -> TopicReplaced:
        begins = self.source.name if self.source.start_at else None
        return TopicReplaced(self.topic.name, f'sink "{self.name}"', begins)

    def held(self) -> tuple[Quarantined, ...]:
        """The records that are in the quarantine."""
        return self.store.quarantined(self.id)

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined]) -> None:
        self.store.release(leaving, staying)

    def set_aside(self) -> None:
        """Count the bad records of the batch, and keep them if the policy says so."""
        if self.source.layout.on_error == "HALT":
            return
        assert self._decoded is not None
        bad = self._decoded.where("hg_problem IS NOT NULL")
        if self.source.layout.on_error == "SKIP":
            self.progress.skipped += count_rows(bad)
            return
        for chunk in _chunks(bad.selectExpr(*QUARANTINED).toLocalIterator(), CHUNK):
            self.store.quarantine(list(self._all_quarantined(chunk)))
            self.progress.skipped += len(chunk)

    def _all_quarantined(self, rows: Iterable[Row]) -> Iterator[Quarantined]:
        """The bytes of large records are read from the topic, and dropped one by one."""
        ordered = sorted(rows, key=lambda row: (row["partition"], row["offset"]))
        large = [(row["partition"], row["offset"]) for row in ordered if row["large"]]
        read = self.source.cluster.read_records(self.topic.name, large) if large else iter(())
        for row in ordered:
            record = next(read) if row["large"] else None
            yield self.quarantined(row, record and record[0 if row["side"] == "key" else 1])

    def quarantined(self, row: Row, large: bytes | None = None) -> Quarantined:
        """A bad record, selected by `QUARANTINED`, and its bytes if it is a large one."""
        side, raw = row["side"], bytes(row["raw"]) if row["raw"] is not None else large
        place = row["partition"], row["offset"]
        told = bad_record(self.source, *place, side, row["reason"], row["schema_id"], raw)
        return Quarantined(
            self.source.id,
            self.id,
            row["topic"],
            *place,
            EPOCH + timedelta(microseconds=row["time"]),
            row["schema_id"],
            told.path or path_of(side, told.reason),
            self.source.expected(side),
            told.reason + _not_kept(row["large"], raw),
            raw if raw is not None and len(raw) <= LARGEST_KEPT else None,
        )


def end_of_batch(reached: Offsets, given: Offsets, latest: Offsets) -> dict[int, int]:
    """Up to where a task reads: to where its topic ends now, unless that is far behind the end which the batch was given.
    One that begins at an offset which the topic does not have yet stays there."""
    begun = {p: max(given.get(p, 0), reached.get(p, 0)) for p in (*reached, *given, *latest)}
    return {p: o if (new := latest.get(p, o)) - o > FURTHER else max(o, new) for p, o in begun.items()}


def send(records: DataFrame, target: KafkaCluster) -> None:
    """Write topic, key and value. A send that is tried again is not doubled; the broker judges what is too large."""
    writer = records.write.mode("append").format("kafka").options(**target.spark())
    writer = writer.option("kafka.enable.idempotence", "true")
    writer.option("kafka.max.request.size", str(LARGEST_REQUEST)).save()


def all_or_none(records: DataFrame, most: int, *, in_one_part: bool = False) -> DataFrame:
    """The same records in the same order, of which Spark gives none before all are computed. One that cannot be would
    else stop the batch when others of it are written already, and these would be written again with every new try;
    in a topic without keys they stay. ``most`` is how many records they are made of: a few are sorted by one worker,
    which takes no second stage. Every step costs a look of Spark at the whole plan, which with many small tasks is most of
    a batch's time; so the column that it goes by stays, and the writer passes it over."""
    if most <= FEW:
        placed = records.withColumn("hg_place", F.monotonically_increasing_id())
        return (placed if in_one_part else placed.coalesce(1)).sortWithinPartitions("hg_place")
    return records.withColumn("hg_part", F.spark_partition_id()).repartition("hg_part")


def _not_kept(large: bool, raw: bytes | None) -> str:
    """Why the quarantine has no bytes of a record that has some."""
    if raw is not None and len(raw) > LARGEST_KEPT:
        return f" (its {len(raw):,} bytes are too many to be kept here)"
    return " (its bytes were gone before they could be kept)" if large and raw is None else ""


def _chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield chunk
