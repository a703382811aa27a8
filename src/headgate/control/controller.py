"""The reconcile loop: what the catalog wants against what runs. A failing task never takes another one down."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import definition_mark
from headgate.catalog.errors import CatalogBusy, CatalogFull, LeaseLost
from headgate.catalog.graph import upstream
from headgate.catalog.objects import DesiredTaskState
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.tasks import State, TaskStatus
from headgate.connectors.connections import Connections
from headgate.connectors.errors import BrokerUnreachable
from headgate.control.definitions import task_definition
from headgate.errors import HeadgateError
from headgate.runtime.errors import DiskFull, SinkCannotFollow, SparkGone, TaskFailed, TaskNotRunning
from headgate.runtime.replay import Replayed
from headgate.runtime.session import SparkSession
from headgate.runtime.sink_task import Progress, SinkTask
from headgate.runtime.source import Arrived, Follow
from headgate.runtime.task_group import TaskGroup
from headgate.sql.statement import Kind

log = logging.getLogger(__name__)

EVERY = 0.5  # seconds between looks
BEAT = 10.0
LONGEST_WAIT = 30.0
PATIENCE = 60.0  # seconds that a statement waits for a task that is about to run


@dataclass(slots=True)
class Running:
    """A task that should run: for which definition, and what came of it."""

    signature: tuple[object, ...]
    task: SinkTask | None = None
    error: HeadgateError | None = None
    tries: int = 0
    again_at: float = 0.0
    halted_at: int | None = None  # catalog version when it halted
    told: State | None = None  # the state last reported
    since: datetime = datetime.min
    progress: Progress = field(default_factory=Progress)  # of the last task, that of the next goes on from it
    failures: int = 0


class Controller:
    """Runs in a thread of its own from ``start`` to ``stop``."""

    def __init__(
        self,
        store: SqliteStore,
        connections: Connections,
        session: Callable[[], SparkSession],
        checkpoints: Path,
        spark_gone: Callable[[], None] = lambda: None,
        fenced: Callable[[LeaseLost], None] = lambda _: None,
        *,
        follow: Follow,
        catch_up: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """``spark_gone`` is told when Spark has died under the tasks; whoever is told starts it again. ``fenced`` is told
        when another engine has taken the catalog over; whoever is told ends this one. ``catch_up`` gives a sink the schema
        that it was refused before, if it can."""
        self._store = store
        self._connections = connections
        self._session = session
        self._checkpoints = checkpoints
        self._spark_gone = spark_gone
        self._fenced = fenced
        self._follow = follow
        self._catch_up = catch_up
        self._tasks: dict[int, Running] = {}
        self._groups: dict[tuple[str, str], TaskGroup] = {}
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="controller", daemon=True)
        self._last_beat = 0.0
        self._said = ""  # the trouble that was logged last

    def start(self) -> None:
        shutil.rmtree(self._checkpoints, ignore_errors=True)  # clocks of queries that a killed engine left
        self._thread.start()

    def stop(self) -> None:
        """Stop all tasks in order; each goes on from its ledger when an engine runs again."""
        self._ended.set()
        self._wake.set()
        self._thread.join()
        for group in self._groups.values():
            self._end(group)
        for id_, running in self._tasks.items():
            if running.task is not None:
                with suppress(LeaseLost):
                    self._report(id_, running, State.STOPPED)

    def wake(self) -> None:
        """Something changed: look now."""
        self._wake.set()

    def replay(self, task: int, name: str) -> Replayed:
        """Send a task's quarantined records through again. A task that is just starting, or whose group is just started
        anew, is waited for; so is one that a statement has changed and that still runs as it was."""
        deadline = time.monotonic() + PATIENCE
        while self._store.quarantined(task):
            catalog, running = self._store.load(), self._tasks.get(task)
            done = None
            if running is not None and running.signature == _signature(catalog, task):
                group = next((g for g in list(self._groups.values()) if running.task in g.tasks), None)
                done = None if group is None else group.replay(task)
            if done is not None:
                return done
            halted = running is not None and running.halted_at == catalog.version
            still = halted or catalog.desired.get(task) is DesiredTaskState.PAUSED
            if still or time.monotonic() > deadline:
                raise TaskNotRunning(name, starting=not still)
            time.sleep(EVERY / 5)
        return Replayed()

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._wake.wait(EVERY)
            self._wake.clear()

    def _look(self) -> None:
        try:
            self._beat()
            self.reconcile(self._store.load())
            self._said = ""
        except LeaseLost as error:
            self._ended.set()
            self._fenced(error)
        except HeadgateError as error:
            self._log(error)
        except Exception:
            log.exception("the reconcile loop failed and goes on")

    def _log(self, error: HeadgateError) -> None:
        """Once as long as it lasts: a trouble that every look meets would fill the disk."""
        if str(error) != self._said:
            log.error("%s", error)
            self._said = str(error)

    def _beat(self) -> None:
        """Tasks are looked after also when there is no room to say that we live."""
        if time.monotonic() - self._last_beat > BEAT:
            self._last_beat = time.monotonic()
            try:
                self._store.beat()
            except (CatalogFull, CatalogBusy) as error:
                self._log(error)

    def reconcile(self, catalog: Catalog) -> None:
        sinks = {id_: wish for id_, wish in catalog.desired.items() if catalog.get(id_).kind is Kind.SINK}
        for id_ in [known for known in self._tasks if known not in sinks]:
            del self._tasks[id_]
        for id_, wish in sinks.items():
            if wish is DesiredTaskState.PAUSED:
                self._pause(id_, catalog)
            else:
                self._prepare(id_, catalog)
        self._look_after(catalog)
        self._regroup(catalog)

    def _followed(self, source_id: int, arrived: Sequence[Arrived]) -> None:
        self._follow(source_id, arrived)
        self.wake()

    # tasks

    def _prepare(self, id_: int, catalog: Catalog) -> None:
        """A task for every sink that should run, has none, and is not waiting."""
        signature = _signature(catalog, id_)
        running = self._tasks.get(id_)
        if running is None or running.signature != signature:
            progress = running.progress if running is not None else Progress()
            running = self._tasks[id_] = Running(signature, since=datetime.now(UTC), progress=progress)
        halted = running.halted_at is not None and running.halted_at == catalog.version
        if running.task is not None or halted or time.monotonic() < running.again_at:
            return
        self._report(id_, running, State.STARTING)
        kept = running

        def told(_: Progress) -> None:
            self._progress(id_, kept)

        try:
            definition = task_definition(catalog, catalog.get(id_))
            running.task = SinkTask(definition, self._connections.of(catalog), self._store, told)
            running.task.progress = running.progress
        except SinkCannotFollow as error:
            self._caught_up(id_, running, catalog, error)
        except Exception as error:  # noqa: BLE001 - a task that cannot start must not end the loop
            self._failed(id_, running, catalog, _ours(error, catalog.get(id_).name))

    def _caught_up(self, id_: int, running: Running, catalog: Catalog, behind: SinkCannotFollow) -> None:
        """Its registry may take by now what it refused; the sink is then another one, which the next look prepares."""
        try:
            done = self._catch_up(id_)
        except Exception as error:  # noqa: BLE001 - a task that cannot start must not end the loop
            self._failed(id_, running, catalog, _ours(error, catalog.get(id_).name))
            return
        if done:
            self.wake()
        else:
            self._failed(id_, running, catalog, behind)

    def _look_after(self, catalog: Catalog) -> None:
        """Take the tasks that failed out of their groups. A group whose query ended is tried again as a whole: the tasks
        that are the cause say so when they begin, and the others go on."""
        for key, group in list(self._groups.items()):
            try:
                whole = group.failure()
            except HeadgateError as told:
                whole = told
            except Exception as lost:  # noqa: BLE001 - a dead Spark answers every question with an error of its own
                whole = SparkGone(str(lost)[:200])
            failed = dict.fromkeys(group.members, whole) if whole is not None else dict(group.failed)
            for id_, error in failed.items():
                running = self._tasks.get(id_)
                if running is not None and running.task in group.tasks:
                    running.task = None
                    self._failed(id_, running, catalog, error, again=whole is not None)
            if whole is not None:
                del self._groups[key]

    def _regroup(self, catalog: Catalog) -> None:
        """Where the tasks of a group are not those that its query runs, start it anew with those that should."""
        wanted: dict[tuple[str, str], dict[int, SinkTask]] = {}
        for id_, running in self._tasks.items():
            if running.task is not None:
                wanted.setdefault(running.task.group, {})[id_] = running.task
        for key in [k for k in self._groups if k not in wanted]:
            self._end(self._groups.pop(key))
        for key, tasks in wanted.items():
            group = self._groups.get(key)
            if group is None or set(group.tasks) != set(tasks.values()):
                self._end(self._groups.pop(key, None))
                self._start(key, tasks, catalog)

    def _start(self, key: tuple[str, str], tasks: dict[int, SinkTask], catalog: Catalog) -> None:
        ready = self._begun(tasks, catalog)
        if not ready:
            return
        try:
            group = TaskGroup(self._session(), list(ready.values()), self._checkpoints, self._followed)
            group.start()
        except Exception as error:  # noqa: BLE001 - told for each of its tasks
            for id_, task in ready.items():
                self._tasks[id_].task = None
                self._failed(id_, self._tasks[id_], catalog, task.translated(error))
            return
        self._groups[key] = group
        for id_ in ready:
            running = self._tasks[id_]
            if running.told is State.RUNNING:
                continue
            if running.progress.lag:  # only a batch shows that nothing is in its way
                self._report(id_, running, State.STARTING)
            else:
                self._runs(id_, running)

    def _begun(self, tasks: dict[int, SinkTask], catalog: Catalog) -> dict[int, SinkTask]:
        """The tasks of one group that know where to go on. A broker that does not answer is asked once for all."""
        ready: dict[int, SinkTask] = {}
        away: BrokerUnreachable | None = None
        for id_, task in tasks.items():
            try:
                if away is not None:
                    raise away
                task.begin()
                ready[id_] = task
            except Exception as error:  # noqa: BLE001 - one that cannot begin must not keep the others
                away = error if isinstance(error, BrokerUnreachable) else None
                self._tasks[id_].task = None
                self._failed(id_, self._tasks[id_], catalog, _ours(error, task.name))
        return ready

    def _failed(
        self, id_: int, running: Running, catalog: Catalog, error: HeadgateError, *, again: bool = False
    ) -> None:
        """A retryable error is tried again, later each time; any other halts the task until something changes."""
        if isinstance(error, DiskFull):
            error = DiskFull(self._fullest(error.folder))
        if str(error) != str(running.error):
            log.warning("task %s: %s", catalog.shown(id_), error)
        running.error = error
        running.failures += 1
        running.since = datetime.now(UTC)
        if isinstance(error, SparkGone):
            self._spark_gone()
        if again or error.retryable:
            running.tries += 1
            running.again_at = time.monotonic() + min(LONGEST_WAIT, 2.0**running.tries / 2)
            self._report(id_, running, State.STARTING)
        else:
            running.halted_at = catalog.version
            self._report(id_, running, State.HALTED)

    def _progress(self, id_: int, running: Running) -> None:
        running.tries = 0
        if running.told is State.RUNNING:
            self._report(id_, running, State.RUNNING)
        else:
            self._runs(id_, running)

    def _runs(self, id_: int, running: Running) -> None:
        running.error, running.halted_at, running.since = None, None, datetime.now(UTC)
        self._report(id_, running, State.RUNNING)

    def _fullest(self, told: str) -> str:
        """Spark does not always say where there was no room: of the folders that tasks write to, the one with least."""
        known = [folder for folder in (self._checkpoints, Path(told)) if folder.exists()]
        return str(min(known, key=lambda folder: shutil.disk_usage(folder).free, default=told))

    def _pause(self, id_: int, catalog: Catalog) -> None:
        running = self._tasks.get(id_)
        if running is not None and running.told is State.DISABLED:
            return
        paused = self._tasks[id_] = Running(_signature(catalog, id_), since=datetime.now(UTC))
        self._report(id_, paused, State.DISABLED)

    def _end(self, group: TaskGroup | None) -> None:
        if group is not None:
            try:
                group.stop()
            except Exception as error:  # noqa: BLE001 - what cannot be stopped is gone already
                log.warning("a query could not be stopped: %s", str(error)[:200])

    def _report(self, id_: int, running: Running, state: State) -> None:
        running.told = state
        told = running.progress
        error = running.error.diagnostic().render() if running.error is not None else None
        # Where nothing is tried, nobody looks at how the topic goes on.
        lag = told.lag if state in (State.STARTING, State.RUNNING) else None
        self._store.report(
            TaskStatus(
                id_, state, running.since, error, told.batch, told.rows, told.skipped, lag, told.batches,
                told.batch_seconds, told.last_commit, running.failures,
            )
        )  # fmt: skip


def _signature(catalog: Catalog, id_: int) -> tuple[object, ...]:
    """All that a task's plan is made of, but for names: when it changes, the task is started anew."""
    parts = [catalog.get(id_), *upstream(catalog, id_)]
    return tuple((o.id, definition_mark(o), tuple((c.id, c.name, c.type) for c in o.columns)) for o in parts)


def _ours(error: BaseException, name: str) -> HeadgateError:
    if isinstance(error, HeadgateError):
        return error
    log.error("task %s failed", name, exc_info=error)
    return TaskFailed(
        f'sink "{name}"', str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    )
