"""Bring a target in step with a plan that was replaced: write the difference between what it holds and what it should.

The plan runs over all that its input still has, up to the ledger. Keys that the target holds and a topic no longer has stay:
nobody knows what the new query would give for them. They are deleted if the input is a materialized view, which has all its rows,
or if all keys are written anew, because the target reads another source or its keys have other bytes. A large target is brought
in step by several batches.

`TargetStep` does what is the same for all. What an input can give is a `StepInput`, and how a target writes a part a `StepTarget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Position, Positions, distance, limited
from headgate.plan.definitions import DefinitionName
from headgate.runtime.decode import count_rows
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Batch, Changes, Limit, Plan, Upsert
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.views.log_input import LogInput
from headgate.schema.render import spark_identifier

HEADERS = "array<struct<key: string, value: binary>>"
PART_ROWS = 500_000  # records of the input for which one batch is enough


@dataclass(frozen=True, slots=True)
class Part:
    """One of the batches that bring a target in step: a part of its keys, or a range of its input if it has no key.

    ``anew`` says that the target may not keep keys that its relation does not have. ``read`` is how many records of the input were
    read for it. ``other_keys`` says that no key of the target is one of its relation: it reads another source, or its keys have
    other bytes.
    """

    number: int
    parts: int
    anew: bool
    read: int
    other_keys: bool = False

    @property
    def is_first(self) -> bool:
        return self.number == 0

    @property
    def is_last(self) -> bool:
        return self.number + 1 >= self.parts

    def rows(self, frame: DataFrame, key: Sequence[str]) -> DataFrame:
        """The rows of this part of the keys. Every key is in one part, whatever frame it is in."""
        if self.parts == 1:
            return frame
        hashed = F.xxhash64(*[F.col(spark_identifier(name)) for name in key])
        return frame.where(F.pmod(hashed, F.lit(self.parts)) == self.number)

    def changes(self, output: Upsert) -> Upsert:
        """The changes of this part of the keys."""
        if self.parts == 1:
            return output
        changed = None if output.changed is None else self.rows(output.changed, output.key)
        return Upsert(self.rows(output.rows, output.key), output.key, changed, output.marked)


class StepInput(Protocol):
    """What a target is brought in step with."""

    @property
    def id(self) -> int:
        """The relation that is read."""

    @property
    def has_every_row(self) -> bool:
        """Whether it has all rows of its relation, however old they are. A topic may have lost some to retention."""

    def end(self) -> Position: ...

    def parts(self, end: Position, limit: Limit) -> int:
        """How many batches are needed, if each may be as large as the limit."""

    def whole(self, session: SparkSession, end: Position) -> tuple[Changes | None, int]:
        """All that it has up to ``end``, and how many records were read; None if there are none."""

    def portion(self, session: SparkSession, end: Position, number: int, parts: int) -> tuple[Changes | None, int]:
        """One of some ranges up to ``end``, which together are the whole."""


class StepTarget(Protocol):
    """How a target writes a part. The same part again, after a crash, leaves the target the same."""

    @property
    def by_key(self) -> bool:
        """Whether it has a key: then each part is computed from the whole input, otherwise from a range of it."""

    def bounded(self, limit: Limit) -> Limit: ...

    def write_part(
        self,
        session: SparkSession,
        output: Changes | None,
        part: Part,
        batch: Batch,
        before_commit: Callable[[], None],
    ) -> int:
        """Write what differs. ``output`` is the whole relation, or a range of it. Returns how many keys of the target were found that
        the relation does not have; the sum over all parts counts."""

    def notice(self, missing: int, *, anew: bool) -> str | None:
        """What to say of the keys that the relation does not have."""


class TargetStep:
    """Brings one target in step, part by part. `on_notice` is told of keys that the relation does not have.

    Each part of the keys reads the whole input: that takes longer than one pass, but a batch stays so small that others can run
    between, and PAUSE does not wait for the whole target. Readers of a keyed target never see it empty.
    """

    def __init__(
        self,
        input_: StepInput,
        plan: Plan,
        target: StepTarget,
        on_notice: Callable[[str], None],
        part_rows: int = PART_ROWS,
    ) -> None:
        self._input = input_
        self._plan = plan
        self._target = target
        self._on_notice = on_notice
        self._part_rows = part_rows
        self._done = 0  # parts that were written
        self._parts = 0  # 0: not known yet
        self._missing = 0  # keys of the target that its relation does not have

    def is_last(self, positions: Positions) -> bool:
        """The number of parts is chosen with the first one, and stays. A target may have to hold a part in memory."""
        if self._parts == 0:
            limit = self._target.bounded(Limit(self._part_rows))
            self._parts = max(1, self._input.parts(positions[self._input.id], limit))
        return self._done + 1 >= self._parts

    def input_ends(self) -> Positions:
        return {self._input.id: self._input.end()}

    def write(
        self, session: SparkSession, batch: Batch, written: str, before_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Write the next part."""
        other_keys = DefinitionName.of(written).keys != DefinitionName.of(self._plan.definition).keys
        anew = other_keys or self._input.has_every_row
        end = batch.end[self._input.id]
        if self._target.by_key:
            changes, read = self._input.whole(session, end)
        else:
            changes, read = self._input.portion(session, end, self._done, self._parts)
        output = None if changes is None else self._plan.compute(session, {self._input.id: changes}, batch)
        part = Part(self._done, self._parts, anew, read, other_keys)
        self._missing += self._target.write_part(session, output, part, batch, before_commit)
        self._done += 1
        if part.is_last and self._missing and (said := self._target.notice(self._missing, anew=anew)) is not None:
            self._on_notice(said)


class TopicRows:
    """A topic as the input of a step."""

    has_every_row = False

    def __init__(self, input_: KafkaInput) -> None:
        self._input = input_

    @property
    def id(self) -> int:
        return self._input.reader.id

    def end(self) -> Position:
        return self._input.end()

    def parts(self, end: Position, limit: Limit) -> int:
        assert isinstance(end, KafkaPosition)
        start = self._input.begin()
        rows = max(1, min(limit.rows, self._input.fitting_rows(start, end, limit.bytes)))
        return -(-distance(start, end) // rows)

    def whole(self, session: SparkSession, end: Position) -> tuple[Changes | None, int]:
        return self._read(session, self._input.begin(), end)

    def portion(self, session: SparkSession, end: Position, number: int, parts: int) -> tuple[Changes | None, int]:
        assert isinstance(end, KafkaPosition)
        start = self._input.begin()
        rows = max(1, -(-distance(start, end) // parts))
        for _ in range(number):
            start = limited(start, end, rows)
        return self._read(session, start, end if number + 1 >= parts else limited(start, end, rows))

    def _read(self, session: SparkSession, start: KafkaPosition, end: Position) -> tuple[Changes | None, int]:
        if (size := distance(start, end)) == 0:
            return None, 0
        self._input.reader.refresh()
        return self._input.read(session, start, end), size


class LogRows:
    """A materialized view as the input of a step. Its rows are written by one batch: nobody knows how many there are, and a target
    that must hold them in memory takes them piece by piece."""

    has_every_row = True

    def __init__(self, input_: LogInput) -> None:
        self._input = input_

    @property
    def id(self) -> int:
        return self._input.view.id

    def end(self) -> Position:
        return self._input.known_end or self._input.first

    def parts(self, end: Position, limit: Limit) -> int:
        return 1

    def whole(self, session: SparkSession, end: Position) -> tuple[Changes | None, int]:
        start = self._input.first
        size = distance(start, end)
        return (self._input.read(session, start, end) if size else None), size

    def portion(self, session: SparkSession, end: Position, number: int, parts: int) -> tuple[Changes | None, int]:
        return self.whole(session, end)


class TopicParts:
    """A keyed topic as the target of a step. A key is the bytes of a record's key. ``known_only`` leaves out keys that the topic
    does not have: those of a snapshot that was not wanted."""

    by_key = True

    def __init__(self, target: KafkaTarget, *, known_only: bool = False) -> None:
        self._target = target
        self._known_only = known_only

    def bounded(self, limit: Limit) -> Limit:
        return self._target.bounded(limit)

    def write_part(
        self,
        session: SparkSession,
        output: Changes | None,
        part: Part,
        batch: Batch,
        before_commit: Callable[[], None],
    ) -> int:
        missing, records = 0, None
        if output is not None:
            assert isinstance(output, Upsert), "only keyed targets are brought in step"
            records = self._target.records(output, part.read)
        if records is not None or part.anew:
            records, missing = self._differing(records, self._target.contents(session).rows, part)
        self._target.write_records(records, batch, before_commit)
        return missing

    def _differing(self, wanted: DataFrame | None, held: DataFrame, part: Part) -> tuple[DataFrame | None, int]:
        """What to write, and how many keys the target holds that are not wanted. They stay, unless all keys are written anew."""
        held = part.rows(held, ("key",))
        missing, records = held, None
        if wanted is not None:
            wanted = part.rows(wanted, ("key",))
            if self._known_only and not part.other_keys:
                wanted = wanted.join(held.select("key"), "key", "left_semi")
            records = difference(wanted, held)
            missing = held.join(wanted.select("key"), "key", "left_anti")
        count = count_rows(missing)
        if not part.anew:
            return records, count
        deleted = tombstones(missing, self._target.sink.topic)
        return (deleted if records is None else records.unionByName(deleted, allowMissingColumns=True)), count

    def notice(self, missing: int, *, anew: bool) -> str | None:
        if anew:
            return f"The keys were written anew. {missing} keys of the target that its relation does not have were deleted."
        return f"The query was replaced. {missing} keys of the target are no longer in its input and were left as they are."


def difference(wanted: DataFrame, held: DataFrame) -> DataFrame:
    """The records of `wanted` whose value or headers are not those that the target holds for their key. A key that the target
    does not hold needs no tombstone."""
    compared = [name for name in ("value", "headers") if name in wanted.columns and name in held.columns]
    left, right = wanted.alias("w"), held.select("key", *compared).alias("h")
    joined = left.join(right, F.col("w.key") == F.col("h.key"), "left")
    same = [_content(f"w.{name}").eqNullSafe(_content(f"h.{name}")) for name in compared]
    return joined.where(~reduce(Column.__and__, same)).select("w.*")


def _content(column: str) -> Column:
    """A record without headers is read with NULL, and may be written with none."""
    return F.col(column) if column.endswith("value") else F.coalesce(F.col(column), F.array().cast(HEADERS))


def tombstones(held: DataFrame, topic: str) -> DataFrame:
    """Records that delete keys which the target holds, each in the partition of the record that it deletes."""
    return held.select(F.lit(topic).alias("topic"), "key", F.lit(None).cast("binary").alias("value"), "partition")
