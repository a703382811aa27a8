"""Inputs, targets and a ledger store in memory, for tests of the batch protocol without Spark or services.

Rows are Python tuples (key, value) in lists; they stand where a DataFrame stands in the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, cast

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.errors import LeaseLost
from headgate.catalog.positions import KafkaPosition, KafkaRecord, Position, Positions, furthest, limited
from headgate.catalog.tasks import ProgressSlot, Quarantined, QuarantineFolder, require_ledger
from headgate.runtime.errors import ComputationFailed, Fenced
from headgate.runtime.ports import (
    Append,
    Batch,
    Changes,
    InputRange,
    Ledger,
    Limit,
    Mark,
    Rejected,
    Upsert,
    Watched,
    Written,
)

SOURCE = 7  # id of the only input relation
TASK = 9
NO_SESSION = cast(SparkSession, None)

Row = tuple[str, int | None]
"""Key and value; None deletes the key."""

BAD = -1  # a value that cannot be decoded


def frame(rows: Sequence[Row]) -> DataFrame:
    return cast(DataFrame, list(rows))


def rows_of(changes: Changes) -> list[Row]:
    return cast(list[Row], changes.rows)


@dataclass
class Topic:
    """Records by partition. A key always has the same partition."""

    partitions: list[list[Row]] = field(default_factory=lambda: [[], []])
    id: str = "t1"

    def put(self, key: str, value: int | None) -> None:
        self.partitions[ord(key[0]) % len(self.partitions)].append((key, value))

    def end(self) -> KafkaPosition:
        return KafkaPosition("topic", self.id, tuple(len(p) for p in self.partitions))

    def between(self, start: Position, end: Position) -> list[tuple[int, int, Row]]:
        """Partition, offset and row of the records after `start` up to `end`."""
        assert isinstance(start, KafkaPosition)
        assert isinstance(end, KafkaPosition)
        begin = start.by_partition
        return [
            (p, offset, self.partitions[p][offset])
            for p, last in enumerate(end.offsets)
            for offset in range(begin.get(p, 0), last)
        ]


class MemoryInput:
    """Reads a `Topic`. Values of BAD are rejected."""

    watched: Watched | None = None
    known_end: Position | None = None

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.released: Position | None = None
        self._rejected: list[Quarantined] = []

    def begin(self) -> Position:
        return KafkaPosition("topic", self.topic.id, tuple(0 for _ in self.topic.partitions))

    def check(self, position: Position) -> None:
        assert isinstance(position, KafkaPosition)
        assert position.topic_id == self.topic.id

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> Position:  # fmt: skip
        assert isinstance(start, KafkaPosition)
        end = limited(start, self.topic.end(), limit.rows)
        return furthest(end, mark) if isinstance(mark, KafkaPosition) else end

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        found = self.topic.between(start, end)
        self._rejected = [_quarantined(p, offset) for p, offset, row in found if row[1] == BAD]
        return Append(frame([row for _, _, row in found if row[1] != BAD]))

    def rejected(self) -> Rejected:
        return Rejected(0, self._rejected)

    def learn(self, error: BaseException) -> bool:
        return False

    def explain(self, error: BaseException, position: Position) -> BaseException:
        return error

    def release(self, position: Position) -> None:
        self.released = position


def _quarantined(partition: int, offset: int) -> Quarantined:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Quarantined(SOURCE, TASK, KafkaRecord("topic", partition, offset), now, None, None, None, "bad")


def passes(value: int) -> bool:
    """The filter of the plan's query."""
    return value % 3 != 0


class KeepPlan:
    """`SELECT * WHERE passes(value)`, as rows or as the last row or deletion per key."""

    definition = "keep"

    def __init__(self, *, keyed: bool) -> None:
        self._keyed = keyed

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        rows = rows_of(changes[SOURCE])
        if not self._keyed:
            return Append(frame([row for row in rows if row[1] is not None and passes(row[1])]))
        return Upsert(frame(list(latest(rows).items())), ("key",))

    def locate(
        self, session: SparkSession, failed: ComputationFailed, error: BaseException, ranges: Mapping[int, InputRange]
    ) -> ComputationFailed:  # fmt: skip
        return failed


def latest(rows: Iterable[Row]) -> dict[str, int | None]:
    """The last value of every key, None if it is deleted or does not pass."""
    return {key: value if value is not None and passes(value) else None for key, value in rows}


Pause = Callable[[int], None]
"""Called before each row of a write with the number of rows already written. A test raises here to crash in mid-write."""


class MemoryTopic:
    """A target that holds no ledger: rows become visible one by one."""

    commit: Literal["own", "catalog"] = "catalog"
    ledger: Ledger | None = None

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.takes: frozenset[type[Changes]] = frozenset({Upsert if keyed else Append})
        self.rows: list[Row] = []
        self.pause: Pause = lambda _: None

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def begin(self, epoch: int) -> Ledger | None:
        return None

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        rows = rows_of(changes)
        for number, row in enumerate(rows):
            self.pause(number)
            self.rows.append(row)
        return Written(len(rows))

    def contents(self, session: SparkSession) -> Upsert:
        held = {key: value for key, value in dict(self.rows).items() if value is not None}
        return Upsert(frame(list(held.items())), ("key",))

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        pass


class MemoryTable:
    """A target with its own ledger: rows and ledger change together or not at all."""

    commit: Literal["own", "catalog"] = "own"

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.takes: frozenset[type[Changes]] = frozenset({Upsert if keyed else Append})
        self.rows: list[Row] = []
        self.ledger: Ledger | None = None
        self.epoch = 0
        self.pause: Pause = lambda _: None

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def begin(self, epoch: int) -> Ledger | None:
        if self.epoch > epoch:
            raise Fenced("table", "task", self.epoch, epoch)
        self.epoch = epoch
        return self.ledger

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        before_commit()
        staged = list(self.rows)
        for number, row in enumerate(rows_of(changes)):
            self.pause(number)
            staged.append(row)
        if self.epoch > batch.epoch:
            raise Fenced("table", "task", self.epoch, batch.epoch)
        if self.ledger is not None and (self.ledger.number, self.ledger.positions) == (
            batch.number,
            batch.end,
        ):
            return Written(0)
        stands_at_start = batch.number == 1 if self.ledger is None else self.ledger.positions == batch.start
        if not stands_at_start:
            raise Fenced("table", "task", self.epoch, batch.epoch)
        self.ledger = Ledger(batch.task, batch.generation, batch.number, batch.epoch, batch.end, batch.definition)
        self.rows = staged
        return Written(len(rows_of(changes)))

    def contents(self, session: SparkSession) -> Upsert:
        held = {key: value for key, value in dict(self.rows).items() if value is not None}
        return Upsert(frame(list(held.items())), ("key",))

    def explain(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        pass


@dataclass
class Shared:
    """What is durable in the catalog, shared by all engines that ever opened it."""

    lease: int = 0
    ledger: Ledger | None = None
    mark: Mark | None = None
    rejected: dict[tuple[int | None, int | None], tuple[int, Quarantined]] = field(default_factory=dict)
    opened: list[QuarantineFolder] = field(default_factory=list)
    folders: list[QuarantineFolder] = field(default_factory=list)
    ranges: dict[tuple[int, int], tuple[Positions, Positions]] = field(default_factory=dict)


class MemoryStore:
    """The catalog as one engine sees it. Opening it takes the lease."""

    def __init__(self, shared: Shared) -> None:
        shared.lease += 1
        self.shared = shared
        self.lease = shared.lease
        self._starts = 0

    def guard(self) -> None:
        """What an engine does before it writes: raise if it has lost the lease."""
        if self.lease != self.shared.lease:
            raise LeaseLost("memory", self.lease, "another engine")

    def task_uuid(self, task: int) -> str:
        return f"{task:032x}"

    def progress_slot(self, task: int) -> ProgressSlot:
        return ProgressSlot("p", task)

    def next_epoch(self, task: int) -> int:
        self._starts += 1
        return self.lease * 2**20 + self._starts

    def raise_epoch(self, above: int) -> None:
        self.guard()
        self.lease = self.shared.lease = above // 2**20 + 1

    def ledger(self, task: int) -> Ledger | None:
        return self.shared.ledger

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        self.guard()
        found = self.shared.ledger
        require_ledger(expected, found, new.task)
        if rejected is not None:
            self.reject(new.task, new.number, rejected, folders)
        if found is not None and found.positions != new.positions:
            range_ = found.positions, new.positions
            known = self.shared.ranges.setdefault((new.generation, new.number), range_)
            assert known == range_, "a number has committed two ranges"
        self.shared.ledger = new
        self.shared.mark = None

    def count_in_catalog(self, task: int) -> int:
        return len(self.shared.rejected)

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        self.guard()
        self.shared.opened += folders

    def reject(
        self, task: int, number: int, records: Iterable[Quarantined], folders: Sequence[QuarantineFolder] = ()
    ) -> None:
        self.guard()
        assert all(folder in self.shared.opened for folder in folders), "a folder was written unannounced"
        self.shared.folders = [f for f in self.shared.folders if f.batch != number] + [*folders]
        kept = {place: held for place, held in self.shared.rejected.items() if held[0] != number}
        self.shared.rejected = kept | {(q.partition, q.offset): (number, q) for q in records}

    def mark(self, task: int) -> Mark | None:
        return self.shared.mark

    def save_mark(self, task: int, mark: Mark) -> None:
        self.guard()
        self.shared.mark = mark
