"""REPLAY QUARANTINE: records that a task set aside are read from their topic and decoded again, as the source is now.

Those that fit are written and then leave the quarantine, in this order, so that a crash loses none; after one, a record may
be written twice. The others stay, with the reason they have now. Of an upsert source, a record that is no longer the last
of its key is outdated: to write it would bring an old value back, so it only leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.tasks import Quarantined
from headgate.runtime.errors import TopicReplaced
from headgate.runtime.failures import unknown_schema_id
from headgate.runtime.sink_task import EPOCH, QUARANTINED, SinkTask, all_or_none, send
from headgate.runtime.source import Arrived

GONE = "The record is no longer in its topic"
TRIES = 3  # a schema that is not known yet is taken up, and the work begun anew

Place = tuple[int, int]  # partition and offset
Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many records were sent through, were outdated, and stay in the quarantine."""

    replayed: int = 0
    outdated: int = 0
    kept: int = 0


class SourceMustGrow(Exception):
    """Some of the records have schemas that the source is to follow first."""

    def __init__(self, arrived: Sequence[Arrived]) -> None:
        self.arrived = arrived


def replay(task: SinkTask, session: SparkSession) -> Replayed:
    """To be called while the task has no batch under way. Raises SourceMustGrow before anything is written."""
    held = {(q.partition or 0, q.offset or 0): q for q in task.held() if q.topic == task.topic.name}
    if not held:
        return Replayed()
    task.source.ask_again()
    task.source.refresh()
    for _ in range(TRIES):
        try:
            return _replay(task, session, held)
        except SourceMustGrow:
            raise
        except Exception as error:
            unknown = unknown_schema_id(error)
            if unknown is None:
                raise
            task.source.learn(unknown)
    return _replay(task, session, held)


def _replay(task: SinkTask, session: SparkSession, held: Mapping[Place, Quarantined]) -> Replayed:
    source, upsert = task.source, task.source.layout.envelope != "NONE"
    earliest = _earliest(task)
    places = F.broadcast(session.createDataFrame(list(held), "partition int, offset bigint"))
    raw = source.between(session, *_range(task, held, earliest))
    if arrived := source.arrived(lambda: _only(raw, places)):
        raise SourceMustGrow(arrived)
    decoded = source.decode(raw if upsert else _only(raw, places))
    seen = _only(decoded, places).selectExpr(*QUARANTINED).collect()
    bad = {(r["partition"], r["offset"]): task.quarantined(r) for r in seen if r["side"] is not None}
    good = {(r["partition"], r["offset"]) for r in seen if r["side"] is None}
    changed = _only(source.changes(decoded), places)
    written = _places(changed) if upsert and good else good
    if written:
        send(all_or_none(task.outgoing(session, changed), len(held)), task.target)
    gone = [place for place in held if place not in good and place not in bad]
    compacted = {p for p in gone if upsert and p[1] >= earliest.get(p[0], 0)}
    kept = [replace(held[place], reason=GONE) for place in gone if place not in compacted]
    kept += [replace(held[place], schema_id=q.schema_id, path=q.path, expected=q.expected, reason=q.reason)
             for place, q in bad.items()]  # fmt: skip
    task.release([held[place] for place in good | compacted], kept)
    return Replayed(len(written), len((good | compacted) - written), len(kept))


def _only(frame: DataFrame, places: DataFrame) -> DataFrame:
    return frame.join(places, ["partition", "offset"], "left_semi")


def _places(frame: DataFrame) -> set[Place]:
    return {(row["partition"], row["offset"]) for row in frame.select("partition", "offset").collect()}


def _earliest(task: SinkTask) -> dict[int, int]:
    cluster = task.source.cluster
    topic = cluster.topic(task.topic.name)
    if topic.id != task.topic.id:
        raise TopicReplaced(topic.name, f'sink "{task.name}"')
    return cluster.offsets(topic, latest=False)


def _range(task: SinkTask, held: Mapping[Place, Quarantined], earliest: Offsets) -> tuple[Offsets, Offsets]:
    """From the first quarantined record of each partition to the last. Of an upsert source to where the task stands, and
    of every partition, because later records of the same key count."""
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    for partition, offset in held:
        start[partition] = min(offset, start.get(partition, offset))
        end[partition] = max(offset + 1, end.get(partition, 0))
    if task.source.layout.envelope != "NONE":
        first = min(q.time for q in held.values())
        since = task.source.cluster.offsets_at_time(task.topic, int((first - EPOCH).total_seconds() * 1000))
        start = {p: start.get(p, since.get(p, 0)) for p in earliest}
        end = {p: task.reached.get(p, low) for p, low in earliest.items()}
    begin = {p: max(start.get(p, low), low) for p, low in earliest.items()}
    return begin, {p: max(end.get(p, low), begin[p]) for p, low in earliest.items()}
