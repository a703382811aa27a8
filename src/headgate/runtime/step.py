"""Bring a keyed target in step with a query that was replaced: write the difference between what it holds and what it should.

The new query runs over all that its input still has, up to the ledger. Keys that the target holds and the input no longer has
stay: nobody knows what the new query would give for them.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.catalog.positions import distance
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import Batch, Plan, Upsert
from headgate.runtime.targets.kafka import KafkaTarget


class KafkaStep:
    """For a keyed topic over a keyed topic. `on_notice` is told how many keys were left as they are."""

    def __init__(self, input_: KafkaInput, plan: Plan, target: KafkaTarget, on_notice: Callable[[str], None]) -> None:
        self._input = input_
        self._plan = plan
        self._target = target
        self._on_notice = on_notice

    def write(self, session: SparkSession, batch: Batch) -> None:
        """Write what differs. The same call again, after a crash, writes the rest."""
        source = self._input.reader.id
        end = batch.end[source]
        start = self._input.begin()
        if distance(start, end) == 0:
            return
        self._input.reader.refresh()
        changes = self._plan.compute(session, {source: self._input.read(session, start, end)}, batch)
        assert isinstance(changes, Upsert), "only keyed targets are brought in step"
        wanted = self._target.records(changes, distance(start, end))
        held = self._target.contents(session).rows
        self._target.send(difference(wanted, held))
        if kept := _count_missing(held, wanted):
            self._on_notice(
                f"The query was replaced. {kept} keys of the target are no longer in its input and were left as they are."
            )


def difference(wanted: DataFrame, held: DataFrame) -> DataFrame:
    """The records of `wanted` whose value is not the one that the target holds for their key. A key that the target does not
    hold needs no tombstone."""
    left, right = wanted.alias("w"), held.select("key", "value").alias("h")
    joined = left.join(right, F.col("w.key") == F.col("h.key"), "left")
    return joined.where(~F.col("w.value").eqNullSafe(F.col("h.value"))).select("w.topic", "w.key", "w.value")


def _count_missing(held: DataFrame, wanted: DataFrame) -> int:
    found = held.join(wanted.select("key"), "key", "left_anti").select(F.count(F.lit(1))).first()
    return int(found[0]) if found is not None else 0
