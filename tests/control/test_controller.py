"""What is said of a task, and when it is started, replaced, tried again and stopped. The scheduler is the real one, its tasks
run the real batch protocol over topics in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.catalog.positions import KafkaRecord
from headgate.catalog.tasks import Quarantined, State, TaskStatus
from headgate.connectors.kafka import NewTopicOptions
from headgate.control import controller, managed_task
from headgate.control.controller import MOST_SPARK_DEATHS, Controller
from headgate.embedded.errors import ServiceIsDown
from headgate.plan.definitions import TaskDefinition
from headgate.registry.errors import SchemaIdNotFound
from headgate.runtime import poller
from headgate.runtime.errors import SinkCannotFollow, SparkGone, TargetTopicGone, TaskNotRunning
from headgate.runtime.ports import LedgerStore, ReplanNeeded, Watched
from headgate.runtime.replay import Replayed
from headgate.runtime.task import Task
from tests.catalog.building import NOW
from tests.control.scripts import Shell
from tests.embedded.world_fixtures import eventually
from tests.runtime.memory_ports import SOURCE, KeepPlan, MemoryInput, MemoryTopic, Topic
from tests.runtime.memory_tasks import LONG, Gate as Wait, MemoryCluster, MemoryJobs

pytestmark = pytest.mark.unit


class Made:
    """Makes the tasks of an engine, all from one topic to another. ``failure`` is raised when a task is made, ``on_write``
    is called before each row is written."""

    def __init__(self) -> None:
        self.topic = Topic([[]])
        self.cluster = MemoryCluster()
        self.cluster.put("states", 0)
        self.cluster.ids["states"] = self.topic.id
        self.target = MemoryTopic(keyed=False)
        self.failure: Exception | None = None
        self.tasks: list[Task] = []

    def put(self, *values: int) -> None:
        for value in values:
            self.topic.put("a", value)
            self.cluster.put("states")

    def __call__(self, definition: TaskDefinition, clients: object, store: LedgerStore, **given: Any) -> Task:
        if self.failure is not None:
            raise self.failure
        del given["files"], given["views"]  # nothing of these topics is set aside or stored
        input_ = MemoryInput(self.topic)
        input_.watched = Watched(self.cluster, "states")
        plan = KeepPlan(keyed=False)
        task = Task(definition.id, definition.name, {SOURCE: input_}, plan, self.target, store, **given)
        self.tasks.append(task)
        return task


class Engine:
    """Controllers over one catalog with one sink, one after another."""

    def __init__(self, sql: Shell, folder: Path) -> None:
        self.sql = sql
        self.made = Made()
        self.spark_deaths = 0
        self.spark_death: str | None = None
        self.followed: list[int] = []
        self.follow: Callable[[], None] = lambda: None
        self.catch_up: Callable[[int], bool] = lambda _: False
        self._folder = folder
        self._running: Controller | None = None
        (self.sink,) = sql.store.load().desired

    def start(self) -> Controller:
        self.stop()
        self._running = Controller(
            self.sql.store,
            self.sql.connections,
            MemoryJobs(),
            self._folder,
            follow=lambda source, _: self._follow(source),
            catch_up=lambda sink: self.catch_up(sink),
            spark_death=lambda: self.spark_death,
            on_spark_death=self._on_spark_death,
            make_task=self.made,
        )
        self._running.start()
        return self._running

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
        self._running = None

    def _follow(self, source: int) -> None:
        self.follow()
        self.followed.append(source)

    def _on_spark_death(self) -> None:
        self.spark_deaths += 1

    def run(self, text: str) -> None:
        self.sql.run(text)
        assert self._running is not None
        self._running.wake()

    def status(self) -> TaskStatus | None:
        return next(iter(self.sql.store.statuses()), None)

    def refresh(self) -> None:
        assert self._running is not None
        self._running.refresh(LONG)

    def comes_to(self, state: State, *, lag: int | None, error: bool = False) -> TaskStatus:
        def holds() -> bool:
            found = self.status()
            return found is not None and (found.state, found.lag, found.error is not None) == (
                state,
                lag,
                error,
            )

        assert eventually(holds, LONG), self.status()
        found = self.status()
        assert found is not None
        return found


@pytest.fixture
def engine(sql: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(controller, "EVERY", 0.02)
    sql.topics["states"] = NewTopicOptions()
    sql.run(
        "CREATE SOURCE states FROM KAFKA CONNECTION kafka (TOPIC 'states') FORMAT TEXT;"
        "CREATE VIEW loud AS SELECT upper(text) AS text FROM states;"
        "CREATE SINK to_states FROM loud INTO KAFKA CONNECTION kafka (TOPIC 'to_states') FORMAT JSON"
    )
    made = Engine(sql, tmp_path)
    yield made
    made.stop()


class Gate:
    """Holds a write up until the test opens it, and may fail it."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self._failure = failure

    def __call__(self, _: int) -> None:
        self.entered.set()
        assert self.opened.wait(LONG)
        if self._failure is not None:
            raise self._failure


def fail(error: Exception) -> Callable[[int], None]:
    def raise_(_: int) -> None:
        raise error

    return raise_


def test_a_task_with_nothing_to_read_runs_at_once(engine: Engine) -> None:
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1, 2, 4)
    assert eventually(lambda: len(engine.made.target.rows) == 3, LONG)
    assert eventually(lambda: getattr(engine.status(), "rows", 0) == 3, LONG)


def test_lag_is_true_while_a_batch_takes_its_time(engine: Engine) -> None:
    gate = Gate()
    engine.made.target.pause = gate
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1)
    assert gate.entered.wait(LONG)
    engine.made.put(*range(1, 50))
    engine.comes_to(State.RUNNING, lag=50)
    gate.opened.set()
    engine.comes_to(State.RUNNING, lag=0)


def test_a_look_at_the_tasks_knows_what_came_before_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "BUSY_INTERVAL", LONG)
    monkeypatch.setattr(poller, "IDLE_INTERVAL", LONG)
    gate = Gate()
    engine.made.target.pause = gate
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    for written in (1, 2, 3):
        engine.made.put(written)
        engine.refresh()
        found = engine.status()
        assert found is not None
        assert found.lag == written
    gate.opened.set()


def test_a_task_that_was_halted_is_not_said_to_run_before_a_batch_is_done(engine: Engine) -> None:
    engine.made.put(1)
    for _ in range(2):  # engines, one after the other
        gate = Gate(TargetTopicGone("to_states", "to_states"))
        engine.made.target.pause = gate
        engine.start()
        engine.comes_to(State.STARTING, lag=1)
        gate.opened.set()
        engine.comes_to(State.HALTED, lag=None, error=True)

    gate = Gate()
    engine.made.target.pause = gate
    engine.run("CREATE VIEW other AS SELECT 1 AS one")  # which may have removed the cause
    starting = engine.comes_to(State.STARTING, lag=1, error=True)
    gate.opened.set()
    running = engine.comes_to(State.RUNNING, lag=0)
    assert running.since > starting.since


def test_a_task_that_cannot_start_for_an_unknown_reason_is_halted(engine: Engine) -> None:
    engine.made.failure = ValueError("nobody thought of this\nand more")
    engine.start()
    status = engine.comes_to(State.HALTED, lag=None, error=True)
    assert 'RUN-0201: sink "to_states" failed: nobody thought of this\n' in str(status.error)


def test_a_task_is_tried_again_while_a_service_of_the_world_is_down(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_task, "LONGEST_WAIT", 0.0)
    engine.made.failure = ServiceIsDown("registry")
    engine.start()
    engine.comes_to(State.STARTING, lag=None, error=True)
    engine.made.failure = None
    engine.comes_to(State.RUNNING, lag=0)


def test_a_dead_spark_is_told_and_the_task_tried_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_task, "LONGEST_WAIT", 0.0)
    engine.made.target.pause = fail(SparkGone("it ended"))
    engine.made.put(1)
    engine.start()
    assert eventually(lambda: engine.spark_deaths > 0, LONG)
    engine.made.target.pause = lambda _: None
    engine.comes_to(State.RUNNING, lag=0)
    assert engine.made.target.rows == [("a", 1)]


def test_a_spark_that_dies_while_nothing_is_to_be_done_is_noticed_once(engine: Engine) -> None:
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.spark_death = "It ended."
    assert eventually(lambda: engine.spark_deaths > 0, LONG)
    engine.stop()
    assert engine.spark_deaths == 1
    assert engine.sql.store.events()[-1].event != "notice"


def test_a_task_says_why_spark_died_until_it_runs_again_and_so_does_an_event_of_its_batch(engine: Engine) -> None:
    gate = Gate(SparkGone("the connection ended"))
    engine.made.target.pause = gate
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1)
    assert eventually(gate.entered.is_set, LONG)
    engine.spark_death = "It ran out of memory."
    assert eventually(lambda: engine.spark_deaths > 0, LONG)
    gate.opened.set()
    engine.stop()
    status, event = engine.status(), engine.sql.store.events()[-1]
    assert status is not None
    assert (status.state, "It ran out of memory." in (status.error or "")) == (State.STARTING, True)
    assert event.detail == "Spark ended while it ran a batch. It ran out of memory."
    engine.spark_death, gate = None, Gate(None)
    engine.made.target.pause = gate
    engine.start()
    assert eventually(gate.entered.is_set, LONG)
    engine.comes_to(State.STARTING, lag=1, error=True)
    gate.opened.set()
    engine.comes_to(State.RUNNING, lag=0)
    status = engine.status()
    assert status is not None
    assert status.error is None


def test_a_batch_that_has_failed_before_the_death_of_spark_was_seen_is_told_of_too(engine: Engine) -> None:
    def pause(_: int) -> None:
        engine.spark_death = "It ran out of memory."
        raise SparkGone("the connection ended")

    engine.made.target.pause = pause
    engine.made.put(1)
    engine.start()
    assert eventually(lambda: engine.spark_deaths > 0, LONG)
    engine.stop()
    status, event = engine.status(), engine.sql.store.events()[-1]
    assert status is not None
    assert "It ran out of memory." in (status.error or "")
    assert event.detail == "Spark ended while it ran a batch. It ran out of memory."


def test_a_task_whose_batch_ends_spark_again_and_again_is_halted_until_it_is_resumed(engine: Engine) -> None:
    engine.made.put(1)
    engine.made.target.pause = Gate()  # no batch ends
    for death in range(MOST_SPARK_DEATHS):
        gate = engine.made.target.pause = Gate(SparkGone("the connection ended"))
        engine.spark_death = None
        engine.start()
        assert eventually(gate.entered.is_set, LONG), engine.status()
        engine.spark_death = "It ran out of memory."
        assert eventually(lambda deaths=death: engine.spark_deaths > deaths, LONG)  # type: ignore[misc]
        gate.opened.set()
        engine.stop()
    engine.spark_death, engine.made.target.pause = None, lambda _: None
    engine.start()
    status = engine.comes_to(State.HALTED, lag=None, error=True)
    assert status.error is not None
    assert "RUN-0204" in status.error
    assert f"{MOST_SPARK_DEATHS} attempts" in status.error
    engine.run("ALTER SINK to_states RESUME")
    engine.comes_to(State.RUNNING, lag=0)


def test_a_changed_view_replaces_the_task_and_what_was_counted_stays(engine: Engine) -> None:
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1)
    assert eventually(lambda: getattr(engine.status(), "rows", 0) == 1, LONG)
    engine.run("CREATE OR REPLACE VIEW loud AS SELECT lower(text) AS text FROM states")
    assert eventually(lambda: len(engine.made.tasks) == 2, LONG)
    engine.made.put(2)
    assert eventually(lambda: getattr(engine.status(), "rows", 0) == 2, LONG)
    assert engine.made.target.rows == [("a", 1), ("a", 2)]


def test_a_source_that_must_follow_first_gets_a_new_task(engine: Engine) -> None:
    engine.made.target.pause = fail(ReplanNeeded(5, []))
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1)
    assert eventually(lambda: bool(engine.followed), LONG)
    engine.made.target.pause = lambda _: None
    engine.comes_to(State.RUNNING, lag=0)
    assert set(engine.followed) == {5}
    assert len(engine.made.tasks) > 1


def test_a_source_that_follows_holds_no_worker_up(engine: Engine) -> None:
    """Its registry hangs."""
    registry = Wait()
    engine.follow = registry
    running = engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    (task,) = engine.made.tasks
    worker = threading.Thread(target=running.outgrown, args=(task, ReplanNeeded(5, [])))
    worker.start()
    assert registry.entered.wait(LONG)
    try:
        worker.join(5)
        assert not worker.is_alive()
    finally:
        registry.opened.set()
    assert eventually(lambda: len(engine.made.tasks) == 2, LONG)


def test_a_source_that_cannot_follow_fails_its_task(engine: Engine) -> None:
    def unknown() -> None:
        raise SchemaIdNotFound(7)

    engine.follow = unknown
    engine.made.target.pause = fail(ReplanNeeded(5, []))
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.made.put(1)
    found = engine.comes_to(State.HALTED, lag=None, error=True)
    assert found.error is not None
    assert "7" in found.error
    engine.made.target.pause = lambda _: None
    engine.run("ALTER SINK to_states RESUME")
    engine.comes_to(State.RUNNING, lag=0)
    assert engine.made.target.rows == [("a", 1)]


def test_a_sink_that_asks_its_registry_again_holds_nothing_else_up(engine: Engine) -> None:
    registry = Wait()
    engine.made.failure = SinkCannotFollow("to_states", ("text",))

    def ask(_: int) -> bool:
        registry()
        return False

    engine.catch_up = ask
    engine.start()
    assert registry.entered.wait(LONG)
    try:
        engine.run("ALTER SINK to_states PAUSE")
        engine.comes_to(State.DISABLED, lag=None)
    finally:
        registry.opened.set()
    engine.run("ALTER SINK to_states RESUME")
    engine.comes_to(State.HALTED, lag=None, error=True)


def test_a_sink_whose_schema_is_accepted_at_last_is_started(engine: Engine) -> None:
    engine.made.failure = SinkCannotFollow("to_states", ("text",))

    def accept(_: int) -> bool:
        engine.made.failure = None
        return True

    engine.catch_up = accept
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)


def test_a_paused_task_is_disabled_and_goes_on_where_it_was(engine: Engine) -> None:
    engine.start()
    engine.made.put(1)
    assert eventually(lambda: getattr(engine.status(), "rows", 0) == 1, LONG)
    engine.run("ALTER SINK to_states PAUSE")
    found = engine.comes_to(State.DISABLED, lag=None)
    assert (found.rows, found.batches) == (1, 1)
    engine.made.put(2)
    engine.run("ALTER SINK to_states RESUME")
    engine.comes_to(State.RUNNING, lag=0)
    assert engine.made.target.rows == [("a", 1), ("a", 2)]


def test_a_stopped_engine_says_so(engine: Engine) -> None:
    engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    engine.stop()
    engine.comes_to(State.STOPPED, lag=None)


def test_a_replay_tells_a_task_that_is_starting_from_one_that_is_halted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "REPLAY_TIMEOUT", 0.0)
    monkeypatch.setattr(controller, "replay", lambda *_: Replayed(1))  # reads from a real topic
    record = KafkaRecord("states", 0, 0)
    engine.sql.store.quarantine([Quarantined(engine.sink, engine.sink, record, NOW, None, "$.value", "text", "why")])
    gate = Gate(TargetTopicGone("to_states", "to_states"))
    engine.made.target.pause = gate
    idle = Controller(engine.sql.store, engine.sql.connections, MemoryJobs(), Path(), follow=lambda *_: None)
    with pytest.raises(TaskNotRunning, match="is still starting"):
        idle.replay(engine.sink, "to_states")
    running = engine.start()
    engine.comes_to(State.RUNNING, lag=0)
    assert running.replay(engine.sink, "to_states") == Replayed(1)
    engine.made.put(1)
    gate.opened.set()
    engine.comes_to(State.HALTED, lag=None, error=True)
    with pytest.raises(TaskNotRunning, match="does not run"):
        running.replay(engine.sink, "to_states")
