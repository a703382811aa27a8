"""The reconcile loop's word about a task: it runs when a batch has shown it, or when there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from headgate.catalog.tasks import Quarantined, State
from headgate.connectors.kafka import NewTopicOptions
from headgate.control import controller
from headgate.control.controller import Controller
from headgate.embedded.errors import ServiceIsDown
from headgate.runtime.errors import TargetTopicGone, TaskNotRunning
from headgate.runtime.replay import Replayed
from headgate.runtime.session import SparkSession
from headgate.runtime.sink_task import Progress
from tests.catalog.building import NOW
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit


class Task:
    """A sink's task over a topic in which ``waiting`` records are not read yet."""

    waiting = 0
    group = ("source", "target")

    def __init__(self, *given: object) -> None:
        self.progress = Progress()
        self.told = cast("Callable[[Progress], None]", given[-1])

    def begin(self) -> None:
        self.progress.lag = self.waiting


class Group:
    """Runs its tasks as the test tells it to."""

    last: Group

    def __init__(self, _: object, tasks: Sequence[Task], *__: object) -> None:
        self.tasks = tuple(tasks)
        self.members: set[int] = set()
        self.failed: dict[int, Exception] = {}
        Group.last = self

    def start(self) -> None:
        return

    def stop(self) -> None:
        return

    def failure(self) -> None:
        return None

    def replay(self, _: int) -> Replayed:
        return Replayed(1)


@pytest.fixture
def made(sql: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Controller]:
    """A controller of a new engine over a catalog with one sink."""
    sql.topics["states"] = NewTopicOptions()
    sql.run(
        "CREATE SOURCE states FROM KAFKA CONNECTION kafka (TOPIC 'states') FORMAT TEXT;"
        "CREATE VIEW loud AS SELECT upper(text) AS text FROM states;"
        "CREATE SINK to_states FROM loud INTO KAFKA CONNECTION kafka (TOPIC 'to_states') FORMAT JSON"
    )
    monkeypatch.setattr(controller, "SinkTask", Task)
    monkeypatch.setattr(controller, "TaskGroup", Group)
    session = cast("SparkSession", None)
    return lambda: Controller(
        sql.store, sql.connections, lambda: session, tmp_path / "clocks", follow=lambda *_: None
    )


class Unstarted(Task):
    def __init__(self, *given: object) -> None:
        raise ServiceIsDown("registry")


def state(sql: Shell) -> tuple[State, int | None, bool]:
    """State and lag of the only task, and whether there is an error."""
    (status,) = sql.store.statuses()
    return status.state, status.lag, status.error is not None


def test_a_task_with_nothing_to_read_runs_at_once(sql: Shell, made: Callable[[], Controller]) -> None:
    made().reconcile(sql.store.load())
    assert state(sql) == (State.RUNNING, 0, False)


def test_a_task_that_was_halted_is_not_said_to_run_before_a_batch_is_done(
    sql: Shell, made: Callable[[], Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Task, "waiting", 1)
    (sink,) = sql.store.load().desired
    for _ in range(2):  # engines, one after the other
        engine = made()
        engine.reconcile(sql.store.load())
        assert state(sql) == (State.STARTING, 1, False)
        Group.last.failed[sink] = TargetTopicGone("to_states", "to_states")
        engine.reconcile(sql.store.load())
        assert state(sql) == (State.HALTED, None, True)

    sql.run("CREATE VIEW other AS SELECT 1 AS one")  # which may have removed the cause
    engine.reconcile(sql.store.load())
    assert state(sql) == (State.STARTING, 1, True)
    (starting,) = sql.store.statuses()
    (task,) = Group.last.tasks
    task.told(task.progress)
    assert state(sql) == (State.RUNNING, 1, False)
    (running,) = sql.store.statuses()
    assert running.since > starting.since


def test_a_task_that_cannot_start_for_an_unknown_reason_is_halted(
    sql: Shell, made: Callable[[], Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("nobody thought of this\nand more")

    monkeypatch.setattr(controller, "SinkTask", broken)
    made().reconcile(sql.store.load())
    (status,) = sql.store.statuses()
    assert status.state is State.HALTED
    assert 'RUN-0201: sink "to_states" failed: nobody thought of this\n' in str(status.error)


def test_a_task_is_tried_again_while_a_service_of_the_world_is_down(
    sql: Shell, made: Callable[[], Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "LONGEST_WAIT", 0.0)
    monkeypatch.setattr(controller, "SinkTask", Unstarted)
    engine = made()
    engine.reconcile(sql.store.load())
    assert state(sql) == (State.STARTING, None, True)
    monkeypatch.setattr(controller, "SinkTask", Task)
    engine.reconcile(sql.store.load())
    assert state(sql) == (State.RUNNING, 0, False)


def test_a_replay_tells_a_task_that_is_starting_from_one_that_is_halted(
    sql: Shell, made: Callable[[], Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "PATIENCE", 0.0)
    monkeypatch.setattr(Task, "waiting", 1)
    (sink,) = sql.store.load().desired
    sql.store.quarantine([Quarantined(sink, sink, "states", 0, 0, NOW, None, "$.value", "text", "why")])
    engine = made()
    with pytest.raises(TaskNotRunning, match="is still starting"):
        engine.replay(sink, "to_states")
    engine.reconcile(sql.store.load())
    assert engine.replay(sink, "to_states") == Replayed(1)
    sql.run("CREATE OR REPLACE VIEW loud AS SELECT lower(text) AS text FROM states")
    with pytest.raises(TaskNotRunning, match="is still starting"):  # it has the old view still
        engine.replay(sink, "to_states")
    engine.reconcile(sql.store.load())
    assert engine.replay(sink, "to_states") == Replayed(1)
    Group.last.failed[sink] = TargetTopicGone("to_states", "to_states")
    engine.reconcile(sql.store.load())
    with pytest.raises(TaskNotRunning, match="does not run"):
        engine.replay(sink, "to_states")
