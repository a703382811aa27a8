"""The reconcile loop: what the catalog wants against what runs. A failing task never takes another one down."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import TaskStateSet
from headgate.catalog.errors import CatalogError, LeaseLost
from headgate.catalog.objects import DesiredTaskState
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.tasks import State
from headgate.connectors.connections import Connections
from headgate.control.managed_task import ManagedTask, pause_before, status_of
from headgate.control.new_tasks import MakeTask, TaskMaker, signature
from headgate.errors import HeadgateError
from headgate.runtime.entry import ScheduledTask
from headgate.runtime.errors import BatchEndsSpark, DiskFull, SinkCannotFollow, SparkGone, TaskNotRunning
from headgate.runtime.failures import own_error
from headgate.runtime.live_queries import LiveQueries
from headgate.runtime.ports import BatchResult, Progress, ReplanNeeded
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.replay import Replayed, replay
from headgate.runtime.scheduler import Jobs, Scheduler
from headgate.runtime.sink_task import sink_task
from headgate.runtime.source import Follow
from headgate.runtime.targets.errors import ColumnsIncompatible, FieldsIncompatible
from headgate.runtime.views.view_task import ViewFiles
from headgate.sql.statement import Kind

log = logging.getLogger(__name__)

_RUN = (Kind.SINK, Kind.MATERIALIZATION, Kind.MATERIALIZED_VIEW)  # kinds whose tasks this engine runs
EVERY = 0.5  # seconds between two looks at what nobody tells: retries that are due, and how far tasks are behind
MOST_SPARK_DEATHS = 8  # attempts at one batch that end Spark; it has a 64th of its first size then
FOLLOWERS = 2  # threads for what asks registries: a source that follows, a sink whose schema was refused
REPLAY_TIMEOUT = 60.0  # seconds that a statement waits for a task that is about to run


class Controller:
    """Runs in a thread of its own from ``start`` to ``stop``. Only that thread uses the managed tasks."""

    def __init__(
        self,
        store: SqliteStore,
        connections: Connections,
        jobs: Jobs,
        folder: Path,
        *,
        files: QuarantineFiles | None = None,
        views: ViewFiles | None = None,
        follow: Follow,
        catch_up: Callable[[int], bool] = lambda _: False,
        check: Callable[[], None] = lambda: None,
        spark_death: Callable[[], str | None] = lambda: None,
        on_spark_death: Callable[[], None] = lambda: None,
        on_lease_lost: Callable[[CatalogError], None] = lambda _: None,
        make_task: MakeTask = sink_task,
        queries: LiveQueries | None = None,
    ) -> None:
        """``queries`` runs tasks in real time; without it all run in micro-batches. ``follow`` takes new schemas of a source into the catalog. ``catch_up`` gives a sink the schema that it was refused
        before, if it can. ``check`` raises if this engine may not write any more. ``folder`` is where the engine keeps its
        state, ``files`` where tasks put many bad records, ``views`` where materialized views are stored. ``spark_death`` is asked all the time why Spark has ended, ``on_spark_death`` must start Spark again, ``on_lease_lost`` must end this engine."""
        self._store = store
        self._folder = folder
        self._files = files
        self._follow = follow
        self._catch_up = catch_up
        self._spark_death = spark_death
        self._on_spark_death = on_spark_death
        self._on_lease_lost = on_lease_lost
        self._queries = queries
        self._maker = TaskMaker(
            store, connections, files=files, views=views, queries=queries,
            guard=check, notice=self._notice, make_task=make_task,
        )  # fmt: skip
        self._scheduler = Scheduler(jobs, self)
        self._followers = ThreadPoolExecutor(FOLLOWERS, "follow")
        self._tasks: dict[int, ManagedTask] = {}
        self._reconciled = -1  # version of the catalog
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="controller", daemon=True)
        self._said = {s.task: s.error for s in store.statuses() if s.state is State.STARTING}
        self._reported_at = 0.0
        self._logged = ""  # the error that was logged last

    def start(self) -> None:
        if self._queries is not None:
            self._queries.open()
        self._scheduler.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop all tasks after their batch. Each goes on from its ledger when an engine runs again."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._scheduler.stop()
        self._followers.shutdown(wait=False, cancel_futures=True)
        if self._queries is not None:
            self._queries.close()
        try:
            self._take_events()
            for managed in self._tasks.values():
                if managed.task is not None:
                    self._set_state(managed, State.STOPPED)
            self._report()
        except CatalogError as error:  # another engine has it, or there is no room: nobody needs the news
            self._log(error)

    def wake(self) -> None:
        """Look at the catalog now."""
        self._wake.set()

    def refresh(self, timeout: float) -> None:
        """Report how far the tasks are behind now, not when somebody looked last."""
        deadline, reported = time.monotonic() + timeout, threading.Event()
        self._scheduler.refresh(timeout)

        def report() -> None:
            self._report()
            reported.set()

        self._events.put(report)
        self._wake.set()
        reported.wait(max(0.0, deadline - time.monotonic()))

    def is_behind(self) -> bool:
        """Whether a query in real time may still write as the catalog was before its last change."""
        unseen = self._queries is not None and self._store.load().version != self._reconciled
        return (unseen and self._queries is not None and self._queries.is_any_running) or self._scheduler.ends_queries()

    def replay(self, task: int, name: str) -> Replayed:
        """Send a task's quarantined records through again, between two of its batches. Waits for a task that is starting, and
        for one that a statement has changed and that still runs as it was."""
        deadline = time.monotonic() + REPLAY_TIMEOUT
        while self._store.count_quarantined(task):
            catalog, managed = self._store.load(), self._tasks.get(task)
            if managed is not None and managed.task is not None and managed.signature == signature(catalog, task):
                try:
                    return self._scheduler.between_batches(
                        task, lambda t, s: replay(t.settled(s), s, self._store, self._files)
                    )
                except ReplanNeeded as needed:
                    self._follow(needed.source, needed.arrived)
                    self.wake()
                except TaskNotRunning:
                    pass
            halted = managed is not None and managed.halted_at == catalog.version
            still = halted or catalog.desired.get(task) is DesiredTaskState.PAUSED
            if still or time.monotonic() > deadline:
                raise TaskNotRunning(name, starting=not still)
            time.sleep(EVERY / 5)
        return Replayed()

    # Events of the scheduler, called by its threads

    def begun(self, task: ScheduledTask, lag: int | None) -> None:
        self._post(task, lambda id_, managed: self._on_begun(managed, lag))

    def committed(self, task: ScheduledTask, result: BatchResult) -> None:
        self._post(task, lambda id_, managed: self._on_committed(managed))

    def failed(self, task: ScheduledTask, error: HeadgateError) -> None:
        self._post(task, lambda id_, managed: self._fail(id_, managed, error))

    def outgrown(self, task: ScheduledTask, needed: ReplanNeeded) -> None:
        """The source follows its new schemas in a thread for that: a registry that hangs must not hold a worker."""
        self._followers.submit(self._follow_for, task, needed)

    def _follow_for(self, task: ScheduledTask, needed: ReplanNeeded) -> None:
        try:
            self._follow(needed.source, needed.arrived)
        except Exception as failure:  # noqa: BLE001 - only this task is left out
            error = own_error(failure, f'task "{task.name}"')
            self._post(task, lambda id_, managed: self._fail(id_, managed, error))
        else:
            self._post(task, lambda id_, managed: self._replan(managed))

    def _post(self, task: ScheduledTask, handle: Callable[[int, ManagedTask], None]) -> None:
        """Handle an event in the controller's thread, unless the task was replaced meanwhile."""

        def handle_current() -> None:
            managed = self._tasks.get(task.id)
            if managed is not None and managed.task is task:
                handle(task.id, managed)

        self._events.put(handle_current)
        self._wake.set()

    # The loop

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._wake.clear()
            self._look()
            self._wake.wait(EVERY)

    def _look(self) -> None:
        try:
            if (reason := self._spark_death()) is not None:  # nobody else would notice while nothing is to be done
                self._tell_spark_death(reason)
                self._on_spark_death()
                self._ended.set()
                return
            self._take_events()
            catalog = self._store.load()
            if catalog.version != self._reconciled or self._is_retry_due():
                self.reconcile(catalog)
            if any(m.changed for m in self._tasks.values()) or time.monotonic() - self._reported_at > EVERY:
                self._report()
            self._logged = ""
        except LeaseLost as error:
            self._ended.set()
            self._on_lease_lost(error)
        except HeadgateError as error:
            self._log(error)
        except Exception:
            log.exception("the reconcile loop failed and goes on")

    def _tell_spark_death(self, reason: str) -> None:
        """Say of every task why it starts again. A task whose batch ran may be the cause, so that is an event."""
        log.error("Spark has ended. %s", reason)
        self._take_events()  # a batch may have failed by it already
        failed = {id_ for id_, managed in self._tasks.items() if isinstance(managed.error, SparkGone)}
        for id_ in failed | (self._scheduler.in_batch() & self._tasks.keys()):
            self._notice(id_, f"Spark ended while it ran a batch. {reason}")
        for id_, managed in self._tasks.items():
            if managed.task is not None or id_ in failed:
                managed.task, managed.error, managed.since = None, SparkGone(reason), datetime.now(UTC)
                self._set_state(managed, State.STARTING)
        self._report()

    def _take_events(self) -> None:
        while not self._events.empty():
            self._events.get()()

    def _is_retry_due(self) -> bool:
        now = time.monotonic()
        waiting = [m for m in self._tasks.values() if m.task is None and m.halted_at is None]
        return any(m.retry_at <= now and m.state is not State.DISABLED for m in waiting)

    def _log(self, error: HeadgateError) -> None:
        """Log an error once as long as it lasts: one that every look meets would fill the disk."""
        if str(error) != self._logged:
            log.error("%s", error)
            self._logged = str(error)

    def reconcile(self, catalog: Catalog) -> None:
        """Start, replace and stop tasks until those run that the catalog wants."""
        wanted = {id_: wish for id_, wish in catalog.desired.items() if catalog.get(id_).kind in _RUN}
        for id_ in [known for known in self._tasks if known not in wanted]:
            self._scheduler.remove(id_, cancel=True)
            del self._tasks[id_]
        for id_, wish in wanted.items():
            if wish is DesiredTaskState.PAUSED:
                self._pause(id_, catalog)
            else:
                self._prepare(id_, catalog)
        self._reconciled = catalog.version

    def _pause(self, id_: int, catalog: Catalog) -> None:
        managed = self._tasks.get(id_)
        if managed is None or managed.state is not State.DISABLED:
            self._scheduler.remove(id_)
            progress = managed.progress if managed is not None else Progress()
            self._tasks[id_] = ManagedTask(signature(catalog, id_), progress=progress)
            self._set_state(self._tasks[id_], State.DISABLED)

    def _prepare(self, id_: int, catalog: Catalog) -> None:
        """Make a task for a sink or view that should run, has none for its present definition, and does not wait."""
        made_of = signature(catalog, id_)
        managed = self._tasks.get(id_)
        if managed is None or managed.signature != made_of:
            progress = managed.progress if managed is not None else Progress()
            managed = self._tasks[id_] = ManagedTask(made_of, said=self._said.pop(id_, None), progress=progress)
        halted = managed.halted_at is not None and managed.halted_at == catalog.version
        if managed.task is not None or halted or time.monotonic() < managed.retry_at:
            return
        managed.halted_at = None
        self._set_state(managed, State.STARTING)
        if managed.said is not None and (ended := self._ends_spark(id_, catalog)) is not None:
            self._fail(id_, managed, ended)
            return
        try:
            managed.task, managed.notice = self._maker.new_task(id_, catalog, self._scheduler)
            managed.task.progress = managed.progress
            self._scheduler.add(managed.task)
        except SinkCannotFollow as error:
            managed.retry_at = math.inf  # until it is known whether the registry accepts the schema now
            self._followers.submit(self._catch_up_or_fail, id_, managed, error)
        except Exception as error:  # noqa: BLE001 - a task that cannot start must not end the loop
            self._fail(id_, managed, own_error(error, f'{catalog.get(id_).kind} "{catalog.get(id_).name}"'))

    def _ends_spark(self, id_: int, catalog: Catalog) -> BatchEndsSpark | None:
        """Why a task must not start again: its batch ended Spark too often, and all other tasks with it. The attempts are then
        forgotten, so that the task can be resumed."""
        mark = self._store.mark(id_)
        if mark is None or mark.attempts < MOST_SPARK_DEATHS:
            return None
        self._store.save_mark(id_, replace(mark, attempts=0))
        return BatchEndsSpark(catalog.get(id_).name, mark.attempts)

    def _catch_up_or_fail(self, id_: int, managed: ManagedTask, behind: SinkCannotFollow) -> None:
        """The registry may accept by now what it refused. Then the sink has another definition, and is started with it."""
        try:
            error: HeadgateError | None = None if self._catch_up(id_) else behind
        except Exception as failure:  # noqa: BLE001 - only this task is left out
            error = own_error(failure, f'sink "{self._store.load().get(id_).name}"')
        self._events.put(lambda: self._on_caught_up(id_, managed, error))
        self._wake.set()

    def _on_caught_up(self, id_: int, managed: ManagedTask, error: HeadgateError | None) -> None:
        if self._tasks.get(id_) is not managed:
            return
        managed.retry_at = 0.0
        if error is not None:
            self._fail(id_, managed, error)

    # What becomes of tasks

    def _on_begun(self, managed: ManagedTask, lag: int | None) -> None:
        managed.lag, managed.changed = lag, True
        if not lag:  # otherwise only a batch shows that nothing is in its way
            self._set_running(managed)

    def _on_committed(self, managed: ManagedTask) -> None:
        managed.tries, managed.progressed = 0, True
        self._set_running(managed)

    def _set_running(self, managed: ManagedTask) -> None:
        if managed.state is not State.RUNNING:
            managed.error, managed.said, managed.since = None, None, datetime.now(UTC)
            self._set_state(managed, State.RUNNING)

    def _replan(self, managed: ManagedTask) -> None:
        """Make the task anew, even if its definition has not changed. If that does not help, wait longer each time."""
        managed.task = None
        managed.retry_at = time.monotonic() + (pause_before(managed.tries) if managed.tries else 0.0)
        managed.tries += 1

    def _fail(self, id_: int, managed: ManagedTask, error: HeadgateError) -> None:
        """Try again after a retryable error, later each time. Any other error halts the task until something changes."""
        catalog = self._store.load()
        if isinstance(error, DiskFull):
            error = DiskFull(self._fullest_folder(error.folder))
        if str(error) != str(managed.error):
            log.warning("task %s: %s", id_, error)
        managed.task, managed.error, managed.since = None, error, datetime.now(UTC)
        managed.failures += 1
        if isinstance(error, ColumnsIncompatible | FieldsIncompatible) and error.disables:
            self._disable(id_, error)
        if isinstance(error, SparkGone) and not self._spark_ends():
            self._on_spark_death()
        if error.retryable:
            managed.tries += 1
            managed.retry_at = time.monotonic() + pause_before(managed.tries)
            self._set_state(managed, State.STARTING)
        else:
            managed.halted_at = catalog.version
            self._scheduler.remove(id_)  # it may rest there until its source has followed
            self._set_state(managed, State.HALTED)

    def _disable(self, id_: int, error: HeadgateError) -> None:
        """Pause a task as its statement wants it for a change that its target cannot follow."""
        self._notice(id_, f"The task is disabled: {error.message()}.")
        self._store.commit([TaskStateSet(id_, DesiredTaskState.PAUSED)], cause="incompatible schema change")

    def _spark_ends(self) -> bool:
        """Whether Spark's process has ended, which may show a moment later than in the connection to it. Then the next look
        says why."""
        deadline = time.monotonic() + EVERY
        while self._spark_death() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(EVERY / 10)
        return True

    def _notice(self, id_: int, text: str) -> None:
        log.warning("task %s: %s", id_, text)
        self._store.emit(id_, "notice", text)

    def _fullest_folder(self, named: str) -> str:
        """Spark does not always say where there was no room: the folder of ours and the named one with less space."""
        known = [folder for folder in (self._folder, Path(named)) if folder.exists()]
        return str(min(known, key=lambda folder: shutil.disk_usage(folder).free, default=named))

    # What SHOW TASKS says

    def _set_state(self, managed: ManagedTask, state: State) -> None:
        managed.state, managed.changed = state, True

    def _report(self) -> None:
        """Store what has changed, in one transaction. How far a task is behind comes from the pollers, so that it is true also
        while a long batch runs or nothing works."""
        lags = self._scheduler.lags()
        for id_, managed in self._tasks.items():
            if (lag := lags.get(id_)) != managed.lag:
                managed.lag, managed.progressed = lag, True
            if isinstance(managed.task, RealTimeTask) and managed.task.notice != managed.notice:
                managed.notice, managed.progressed = managed.task.notice, True
        changed = {id_: managed for id_, managed in self._tasks.items() if managed.changed or managed.progressed}
        self._reported_at = time.monotonic()
        if changed:
            self._store.report(*(status_of(id_, managed) for id_, managed in changed.items()))
        for managed in changed.values():
            managed.changed = managed.progressed = False
