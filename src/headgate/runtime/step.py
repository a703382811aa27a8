"""Bring a keyed target in step with a query that was replaced: write the difference between what it holds and what it should.

The new query runs over all that its input still has, up to the ledger. Keys that the target holds and the input no longer has
stay: nobody knows what the new query would give for them. They are deleted if all keys are written anew, because the target
reads another source or its keys have other bytes. A large topic is brought in step by several batches.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import Positions, distance
from headgate.plan.definitions import DefinitionName
from headgate.runtime.decode import count_rows
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Batch, Plan, Upsert
from headgate.runtime.targets.kafka import KafkaTarget

PART_ROWS = 500_000  # records of the input for which one batch is enough


class KafkaStep:
    """For a keyed topic over a keyed topic. `on_notice` is told how many keys were left as they are.

    The keys are divided by a hash of their bytes. Each part reads both topics: that takes longer than one pass, but a batch
    stays so small that others can run between, and PAUSE does not wait for the whole topic.
    """

    def __init__(
        self,
        input_: KafkaInput,
        plan: Plan,
        target: KafkaTarget,
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
        self._missing = 0  # keys of the target that its input no longer has

    def is_last(self, positions: Positions) -> bool:
        """The number of parts is chosen with the first one, and stays."""
        self._parts = self._parts or max(1, -(-self._size(positions) // self._part_rows))
        return self._done + 1 >= self._parts

    def _size(self, positions: Positions) -> int:
        return distance(self._input.begin(), positions[self._input.reader.id])

    def input_ends(self) -> Positions:
        return {self._input.reader.id: self._input.end()}

    def write(self, session: SparkSession, batch: Batch, written: str) -> None:
        """Write what differs in the next part. The same call again, after a crash, writes the rest."""
        anew = DefinitionName.of(written).keys != DefinitionName.of(self._plan.definition).keys
        source = self._input.reader.id
        start, end = self._input.begin(), batch.end[source]
        if (size := distance(start, end)) > 0:
            self._input.reader.refresh()
            changes = self._plan.compute(session, {source: self._input.read(session, start, end)}, batch)
            assert isinstance(changes, Upsert), "only keyed targets are brought in step"
            self._write_part(self._target.records(changes, size), self._target.contents(session).rows, anew)
        elif anew:
            self._write_part(None, self._target.contents(session).rows, anew)
        self._done += 1
        if self._done >= self._parts and self._missing:
            self._on_notice(_notice(self._missing, anew))

    def _write_part(self, wanted: DataFrame | None, held: DataFrame, anew: bool) -> None:
        """Keys that the target holds and that are not wanted stay, unless all keys are written anew."""
        held = part_of(held, self._done, self._parts)
        missing = held
        if wanted is not None:
            wanted = part_of(wanted, self._done, self._parts)
            self._target.send(difference(wanted, held))
            missing = held.join(wanted.select("key"), "key", "left_anti")
        self._missing += count_rows(missing)
        if anew:
            self._target.send(tombstones(missing, self._target.sink.topic))


def _notice(missing: int, anew: bool) -> str:
    if anew:
        return f"The keys were written anew. {missing} keys of the target that its relation does not have were deleted."
    return f"The query was replaced. {missing} keys of the target are no longer in its input and were left as they are."


def part_of(records: DataFrame, part: int, parts: int) -> DataFrame:
    """The records of one part of the keys. Every key is in one part, whatever frame it is in."""
    return records if parts == 1 else records.where(F.pmod(F.xxhash64("key"), F.lit(parts)) == part)


def difference(wanted: DataFrame, held: DataFrame) -> DataFrame:
    """The records of `wanted` whose value is not the one that the target holds for their key. A key that the target does not
    hold needs no tombstone."""
    left, right = wanted.alias("w"), held.select("key", "value").alias("h")
    joined = left.join(right, F.col("w.key") == F.col("h.key"), "left")
    return joined.where(~F.col("w.value").eqNullSafe(F.col("h.value"))).select("w.*")


def tombstones(held: DataFrame, topic: str) -> DataFrame:
    """Records that delete keys which the target holds, each in the partition of the record that it deletes."""
    return held.select(F.lit(topic).alias("topic"), "key", F.lit(None).cast("binary").alias("value"), "partition")
