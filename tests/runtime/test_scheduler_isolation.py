"""What a task that hangs, fails, changes or goes cannot do to the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headgate.connectors.errors import BrokerUnreachable
from headgate.runtime import entry, scheduler
from headgate.runtime.errors import TaskFailed
from tests.runtime.memory_tasks import LONG, Gate, MemoryTask, Running

pytestmark = pytest.mark.unit


@pytest.fixture
def one_worker() -> Iterator[Running]:
    running = Running(1)
    yield running
    running.scheduler.stop()


@pytest.fixture
def four_workers() -> Iterator[Running]:
    running = Running(4)
    yield running
    running.scheduler.stop()


def work_once(running: Running, task: MemoryTask) -> None:
    """Give a task a record, and wait until it has read it."""
    before = running.events.commits.count(task.id)
    running.cluster.put(task.topic)
    running.events.wait_until(lambda: running.events.commits.count(task.id) > before)


@pytest.mark.parametrize("idle", [True, False])
def test_a_task_that_takes_long_to_close_holds_up_nobody_but_who_closes_it(four_workers: Running, idle: bool) -> None:
    """A producer whose broker is away takes its time to end."""
    closing, batch = Gate(), Gate()
    leaving, other = MemoryTask(1, four_workers.cluster, batch), MemoryTask(2, four_workers.cluster)
    leaving.close = closing  # type: ignore[method-assign]
    four_workers.add(leaving, other)
    if not idle:
        four_workers.cluster.put(leaving.topic)
        assert batch.entered.wait(LONG)
    removing = threading.Thread(target=four_workers.scheduler.remove, args=(1,))
    removing.start()
    batch.opened.set()
    assert closing.entered.wait(LONG)
    try:
        work_once(four_workers, other)
    finally:
        closing.opened.set()
        removing.join(LONG)


def test_a_successor_that_never_runs_is_closed(one_worker: Running) -> None:
    batch = Gate()
    old, first, second = (MemoryTask(1, one_worker.cluster, work) for work in (batch, lambda: None, lambda: None))
    one_worker.add(old)
    one_worker.cluster.put(old.topic)
    assert batch.entered.wait(LONG)
    one_worker.scheduler.add(first)
    one_worker.scheduler.add(second)
    assert first.closed
    one_worker.scheduler.remove(1)
    assert second.closed
    batch.opened.set()


def test_the_end_of_the_scheduler_closes_a_successor(one_worker: Running) -> None:
    batch = Gate()
    old, successor = MemoryTask(1, one_worker.cluster, batch), MemoryTask(1, one_worker.cluster)
    one_worker.add(old)
    one_worker.cluster.put(old.topic)
    assert batch.entered.wait(LONG)
    one_worker.scheduler.add(successor)
    stopping = threading.Thread(target=one_worker.scheduler.stop)
    stopping.start()
    batch.opened.set()
    stopping.join(LONG)
    assert old.closed
    assert successor.closed


def test_a_task_that_fails_where_no_task_should_is_out_alone(one_worker: Running) -> None:
    """Its worker goes on."""
    broken, other = MemoryTask(1, one_worker.cluster), MemoryTask(2, one_worker.cluster)
    one_worker.add(broken, other)

    def fail(_: object) -> int:
        raise ValueError("nobody thought of this")

    broken.lag = fail  # type: ignore[assignment, method-assign]
    one_worker.cluster.put(broken.topic)
    one_worker.events.wait_until(lambda: 1 in one_worker.events.failures)
    assert isinstance(one_worker.events.failures[1], TaskFailed)
    work_once(one_worker, other)


def test_tasks_that_fail_again_and_again_leave_workers_to_the_others(four_workers: Running) -> None:
    """Their broker hangs: each attempt holds a worker until its time-out."""
    gates = [Gate() for _ in range(8)]
    failing = [MemoryTask(id_, four_workers.cluster, away) for id_ in range(1, 9)]
    good = MemoryTask(9, four_workers.cluster)
    four_workers.add(*failing, good)
    for task in failing:
        four_workers.cluster.put(task.topic)
    four_workers.events.wait_until(lambda: len(four_workers.events.failures) == 8)
    again = [MemoryTask(task.id, four_workers.cluster, gate) for task, gate in zip(failing, gates, strict=True)]
    for task in again:
        four_workers.scheduler.add(task)
    wait_until(lambda: sum(gate.entered.is_set() for gate in gates) >= 2)
    try:
        for _ in range(3):
            work_once(four_workers, good)
        assert sum(gate.entered.is_set() for gate in gates) == 2
    finally:
        for gate in gates:
            gate.opened.set()
    four_workers.events.wait_until(lambda: set(four_workers.events.commits) == set(range(1, 10)))


def test_tasks_that_could_not_begin_leave_room_for_others_to_begin(
    four_workers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [MemoryTask(id_, four_workers.cluster) for id_ in range(1, scheduler.BEGINNERS + 1)]
    for task in failing:
        task.begin_failure = BrokerUnreachable("127.0.0.1:1", "nobody listens")
        four_workers.scheduler.add(task)
    four_workers.events.wait_until(lambda: len(four_workers.events.failures) == len(failing))
    gate = Gate()
    for task in failing:
        again = MemoryTask(task.id, four_workers.cluster)
        again.begin = gate  # type: ignore[method-assign]
        four_workers.scheduler.add(again)
    assert gate.entered.wait(LONG)
    try:
        good = MemoryTask(100, four_workers.cluster)
        four_workers.add(good)
        work_once(four_workers, good)
    finally:
        gate.opened.set()


def test_a_batch_that_does_not_end_is_cancelled_now_and_then(
    one_worker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a hundred times a second."""
    monkeypatch.setattr(entry, "CANCEL_EVERY", LONG)
    batch, cancelled = Gate(), threading.Semaphore(0)
    task = MemoryTask(1, one_worker.cluster, batch)
    one_worker.jobs.on_cancel = cancelled.release
    one_worker.add(task)
    one_worker.cluster.put(task.topic)
    assert batch.entered.wait(LONG)
    one_worker.scheduler.remove(1, cancel=True)
    try:
        assert cancelled.acquire(timeout=LONG)
        assert not cancelled.acquire(timeout=0.3)
    finally:
        batch.opened.set()


def test_a_dropped_task_is_cancelled_at_once_though_another_does_not_end(
    four_workers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "CANCEL_EVERY", LONG)
    gates = [Gate(), Gate()]
    tasks = [MemoryTask(number, four_workers.cluster, gate) for number, gate in enumerate(gates)]
    four_workers.add(*tasks)
    for task, gate in zip(tasks, gates, strict=True):
        four_workers.cluster.put(task.topic)
        assert gate.entered.wait(LONG)
    try:
        for number, task in enumerate(tasks, start=1):
            four_workers.scheduler.remove(task.id, cancel=True)
            wait_until(lambda number=number: len(four_workers.jobs.cancelled) == number)  # type: ignore[misc]
    finally:
        for gate in gates:
            gate.opened.set()


def away() -> None:
    raise BrokerUnreachable("127.0.0.1:1", "nobody listens")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
