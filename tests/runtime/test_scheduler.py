"""Which task works next, what a change of one task means to the others, and how the scheduler ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from headgate.catalog.positions import LogPosition
from headgate.connectors.errors import BrokerUnreachable, TopicNotFound
from headgate.runtime import entry, scheduler
from headgate.runtime.entry import FIRST_ROWS, SMALL_ROWS, BatchSize
from headgate.runtime.errors import TargetTopicGone, TaskFailed, TaskNotRunning
from headgate.runtime.ports import BatchResult, Limit, ReplanNeeded
from tests.runtime.memory_tasks import LONG, SOURCE, Gate, MemoryCluster, MemoryTask, Running

pytestmark = pytest.mark.unit


@pytest.fixture
def one_worker() -> Iterator[Running]:
    running = Running(1)
    yield running
    running.scheduler.stop()


@pytest.fixture
def two_workers() -> Iterator[Running]:
    running = Running(2)
    yield running
    running.scheduler.stop()


def test_a_task_reads_what_comes_and_then_rests(one_worker: Running) -> None:
    task = MemoryTask(1, one_worker.cluster)
    one_worker.add(task)
    assert one_worker.events.begun_tasks == {1: 0}
    one_worker.cluster.put(task.topic, 5)
    one_worker.events.wait_until(lambda: one_worker.events.commits == [1])
    assert one_worker.scheduler.lags() == {1: 0}
    one_worker.cluster.put(task.topic, 5)
    one_worker.events.wait_until(lambda: one_worker.events.commits == [1, 1])


def test_the_lag_grows_while_a_batch_runs(one_worker: Running) -> None:
    gate = Gate()
    task = MemoryTask(1, one_worker.cluster, gate)
    one_worker.add(task)
    one_worker.cluster.put(task.topic, 1)
    assert gate.entered.wait(LONG)
    one_worker.cluster.put(task.topic, 4920)
    deadline = time.monotonic() + LONG
    while one_worker.scheduler.lags() != {1: 4921}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.opened.set()


def test_the_task_that_worked_least_recently_is_next(one_worker: Running) -> None:
    """One task always has something to read. The others get their turn all the same."""
    gate = Gate()
    tasks = [MemoryTask(id_, one_worker.cluster) for id_ in range(1, 6)]
    greedy = tasks[0]
    greedy.work = gate
    one_worker.add(*tasks)
    one_worker.cluster.put(greedy.topic, 100 * FIRST_ROWS)
    assert gate.entered.wait(LONG)
    for task in tasks[1:]:
        one_worker.cluster.put(task.topic, 1)
    deadline = time.monotonic() + LONG
    while set(one_worker.scheduler.lags().values()) == {0, 100 * FIRST_ROWS}:
        assert time.monotonic() < deadline
    while sorted(one_worker.scheduler.lags().values(), key=str).count(1) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.opened.set()
    one_worker.events.wait_until(lambda: len(one_worker.events.commits) >= 7)
    assert one_worker.events.commits[0] == 1
    assert sorted(one_worker.events.commits[1:5]) == [2, 3, 4, 5]
    assert set(one_worker.events.commits[5:]) == {1}


def test_a_batch_is_shorter_while_others_wait(one_worker: Running) -> None:
    gate = Gate()
    first, second, third = (MemoryTask(id_, one_worker.cluster) for id_ in (1, 2, 3))
    first.work = gate
    one_worker.add(first, second, third)
    one_worker.cluster.put(first.topic, 1)
    assert gate.entered.wait(LONG)
    for task in (second, third):
        one_worker.cluster.put(task.topic, 10 * FIRST_ROWS)
    deadline = time.monotonic() + LONG
    while list(one_worker.scheduler.lags().values()).count(10 * FIRST_ROWS) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.opened.set()
    one_worker.events.wait_until(lambda: len(one_worker.events.commits) >= 3)
    assert first.limits[0] == FIRST_ROWS  # it was alone
    assert min(second.limits[0], third.limits[0]) == FIRST_ROWS // 2


@pytest.mark.parametrize(
    ("rows", "seconds", "wanted"),
    [
        (FIRST_ROWS, entry.AIM / 2, 2 * FIRST_ROWS),
        (FIRST_ROWS, 2 * entry.AIM, FIRST_ROWS // 2),
        (FIRST_ROWS, 100 * entry.AIM, FIRST_ROWS // 4),
        (5, 0.1, FIRST_ROWS),
        (5, 2 * entry.AIM, FIRST_ROWS // 2),
    ],
)
def test_the_size_of_a_batch_follows_the_measured_rate(rows: int, seconds: float, wanted: int) -> None:
    measured = BatchSize()
    measured.measure(BatchResult(1, rows, seconds, {}), Limit(FIRST_ROWS), entry.AIM)
    assert measured.rows == wanted


@pytest.mark.parametrize("fixed", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rate", [20_000, 200_000])
def test_batches_do_not_shrink_for_what_they_cost_whatever_their_size(fixed: float, rate: int) -> None:
    measured, seconds = BatchSize(), 0.0
    for number in range(20):
        limit = measured.limit(entry.AIM)
        seconds = fixed + limit.rows / rate
        measured.measure(BatchResult(number, limit.rows, seconds, {}), limit, entry.AIM)
    on_rows = seconds - fixed
    assert on_rows >= seconds / 4
    assert on_rows <= 1.1 * max(entry.AIM, fixed)


def test_small_and_large_batches_are_planned_differently(one_worker: Running) -> None:
    task = MemoryTask(1, one_worker.cluster)
    one_worker.cluster.put(task.topic, SMALL_ROWS)
    one_worker.add(task)
    one_worker.events.wait_until(lambda: len(one_worker.events.commits) == 1)
    one_worker.cluster.put(task.topic, SMALL_ROWS + 1)
    one_worker.events.wait_until(lambda: len(one_worker.events.commits) == 2)
    assert one_worker.jobs.small == [True, False]
    assert len(set(one_worker.jobs.tags)) == 2


@pytest.mark.parametrize(
    ("at", "end", "small"),
    [
        (LogPosition(1, 1, 0), LogPosition(1, 1, 3), False),
        (LogPosition(1, 1, 2), LogPosition(1, 2, 1), False),  # the view has got another query
        (LogPosition(1, 1, 2), LogPosition(1, 1, 3), True),
        (LogPosition(1, 1, 0), LogPosition(1, 1, 0), True),
    ],
)
def test_a_view_that_is_read_as_a_whole_is_no_small_batch(at: LogPosition, end: LogPosition, small: bool) -> None:
    task = MemoryTask(1, None)
    task.positions = {SOURCE: at}
    assert entry.Entry(task).is_small({SOURCE: end}) is small


def test_a_slow_task_does_not_hold_another_one_up(two_workers: Running) -> None:
    gate = Gate()
    slow, quick = MemoryTask(1, two_workers.cluster, gate), MemoryTask(2, two_workers.cluster)
    two_workers.add(slow, quick)
    two_workers.cluster.put(slow.topic)
    assert gate.entered.wait(LONG)
    for number in range(1, 4):
        two_workers.cluster.put(quick.topic)
        two_workers.events.wait_until(lambda number=number: two_workers.events.commits == [2] * number)  # type: ignore[misc]
    gate.opened.set()
    two_workers.events.wait_until(lambda: 1 in two_workers.events.commits)


def test_a_task_that_fails_is_out_and_the_others_go_on(two_workers: Running) -> None:
    def fail() -> None:
        raise TargetTopicGone("out", "task 1")

    bad, good = MemoryTask(1, two_workers.cluster, fail), MemoryTask(2, two_workers.cluster)
    two_workers.add(bad, good)
    two_workers.cluster.put(bad.topic)
    two_workers.events.wait_until(lambda: 1 in two_workers.events.failures)
    assert isinstance(two_workers.events.failures[1], TargetTopicGone)
    _wait_until(lambda: bad.closed)
    two_workers.cluster.put(good.topic)
    two_workers.events.wait_until(lambda: two_workers.events.commits == [2])
    assert two_workers.scheduler.lags() == {2: 0}


def test_an_unknown_error_is_said_to_be_one_of_the_task(one_worker: Running) -> None:
    task = MemoryTask(1, one_worker.cluster)
    task.begin_failure = ValueError("nobody thought of this\nand more")
    one_worker.scheduler.add(task)
    one_worker.events.wait_until(lambda: 1 in one_worker.events.failures)
    failure = one_worker.events.failures[1]
    assert isinstance(failure, TaskFailed)
    assert failure.message() == 'task "task 1" failed: nobody thought of this'


def test_a_cluster_that_is_away_is_told_for_all_its_tasks_and_for_no_other(two_workers: Running) -> None:
    other = MemoryCluster()
    away, here = MemoryTask(1, two_workers.cluster), MemoryTask(2, other)
    two_workers.cluster.failure = BrokerUnreachable("somewhere:9092", "No answer.")
    two_workers.scheduler.add(away)
    two_workers.add(here)
    two_workers.events.wait_until(lambda: 1 in two_workers.events.failures)
    other.put(here.topic)
    two_workers.events.wait_until(lambda: two_workers.events.commits == [2])
    two_workers.cluster.failure = None
    two_workers.add(away)
    two_workers.cluster.put(away.topic)
    two_workers.events.wait_until(lambda: two_workers.events.commits == [2, 1])


def test_a_topic_that_does_not_exist_fails_its_task_alone(two_workers: Running) -> None:
    lost, here = MemoryTask(1, two_workers.cluster), MemoryTask(2, two_workers.cluster)
    del two_workers.cluster.ends[lost.topic]
    two_workers.scheduler.add(lost)
    two_workers.add(here)
    two_workers.events.wait_until(lambda: 1 in two_workers.events.failures)
    assert isinstance(two_workers.events.failures[1], TopicNotFound)
    assert 2 not in two_workers.events.failures


def test_a_topic_made_again_wakes_its_task_though_it_has_no_new_record(
    one_worker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.runtime.poller.DESCRIBE_EVERY", 0.0)
    task = MemoryTask(1, one_worker.cluster)
    one_worker.add(task)
    ran = threading.Event()
    task.work = ran.set
    one_worker.cluster.ids[task.topic] = "another"
    assert ran.wait(LONG)


def test_a_timer_runs_a_batch_without_new_records(one_worker: Running) -> None:
    ran = threading.Event()
    task = MemoryTask(1, one_worker.cluster, ran.set)
    task.due = time.time() + 0.05
    one_worker.add(task)
    assert ran.wait(LONG)
    task.due = None


def test_an_input_that_no_poller_knows_is_looked_at_now_and_then(
    one_worker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "LOOK_EVERY", 0.01)
    looks = threading.Semaphore(0)
    one_worker.add(MemoryTask(1, None, looks.release))
    for _ in range(3):
        assert looks.acquire(timeout=LONG)


def test_a_task_can_be_woken(one_worker: Running) -> None:
    ran = threading.Event()
    one_worker.add(MemoryTask(1, one_worker.cluster, ran.set))
    one_worker.scheduler.wake(1)
    assert ran.wait(LONG)


def test_a_task_is_replaced_after_its_batch_and_the_others_do_not_notice(two_workers: Running) -> None:
    gate = Gate()
    old, new = MemoryTask(1, two_workers.cluster, gate), MemoryTask(1, two_workers.cluster)
    other = MemoryTask(2, two_workers.cluster)
    two_workers.add(old, other)
    two_workers.cluster.put(old.topic)
    assert gate.entered.wait(LONG)
    two_workers.scheduler.add(new)
    two_workers.cluster.put(other.topic)
    two_workers.events.wait_until(lambda: two_workers.events.commits == [2])
    assert not old.closed
    gate.opened.set()
    two_workers.events.wait_until(lambda: two_workers.events.commits == [2, 1, 1])
    _wait_until(lambda: old.closed)
    assert new.batches == 1
    assert not other.closed
    assert two_workers.jobs.cancelled == set()


def test_a_task_that_must_be_planned_anew_rests_until_it_is_replaced(one_worker: Running) -> None:
    needed = ReplanNeeded(7, [])

    def outgrown() -> None:
        raise needed

    old = MemoryTask(1, one_worker.cluster, outgrown)
    one_worker.add(old)
    one_worker.cluster.put(old.topic)
    one_worker.events.wait_until(lambda: one_worker.events.outgrown_tasks == {1: needed})
    one_worker.cluster.put(old.topic)
    with pytest.raises(TaskNotRunning, match="is still starting"):
        one_worker.scheduler.between_batches(1, lambda *_: None)
    assert old.batches == 0
    one_worker.scheduler.add(MemoryTask(1, one_worker.cluster))
    one_worker.events.wait_until(lambda: one_worker.events.commits == [1])
    assert one_worker.events.failures == {}


def test_a_dropped_task_is_cancelled_at_once(one_worker: Running) -> None:
    gate = Gate()
    task = MemoryTask(1, one_worker.cluster, gate)
    one_worker.jobs.on_cancel = gate.opened.set
    one_worker.add(task)
    one_worker.cluster.put(task.topic)
    assert gate.entered.wait(LONG)
    one_worker.scheduler.remove(1, cancel=True)
    assert gate.opened.wait(LONG)
    assert one_worker.jobs.cancelled == set(one_worker.jobs.tags)


def test_a_paused_task_ends_its_batch_and_is_cancelled_only_when_that_lasts(
    one_worker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    task = MemoryTask(1, one_worker.cluster, gate)
    one_worker.add(task)
    one_worker.cluster.put(task.topic)
    assert gate.entered.wait(LONG)
    one_worker.scheduler.remove(1)
    assert one_worker.jobs.cancelled == set()
    gate.opened.set()
    one_worker.events.wait_until(lambda: one_worker.events.commits == [1])

    monkeypatch.setattr(scheduler, "DRAIN", 0.05)
    gate = Gate()
    task = MemoryTask(2, one_worker.cluster, gate)
    one_worker.jobs.on_cancel = gate.opened.set
    one_worker.add(task)
    one_worker.cluster.put(task.topic)
    assert gate.entered.wait(LONG)
    one_worker.scheduler.remove(2)
    assert gate.opened.wait(LONG)


def test_work_between_two_batches_has_the_task_for_itself(two_workers: Running) -> None:
    gate = Gate()
    task = MemoryTask(1, two_workers.cluster, gate)
    two_workers.add(task)
    two_workers.cluster.put(task.topic)
    assert gate.entered.wait(LONG)
    results: list[int] = []
    asked = threading.Thread(
        target=lambda: results.append(two_workers.scheduler.between_batches(1, lambda found, _: found.batches))
    )
    asked.start()
    gate.opened.set()
    asked.join(LONG)
    assert results == [1]
    with pytest.raises(ZeroDivisionError):
        two_workers.scheduler.between_batches(1, lambda *_: 1 / 0)
    with pytest.raises(TaskNotRunning, match="does not run"):
        two_workers.scheduler.between_batches(7, lambda *_: None)


def test_many_tasks_never_run_twice_at_once_and_read_all() -> None:
    running = Running(4)
    tasks = [MemoryTask(id_, running.cluster, lambda: time.sleep(0.001)) for id_ in range(1, 41)]
    running.add(*tasks)
    for _ in range(5):
        for task in tasks:
            running.cluster.put(task.topic, 3)
            running.scheduler.wake(task.id)
    deadline = time.monotonic() + LONG
    while set(running.scheduler.lags().values()) != {0} or set(running.cluster.ends.values()) != {15}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert all(task.lag(task.positions) == 0 for task in tasks)
    assert running.events.failures == {}
    running.scheduler.stop()
    assert all(task.closed for task in tasks)


def test_stop_lets_a_batch_end_and_begins_no_other() -> None:
    running, gate = Running(1), Gate()
    task = MemoryTask(1, running.cluster, gate)
    running.add(task)
    running.cluster.put(task.topic)
    assert gate.entered.wait(LONG)
    running.cluster.put(task.topic, 10)
    stopping = threading.Thread(target=running.scheduler.stop)
    stopping.start()
    gate.opened.set()
    stopping.join(LONG)
    assert running.events.commits == [1]
    assert task.closed
    assert running.jobs.cancelled == set()


def test_the_lag_of_a_task_that_waits_for_another_attempt_stays_true(one_worker: Running) -> None:
    def fail() -> None:
        raise BrokerUnreachable("127.0.0.1:1", "nobody listens")

    task = MemoryTask(1, one_worker.cluster, fail)
    one_worker.add(task)
    one_worker.cluster.put(task.topic, 3)
    one_worker.events.wait_until(lambda: len(one_worker.events.failures) == 1)
    one_worker.cluster.put(task.topic, 4)
    deadline = time.monotonic() + LONG
    while one_worker.scheduler.lags() != {1: 7}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert task.batches == 0, "it rests until it is added again"
    successor = MemoryTask(1, one_worker.cluster)
    one_worker.scheduler.add(successor)
    one_worker.events.wait_until(lambda: one_worker.events.commits == [1])
    _wait_until(lambda: task.closed)
    assert one_worker.scheduler.lags() == {1: 0}


def test_a_task_that_runs_by_itself_reports_and_is_never_queued(one_worker: Running) -> None:
    class SelfRunning(MemoryTask):
        def has_work(self, available: object) -> bool:
            return False

    task = SelfRunning(1, one_worker.cluster)
    one_worker.add(task)
    one_worker.cluster.put(task.topic, 7)
    deadline = time.monotonic() + LONG
    while one_worker.scheduler.lags() != {1: 7}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    one_worker.scheduler.report_commit(1, BatchResult(1, 7, 0.1, {}))
    one_worker.scheduler.report_failure(1, TargetTopicGone("out", "task 1"))
    assert one_worker.events.commits == [1]
    assert one_worker.events.failures.keys() == {1}
    assert task.closed
    assert task.batches == 0


@pytest.fixture
def live_task(one_worker: Running) -> MemoryTask:
    """A task that runs by itself."""
    task = MemoryTask(1, one_worker.cluster)
    one_worker.add(task)
    task.can_go_live = task.is_live = True
    return task


def test_a_task_that_runs_by_itself_is_ended_before_it_leaves(one_worker: Running, live_task: MemoryTask) -> None:
    one_worker.scheduler.remove(1)
    _wait_until(lambda: live_task.closed)
    assert live_task.finished == [True]
    assert one_worker.scheduler.lags() == {}


def test_a_task_that_runs_by_itself_may_settle_however_long_it_waits_for_a_worker(
    one_worker: Running, live_task: MemoryTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty tasks that end at once wait for each other."""
    monkeypatch.setattr(scheduler, "DRAIN", 0.0)
    one_worker.scheduler.remove(1)
    _wait_until(lambda: live_task.closed)
    assert live_task.finished == [True]


def test_a_dropped_task_that_runs_by_itself_does_not_settle(one_worker: Running, live_task: MemoryTask) -> None:
    one_worker.scheduler.remove(1, cancel=True)
    _wait_until(lambda: live_task.closed)
    assert live_task.finished == [False]


def test_no_worker_takes_a_task_that_runs_by_itself_while_its_failure_is_told(
    one_worker: Running, live_task: MemoryTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads would use it at once."""
    (entry,) = one_worker.scheduler._entries.values()
    ready: list[bool] = []
    monkeypatch.setattr(one_worker.events, "failed", lambda *_: ready.append(entry.is_ready))
    one_worker.scheduler.report_failure(1, TargetTopicGone("out", "task 1"))
    _wait_until(lambda: live_task.closed)
    assert ready == [False]
    assert live_task.finished == [True]


def test_another_task_takes_the_place_of_one_that_runs_by_itself_when_that_has_ended(
    one_worker: Running, live_task: MemoryTask
) -> None:
    successor = MemoryTask(1, one_worker.cluster)
    one_worker.scheduler.add(successor)
    _wait_until(lambda: live_task.closed and bool(successor.positions))
    assert live_task.finished == [True]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_task_that_runs_by_itself_is_known_to_end_until_it_has_settled(
    one_worker: Running, live_task: MemoryTask, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    settling, settled = threading.Event(), threading.Event()

    def finish(session: object, *, settle: bool = True) -> None:
        live_task.is_live = False
        settling.set()
        settled.wait(LONG)

    monkeypatch.setattr(live_task, "finish", finish)
    assert not one_worker.scheduler.ends_queries()
    if replaced:
        one_worker.scheduler.add(MemoryTask(1, one_worker.cluster))
    else:
        one_worker.scheduler.remove(1)
    assert settling.wait(LONG)
    assert one_worker.scheduler.ends_queries()
    settled.set()
    _wait_until(lambda: not one_worker.scheduler.ends_queries())


def test_the_end_of_the_scheduler_ends_tasks_that_run_by_themselves(one_worker: Running, live_task: MemoryTask) -> None:
    one_worker.scheduler.stop()
    assert live_task.finished == [True]
    assert live_task.closed


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
