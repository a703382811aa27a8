"""REPLAY QUARANTINE: records that a task set aside are read from their topic and decoded again, as the source is now.

Those that fit are written and then leave the quarantine, in this order, so that a crash loses none; after one, a record may
be written twice. The others stay, with the reason they have now. Of an upsert source, a record that is no longer the last
of its key is outdated: to write it would bring an old value back, so it only leaves.

Records are replayed in portions: some thousands of the catalog's own, or those of some folders. The driver sees the places
of the former and only counts of the latter, whatever their number, and it reads the bytes of neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition
from headgate.errors import HeadgateError
from headgate.runtime.errors import ComputationFailed, RecordTooLarge, SchemaChanged, TopicReplaced
from headgate.runtime.failures import message_of, translated, unknown_schema_id
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import ReplanNeeded
from headgate.runtime.quarantine import QuarantineFiles, explained
from headgate.runtime.rejected_rows import TargetRejects
from headgate.runtime.replay_portions import KEPT, OUTDATED, WRITTEN, Portion, Quarantine, portions
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.targets.kafka import BAD_ROW, KafkaTarget, compute_before_write
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.search import SearchTarget
from headgate.runtime.task import Task

GONE = "The record is no longer in its topic"
NOT_TRIED = "It was not sent, because too many records of the replay failed"

TRIES = 3  # a schema that is not known yet is taken up, and the work begun anew
MOST_SENDS = 200  # of one portion, to find the records that fail; each that is found takes up to twenty

Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many records were sent through, were outdated, and stay in the quarantine."""

    replayed: int = 0
    outdated: int = 0
    kept: int = 0

    def __add__(self, other: Replayed) -> Replayed:
        return Replayed(self.replayed + other.replayed, self.outdated + other.outdated, self.kept + other.kept)


def replay(task: Task, session: SparkSession, quarantine: Quarantine, files: QuarantineFiles | None = None) -> Replayed:
    """Call it while the task has no batch under way. Raises ReplanNeeded before anything is written."""
    found = list(portions(task.id, _position(task).topic, session, quarantine, files))
    if not found:
        return Replayed()
    input_ = _input(task)
    input_.reader.ask_again()
    input_.reader.refresh()
    return sum((_replay_portion(task, session, portion) for portion in found), Replayed())


def _replay_portion(task: Task, session: SparkSession, portion: Portion) -> Replayed:
    run = _Replay(task, session, portion)
    for attempt in range(TRIES + 1):
        try:
            return run.run()
        except (ReplanNeeded, HeadgateError):
            raise
        except Exception as error:
            unknown = unknown_schema_id(error)
            if unknown is None or attempt == TRIES:
                raise run.explained(error) from error
            run.reader.learn(unknown)
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition, the last one excluded."""

    partition: int
    first: int
    end: int

    @property
    def holds(self) -> Column:
        return (F.col("partition") == self.partition) & F.col("offset").between(self.first, self.end - 1)

    def halves(self) -> tuple[Range, Range]:
        middle = (self.first + self.end) // 2
        return replace(self, end=middle), replace(self, first=middle)


@dataclass(frozen=True, slots=True)
class Refused:
    """Records that decode and could not be sent, and why."""

    ranges: tuple[Range, ...]
    reason: str


class _Replay:
    """The quarantined records of one portion, and where they are read and written."""

    def __init__(self, task: Task, session: SparkSession, portion: Portion) -> None:
        assert isinstance(task.target, KafkaTarget | PostgresTarget | SearchTarget)
        assert isinstance(task.plan, SinkPlan)
        self.input, self.plan, self.target = _input(task), task.plan, task.target
        self.rejects = task.rejects if isinstance(task.rejects, TargetRejects) else None
        self.reader, self.position = self.input.reader, _position(task)
        self.session, self.portion, self.ledger = session, portion, task.ledger
        self.upsert = self.reader.layout.envelope != "NONE"
        self.count = 0
        self.unfit: list[DataFrame] = []  # records whose rows cannot be encoded, of the parts that were sent

    def run(self) -> Replayed:
        self.unfit = []
        earliest, bounds = self._earliest(), self._bounds()
        if not bounds:  # its records are of another topic
            return Replayed()
        places = self.portion.places.select("partition", "offset")
        raw = self.reader.between(self.session, *self._range(earliest, bounds))
        if arrived := self.reader.arrived(lambda: _only(raw, places)):
            raise ReplanNeeded(self.reader.id, arrived)
        decoded = self.reader.with_problems(self.reader.decode(raw if self.upsert else _only(raw, places)))
        seen = (
            explained(_only(decoded, places), self.reader).drop("topic", "time", "raw").persist(StorageLevel.DISK_ONLY)
        )
        try:
            # A bad record never gets here, so that one that is still bad does not fail the others, whatever ON ERROR says.
            changed = _only(self.reader.changes(decoded.where("hg_problem IS NULL").drop("hg_problem")), places)
            has_good = bool(seen.where("reason IS NULL").take(1))
            refused = self._send(changed, bounds) if has_good else []
            found = _with_unfit(seen, reduce(DataFrame.unionByName, self.unfit)) if self.unfit else seen
            return self._settle(places, found, changed, refused, earliest)
        finally:
            for frame in (seen, *self.unfit):
                frame.unpersist()

    def explained(self, error: BaseException) -> HeadgateError:
        return translated(self.target.explain(error), [self.reader], self.reader.cluster.brokers)

    # What is read

    def _earliest(self) -> dict[int, int]:
        topic = self.reader.cluster.topic(self.position.topic)
        if topic.id != self.position.topic_id:
            raise TopicReplaced(topic.name, self.input.task_name)
        return self.reader.cluster.offsets(topic, latest=False)

    def _bounds(self) -> tuple[Range, ...]:
        """The ranges of the quarantined records. Sets how many there are, and the time of the oldest."""
        of_topic = self.portion.places.where(F.col("topic") == self.position.topic)
        found = of_topic.groupBy("partition").agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("n"),
            F.min("time").alias("time"),
        )
        rows = found.collect()
        self.count = sum(row["n"] for row in rows)
        self.oldest = min((row["time"] for row in rows), default=0)
        return tuple(Range(row["partition"], row["first"], row["last"] + 1) for row in rows)

    def _range(self, earliest: Offsets, bounds: Sequence[Range]) -> tuple[Offsets, Offsets]:
        """From the first quarantined record of each partition to the last. For an upsert source up to where the task stands,
        and of every partition, because later records of the same key count."""
        start = {one.partition: one.first for one in bounds}
        end = {one.partition: one.end for one in bounds}
        if self.upsert:
            reached, since = self.position.by_partition, self._since()
            start = {p: start.get(p, since.get(p, 0)) for p in earliest}
            end = {p: reached.get(p, low) for p, low in earliest.items()}
        begin = {p: max(start.get(p, low), low) for p, low in earliest.items()}
        return begin, {p: max(end.get(p, low), begin[p]) for p, low in earliest.items()}

    def _since(self) -> Offsets:
        """The first offsets at or after the time of the oldest quarantined record."""
        topic = self.reader.cluster.topic(self.position.topic)
        return self.reader.cluster.offsets_at_time(topic, self.oldest // 1000)

    # What is written

    def _send(self, changed: DataFrame, bounds: Sequence[Range]) -> list[Refused]:
        """Write all records. If one of them makes that fail, each half is tried by itself, until it is found: it stays, and the
        others are written."""
        refused: list[Refused] = []
        waiting = [tuple(bounds)]
        for sent in range(MOST_SENDS):
            if not waiting:
                break
            ranges = waiting.pop()
            try:
                self._send_once(changed if sent == 0 else changed.where(_within(ranges)))
            except Exception as error:
                failure = self.explained(error)
                if unknown_schema_id(error) is not None or not self._blames_a_record(failure):
                    raise
                parts = _halves(ranges)
                waiting += reversed(parts)  # the earlier half is sent first
                if not parts:
                    refused.append(Refused(ranges, _sentence(failure.message())))
        return refused + [Refused(ranges, NOT_TRIED) for ranges in waiting]

    def _send_once(self, changed: DataFrame) -> None:
        """Send all but the records whose rows cannot be encoded. They are looked for only if such a row makes the first attempt
        fail, and in the same part, so that a row which cannot be computed fails no more than that part."""
        if self.rejects is None or not self.rejects.finds_records:
            self._send_fitting(changed)
            return
        self.target.strict = True
        try:
            self._send_fitting(changed)
        except Exception as error:
            if BAD_ROW not in message_of(error):
                raise
            self._send_without_unfit(changed, self.rejects)
        finally:
            self.target.strict = False

    def _send_without_unfit(self, changed: DataFrame, rejects: TargetRejects) -> None:
        unfit = rejects.unfit(self.session, changed).drop("topic", "time", "raw").persist(StorageLevel.DISK_ONLY)
        try:
            unfit.take(1)  # computed before anything is written
            self._send_fitting(changed.join(unfit, ["partition", "offset"], "left_anti"))
        except BaseException:
            unfit.unpersist()
            raise
        self.unfit.append(unfit)

    def _send_fitting(self, changed: DataFrame) -> None:
        """Every record is computed before the first is written."""
        output = self.plan.output(self.session, self.input.changes(changed))
        if isinstance(self.target, PostgresTarget):
            self.target.send(self.target.parts(output))
            return
        if isinstance(self.target, SearchTarget):
            self.target.send(self.target.rows(output), self.ledger)
            return
        records = self.target.records(output, self.count)
        self.target.send(records if self.target.atomic else compute_before_write(records, self.count))

    def _blames_a_record(self, failure: HeadgateError) -> bool:
        """Whether the write failed for a record, and may be tried with others. A topic without keys may already have some of
        those that were sent with a record that is too large, and must not get them again."""
        again = self.target.atomic or self.target.keyed
        return isinstance(failure, ComputationFailed | SchemaChanged) or (again and isinstance(failure, RecordTooLarge))

    # What becomes of them

    def _settle(
        self, places: DataFrame, seen: DataFrame, changed: DataFrame, refused: Sequence[Refused], earliest: Offsets
    ) -> Replayed:
        reason = F.lit(None).cast("string")
        for one in refused:
            reason = F.when(_within(one.ranges), F.lit(one.reason)).otherwise(reason)
        held = places.join(seen.withColumn("seen", F.lit(True)), ["partition", "offset"], "left")
        gone = F.col("seen").isNull()
        why = F.when(gone, F.lit(GONE)).otherwise(F.coalesce(F.col("reason"), reason))
        fate = F.when(gone & self._compacted(earliest), OUTDATED).when(why.isNotNull(), KEPT).otherwise(WRITTEN)
        outcome = held.withColumns({"fate": fate, "reason": why}).drop("seen")
        if self.upsert:
            outcome = self._without_outdated(outcome, changed)
        fates = (WRITTEN, OUTDATED, KEPT)
        (counted,) = outcome.select(*[F.count_if(F.col("fate") == each).alias(each) for each in fates]).collect()
        self.portion.settle(outcome, counted[KEPT])
        return Replayed(*(counted[each] for each in fates))

    def _compacted(self, earliest: Offsets) -> Column:
        """Whether a record that is gone was taken away by compaction, because its key has a newer one."""
        if not self.upsert:
            return F.lit(False)
        reaching = [(F.col("partition") == p) & (F.col("offset") >= low) for p, low in earliest.items()]
        return reduce(Column.__or__, reaching, F.lit(False))

    def _without_outdated(self, outcome: DataFrame, changed: DataFrame) -> DataFrame:
        """Only the last record of a key was written."""
        last = changed.select("partition", "offset").withColumn("last", F.lit(True))
        joined = outcome.join(last, ["partition", "offset"], "left")
        is_old = (F.col("fate") == WRITTEN) & F.col("last").isNull()
        return joined.withColumn("fate", F.when(is_old, OUTDATED).otherwise(F.col("fate"))).drop("last")


def _input(task: Task) -> KafkaInput:
    (input_,) = task.inputs.values()
    assert isinstance(input_, KafkaInput)
    return input_


def _position(task: Task) -> KafkaPosition:
    (position,) = task.positions.values()
    assert isinstance(position, KafkaPosition)
    return position


def _with_unfit(seen: DataFrame, unfit: DataFrame) -> DataFrame:
    """What is wrong with each record: that it cannot be decoded, or that a row of it cannot be encoded."""
    names = ("schema_id", "path", "expected", "reason")
    other = unfit.withColumnsRenamed({name: f"unfit_{name}" for name in names})
    joined = seen.join(other, ["partition", "offset"], "left")
    both = {
        name: F.when(F.col("unfit_reason").isNotNull(), F.col(f"unfit_{name}")).otherwise(F.col(name)) for name in names
    }
    return joined.withColumns(both).select(*seen.columns)


def _only(frame: DataFrame, places: DataFrame) -> DataFrame:
    return frame.join(places, ["partition", "offset"], "left_semi")


def _within(ranges: Sequence[Range]) -> Column:
    return reduce(Column.__or__, [one.holds for one in ranges])


def _halves(ranges: Sequence[Range]) -> list[tuple[Range, ...]]:
    """Two parts of the ranges; none if they are a single offset."""
    if len(ranges) > 1:
        middle = len(ranges) // 2
        return [tuple(ranges[:middle]), tuple(ranges[middle:])]
    (one,) = ranges
    return [] if one.end - one.first <= 1 else [(half,) for half in one.halves()]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
