"""Tasks, a cluster and Spark's jobs in memory, for tests of the scheduler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from pyspark.sql import SparkSession

from headgate.catalog.positions import KafkaPosition, Position, Positions, lag, limited
from headgate.connectors.kafka import Topic
from headgate.errors import HeadgateError
from headgate.runtime.entry import ScheduledTask
from headgate.runtime.ports import BatchResult, Input, Limit, ReplanNeeded, Watched
from headgate.runtime.scheduler import Scheduler

SOURCE = 1
LONG = 60.0  # seconds; no test waits so long unless it fails
NO_SESSION = cast("SparkSession", None)


class MemoryCluster:
    """Topics of one partition, each with an id and its number of records."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.failure: HeadgateError | None = None
        self.requests: list[frozenset[str]] = []  # the topics of every request for ends

    def put(self, topic: str, records: int = 1) -> None:
        self.ids.setdefault(topic, f"id of {topic}")
        self.ends[topic] = self.ends.get(topic, 0) + records

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        if self.failure is not None:
            raise self.failure
        return {name: Topic(name, self.ids[name], 1) for name in names if name in self.ends}

    def end_offsets(self, topics: Collection[Topic]) -> dict[str, dict[int, int]]:
        if self.failure is not None:
            raise self.failure
        self.requests.append(frozenset(topic.name for topic in topics))
        return {topic.name: {0: self.ends[topic.name]} for topic in topics}


class WatchedInput:
    """What the scheduler sees of an input."""

    def __init__(self, watched: Watched | None) -> None:
        self.watched = watched
        self.known_end: Position | None = None


class MemoryTask:
    """Reads a topic of a memory cluster; a batch calls ``work`` and then commits what it read."""

    def __init__(self, id_: int, cluster: MemoryCluster | None, work: Callable[[], None] = lambda: None) -> None:
        self.id = id_
        self.name = f"task {id_}"
        self.topic = f"topic{id_}"
        if cluster is not None and self.topic not in cluster.ends:
            cluster.put(self.topic, 0)
        watched = Watched(cluster, self.topic) if cluster is not None else None
        self.inputs = cast("Mapping[int, Input]", {SOURCE: WatchedInput(watched)})
        self.due: float | None = None
        self.chore_due: float | None = None
        self.chore: Callable[[], None] = lambda: None
        self.work = work
        self.closed = False
        self.can_go_live = self.is_live = False
        self.finished: list[bool] = []  # how often it was ended, and whether it could settle
        self.begin_failure: Exception | None = None
        self.positions: Positions = {}
        self.limits: list[int] = []
        self.batches = 0
        self._in_use = threading.Lock()

    def begin(self) -> None:
        if self.begin_failure is not None:
            raise self.begin_failure
        self.positions = {SOURCE: KafkaPosition(self.topic, f"id of {self.topic}", (0,))}

    def has_work(self, available: Positions) -> bool:
        return self.lag(available) != 0

    def lag(self, available: Positions) -> int | None:
        return lag(self.positions, available) if self.positions else None

    def run_batch(
        self, session: SparkSession, limit: Limit | None = None, available: Positions | None = None
    ) -> BatchResult | None:
        assert self._in_use.acquire(blocking=False), "the task runs twice at once"
        try:
            return self._run_batch(limit or Limit(), available or {})
        finally:
            self._in_use.release()

    def _run_batch(self, limit: Limit, available: Positions) -> BatchResult | None:
        began = time.monotonic()
        self.limits.append(limit.rows)
        self.work()
        start, end = self.positions[SOURCE], available.get(SOURCE)
        self.batches += 1
        if not isinstance(start, KafkaPosition) or not isinstance(end, KafkaPosition):
            return None
        read = limited(start, end, limit.rows)
        rows = lag(self.positions, {SOURCE: read})
        self.positions = {SOURCE: read}
        return BatchResult(self.batches, rows, time.monotonic() - began, self.positions)

    def do_chore(self, session: SparkSession) -> None:
        assert self._in_use.acquire(blocking=False), "the task runs twice at once"
        try:
            self.chore()
        finally:
            self._in_use.release()

    def finish(self, session: SparkSession, *, settle: bool = True) -> None:
        self.is_live = False
        self.finished.append(settle)

    def close(self) -> None:
        self.closed = True


class MemoryJobs:
    """Runs batches without Spark. ``cancelled`` are the tags that were cancelled."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.small: list[bool] = []
        self.cancelled: set[str] = set()
        self.on_cancel: Callable[[], None] = lambda: None

    @contextmanager
    def batch(self, tag: str, *, small: bool) -> Iterator[SparkSession]:
        self.tags.append(tag)
        self.small.append(small)
        yield NO_SESSION

    def cancel(self, tag: str) -> None:
        self.cancelled.add(tag)
        self.on_cancel()


class RecordedEvents:
    """Remembers what the scheduler tells."""

    def __init__(self) -> None:
        self.begun_tasks: dict[int, int | None] = {}
        self.commits: list[int] = []
        self.failures: dict[int, HeadgateError] = {}
        self.outgrown_tasks: dict[int, ReplanNeeded] = {}
        self._changed = threading.Condition()

    def begun(self, task: ScheduledTask, lag: int | None) -> None:
        with self._changed:
            self.begun_tasks[task.id] = lag
            self._changed.notify_all()

    def committed(self, task: ScheduledTask, result: BatchResult) -> None:
        with self._changed:
            self.commits.append(task.id)
            self._changed.notify_all()

    def failed(self, task: ScheduledTask, error: HeadgateError) -> None:
        with self._changed:
            self.failures[task.id] = error
            self._changed.notify_all()

    def outgrown(self, task: ScheduledTask, needed: ReplanNeeded) -> None:
        with self._changed:
            self.outgrown_tasks[task.id] = needed
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(holds, LONG)


class Running:
    """A scheduler that runs, with all that it stands on."""

    def __init__(self, workers: int) -> None:
        self.cluster = MemoryCluster()
        self.jobs = MemoryJobs()
        self.events = RecordedEvents()
        self.scheduler = Scheduler(self.jobs, self.events, workers)
        self.scheduler.start()

    def add(self, *tasks: MemoryTask) -> None:
        for task in tasks:
            self.scheduler.add(task)
        self.events.wait_until(lambda: self.events.begun_tasks.keys() >= {task.id for task in tasks})


class Gate:
    """Work that waits until the test opens it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self.opened.wait(LONG)
