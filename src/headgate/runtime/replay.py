"""REPLAY QUARANTINE: records that a task set aside are read from their topic and decoded again, as the source is now.

Those that fit are written and then leave the quarantine, in this order, so that a crash loses none; after one, a record may
be written twice. The others stay, with the reason they have now. Of an upsert source, a record that is no longer the last
of its key is outdated: to write it would bring an old value back, so it only leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.positions import KafkaPosition
from headgate.catalog.tasks import Quarantined
from headgate.errors import HeadgateError
from headgate.runtime.errors import TopicReplaced
from headgate.runtime.failures import translated, unknown_schema_id
from headgate.runtime.inputs.kafka import EPOCH, QUARANTINED, KafkaInput
from headgate.runtime.ports import ReplanNeeded
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.targets.kafka import KafkaTarget, compute_before_write
from headgate.runtime.task import Task

GONE = "The record is no longer in its topic"
TRIES = 3  # a schema that is not known yet is taken up, and the work begun anew

Place = tuple[int, int]  # partition and offset
Offsets = Mapping[int, int]


class Quarantine(Protocol):
    """The part of the catalog's store that a replay needs."""

    def quarantined(self, task: int | None = None) -> tuple[Quarantined, ...]: ...

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        """Take records out of the quarantine, and say of others why they stay."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many records were sent through, were outdated, and stay in the quarantine."""

    replayed: int = 0
    outdated: int = 0
    kept: int = 0


def replay(task: Task, session: SparkSession, quarantine: Quarantine) -> Replayed:
    """Call it while the task has no batch under way. Raises ReplanNeeded before anything is written."""
    run = _Replay(task, session, quarantine)
    if not run.held:
        return Replayed()
    run.reader.ask_again()
    run.reader.refresh()
    for attempt in range(TRIES + 1):
        try:
            return run.run()
        except (ReplanNeeded, HeadgateError):
            raise
        except Exception as error:
            unknown = unknown_schema_id(error)
            if unknown is None or attempt == TRIES:
                brokers = run.reader.cluster.brokers
                raise translated(task.target.explain(error), [run.reader], brokers) from error
            run.reader.learn(unknown)
    raise AssertionError("the last attempt returns or raises")


class _Replay:
    """The quarantined records of one task, and where they are read and written."""

    def __init__(self, task: Task, session: SparkSession, quarantine: Quarantine) -> None:
        ((source, input_),) = task.inputs.items()
        assert isinstance(input_, KafkaInput)
        assert isinstance(task.target, KafkaTarget)
        assert isinstance(task.plan, SinkPlan)
        position = task.positions[source]
        assert isinstance(position, KafkaPosition)
        self.task, self.input, self.plan, self.target = task, input_, task.plan, task.target
        self.reader, self.position = input_.reader, position
        self.session, self.quarantine = session, quarantine
        records = [q for q in quarantine.quarantined(task.id) if q.topic == position.topic]
        self.held = {(q.partition or 0, q.offset or 0): q for q in records}

    def run(self) -> Replayed:
        held, upsert = self.held, self.reader.layout.envelope != "NONE"
        earliest = self._earliest()
        places = F.broadcast(self.session.createDataFrame(list(held), "partition int, offset bigint"))
        raw = self.reader.between(self.session, *self._range(earliest))
        if arrived := self.reader.arrived(lambda: _only(raw, places)):
            raise ReplanNeeded(self.reader.id, arrived)
        decoded = self.reader.decode(raw if upsert else _only(raw, places))
        seen = _only(self.reader.with_problems(decoded), places).selectExpr(*QUARANTINED).collect()
        bad = {(r["partition"], r["offset"]): self.input.quarantined(r) for r in seen if r["side"] is not None}
        good = {(r["partition"], r["offset"]) for r in seen if r["side"] is None}
        changed = _only(self.reader.changes(decoded), places)
        written = _places(changed) if upsert and good else good
        if written:
            self._send(changed)
        gone = [place for place in held if place not in good and place not in bad]
        compacted = {p for p in gone if upsert and p[1] >= earliest.get(p[0], 0)}
        kept = [replace(held[place], reason=GONE) for place in gone if place not in compacted]
        kept += [replace(held[place], schema_id=q.schema_id, path=q.path, expected=q.expected, reason=q.reason)
                 for place, q in bad.items()]  # fmt: skip
        self.quarantine.release([held[place] for place in good | compacted], kept)
        return Replayed(len(written), len((good | compacted) - written), len(kept))

    def _send(self, changed: DataFrame) -> None:
        output = self.plan.output(self.session, self.input.changes(changed))
        self.target.send(compute_before_write(self.target.records(output, len(self.held)), len(self.held)))

    def _earliest(self) -> dict[int, int]:
        topic = self.reader.cluster.topic(self.position.topic)
        if topic.id != self.position.topic_id:
            raise TopicReplaced(topic.name, self.input.task_name)
        return self.reader.cluster.offsets(topic, latest=False)

    def _range(self, earliest: Offsets) -> tuple[Offsets, Offsets]:
        """From the first quarantined record of each partition to the last. For an upsert source up to where the task stands,
        and of every partition, because later records of the same key count."""
        start: dict[int, int] = {}
        end: dict[int, int] = {}
        for partition, offset in self.held:
            start[partition] = min(offset, start.get(partition, offset))
            end[partition] = max(offset + 1, end.get(partition, 0))
        if self.reader.layout.envelope != "NONE":
            reached, since = self.position.by_partition, self._since()
            start = {p: start.get(p, since.get(p, 0)) for p in earliest}
            end = {p: reached.get(p, low) for p, low in earliest.items()}
        begin = {p: max(start.get(p, low), low) for p, low in earliest.items()}
        return begin, {p: max(end.get(p, low), begin[p]) for p, low in earliest.items()}

    def _since(self) -> Offsets:
        """The first offsets at or after the time of the oldest quarantined record."""
        first = min(q.time for q in self.held.values())
        topic = self.reader.cluster.topic(self.position.topic)
        return self.reader.cluster.offsets_at_time(topic, int((first - EPOCH).total_seconds() * 1000))


def _only(frame: DataFrame, places: DataFrame) -> DataFrame:
    return frame.join(places, ["partition", "offset"], "left_semi")


def _places(frame: DataFrame) -> set[Place]:
    return {(row["partition"], row["offset"]) for row in frame.select("partition", "offset").collect()}
