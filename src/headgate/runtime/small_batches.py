"""Many tasks with few records each: one read for all of them, and one computation and one write for every ten.

To plan a Spark write takes some tenths of a second, whatever it writes: forty tasks with a record each took ten
seconds one beside the other. What is computed is kept by Spark before any of it is written, so that a task's own
trouble shows while nothing is written yet, and everybody can still write alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.runtime.sink_task import Offsets, SinkTask, send

FEW = 2_000  # records that a task may have to be written with others
LEAST = 3  # tasks for which it is worth it
TOGETHER = 10  # tasks in one job: each of its parts is sent the plan of all
READS = 4  # parts of what was read
# A few records are not worth classes of their own, generated and compiled for every plan.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


class SmallBatches:
    """Of one group of tasks, in their sessions by the ids of their sinks."""

    def __init__(
        self, session: SparkSession, sessions: Mapping[int, SparkSession], threads: ThreadPoolExecutor
    ) -> None:
        self._session = session.newSession()
        for name, value in SETTINGS.items():
            self._session.conf.set(name, value)
        self._sessions = sessions
        self._threads = threads
        self._view = f"headgate_batch_{uuid.uuid4().hex}"

    def choose(
        self, tasks: Sequence[SinkTask], start: Mapping[str, Offsets], ends: Mapping[str, Offsets]
    ) -> list[SinkTask]:
        """The tasks that can be written together; none if they are too few. They have few records, stand where the
        batch begins, are allowed no bad record, and read and write with the same settings."""
        light = [t for t in tasks if _is_light(t, start.get(t.topic.name, {}), ends[t.topic.name])]
        alike = [t for t in light if _settings(t) == _settings(light[0])]
        return alike if len(alike) >= LEAST else []

    def write(
        self,
        raw: DataFrame,
        tasks: Sequence[SinkTask],
        failed: Callable[[Sequence[SinkTask], Exception], None],
    ) -> list[SinkTask]:
        """Write the output of the tasks for the records of a batch, of which others may be in ``raw`` too. Gives the
        tasks that were written; ``failed`` is told of those that were not."""
        topics = sorted({task.topic.name for task in tasks})
        with _kept(raw.where(F.col("topic").isin(topics)).coalesce(READS)) as records:
            records.createOrReplaceGlobalTempView(self._view)
            try:
                parts = [tasks[at : at + TOGETHER] for at in range(0, len(tasks), TOGETHER)]
                return list(chain(*self._threads.map(lambda part: self._write(part, failed), parts)))
            finally:
                self._session.catalog.dropGlobalTempView(self._view)

    def _write(
        self, tasks: Sequence[SinkTask], failed: Callable[[Sequence[SinkTask], Exception], None]
    ) -> list[SinkTask]:
        try:
            frames = [self._session.createDataFrame([], EMPTY), *map(self._records, tasks)]
            with _kept(_union(frames).coalesce(1)) as rows:
                rows.count()
                send(rows, tasks[0].target)
        except Exception as error:  # noqa: BLE001 - of whatever it is, each task finds out what it is to itself
            failed(tasks, error)
            return []
        return list(tasks)

    def _records(self, task: SinkTask) -> DataFrame:
        """In the task's own session, where its relations have their names."""
        batch = self._sessions[task.object.id].table(f"global_temp.{self._view}")
        return task.records(batch.where(F.col("topic") == F.lit(task.topic.name)))


EMPTY = "topic string, key binary, value binary"  # a frame that makes the union one of this session


def _is_light(task: SinkTask, start: Offsets, end: Offsets) -> bool:
    stands_there = all(task.reached.get(p, 0) == start.get(p, 0) for p in end)
    return stands_there and task.source.plan.on_error == "HALT" and task.waiting(end) <= FEW


def _settings(task: SinkTask) -> tuple[dict[str, str], dict[str, str]]:
    return task.source.cluster.spark(), task.target.spark()


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """By halves: each step is analysed as a whole."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).unionAll(_union(frames[half:]))
