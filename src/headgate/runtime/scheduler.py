"""The scheduler decides which task works next. It knows nothing of what a batch does.

A poller per cluster says how far the topics reach. Tasks with something to read, or whose timer is due, wait; a few workers
take the one that worked least recently and run one batch of it. There is no barrier: a slow task holds one worker, and a
task that fails, changes or goes touches no other. A task never runs twice at once. Tasks whose server hangs, and that fail
after each time-out, get half of the workers at most.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

from pyspark.sql import SparkSession

from headgate.catalog.positions import Position
from headgate.errors import HeadgateError
from headgate.runtime import entry as entries
from headgate.runtime.entry import AIM, SHORTEST_AIM, Entry, Request, ScheduledTask, watched_by
from headgate.runtime.errors import TaskNotRunning
from headgate.runtime.failures import own_error
from headgate.runtime.poller import Pollers
from headgate.runtime.ports import BatchResult, ReplanNeeded, Watched

log = logging.getLogger(__name__)

WORKERS = 6  # batches at once; more than cores, because a batch mostly waits for brokers and disks
BEGINNERS = 8  # tasks that find out at once where they stand; each waits for some answers of brokers
RETRIERS = 4  # threads for tasks that do so after a failure
DRAIN = 10.0  # seconds in which a batch may end before it is cancelled

T = TypeVar("T")


class Jobs(Protocol):
    """Runs batches on Spark: see `SparkJobs`."""

    def batch(self, tag: str, *, small: bool) -> AbstractContextManager[SparkSession]: ...

    def cancel(self, tag: str) -> None: ...


class Events(Protocol):
    """Who is told how tasks do. Called by threads of the scheduler, one call at a time for one task."""

    def begun(self, task: ScheduledTask, lag: int | None) -> None:
        """The task knows where it stands."""

    def committed(self, task: ScheduledTask, result: BatchResult) -> None: ...

    def failed(self, task: ScheduledTask, error: HeadgateError) -> None:
        """The task works again when it is added again. Until then it rests if the error is retryable, so that its lag stays
        known; otherwise it is out of the scheduler."""

    def outgrown(self, task: ScheduledTask, needed: ReplanNeeded) -> None:
        """The task must be planned anew. It rests until it is replaced."""


class Scheduler:
    """Runs tasks from ``start`` to ``stop``."""

    def __init__(self, jobs: Jobs, events: Events, workers: int = WORKERS) -> None:
        self._jobs = jobs
        self._events = events
        self._entries: dict[int, Entry] = {}
        self._changed = threading.Condition()
        self._pollers = Pollers(self._on_moved, self._on_poll_failure)
        self._stopping = False
        self._tags = itertools.count(1)
        self._beginners = ThreadPoolExecutor(BEGINNERS, "begin")
        self._retriers = ThreadPoolExecutor(RETRIERS, "begin-again")
        self._most_failed = max(1, workers // 2)  # workers that tasks may hold whose last attempt failed
        self._closing: list[ScheduledTask] = []  # tasks that have left and are not closed yet
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True) for number in range(workers)
        ]
        self._canceller = threading.Thread(target=self._cancel_late_batches, name="canceller", daemon=True)

    def start(self) -> None:
        for thread in (*self._threads, self._canceller):
            thread.start()

    # Which tasks there are

    def add(self, task: ScheduledTask) -> None:
        """Run this task, in place of one with the same id, which may end its batch first."""
        with self._closing_outside_of_lock():
            entry = self._entries.get(task.id)
            if self._stopping:
                self._closing.append(task)
                return
            if entry is not None and entry.is_at_work:
                self._let_leave(entry, task)
                entry.cancel_at = entry.cancel_at or time.monotonic() + DRAIN
                self._changed.notify_all()
                return
            if entry is not None:
                self._close(entry)
            self._enter(task, entry)

    def remove(self, task: int, *, cancel: bool = False) -> None:
        """Run this task no more. A batch under way may end, but is cancelled after DRAIN seconds, or at once."""
        with self._closing_outside_of_lock():
            entry = self._entries.get(task)
            if entry is None:
                return
            if not entry.is_at_work:
                self._leave(entry)
                return
            self._let_leave(entry, None)
            entry.settles = entry.settles and not cancel
            entry.cancel_at = time.monotonic() + (0.0 if cancel else DRAIN)
            self._changed.notify_all()

    def wake(self, task: int) -> None:
        """Run a batch of this task soon, whatever is known of its inputs."""
        with self._changed:
            if (entry := self._entries.get(task)) is not None:
                entry.woken = True
                self._changed.notify_all()

    def between_batches(self, task: int, work: Callable[[Any, SparkSession], T]) -> T:
        """Let a worker do something else with a task while it has no batch, and return the result. Raises TaskNotRunning
        if the scheduler does not have the task, or loses it before its turn comes."""
        request = Request(work)
        with self._changed:
            entry = self._entries.get(task)
            if entry is None or entry.leaving or entry.resting or self._stopping:
                raise TaskNotRunning(str(task), starting=entry is not None)
            entry.requests.append(request)
            self._changed.notify_all()
        result: T = request.answer.result()
        return result

    def lags(self) -> dict[int, int | None]:
        """How much each task has not read yet, from the ends that the pollers saw last; None before it has begun."""
        with self._changed:
            for entry in self._entries.values():
                self._look(entry)
            return {id_: entry.lag for id_, entry in self._entries.items()}

    def refresh(self, timeout: float) -> None:
        """Let `lags` know what was in the topics when this was called, if their clusters answer in time."""
        self._pollers.refresh(timeout)

    def in_batch(self) -> set[int]:
        """The tasks whose batch runs now."""
        with self._changed:
            return {id_ for id_, entry in self._entries.items() if entry.tag is not None}

    def ends_queries(self) -> bool:
        """Whether a task that may run by itself leaves and has not left yet."""
        with self._changed:
            return any(entry.ends_query for entry in self._entries.values())

    # For a task that runs by itself (a streaming query): a batch starts it, and `finish` ends it

    def report_commit(self, task: int, result: BatchResult) -> None:
        """A task that runs by itself has come further. Its `lag` says how far it is behind now."""
        with self._changed:
            entry = self._entries.get(task)
        if entry is not None:
            self._events.committed(entry.task, result)

    def report_failure(self, task: int, error: Exception) -> None:
        """A task that runs by itself cannot go on. If a worker uses it just now, that one finds out itself."""
        with self._changed:
            entry = self._entries.get(task)
            if entry is None or entry.busy:
                return
            entry.busy = True  # so that no worker takes it before the failure is known
        self._fail(entry, error)

    def stop(self) -> None:
        """Let the batches under way end, cancel them after DRAIN seconds, and forget all tasks."""
        with self._closing_outside_of_lock():
            self._stopping = True
            for entry in list(self._entries.values()):
                if entry.is_at_work:
                    self._let_leave(entry, None)
                    entry.cancel_at = entry.cancel_at or time.monotonic() + DRAIN
                else:
                    self._leave(entry)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._entries, 3 * DRAIN)
        self._pollers.stop()
        for pool in (self._beginners, self._retriers):
            pool.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(DRAIN)

    def _enter(self, task: ScheduledTask, before: Entry | None) -> None:
        """Called with the lock. The lag of the entry ``before`` is shown until the task knows its own."""
        entry = self._entries[task.id] = Entry(task)
        if before is not None:
            entry.lag, entry.failed = before.lag, before.failed
        self._watch()
        if self._answered(entry):
            self._begin(entry)

    def _let_leave(self, entry: Entry, successor: ScheduledTask | None) -> None:
        """Take a task out when it is no longer at work. Called with the lock."""
        if entry.successor is not None:  # it never ran
            self._closing.append(entry.successor)
        entry.leaving, entry.successor, entry.ends_query = True, successor, entry.task.can_go_live

    def _leave(self, entry: Entry) -> None:
        """Called with the lock, inside of `_closing_outside_of_lock`."""
        self._close(entry)
        if self._entries.get(entry.task.id) is entry:
            del self._entries[entry.task.id]
        self._watch()
        self._changed.notify_all()

    def _close(self, entry: Entry) -> None:
        for request in entry.requests:
            request.answer.set_exception(TaskNotRunning(entry.task.name, starting=entry.successor is not None))
        entry.requests.clear()
        self._closing.append(entry.task)

    @contextmanager
    def _closing_outside_of_lock(self) -> Iterator[None]:
        """Hold the lock, and close the tasks that have left when it is given back. To close a producer whose broker is away
        takes its time, in which the others work."""
        with self._changed:
            yield
            left, self._closing = self._closing, []
        for task in left:
            try:
                task.close()
            except Exception as error:  # noqa: BLE001 - what cannot be closed is gone already
                log.warning("task %s could not be closed: %s", task.name, str(error)[:200])

    # What there is to read

    def _watch(self) -> None:
        """Let the pollers ask for just the topics that are read. Called with the lock."""
        tasks = [t for e in self._entries.values() for t in (e.task, e.successor) if t is not None]
        self._pollers.watch(frozenset(watched for task in tasks for watched in watched_by(task)))

    def _on_moved(self, moved: Collection[Watched]) -> None:
        with self._changed:
            reading = [e for e in self._entries.values() if not set(watched_by(e.task)).isdisjoint(moved)]
            for entry in reading:
                if not (entry.begun or entry.busy or entry.resting) and self._answered(entry):
                    self._begin(entry)
                self._look(entry)
            if any(entry.is_ready for entry in reading):
                self._changed.notify_all()
            elif any(entry.task.due is not None for entry in reading):
                self._changed.notify()  # one worker waits for the timer

    def _on_poll_failure(self, lost: Collection[Watched], error: HeadgateError) -> None:
        """Nobody knows what there is to read: the tasks are out. Those that a batch keeps busy find out themselves."""
        with self._closing_outside_of_lock():
            waiting = [e for e in self._entries.values() if not e.busy and not e.leaving]
            found = [e for e in waiting if not set(watched_by(e.task)).isdisjoint(lost)]
            for entry in found:
                if entry.task.is_live:  # a worker ends it
                    entry.leaving, entry.successor, entry.settles = True, None, False
                else:
                    self._leave(entry)
            self._changed.notify_all()
        for entry in found:
            self._events.failed(entry.task, error)

    def _look(self, entry: Entry) -> None:
        """Called with the lock, also by a poller, whom a task that cannot compare positions must not end."""
        try:
            entry.look(self._available(entry.task))
        except Exception as error:  # noqa: BLE001 - a batch will fail of it, and say so
            log.warning("task %s does not know what there is to read: %s", entry.task.name, str(error)[:200])
            entry.woken = True

    def _available(self, task: ScheduledTask) -> dict[int, Position]:
        ends = self._pollers.ends
        watched = {id_: input_.watched for id_, input_ in task.inputs.items()}
        found = {id_: ends[w] for id_, w in watched.items() if w is not None and w in ends}
        known = ((id_, input_.known_end) for id_, input_ in task.inputs.items())
        return {**found, **{id_: end for id_, end in known if end is not None}}

    def _answered(self, entry: Entry) -> bool:
        """Whether the pollers know the ends of all inputs, as far as they ask for them. A task does not begin before: a
        broker that is away is then waited for once, and not once for each task."""
        return all(watched in self._pollers.ends for watched in watched_by(entry.task))

    # Where tasks stand

    def _begin(self, entry: Entry) -> None:
        """Called with the lock."""
        if not self._stopping:
            entry.busy = True
            (self._retriers if entry.failed else self._beginners).submit(self._begin_task, entry)

    def _begin_task(self, entry: Entry) -> None:
        if entry.leaving:
            self._release(entry)
            return
        try:
            entry.task.begin()
        except Exception as error:  # noqa: BLE001 - only this task cannot begin
            self._fail(entry, error)
            return
        with self._changed:
            entry.begun = True
            self._look(entry)
        self._events.begun(entry.task, entry.lag)
        self._release(entry)

    # Batches

    def _work(self) -> None:
        while (entry := self._next()) is not None:
            try:
                work = self._finish if entry.leaving else self._serve if entry.requests else self._run
                work(entry)
            except Exception as error:  # noqa: BLE001 - only this task is left out
                self._fail(entry, error)

    def _next(self) -> Entry | None:
        """The entry to work on, now busy; None at the end."""
        with self._changed:
            while True:
                waiting = [e for e in self._entries.values() if e.is_ready and (e.leaving or not self._stopping)]
                if self._stopping and not waiting:
                    return None
                if sum(e.busy and e.begun and e.failed for e in self._entries.values()) >= self._most_failed:
                    waiting = [e for e in waiting if e.leaving or not e.failed]
                if waiting:
                    chosen = min(waiting, key=lambda e: (not e.requests, e.worked_at))
                    chosen.busy = True
                    return chosen
                self._changed.wait(self._until_next_timer())

    def _until_next_timer(self) -> float | None:
        idle = [e.timer for e in self._entries.values() if e.begun and not e.busy and not e.resting]
        soonest = min(idle, default=float("inf"))
        return None if soonest == float("inf") else max(0.01, soonest)

    def _finish(self, entry: Entry) -> None:
        """End what a leaving task has left running. It has its time from now on, however long it waited for a worker. What cannot be
        settled is written again by whoever comes after it."""
        with self._changed:
            entry.cancel_at = time.monotonic() + (DRAIN if entry.settles else 0.0)
            entry.tag = f"headgate-task-{entry.task.id}-{next(self._tags)}"
            self._changed.notify_all()
        try:
            with self._jobs.batch(entry.tag, small=True) as session:
                entry.task.finish(session, settle=entry.settles)
        except Exception as error:  # noqa: BLE001 - it leaves anyway
            log.warning("task %s could not be settled: %s", entry.task.name, str(error)[:200])
        self._release(entry)

    def _serve(self, entry: Entry) -> None:
        """Do what was asked for between two batches."""
        with self._changed:
            request = entry.requests.popleft()
            entry.tag = f"headgate-task-{entry.task.id}-{next(self._tags)}"
        try:
            with self._jobs.batch(entry.tag, small=False) as session:
                request.answer.set_result(request.work(entry.task, session))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            request.answer.set_exception(error)
        self._release(entry)

    def _run(self, entry: Entry) -> None:
        with self._changed:
            others = sum(other.is_ready for other in self._entries.values())
            available = self._available(entry.task)
            aim = max(SHORTEST_AIM, AIM / (1 + others / len(self._threads)))
            limit = entry.size.limit(aim)
            entry.tag = f"headgate-task-{entry.task.id}-{next(self._tags)}"
            entry.woken, entry.looked_at = False, time.monotonic()
            small = entry.is_small(available)
        try:
            with self._jobs.batch(entry.tag, small=small) as session:
                result = entry.task.run_batch(session, limit, available)
        except ReplanNeeded as needed:
            self._rest(entry, needed)
            return
        except Exception as error:  # noqa: BLE001 - only this task is left out
            self._fail(entry, error)
            return
        if result is not None:
            entry.size.measure(result, limit, aim)
            self._events.committed(entry.task, result)
        entry.failed = False
        self._release(entry)

    def _rest(self, entry: Entry, needed: ReplanNeeded) -> None:
        with self._changed:
            entry.resting = True
        try:
            self._events.outgrown(entry.task, needed)
        except Exception as error:  # noqa: BLE001 - only this task is left out
            self._fail(entry, error)
            return
        self._release(entry)

    def _fail(self, entry: Entry, error: Exception) -> None:
        """Let a task rest, or take it out. Nobody is told of a cancelled batch, or of a task that leaves anyway."""
        own = own_error(error, f'task "{entry.task.name}"')
        with self._changed:
            told = not entry.leaving
            entry.failed, entry.resting = True, own.retryable
            entry.leaving = entry.leaving or not own.retryable
        if told:  # first, so that a task is at any moment in a batch, or known to have failed
            self._events.failed(entry.task, own)
        self._release(entry)

    def _release(self, entry: Entry) -> None:
        """The entry is not busy any more: go on with it, with its successor, or not at all."""
        with self._closing_outside_of_lock():
            entry.busy, entry.tag = False, None
            entry.worked_at = time.monotonic()
            self._look(entry)
            if entry.leaving and not entry.task.is_live:  # otherwise a worker ends it first
                self._leave(entry)
                if entry.successor is not None:
                    self._enter(entry.successor, None)
            self._changed.notify_all()

    def _cancel_late_batches(self) -> None:
        """Cancel batches whose time is over, now and then until they end."""
        while not (self._stopping and not self._entries):
            with self._changed:
                times = [(entry, at) for entry in self._entries.values() if (at := entry.next_cancel) is not None]
                now = time.monotonic()
                late = [entry for entry, at in times if at <= now]
                if not late:
                    soonest = min(
                        (at - now for _, at in times), default=entries.CANCEL_EVERY if self._stopping else None
                    )
                    self._changed.wait(soonest)
                    continue
                for entry in late:
                    entry.cancelled_at = now
                tags = [entry.tag for entry in late if entry.tag is not None]
            for tag in tags:
                self._jobs.cancel(tag)
