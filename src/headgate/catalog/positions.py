"""Positions: how far a task has read each of its inputs. A tagged value, stored as JSON with the member `kind`.

The runtime makes positions and the catalog stores them, so they are defined here, below both. A position lies between two
records: everything before it has been read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import orjson

from headgate.errors import InternalError


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """The next offset of every partition, by partition number. `topic_id` tells a re-created topic from the old one."""

    topic: str
    topic_id: str
    offsets: tuple[int, ...]

    @property
    def by_partition(self) -> dict[int, int]:
        return dict(enumerate(self.offsets))

    def without(self, partition: int, offset: int) -> KafkaPosition:
        """The position before a record and before those that come after it in its partition."""
        offsets = [min(o, offset) if p == partition else o for p, o in self.by_partition.items()]
        return KafkaPosition(self.topic, self.topic_id, tuple(offsets))


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Everything up to batch `number` of a stored relation (view, collection, landed source)."""

    relation: int
    generation: int
    number: int


@dataclass(frozen=True, slots=True)
class LsnPosition:
    """The commit LSN of a replication slot. `copying` is (table, last key copied) while the first copy runs."""

    slot: str
    lsn: int
    copying: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SequencePosition:
    """Everything up to `number` of a manifest of files or HTTP documents. The list itself is in the manifest."""

    manifest: str
    number: int


@dataclass(frozen=True, slots=True)
class ClockPosition:
    """The time that a batch was computed with, in microseconds since 1970 in UTC."""

    micros: int

    @property
    def time(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.micros)


Position: TypeAlias = KafkaPosition | LogPosition | LsnPosition | SequencePosition | ClockPosition
Positions: TypeAlias = Mapping[int, Position]
"""The position of every input of a task, by the id of the relation that the input reads. The clock has the id 0."""


def distance(start: Position, end: Position) -> int:
    """How much lies between two positions of one input: records, batches, bytes of WAL or documents. Never negative. Time that
    has passed is nothing to read.

    A partition that `start` does not know was added later and is counted from its first offset.
    """
    match start, end:
        case KafkaPosition(), KafkaPosition():
            begin = start.by_partition
            return sum(max(0, offset - begin.get(p, 0)) for p, offset in enumerate(end.offsets))
        case LogPosition(), LogPosition() if end.generation > start.generation > 0 and start.number > 0:
            return max(1, end.number)  # another generation is read as a whole
        case LogPosition(), LogPosition():
            return max(0, end.number - start.number)
        case LsnPosition(), LsnPosition():
            return max(0, end.lsn - start.lsn)
        case SequencePosition(), SequencePosition():
            return max(0, end.number - start.number)
        case ClockPosition(), ClockPosition():
            return 0
    raise InternalError(f"positions of two kinds were compared: {start} and {end}")


def lag(start: Positions, end: Positions) -> int:
    """The distance over all inputs. Inputs that one of both does not have are not counted."""
    return sum(distance(start[id_], position) for id_, position in end.items() if id_ in start)


def reaches(end: Positions, mark: Positions) -> bool:
    """Whether `end` is at or behind `mark` for every input. False if the mark has an input or a topic that `end` lacks."""
    return all(id_ in end and _reaches(end[id_], position) for id_, position in mark.items())


def _reaches(end: Position, mark: Position) -> bool:
    match end, mark:
        case KafkaPosition(), KafkaPosition():
            return end.topic_id == mark.topic_id and distance(end, mark) == 0
        case LogPosition(), LogPosition():
            same = (end.relation, end.generation) == (mark.relation, mark.generation)
            return same and end.number >= mark.number
        case LsnPosition(), LsnPosition():
            return end.slot == mark.slot and end.lsn >= mark.lsn
        case SequencePosition(), SequencePosition():
            return end.manifest == mark.manifest and end.number >= mark.number
        case ClockPosition(), ClockPosition():
            return end.micros >= mark.micros
    return False


def limited(start: KafkaPosition, end: KafkaPosition, rows: int) -> KafkaPosition:
    """The end of a batch of at most about `rows` records. Every partition gives a share in proportion to what it has, and
    at least one record, so that none of them starves. A start beyond the end of its partition is kept."""
    total = distance(start, end)
    begin = start.by_partition
    offsets = []
    for partition, last in enumerate(end.offsets):
        first = begin.get(partition, 0)
        share = last - first if total <= rows else max(1, (last - first) * rows // total)
        offsets.append(max(first, min(last, first + share)))
    return KafkaPosition(end.topic, end.topic_id, tuple(offsets))


def is_smallest(start: Position, end: Position) -> bool:
    """Whether no smaller batch can begin at ``start``: it has at most one record of each partition. A log is read as a whole."""
    if isinstance(start, KafkaPosition) and isinstance(end, KafkaPosition):
        return limited(start, end, 1) == end
    return True


def furthest(one: KafkaPosition, other: KafkaPosition) -> KafkaPosition:
    """The later offset of both for every partition."""
    size = max(len(one.offsets), len(other.offsets))
    mine, theirs = one.by_partition, other.by_partition
    offsets = tuple(max(mine.get(p, 0), theirs.get(p, 0)) for p in range(size))
    return KafkaPosition(one.topic, one.topic_id, offsets)


# One record


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """One record of a topic."""

    topic: str
    partition: int
    offset: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class SequenceRecord:
    """One row of a stored or landed input: its batch or document, and its place within it."""

    manifest: str
    number: int
    ordinal: int = 0


RecordPosition: TypeAlias = KafkaRecord | SequenceRecord


# JSON

_KINDS: dict[str, type[Position]] = {
    "kafka": KafkaPosition,
    "log": LogPosition,
    "lsn": LsnPosition,
    "sequence": SequencePosition,
    "clock": ClockPosition,
}
_RECORD_KINDS: dict[str, type[RecordPosition]] = {"kafka": KafkaRecord, "sequence": SequenceRecord}
_NAMES = {cls: kind for kinds in (_KINDS, _RECORD_KINDS) for kind, cls in kinds.items()}


def to_json(value: Position | RecordPosition) -> dict[str, Any]:
    """A JSON object with the member `kind` first."""
    return {"kind": _NAMES[type(value)], **asdict(value)}


def from_json(value: Mapping[str, Any]) -> Position:
    """The inverse of `to_json` for a position. Raises KeyError for an unknown kind."""
    return _KINDS[value["kind"]](**_members(value))


def record_from_json(value: Mapping[str, Any]) -> RecordPosition:
    """The inverse of `to_json` for the position of a record."""
    return _RECORD_KINDS[value["kind"]](**_members(value))


def _members(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in value.items() if name != "kind"}


def dump_positions(positions: Positions) -> str:
    """The positions as JSON text. Equal positions give equal texts, so that a database can compare them."""
    return orjson.dumps({str(id_): to_json(positions[id_]) for id_ in sorted(positions)}).decode()


def load_positions(text: str) -> dict[int, Position]:
    """The inverse of `dump_positions`."""
    return {int(id_): from_json(value) for id_, value in orjson.loads(text).items()}


def dump_record(position: RecordPosition) -> str:
    """The position of one record as JSON text."""
    return orjson.dumps(to_json(position)).decode()


def load_record(text: str) -> RecordPosition:
    """The inverse of `dump_record`."""
    return record_from_json(orjson.loads(text))
