"""A Kafka topic as the input of a task: where to go on, how far a batch goes, its rows, and its bad records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, Observation, SparkSession

from headgate.catalog.positions import KafkaPosition, Position, distance, furthest, limited
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import Topic
from headgate.errors import HeadgateError
from headgate.plan.definitions import SourceDefinition
from headgate.runtime.decode import REJECTED, REJECTED_BYTES
from headgate.runtime.errors import RecordsLost, TopicReplaced, TopicTruncated
from headgate.runtime.failures import records_are_gone, translated, unknown_schema_id
from headgate.runtime.ports import (
    NOTHING_REJECTED,
    Append,
    Changes,
    Limit,
    ManyRejected,
    Rejected,
    ReplanNeeded,
    Upsert,
    Watched,
)
from headgate.runtime.quarantine import QuarantineFiles, explained, quarantined
from headgate.runtime.source import SourceReader, Suspect

log = logging.getLogger(__name__)

SURE_ROWS = 1_000  # a batch of so few records is not worth a look at their size
LOOKS = 4  # partitions in which records are looked at
LOOK_EVERY = 10  # large batches that one look serves


class KafkaInput:
    """One source of a task. `task_id` and `task_name` appear in quarantined records and errors; `brokers` names the
    clusters that a failed batch may not have reached, and `group` is the consumer group. `files` is where many bad
    records go; without it all go to the catalog, which has `in_catalog` of the task already."""

    def __init__(
        self,
        source: SourceDefinition,
        clients: Clients,
        task_id: int,
        task_name: str,
        brokers: str,
        group: str,
        files: QuarantineFiles | None = None,
        in_catalog: Callable[[], int] = lambda: 0,
    ) -> None:
        self.reader = SourceReader(source, clients)
        self.task_id = task_id
        self.task_name = task_name
        self._brokers = brokers
        self._group = group
        self._files = files
        self.in_catalog = in_catalog
        self._decoded: DataFrame | None = None
        self._observed: Observation | None = None  # None if a bad record halts the task
        self._harmless: set[Suspect] = set()  # schemas that change nothing that the task uses
        self._under_test: Suspect | None = None
        self._record_bytes = 0.0  # of a record, as estimated last
        self._looked_for = 0  # large batches since the estimate, up to LOOK_EVERY

    known_end = None  # a poller asks for it

    @property
    def watched(self) -> Watched:
        return Watched(self.reader.cluster, self.reader.topic_name)

    # Where to go on

    def begin(self) -> KafkaPosition:
        topic = self._topic()
        return _position(topic, self.reader.start_offsets(topic))

    def check(self, position: Position) -> None:
        """Offsets do not identify records: a topic that is another one is refused, and so is one that has lost some of its
        records, whether they were read or not."""
        known, topic = _kafka(position), self._topic()
        if known.topic_id != topic.id:
            raise self._replaced()
        if trouble := self._missing_records(known, topic):
            raise trouble

    def _topic(self) -> Topic:
        return self.reader.cluster.topic(self.reader.topic_name)

    def _missing_records(self, reached: KafkaPosition, topic: Topic) -> HeadgateError | None:
        """Why the topic lacks records that were not read yet, or ends before those that were."""
        cluster, offsets = self.reader.cluster, reached.by_partition
        for partition, first in sorted(cluster.offsets(topic, latest=False).items()):
            if (wanted := offsets.get(partition, 0)) < first:
                return RecordsLost(topic.name, partition, wanted, first)
        ends = cluster.offsets(topic, latest=True)
        for partition, offset in offsets.items():
            end = ends.get(partition, 0)
            # A task may begin at an offset that its partition does not have yet. It has not read up to there.
            if offset > end and offset > self.reader.start_at.get(partition, 0):
                return TopicTruncated(topic.name, partition, offset, end, self.task_name)
        return None

    def _replaced(self) -> TopicReplaced:
        source = self.reader.name if self.reader.start_at else None
        return TopicReplaced(self.reader.topic_name, self.task_name, source)

    # A batch

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> KafkaPosition:  # fmt: skip
        begin = _kafka(start)
        latest = self.end() if available is None else _kafka(available)
        if latest.topic_id != begin.topic_id:
            raise self._replaced()
        end = limited(begin, latest, limit.rows)
        if (fitting := self.fitting_rows(begin, end, limit.bytes)) < limit.rows:
            end = limited(begin, end, fitting)
        if mark is not None:
            end = furthest(end, _kafka(mark))
        if end == begin:
            return begin
        self.reader.refresh()
        few = distance(begin, end) <= SURE_ROWS
        if arrived := self.reader.arrived(lambda: self._raw(session, begin, end), few=few):
            raise ReplanNeeded(self.reader.id, arrived)
        return self._end_before_halting_schema(session, begin, end)

    def fitting_rows(self, begin: KafkaPosition, end: KafkaPosition, most_bytes: int) -> int:
        """How many records have about so many bytes. Offsets say nothing about bytes, so some records of a large batch are
        looked at, and then no more for a while."""
        rows = distance(begin, end)
        if rows <= SURE_ROWS:
            return rows
        if self._looked_for == 0:
            places = [(p, (begin.by_partition.get(p, 0) + o) // 2) for p, o in end.by_partition.items()]
            backlog = sorted(places, key=lambda place: begin.by_partition.get(place[0], 0) - place[1])
            self._record_bytes = self.reader.cluster.mean_record_bytes(self.reader.topic_name, backlog[:LOOKS])
        self._looked_for = (self._looked_for + 1) % LOOK_EVERY
        return max(1, int(most_bytes / max(1.0, self._record_bytes)))

    def end(self) -> KafkaPosition:
        """Where the topic ends now."""
        topic = self._topic()
        return _position(topic, self.reader.cluster.offsets(topic, latest=True))

    def _end_before_halting_schema(
        self, session: SparkSession, start: KafkaPosition, end: KafkaPosition
    ) -> KafkaPosition:
        """End before the first record whose schema may halt the task, so that nothing is written twice if it does. That
        record is then tried alone; if it halts nothing, the task has no use for what its schema changed."""
        first = self.reader.suspects(lambda: self._raw(session, start, end), self._harmless)
        if not first:
            return end
        offsets = {p: min(o, first[p][0]) if p in first else o for p, o in end.by_partition.items()}
        if offsets == {p: start.by_partition.get(p, 0) for p in offsets}:
            partition = min(first)
            offset, self._under_test = first[partition]
            offsets[partition] = offset + 1
        return KafkaPosition(end.topic, end.topic_id, tuple(offsets[p] for p in sorted(offsets)))

    def _raw(self, session: SparkSession, start: KafkaPosition, end: KafkaPosition) -> DataFrame:
        begin = start.by_partition
        first = {p: begin.get(p, 0) for p in end.by_partition}
        return self.reader.between(session, first, end.by_partition, self._group)

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        begin, until = _kafka(start), _kafka(end)
        decoded = self._decoded = self.reader.decode(self._raw(session, begin, until))
        self._observed = None
        if self.reader.layout.on_error != "HALT":
            self._observed = Observation()
            decoded = self.reader.count_rejected(decoded, self._observed)
        partitions = sum(o > begin.by_partition.get(p, 0) for p, o in until.by_partition.items())
        return self.changes(self.reader.changes(decoded), in_one_part=partitions == 1)

    def changes(self, accepted: DataFrame, *, in_one_part: bool = False) -> Changes:
        """The changes that accepted records mean. For a keyed source these are the last records of each key."""
        if self.reader.layout.envelope == "NONE":
            return Append(self.reader.current(accepted), in_one_part)
        key = tuple(column.name for column in self.reader.layout.columns if column.key)
        if (marked := self.reader.marked(accepted)) is not None:
            return Upsert(marked, key, marked=True)
        return Upsert(self.reader.current(accepted), key, self.reader.columns(accepted))

    def release(self, position: Position) -> None:
        """The batch is committed, so a schema that was tried in it halts nothing."""
        if self._under_test is not None:
            self._harmless.add(self._under_test)
            self._under_test = None

    # Failures

    def learn(self, error: BaseException) -> bool:
        """Take up the schema id that failed the batch before anything of it counts."""
        unknown = unknown_schema_id(error)
        if unknown is None:
            return False
        self.reader.learn(unknown)
        return True

    def explain(self, error: BaseException, position: Position) -> BaseException:
        if records_are_gone(error) and (gone := self._why_gone(_kafka(position))) is not None:
            return gone
        return translated(error, [self.reader], self._brokers)

    def _why_gone(self, position: KafkaPosition) -> HeadgateError | None:
        try:
            self.check(position)
        except HeadgateError as found:
            return found
        return None

    def accepted(self) -> DataFrame | None:
        """The records of what was read last that were taken, of a keyed source the last of each key. None if nothing was."""
        return None if self._decoded is None else self.reader.changes(self._decoded)

    # Rejected records

    def rejected(self) -> Rejected:
        """The write has counted them. They are read once more only if there are some and they are kept: by the driver if they
        are few, otherwise by the executors alone."""
        if self._observed is None or self._decoded is None:
            return NOTHING_REJECTED
        metrics = self._metrics(self._observed)
        if (count := metrics[REJECTED]) == 0:
            return NOTHING_REJECTED
        if self.reader.layout.on_error == "SKIP":
            return Rejected(count)
        bad = explained(self.reader.with_problems(self._decoded).where("hg_problem IS NOT NULL"), self.reader)
        files, size = self._files, metrics[REJECTED_BYTES] or 0
        if files is not None and files.takes(count, size, self.in_catalog()):
            return Rejected(many=ManyRejected(self.reader.id, count, lambda folder: files.write(bad, folder)))
        return Rejected(records=(quarantined(row, self.reader.id, self.task_id) for row in bad.toLocalIterator()))

    def _metrics(self, observed: Observation) -> Mapping[str, int]:
        """What the write has counted. Spark reads no record for an output that needs none, as of `WHERE false`; the records are
        part of the batch all the same, so they are then counted by a job of their own."""
        try:
            return observed.get
        except Exception as error:  # noqa: BLE001 - Spark gives an empty row, which PySpark cannot read
            log.debug("the write has counted no records: %s", type(error).__name__)
        assert self._decoded is not None
        again = Observation()
        counted = self.reader.count_rejected(self._decoded, again)
        counted.select("offset").write.format("noop").mode("append").save()
        return again.get


def _kafka(position: Position) -> KafkaPosition:
    assert isinstance(position, KafkaPosition), "a topic was given the position of another kind of input"
    return position


def _position(topic: Topic, offsets: dict[int, int]) -> KafkaPosition:
    return KafkaPosition(topic.name, topic.id, tuple(offsets[p] for p in sorted(offsets)))
