"""The steps of the batch protocol, one by one, over ports in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from headgate.catalog.positions import KafkaPosition, Position, Positions
from headgate.catalog.tasks import QuarantineFolder
from headgate.connectors.errors import BrokerUnreachable
from headgate.runtime.errors import ComputationFailed, Fenced, RowNotEncodable, SparkGone, TaskFailed
from headgate.runtime.ports import Batch, Limit, ManyRejected, Mark, Rejected, ReplanNeeded
from headgate.runtime.targets.errors import OutputIndivisible, OutputTooLarge, ProgressLost
from headgate.runtime.task import ATTEMPTS, Step, Task
from tests.runtime.memory_ports import (
    BAD,
    NO_SESSION,
    SOURCE,
    TASK,
    KeepPlan,
    MemoryInput,
    MemoryStore,
    MemoryTable,
    MemoryTopic,
    Shared,
    Topic,
)

pytestmark = pytest.mark.unit


class Setup:
    """A task over a topic with three records of one partition."""

    def __init__(self, target: MemoryTopic | MemoryTable | None = None) -> None:
        self.topic = Topic()
        for key, value in (("a", 1), ("c", 2), ("a", 4)):
            self.topic.put(key, value)
        self.shared = Shared()
        self.target = target or MemoryTopic(keyed=True)
        self.notices: list[str] = []
        self.on_point: Callable[[str], None] = lambda _: None
        self.input = MemoryInput(self.topic)
        self.start()

    def start(self, definition: str = "keep", step: Step | None = None) -> None:
        self.store = MemoryStore(self.shared)
        plan = KeepPlan(keyed=self.target.keyed)
        plan.definition = definition
        self.task = Task(
            TASK, "task", {SOURCE: self.input}, plan, self.target, self.store,
            step=step, guard=self.store.guard, on_notice=self.notices.append, crash=lambda point, _: self.on_point(point),
        )  # fmt: skip

    def run(self, rows: int = 100) -> int | None:
        result = self.task.run_batch(NO_SESSION, Limit(rows), {SOURCE: self.topic.end()})
        return None if result is None else result.rows

    def fail_writes(self, error: Exception, after: int = 1) -> None:
        def pause(number: int) -> None:
            if number >= after:
                raise error

        self.target.pause = pause

    def mend(self) -> None:
        self.target.pause = lambda _: None

    @property
    def reached(self) -> Position:
        assert self.shared.ledger is not None
        return self.shared.ledger.positions[SOURCE]


def topic_at(offset: int) -> KafkaPosition:
    return KafkaPosition("topic", "t1", (0, offset))


def test_the_first_positions_are_stored_before_the_first_batch() -> None:
    setup = Setup()
    setup.task.begin()
    assert setup.shared.ledger is not None
    assert (setup.shared.ledger.number, setup.reached) == (0, topic_at(0))


def test_a_task_with_a_timer_wants_batches_without_new_records() -> None:
    setup = Setup()
    due = [0.0]
    setup.task = Task(
        TASK, "task", {SOURCE: setup.input}, KeepPlan(keyed=True), setup.target, setup.store, next_due=lambda _: due[0]
    )
    assert setup.run() == 3
    assert setup.task.due == 0.0
    assert setup.run() == 0  # it is due, and the target commits it
    due[0] = float("inf")
    assert setup.run() == 0
    assert setup.run() is None
    setup.task.begin()
    assert setup.run() == 0  # nobody knows how long the engine was away


def test_a_batch_moves_the_ledger_and_counts() -> None:
    setup = Setup()
    assert setup.run(rows=2) == 2
    assert setup.reached == topic_at(2)
    assert setup.task.lag({SOURCE: setup.topic.end()}) == 1
    progress = setup.task.progress
    assert (progress.batch, progress.rows, progress.batches) == (1, 2, 1)
    assert setup.run() == 1
    assert setup.run() is None
    assert setup.input.released == topic_at(3)


def test_an_attempt_after_a_failed_one_reaches_its_end() -> None:
    setup = Setup()
    setup.fail_writes(ValueError("no"))
    with pytest.raises(TaskFailed):
        setup.run()
    setup.mend()
    setup.start()
    assert setup.run(rows=1) == 3
    assert setup.shared.mark is None


def test_three_failed_attempts_drop_the_mark_with_a_notice_and_halve_the_batch() -> None:
    setup = Setup()
    setup.fail_writes(ValueError("no"))
    for _ in range(ATTEMPTS):
        with pytest.raises(TaskFailed):
            setup.run(rows=4)
        setup.start()
    assert setup.shared.mark == Mark({SOURCE: topic_at(3)}, ATTEMPTS)
    setup.mend()
    assert setup.run(rows=4) == 2
    assert ["unfinished batch was given up" in notice for notice in setup.notices] == [True]
    assert setup.run(rows=4) == 1


def test_each_further_failed_attempt_halves_the_batch_again() -> None:
    setup = Setup()
    setup.fail_writes(ValueError("no"))
    for _ in range(ATTEMPTS + 1):
        with pytest.raises(TaskFailed):
            setup.run(rows=4)
    setup.mend()
    assert setup.run(rows=4) == 1


def test_a_batch_during_which_spark_ended_counts_as_an_attempt() -> None:
    setup = Setup()
    setup.fail_writes(SparkGone("It ran out of memory."))
    with pytest.raises(SparkGone):
        setup.run()
    assert setup.shared.mark == Mark({SOURCE: topic_at(3)}, 1)


def test_the_bytes_of_a_batch_are_halved_with_its_rows() -> None:
    assert (Limit(100, 1000).halved(2), Limit(1, 1).halved(50)) == (Limit(25, 250), Limit(1, 1))


def test_many_rejected_records_go_to_a_folder_that_is_announced_first_and_named_by_the_commit() -> None:
    setup = Setup()
    written: list[QuarantineFolder] = []

    def write(folder: QuarantineFolder) -> None:
        assert (setup.shared.opened[-1], setup.shared.folders) == (folder, [])
        written.append(folder)

    setup.input.rejected = lambda: Rejected(many=ManyRejected(SOURCE, 12_000, write))  # type: ignore[method-assign]
    crashes: list[tuple[str, list[QuarantineFolder]]] = []
    setup.on_point = lambda point: crashes.append((point, [*setup.shared.folders]))
    setup.run()
    assert setup.shared.folders == written
    assert [(f.object, f.task, f.batch, f.records) for f in written] == [(SOURCE, TASK, 1, 12_000)]
    assert crashes[-2:] == [("after_quarantine", []), ("after_commit", written)]
    assert setup.task.progress.skipped == 12_000


def test_an_outage_does_not_count_as_an_attempt() -> None:
    setup = Setup()
    setup.fail_writes(BrokerUnreachable("b:1", "No answer."))
    for _ in range(ATTEMPTS + 1):
        with pytest.raises(BrokerUnreachable):
            setup.run()
    assert setup.shared.mark == Mark({SOURCE: topic_at(3)}, 0)
    assert setup.notices == []


def test_a_target_with_its_own_ledger_needs_no_mark() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.fail_writes(ValueError("no"))
    with pytest.raises(TaskFailed):
        setup.run()
    assert setup.shared.mark == Mark(None, 1)  # only the attempt is counted
    setup.mend()
    assert setup.run(rows=1) == 1
    assert setup.shared.mark is None


def test_failed_attempts_at_a_target_with_its_own_ledger_halve_its_batches_too() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.fail_writes(OutputTooLarge("task"))
    for _ in range(ATTEMPTS):
        with pytest.raises(OutputTooLarge):
            setup.run(rows=4)
        setup.start()
    setup.mend()
    assert setup.run(rows=4) == 2


def test_a_bad_record_counts_once_however_often_its_batch_is_tried() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.topic.put("a", BAD)
    setup.fail_writes(ValueError("no"), after=0)
    with pytest.raises(TaskFailed):
        setup.run()
    assert setup.task.progress.skipped == 0
    setup.mend()
    assert setup.run() == 4
    assert setup.task.progress.skipped == 1
    assert setup.run() is None
    assert setup.task.progress.skipped == 1


def test_output_that_is_too_large_for_the_smallest_batch_halts_the_task() -> None:
    """It would be computed again and again for ever."""
    setup = Setup(MemoryTable(keyed=False))
    setup.fail_writes(OutputTooLarge("task"), after=0)
    with pytest.raises(OutputIndivisible) as raised:
        setup.run(rows=1)
    assert not raised.value.retryable


def test_a_target_may_bound_its_batches() -> None:
    setup = Setup()
    setup.target.bounded = lambda limit: Limit(1)  # type: ignore[method-assign]
    assert setup.run(rows=4) == 1


def test_a_target_that_has_lost_its_ledger_halts_the_task() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.task.begin()
    setup.start()
    assert setup.run() == 3  # that there is none before the first batch is as it should be
    assert isinstance(setup.target, MemoryTable)
    setup.target.ledger = None
    setup.start()
    with pytest.raises(ProgressLost):
        setup.run()


def test_the_targets_own_ledger_decides_over_the_catalogs_copy() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.task.begin()
    before = setup.shared.ledger
    setup.run()
    setup.shared.ledger = before  # as if the engine had died before the copy was made
    setup.start()
    assert setup.run() is None
    assert setup.reached == topic_at(3)


def test_a_catalog_that_was_restored_raises_its_epoch_above_the_targets_once() -> None:
    table = MemoryTable(keyed=False)
    table.epoch = 5 * 2**20 + 3
    setup = Setup(table)
    setup.run()
    assert table.epoch > 5 * 2**20 + 3
    assert len(setup.notices) == 1


def test_a_target_that_stands_elsewhere_refuses_the_batch() -> None:
    setup = Setup(MemoryTable(keyed=False))
    assert setup.run(rows=1) == 1
    assert isinstance(setup.target, MemoryTable)
    other = setup.target.ledger
    setup.run()
    setup.target.ledger = other  # somebody has put the table back
    setup.topic.put("a", 5)
    with pytest.raises(Fenced):
        setup.run()


def test_rejected_records_of_an_earlier_attempt_are_replaced() -> None:
    setup = Setup(MemoryTable(keyed=False))
    setup.topic.put("a", BAD)
    setup.fail_writes(ValueError("no"))
    with pytest.raises(TaskFailed):
        setup.run()
    assert list(setup.shared.rejected) == [(1, 3)]
    setup.topic.partitions[1][3] = ("a", 7)  # its schema became known in between
    setup.mend()
    setup.run()
    assert setup.shared.rejected == {}


def test_many_rejected_records_are_stored_before_the_ledger_moves() -> None:
    setup = Setup()
    for _ in range(1200):
        setup.topic.put("a", BAD)
    setup.run(rows=10_000)
    assert len(setup.shared.rejected) == setup.task.progress.skipped == 1200


class LearningInput(MemoryInput):
    """Fails the first reads, and learns from each failure."""

    failures: list[Exception]

    def read(self, *given: object) -> object:  # type: ignore[override]
        if self.failures:
            raise self.failures.pop()
        return super().read(*given)  # type: ignore[arg-type]

    def learn(self, error: BaseException) -> bool:
        return isinstance(error, KeyError)


@pytest.mark.parametrize("failures", [1, 3])
def test_a_batch_is_tried_again_when_an_input_has_learned_from_its_failure(failures: int) -> None:
    setup = Setup()
    setup.input = LearningInput(setup.topic)
    setup.input.failures = [KeyError("id") for _ in range(failures)]
    setup.start()
    assert setup.run() == 3


def test_a_batch_that_teaches_nothing_new_fails() -> None:
    setup = Setup()
    setup.input = LearningInput(setup.topic)
    setup.input.failures = [KeyError("id") for _ in range(9)]
    setup.start()
    with pytest.raises(TaskFailed):
        setup.run()


def test_a_new_schema_ends_the_batch_before_anything_is_written() -> None:
    setup = Setup()
    setup.input = LearningInput(setup.topic)
    setup.input.failures = [ReplanNeeded(SOURCE, [])]
    setup.start()
    with pytest.raises(ReplanNeeded):
        setup.run()
    assert setup.target.rows == []
    assert setup.shared.mark == Mark({SOURCE: topic_at(3)}, 0)


def test_an_engine_that_lost_its_lease_writes_nothing() -> None:
    setup = Setup()
    setup.task.begin()
    MemoryStore(setup.shared)
    with pytest.raises(Exception, match="taken it over"):
        setup.run()
    assert setup.target.rows == []


OTHER = 8  # the id of another relation


class CountingStep:
    """Counts how often the target was brought in step, and up to where. It takes so many batches."""

    def __init__(self, parts: int = 1) -> None:
        self.ends: list[Position] = []
        self._parts = parts

    def is_last(self, positions: Positions) -> bool:
        return len(self.ends) + 1 >= self._parts

    def write(self, session: SparkSession, batch: Batch, written: str, before_commit: Callable[[], None]) -> None:
        self.ends.append(batch.end[SOURCE])

    def input_ends(self) -> Positions:
        return {OTHER: KafkaPosition("other", "id of other", (5,))}


def test_a_replaced_plan_brings_the_target_in_step_once_before_it_reads_on() -> None:
    setup, step = Setup(), CountingStep()
    setup.run()
    setup.topic.put("a", 5)
    setup.start("replaced", step)
    assert setup.run() == 0
    assert setup.run() == 1
    setup.start("replaced", step)
    assert setup.run() is None
    assert step.ends == [topic_at(3)]
    assert setup.shared.ledger is not None
    assert (setup.shared.ledger.number, setup.shared.ledger.definition) == (3, "replaced")


def test_a_target_is_brought_in_step_also_if_there_is_nothing_to_read() -> None:
    setup, step = Setup(), CountingStep()
    setup.run()
    setup.start("replaced", step)
    setup.task.begin()
    assert setup.task.has_work({SOURCE: setup.topic.end()})
    setup.run()
    assert not setup.task.has_work({SOURCE: setup.topic.end()})
    assert step.ends == [topic_at(3)]


def test_a_target_is_in_step_when_the_last_part_of_its_keys_is_written() -> None:
    setup, step = Setup(), CountingStep(3)
    setup.run()
    setup.start("replaced", step)
    written = []
    for _ in range(3):
        assert setup.run() == 0
        assert setup.shared.ledger is not None
        written.append((setup.shared.ledger.number, setup.shared.ledger.definition))
    assert written == [(2, "keep"), (3, "keep"), (4, "replaced")]
    assert step.ends == [topic_at(3)] * 3
    assert setup.run() is None


def test_all_parts_are_written_again_if_the_task_ends_between_them() -> None:
    setup = Setup()
    setup.run()
    setup.start("replaced", CountingStep(2))
    setup.run()
    setup.start("replaced", step := CountingStep(2))
    setup.run()
    setup.run()
    assert len(step.ends) == 2
    assert setup.run() is None


def test_an_open_mark_is_reached_before_the_target_is_brought_in_step() -> None:
    """The target may already have rows up to the mark. Compared with the ledger's positions, they would go back in time."""
    setup, step = Setup(), CountingStep()
    setup.run(rows=1)
    setup.fail_writes(ValueError("no"))
    with pytest.raises(TaskFailed):
        setup.run()
    setup.mend()
    setup.start("replaced", step)
    assert setup.run() == 2
    assert step.ends == []
    assert setup.run() == 0
    assert step.ends == [topic_at(3)]


def test_a_target_without_a_key_keeps_its_rows_when_the_plan_is_replaced() -> None:
    setup = Setup(MemoryTopic(keyed=False))
    setup.run()
    setup.topic.put("a", 5)
    setup.start("replaced")
    assert setup.run() == 1
    assert setup.shared.ledger is not None
    assert setup.shared.ledger.definition == "replaced"


def test_rejected_records_are_not_stored_again_by_a_step() -> None:
    setup, step = Setup(), CountingStep()
    setup.topic.put("a", BAD)
    setup.run()
    setup.shared.rejected.clear()  # they were replayed
    setup.start("replaced", step)
    setup.run()
    assert setup.shared.rejected == {}


def read_other(setup: Setup, step: Step | None) -> Task:
    """The task made anew over another relation, which has five records."""
    topic = Topic([[("b", value) for value in (1, 2, 4, 5, 7)]], id="id of other")
    plan = KeepPlan(keyed=False)
    plan.definition = "other"
    store = MemoryStore(setup.shared)
    return Task(TASK, "task", {OTHER: MemoryInput(topic)}, plan, setup.target, store, step=step, guard=store.guard)


def test_a_task_that_reads_another_relation_begins_at_its_start() -> None:
    setup = Setup(MemoryTopic(keyed=False))
    setup.run()
    before = setup.shared.ledger
    task = read_other(setup, None)
    task.begin()
    assert task.ledger is not None
    assert before is not None
    assert task.positions == {OTHER: KafkaPosition("topic", "id of other", (0,))}
    assert (task.ledger.generation, task.ledger.number) == (before.generation + 1, before.number)
    assert task.ledger.definition == "other"
    assert setup.shared.ledger == task.ledger


def test_a_keyed_task_that_reads_another_relation_is_brought_in_step_with_all_it_has() -> None:
    setup = Setup()
    setup.run()
    task = read_other(setup, CountingStep())
    task.begin()
    assert task.ledger is not None
    assert task.positions == {OTHER: KafkaPosition("other", "id of other", (5,))}
    assert task.ledger.definition == "keep"
    assert task.has_work({})


class Rejects:
    """One row of each batch cannot be encoded."""

    def __init__(self) -> None:
        self.asked = 0

    def rejected(self, session: SparkSession) -> Rejected:
        self.asked += 1
        return Rejected(1)

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        return RowNotEncodable("s", "it is null", "$.value.x") if str(error) == "bad row" else error


def test_rows_that_cannot_be_encoded_are_counted_with_those_of_the_inputs() -> None:
    setup = Setup()
    setup.topic.put("a", BAD)
    setup.task.rejects = Rejects()
    setup.run()
    assert setup.task.progress.skipped == 2


def test_a_row_that_cannot_be_encoded_halts_with_its_place() -> None:
    setup = Setup()
    setup.task.rejects = Rejects()
    setup.fail_writes(ValueError("bad row"))
    with pytest.raises(RowNotEncodable, match="it is null at"):
        setup.run()


def test_rows_are_asked_for_once_when_a_target_is_brought_in_step_in_parts() -> None:
    setup = Setup()
    setup.run()
    setup.start("replaced", CountingStep(3))
    setup.task.rejects = rejects = Rejects()
    for _ in range(3):
        setup.run()
    assert rejects.asked == 1


def test_words_of_spark_that_may_hold_a_value_are_not_shown() -> None:
    setup = Setup()
    setup.fail_writes(ArithmeticException("[CAST_OVERFLOW] The value 4711 cannot be cast. SQLSTATE: 22003"))
    with pytest.raises(ComputationFailed) as raised:
        setup.run()
    assert "4711" not in raised.value.diagnostic().render()


def test_the_end_of_spark_is_known_whatever_the_task_reads() -> None:
    setup = Setup()
    setup.fail_writes(ConnectionError("connection refused"))
    with pytest.raises(SparkGone):
        setup.run()
