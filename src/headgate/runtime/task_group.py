"""One Structured Streaming query for all tasks between the same two clusters.

A query of its own for every task does not scale on one machine: 20 of them keep a core busy while nothing happens.
So one query watches the topics of all, and fixes the end of each batch; every task that has new records then reads
its own, from its ledger to that end, and writes. A task that fails is left out while the others go on.
Spark's checkpoint is only the query's clock: a group begins at its tasks' ledgers, with a new checkpoint each time.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.connectors.kafka import Topic
from headgate.errors import HeadgateError
from headgate.runtime.failures import unknown_schema_id
from headgate.runtime.replay import Replayed, SourceMustGrow, replay
from headgate.runtime.sink_task import Offsets, SinkTask, end_of_batch, send
from headgate.runtime.source import Follow

log = logging.getLogger(__name__)

TRIGGER = "1 second"  # RUNTIME: shorter costs a core for nothing, and no batch is done sooner under load
PER_BATCH = 500_000  # records, over all topics; bounds what one batch reads again after a crash
LEARN_TRIES = 3
AT_ONCE = 8  # tasks that write at the same time; as many as Spark has local threads
LANES = 2  # in which they take turns: one computes while the other waits for the disk or the cluster
DRAIN = 60.0  # seconds in which a batch must end when the group is told to stop

Ends = Mapping[str, Offsets]  # by topic


class _Outgrown(Exception):
    """The task must be planned anew before it writes."""


class TaskGroup:
    """Runs its tasks from ``start`` to ``stop``. ``failed`` holds the tasks that are left out, with the reason."""

    def __init__(
        self, session: SparkSession, tasks: Sequence[SinkTask], checkpoints: Path, follow: Follow
    ) -> None:
        """``follow`` is told of schemas that records have and their source does not know yet. The tasks over it read no
        further with their present plan: whoever made the group makes it anew."""
        self.tasks = tuple(tasks)
        self.failed: dict[int, HeadgateError] = {}
        self._outgrown: set[int] = set()  # sources with other columns than the tasks were planned with
        self._follow = follow
        self._session = session.newSession()
        # Of each task its own: tasks over one source call different frames by the same name.
        self._sessions = {task.id: session.newSession() for task in self.tasks}
        self._threads = ThreadPoolExecutor(min(AT_ONCE, len(self.tasks)), "task")
        self._lanes = ThreadPoolExecutor(LANES, "lane")
        self._checkpoint = checkpoints / f"group-{uuid.uuid4().hex}"
        self._query: StreamingQuery | None = None
        self._busy = threading.Lock()
        self._stopping = False

    @property
    def members(self) -> frozenset[int]:
        return frozenset(task.id for task in self.tasks)

    def start(self) -> None:
        start = _earliest(self.tasks)
        options = self.tasks[0].source.options()
        reader = self._session.readStream.format("kafka").options(**options)
        offsets = {topic: {str(p): o for p, o in each.items()} for topic, each in start.items()}
        reader = reader.option("startingOffsets", json.dumps(offsets)).option("subscribe", ",".join(start))
        raw = reader.option("maxOffsetsPerTrigger", str(PER_BATCH)).load()
        writer = raw.writeStream.foreachBatch(self._batch).trigger(processingTime=TRIGGER)
        self._query = writer.option("checkpointLocation", self._checkpoint.as_uri()).start()

    def stop(self) -> None:
        """Let the batch that is under way end, so that it is not done twice; then end the query."""
        drained = self._busy.acquire(timeout=DRAIN)
        self._stopping = True
        if drained:
            self._busy.release()
        if self._query is not None:
            self._query.stop()
        for threads in (self._lanes, self._threads):
            threads.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def failure(self) -> HeadgateError | None:
        """Why the query itself ended, if it did."""
        if self._query is None or self._query.isActive:
            return None
        error = self._query.exception()
        return self.tasks[0].translated(error if error is not None else RuntimeError("the query ended"))

    def replay(self, task: int) -> Replayed | None:
        """Send a task's quarantined records through again, between two batches: what its sink has by then is what the
        topic says up to its ledger. None if the group does not run the task any more."""
        with self._busy:
            found = next((t for t in self.tasks if t.id == task and self._runs(t)), None)
            if found is None or self._stopping:
                return None
            try:
                return replay(found, self._sessions[task])
            except SourceMustGrow as growth:
                self._outgrown.add(found.source.id)
                self._follow(found.source.id, growth.arrived)
                return None
            except Exception as error:
                raise found.translated(error) from error

    # a batch

    def _batch(self, _: DataFrame, batch: int) -> None:
        """Called by Spark. Nothing is raised for a task's own trouble: the other tasks' progress must count."""
        with self._busy:
            if not self._stopping:
                self._dispatch(batch)

    def _dispatch(self, batch: int) -> None:
        """All that have new records, a few at a time. Each reads up to where its topic ends when its turn comes: with
        many tasks, a record that came while others wrote would else wait for all of them once more."""
        ends = self._ends(batch)
        due = [t for t in self.tasks if self._runs(t) and t.wants(ends[t.topic.name])]
        size = max(1, min(AT_ONCE // LANES, -(-len(due) // LANES)))
        turns = [due[n : n + size] for n in range(0, len(due), size)]
        taken = [self._lanes.submit(self._turn, batch, tasks, ends) for tasks in turns]
        wait(taken)  # for all, before a failure ends the batch: nobody may write any more when it has ended
        for turn in taken:
            turn.result()

    def _turn(self, batch: int, tasks: Sequence[SinkTask], ends: Ends) -> None:
        """A cluster is asked once for all of a turn: two requests for each of forty would take longer than the batch."""
        source = self.tasks[0].source.cluster
        topics = source.topics({task.topic.name for task in tasks})
        latest = source.end_offsets(list(topics.values()))
        until = {
            t.id: end_of_batch(t.reached, ends[t.topic.name], latest.get(t.topic.name, {})) for t in tasks
        }
        while tasks:
            done = self._part(batch, tasks, until, topics, latest)
            tasks = [task for task in done if task.wants(until[task.id])]

    def _part(
        self, batch: int, tasks: Sequence[SinkTask], until: Mapping[int, Offsets], topics: Mapping[str, Topic],
        latest: Ends,
    ) -> list[SinkTask]:  # fmt: skip
        """Read and write: all of the turn, or where a schema may halt a task, up to there; those that did."""
        ready = self._attempt_all(
            self._with_targets(tasks),
            lambda t: t.intend(batch, until[t.id], topics.get(t.topic.name)),
        )
        ready = self._side_by_side(ready, lambda t: self._keep_up(t, until[t.id]))
        ready = [t for t in ready if self._runs(t)]  # what one finds, another may read too
        end: dict[int, Offsets] = {}
        ready = self._side_by_side(ready, lambda t: self._end_before_halt(t, until[t.id], end))
        written = self._side_by_side(ready, lambda t: self._write(t, end[t.id]))
        written = [t for t in written if self._attempt(t, SinkTask.set_aside)]
        return self._attempt_all(written, lambda t: t.finish(batch, end[t.id], latest[t.topic.name]))

    def _end_before_halt(self, task: SinkTask, until: Offsets, end: dict[int, Offsets]) -> None:
        end[task.id] = task.end_before_halt(until, lambda: self._read(task, until))

    def _with_targets(self, tasks: Sequence[SinkTask]) -> list[SinkTask]:
        """Those whose own topics are there, asked once for all."""
        try:
            there = self.tasks[0].target.topics({task.sink.topic for task in tasks})
        except Exception as error:  # noqa: BLE001 - the target may be away while the source is not
            for task in tasks:
                self.failed[task.id] = task.translated(error)
            return []
        return [task for task in tasks if self._attempt(task, lambda t: t.check_target(there))]

    def _attempt_all(self, tasks: Sequence[SinkTask], step: Callable[[SinkTask], None]) -> list[SinkTask]:
        """A step that only writes to the catalog, durable for all tasks at once: to wait for the disk 40 times would
        take longer than the batch."""
        try:
            with self.tasks[0].store.together():
                return [task for task in tasks if self._attempt(task, step)]
        except Exception as error:  # noqa: BLE001 - nothing of it is stored: all go on from their ledgers
            for task in tasks:
                self.failed[task.id] = task.translated(error)
            return []

    def _runs(self, task: SinkTask) -> bool:
        return task.id not in self.failed and task.source.id not in self._outgrown

    def _keep_up(self, task: SinkTask, end: Offsets) -> None:
        """Look for schemas that change what the task's source gives, before anything of the batch is written."""
        task.source.refresh()
        arrived = task.source.arrived(lambda: self._read(task, end))
        if arrived:
            self._outgrown.add(task.source.id)
            self._follow(task.source.id, arrived)

    def _side_by_side(self, tasks: Sequence[SinkTask], step: Callable[[SinkTask], None]) -> list[SinkTask]:
        """A step that waits for the registry, or for Spark. Not one job for all: when one task fails, nobody could say
        what of the others was written."""
        done = self._threads.map(lambda task: self._attempt(task, step), tasks)
        return [task for task, well in zip(tasks, done, strict=True) if well]

    def _write(self, task: SinkTask, end: Offsets) -> None:
        """An id that no version of the subject has fails the write before anything of the batch counts; the schema is
        fetched, and the write done again."""
        for _ in range(LEARN_TRIES):
            try:
                return self._send(task, end)
            except Exception as error:
                unknown = unknown_schema_id(error)
                if unknown is None:
                    raise
                task.source.learn(unknown)
                self._keep_up(task, end)
                if not self._runs(task):
                    raise _Outgrown from error
        return self._send(task, end)

    def _send(self, task: SinkTask, end: Offsets) -> None:
        send(task.records(self._read(task, end), end), task.target)

    def _read(self, task: SinkTask, end: Offsets) -> DataFrame:
        """The records that the task has not had. Not from the query's own frame: there every task would read the topics
        of all others too, and 40 tasks on 40 topics would make 1,600 reads of a batch. (To read once for all and keep
        the records for the others took longer, too, and so did one write for ten tasks.)"""
        session, start = self._sessions[task.id], {p: task.reached.get(p, 0) for p in end}
        return task.source.between(session, start, end, f"headgate-task-{task.id}")

    def _attempt(self, task: SinkTask, step: Callable[[SinkTask], None]) -> bool:
        try:
            step(task)
        except _Outgrown:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, only this task is left out
            self.failed[task.id] = task.translated(error)
            return False
        return True

    def _ends(self, batch: int) -> dict[str, dict[int, int]]:
        """Where Spark fixed the batch's end, before it called us: the last line of the batch's offset log, which the
        driver wrote."""
        text = (self._checkpoint / "offsets" / str(batch)).read_text()
        told = json.loads(text.strip().splitlines()[-1])
        return {topic: {int(p): int(offset) for p, offset in each.items()} for topic, each in told.items()}


def _earliest(tasks: Sequence[SinkTask]) -> dict[str, dict[int, int]]:
    """For every topic, where the task that is furthest behind begins; at most where the topic ends, as Spark insists."""
    start: dict[str, dict[int, int]] = {}
    for task in tasks:
        known: Offsets = start.get(task.topic.name, {})
        begin = {p: min(offset, task.there.get(p, offset)) for p, offset in task.reached.items()}
        start[task.topic.name] = {p: min(offset, known.get(p, offset)) for p, offset in begin.items()}
    return start
