"""The reconcile loop: what the catalog wants against what runs. A failing task never takes another one down."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.catalog.graph import upstream
from headgate.catalog.objects import Desired, Kind
from headgate.catalog.snapshot import Catalog
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.tasks import State, TaskStatus
from headgate.connectors.connections import Connections
from headgate.connectors.errors import BrokerUnreachable
from headgate.errors import HeadgateError
from headgate.registry.errors import RegistryFailed, RegistryUnreachable
from headgate.runtime.errors import SparkGone, TaskFailed
from headgate.runtime.session import SparkSession
from headgate.runtime.sink_task import Progress, SinkTask

log = logging.getLogger(__name__)

EVERY = 0.5  # seconds between looks
BEAT = 10.0
LONGEST_WAIT = 30.0
PASSING = (BrokerUnreachable, RegistryUnreachable, RegistryFailed, SparkGone)  # errors that a retry may cure


@dataclass(slots=True)
class Running:
    """A task that was started: for which definition, and what came of it."""

    signature: tuple[object, ...]
    task: SinkTask | None = None
    error: HeadgateError | None = None
    tries: int = 0
    again_at: float = 0.0
    halted_at: int | None = None  # catalog version when it halted
    since: datetime = datetime.min


class Controller:
    """Runs in a thread of its own from ``start`` to ``stop``."""

    def __init__(
        self,
        store: SqliteStore,
        connections: Connections,
        session: Callable[[], SparkSession],
        checkpoints: Path,
    ) -> None:
        self._store = store
        self._connections = connections
        self._session = session
        self._checkpoints = checkpoints
        self._tasks: dict[int, Running] = {}
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="controller", daemon=True)
        self._last_beat = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop all tasks in order; each goes on from its ledger when an engine runs again."""
        self._ended.set()
        self._wake.set()
        self._thread.join()
        for id_, running in self._tasks.items():
            if running.task is not None:
                running.task.stop()
                if running.error is None:
                    self._report(id_, running, State.STOPPED)

    def wake(self) -> None:
        """Something changed: look now."""
        self._wake.set()

    def _loop(self) -> None:
        while not self._ended.is_set():
            try:
                self._beat()
                self.reconcile(self._store.load())
            except HeadgateError as error:
                log.error("%s", error)
            except Exception:
                log.exception("the reconcile loop failed and goes on")
            self._wake.wait(EVERY)
            self._wake.clear()

    def _beat(self) -> None:
        if time.monotonic() - self._last_beat > BEAT:
            self._store.beat()
            self._last_beat = time.monotonic()

    def reconcile(self, catalog: Catalog) -> None:
        sinks = {id_: wish for id_, wish in catalog.desired.items() if catalog.get(id_).kind is Kind.SINK}
        for id_ in [known for known in self._tasks if known not in sinks]:
            self._forget(id_)
        for id_, wish in sinks.items():
            if wish is Desired.PAUSED:
                self._pause(id_, catalog)
            else:
                self._keep_running(id_, catalog)

    # one task

    def _keep_running(self, id_: int, catalog: Catalog) -> None:
        signature = _signature(catalog, id_)
        running = self._tasks.get(id_)
        if running is None or running.signature != signature:
            self._end(running)
            running = self._tasks[id_] = Running(signature, since=datetime.now(UTC))
        if running.task is not None:
            self._look_after(id_, running, catalog)
        elif running.halted_at is not None and running.halted_at == catalog.version:
            return
        elif time.monotonic() >= running.again_at:
            self._start(id_, running, catalog)

    def _start(self, id_: int, running: Running, catalog: Catalog) -> None:
        self._report(id_, running, State.STARTING)
        try:
            task = SinkTask(
                self._session(),
                catalog,
                catalog.get(id_),
                self._connections,
                self._store,
                self._checkpoints,
                lambda progress: self._progress(id_, running, progress),
            )
            task.start()
        except Exception as error:  # noqa: BLE001 - a task that cannot start must not end the loop
            self._failed(id_, running, catalog, _ours(error, catalog.get(id_).name))
            return
        running.task, running.error, running.halted_at = task, None, None
        running.since = datetime.now(UTC)
        self._report(id_, running, State.RUNNING)

    def _look_after(self, id_: int, running: Running, catalog: Catalog) -> None:
        assert running.task is not None
        error = running.task.failure()
        if error is not None:
            running.task = None
            self._failed(id_, running, catalog, error)

    def _failed(self, id_: int, running: Running, catalog: Catalog, error: HeadgateError) -> None:
        """A passing trouble is tried again, later each time; anything else halts the task until something changes."""
        log.warning("task %s: %s", catalog.shown(id_), error)
        running.error = error
        running.since = datetime.now(UTC)
        if isinstance(error, PASSING):
            running.tries += 1
            running.again_at = time.monotonic() + min(LONGEST_WAIT, 2.0**running.tries / 2)
            self._report(id_, running, State.STARTING)
        else:
            running.halted_at = catalog.version
            self._report(id_, running, State.HALTED)

    def _progress(self, id_: int, running: Running, progress: Progress) -> None:
        running.tries = 0
        self._report(id_, running, State.RUNNING, progress)

    def _pause(self, id_: int, catalog: Catalog) -> None:
        running = self._tasks.get(id_)
        signature = _signature(catalog, id_)
        if (
            running is not None
            and running.task is None
            and running.halted_at is None
            and running.error is None
        ):
            return
        self._end(running)
        paused = self._tasks[id_] = Running(signature, since=datetime.now(UTC))
        paused.again_at = 0.0
        self._report(id_, paused, State.DISABLED)

    def _end(self, running: Running | None) -> None:
        if running is not None and running.task is not None:
            running.task.stop()

    def _forget(self, id_: int) -> None:
        self._end(self._tasks.pop(id_))
        shutil.rmtree(self._checkpoints / f"task-{id_}", ignore_errors=True)

    def _report(self, id_: int, running: Running, state: State, progress: Progress | None = None) -> None:
        told = progress or (running.task.progress if running.task is not None else Progress())
        error = running.error.diagnostic().render() if running.error is not None else None
        self._store.report(
            TaskStatus(id_, state, running.since, error, told.batch, told.rows, told.skipped, told.lag)
        )


def _signature(catalog: Catalog, id_: int) -> tuple[object, ...]:
    """All that a task's plan is made of: when it changes, the task is started anew."""
    parts = [catalog.get(id_), *upstream(catalog, id_)]
    return tuple((o.id, o.purified, tuple((c.id, c.name, c.type) for c in o.columns)) for o in parts)


def _ours(error: BaseException, name: str) -> HeadgateError:
    if isinstance(error, HeadgateError):
        return error
    log.error("task %s failed", name, exc_info=error)
    return TaskFailed(
        f'sink "{name}"', str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    )
