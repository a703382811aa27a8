"""Spark's real-time queries: one session for all of them, the slots that they hold, and who is told what becomes of each.

A query holds one slot of Spark for each partition of its topic, all the time. If there were too few, some partitions would
never be read, and Spark says nothing of that. So slots are counted here before a query starts.
"""

from __future__ import annotations

import logging
import math
import random
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from headgate.runtime.session import POOL

log = logging.getLogger(__name__)

LIVE_POOL = "real-time"
TRIGGER = 60.0  # seconds between two boundaries; one costs 0.19 CPU seconds and a gap of a quarter of a second
SHORT_TRIGGER = 5.0  # the shortest that Spark allows; for sinks without a key, which repeat all since the boundary
SPREAD = 0.2  # part of the trigger by which queries differ, so that boundaries of those started together do not stay together
START_EVERY = 0.2  # seconds between two starts
WATCH_EVERY, WATCH_PAUSE = 1.0, 0.05  # seconds between two looks at the registry, and between two queries of one look
SETTLE_SHARE = 0.1  # part of the time in which some idle task may look whether all is written

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stopTimeout": "20s",
}

Offsets = Mapping[int, int]


class Slots:
    """Counts the slots of Spark that queries may hold. Others are kept for micro-batches."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken = 0
        self._guard = threading.Lock()

    @property
    def free(self) -> int:
        return self.total - self._taken

    def take(self, count: int) -> bool:
        with self._guard:
            if count > self.total - self._taken:
                return False
            self._taken += count
            return True

    def give_back(self, count: int) -> None:
        with self._guard:
            self._taken -= count


@dataclass(eq=False, slots=True)
class LiveQuery:
    """A query that runs. ``failure`` are the words of the error that ended it; ``ended`` is set with it."""

    query: StreamingQuery
    run_id: str
    checkpoint: Path
    slots: int
    on_boundary: Callable[[LiveQuery, str], None]
    on_end: Callable[[LiveQuery], None]
    has_new_version: Callable[[], bool] = lambda: False
    started: float = field(default_factory=time.monotonic)
    announced: int = 0  # boundaries that Spark told of
    boundaries: int = 0  # those that `on_boundary` was told of
    ended: bool = False
    failure: str | None = None
    outdated: bool = False  # there is a version of a schema that it may not know


class LiveQueries:
    """Starts and stops queries. ``folder`` holds their checkpoints, which nobody reads again: the ledger is the truth."""

    def __init__(self, session: Callable[[], SparkSession], folder: Path, slots: int, trigger: float = TRIGGER) -> None:
        self.slots = Slots(slots)
        self.trigger = trigger
        self.unsettled: dict[int, Offsets] = {}  # by task: from where its topic may have more than the ledger says
        self.handed_over: set[int] = set()  # tasks whose query was ended so that another one goes on at once
        self._root = session
        self._folder = folder
        self._running: dict[str, LiveQuery] = {}
        self._unstopped: list[LiveQuery] = []
        self._starting = threading.Lock()
        self._next_start = 0.0
        self._settling = threading.Lock()
        self._next_settle = 0.0
        self._of_root: SparkSession | None = None
        self._session: SparkSession | None = None
        self._listener: _Listener | None = None
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._teller = threading.Thread(target=self._tell, name="live-queries", daemon=True)
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="live-versions", daemon=True)

    def open(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)  # of an engine that was killed
        self._teller.start()
        self._watcher.start()

    def close(self) -> None:
        """Tell nobody anything any more. The tasks have ended their queries."""
        self._closed.set()
        self._events.put(None)
        if self._session is not None and self._listener is not None:
            with suppress(Exception):  # Spark may have ended; otherwise it would call whoever is gone
                self._session.streams.removeListener(self._listener)
        shutil.rmtree(self._folder, ignore_errors=True)

    # Starts and ends

    @property
    def is_any_running(self) -> bool:
        return bool(self._running)

    def next_start(self) -> float:
        """Seconds until a query may start: starts are staggered, and so are boundaries."""
        return max(0.0, self._next_start - time.monotonic())

    def start(
        self,
        name: str,
        records: Callable[[SparkSession], DataFrame],
        options: Mapping[str, str],
        slots: int,
        on_boundary: Callable[[LiveQuery, str], None],
        on_end: Callable[[LiveQuery], None],
        has_new_version: Callable[[], bool] = lambda: False,
        *,
        short: bool = False,
    ) -> LiveQuery:
        """Start a query, whose ``slots`` were taken. ``on_boundary`` is given the end offsets of each batch, and ``on_end`` is
        called when the query has ended by itself, or should end because ``has_new_version``, which is asked about every
        second; both by a thread of ours, one after another."""
        with self._starting:
            self._next_start = time.monotonic() + START_EVERY
            session = self._own_session()
            context = session.sparkContext
            context.clearJobTags()  # or what cancels a batch of this thread would end the query
            context.setLocalProperty(POOL, LIVE_POOL)
            checkpoint = self._folder / uuid.uuid4().hex
            seconds = SHORT_TRIGGER if short else self.trigger * random.uniform(1 - SPREAD, 1.0)
            writer = records(session).writeStream.format("kafka").outputMode("update").queryName(name)
            writer = writer.options(**options).option("checkpointLocation", str(checkpoint))
            try:
                # PySpark's overloads do not name it yet.
                query = writer.trigger(realTime=f"{int(seconds * 1000)} milliseconds").start()  # type: ignore[call-overload]
            except BaseException:
                shutil.rmtree(checkpoint, ignore_errors=True)  # a task tries again and again
                raise
        live = LiveQuery(query, query.runId, checkpoint, slots, on_boundary, on_end, has_new_version)
        self._running[live.run_id] = live
        if not query.isActive:  # it ended before anybody could be told
            self._on_end(live.run_id, str(query.exception()))
        return live

    def stop(self, live: LiveQuery) -> None:
        """End a query and give back what it holds. What it has read since its last boundary is not known to be written."""
        if self._running.pop(live.run_id, None) is None:
            return
        try:
            live.query.stop()
        except BaseException:
            self._unstopped.append(live)
            raise
        self._give_back(live)

    def _give_back(self, live: LiveQuery) -> None:
        self.slots.give_back(live.slots)
        shutil.rmtree(live.checkpoint, ignore_errors=True)

    def _stop_again(self) -> None:
        """Queries that did not end in time hold their slots, and write on, until they do."""
        for live in [*self._unstopped]:
            with suppress(Exception):
                live.query.stop()
                self._unstopped.remove(live)
                self._give_back(live)

    def take_settle(self) -> bool:
        """Whether a task may look now; then it calls `settled`. One looks at a time."""
        with self._settling:
            if time.monotonic() < self._next_settle:
                return False
            self._next_settle = math.inf
            return True

    def settle_at(self) -> float:
        """The time (``time.monotonic``) from which some task may look whether all is written."""
        return self._next_settle

    def settled(self, seconds: float) -> None:
        """A look took so long. The next waits until looks take only their share of the time."""
        self._next_settle = time.monotonic() + seconds / SETTLE_SHARE

    def _own_session(self) -> SparkSession:
        root = self._root()
        if self._session is None or self._of_root is not root:
            session = root.newSession()
            for name, value in SETTINGS.items():
                session.conf.set(name, value)
            self._listener = _Listener(self)
            session.streams.addListener(self._listener)
            self._of_root, self._session = root, session
        return self._session

    # What Spark says

    def _on_progress(self, run_id: str, end_offsets: str) -> None:
        live = self._running.get(run_id)
        if live is not None:
            live.announced += 1
            self._events.put(lambda: live.on_boundary(live, end_offsets))

    def _on_end(self, run_id: str, failure: str | None) -> None:
        live = self._running.get(run_id)
        if live is not None and not live.ended:
            live.failure, live.ended = failure, True
            self._events.put(lambda: live.on_end(live))

    def _watch(self) -> None:
        """Ask for new versions of schemas: a query that knows one before its first record comes need not end for it."""
        while not self._closed.wait(WATCH_EVERY):
            self._stop_again()
            for live in [*self._running.values()]:
                if not (live.ended or live.outdated) and self._has_new_version(live):
                    live.outdated = True
                    self._events.put(lambda live=live: live.on_end(live))  # type: ignore[misc]
                if self._closed.wait(WATCH_PAUSE):
                    return

    def _has_new_version(self, live: LiveQuery) -> bool:
        try:
            return live.has_new_version()
        except Exception as error:  # noqa: BLE001 - the first record of a new version tells of it, too
            log.debug("a registry was not asked for new versions: %s", error)
            return False

    def _tell(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
            except Exception:
                log.exception("an event of a query failed, and the others go on")


class _Listener(StreamingQueryListener):
    """Spark calls it in a thread of its own, and waits for it."""

    def __init__(self, queries: LiveQueries) -> None:
        self._queries = queries

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark calls it so
        """`start` has returned the query."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark calls it so
        for source in event.progress.sources:
            self._queries._on_progress(str(event.progress.runId), source.endOffset)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark calls it so
        """A real-time query is never idle."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark calls it so
        self._queries._on_end(str(event.runId), event.exception)
