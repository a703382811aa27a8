"""A task in real time over topics in memory: when its query starts and ends, and what moves the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import KafkaPosition, Position, furthest
from headgate.connectors.kafka import Topic
from headgate.plan.definitions import RecordEncoding, SinkDefinition
from headgate.runtime import live_input, realtime
from headgate.runtime.errors import DiskFull
from headgate.runtime.live_input import LiveInput, LiveTarget
from headgate.runtime.live_queries import LiveQuery, Slots
from headgate.runtime.ports import (
    NOTHING_REJECTED,
    Append,
    Batch,
    BatchResult,
    Changes,
    Limit,
    Rejected,
    ReplanNeeded,
    Written,
)
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.task import Task
from headgate.schema.types import Record
from headgate.schema.written import WrittenSchema
from tests.runtime.memory_ports import MemoryStore, Shared

pytestmark = pytest.mark.unit

SOURCE = 1
NO_SESSION = cast("SparkSession", None)
NO_FRAME = cast("DataFrame", None)


class Side:
    """The schemas of one side. ``grown`` are those that the source would follow."""

    uses_registry = True

    def __init__(self) -> None:
        self.grown: list[WrittenSchema] = []
        self.known: dict[int, WrittenSchema] = {}

    def writers(self) -> Any:
        return SimpleNamespace(known=self.known, unknown_ids=frozenset(), unreadable_fields={}, halting=frozenset())

    def followable(self) -> list[WrittenSchema]:
        return self.grown

    def schema(self, schema_id: int) -> WrittenSchema | None:
        return self.known.get(schema_id)

    def learn(self, schema_id: int) -> None:
        """Nothing is asked."""


class TopicInput(LiveInput):
    """A topic of one partition or more."""

    def __init__(self) -> None:
        self.side = Side()
        brokers = SimpleNamespace(brokers="memory")
        self.reader = cast(
            "Any",
            SimpleNamespace(
                id=SOURCE, topic_name="in", schemas={"value": self.side}, refresh=lambda: None, cluster=brokers
            ),
        )
        self.offsets = [0]

    def end(self) -> KafkaPosition:
        return KafkaPosition("in", "in's id", tuple(self.offsets))

    def begin(self) -> KafkaPosition:
        return KafkaPosition("in", "in's id", tuple(0 for _ in self.offsets))

    def partitions(self) -> int:
        return len(self.offsets)

    def check(self, position: Position) -> None:
        """It is always there."""

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> KafkaPosition:  # fmt: skip
        assert isinstance(start, KafkaPosition)
        return furthest(start, self.bound or self.end())

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        return Append(NO_FRAME)

    def rejected(self) -> Rejected:
        return NOTHING_REJECTED

    def release(self, position: Position) -> None:
        """Nothing is held."""

    def explain(self, error: BaseException, position: Position) -> BaseException:
        return error

    def learn(self, error: BaseException) -> bool:
        return False


class TopicTarget(LiveTarget):
    """``tails`` are those that batches were written with: None means that they wrote all."""

    def __init__(self, envelope: str = "UPSERT") -> None:
        side = RecordEncoding("BYTES", (), Record(()))
        sink = SinkDefinition("s", 2, "out", 3, side, side, cast("Any", envelope))
        super().__init__(sink, cast("Any", SimpleNamespace(spark=dict)))
        self.tails: list[Mapping[int, int] | None] = []
        self.end = 0

    def begin(self, epoch: int) -> None:
        return None

    def ends(self) -> dict[int, int]:
        return {0: self.end}

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        self.tails.append(self.tail)
        return Written()

    def explain(self, error: BaseException) -> BaseException:
        return error


class RowPlan(SinkPlan):
    def __init__(self) -> None:
        self.definition = "v1"

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        return changes[SOURCE]


class Queries:
    """Queries that run nowhere."""

    def __init__(self, slots: int = 4) -> None:
        self.slots = Slots(slots)
        self.unsettled: dict[int, Mapping[int, int]] = {}
        self.handed_over: set[int] = set()
        self.started: list[LiveQuery] = []
        self.running: list[LiveQuery] = []

    def next_start(self) -> float:
        return 0.0

    def settle_at(self) -> float:
        return 0.0

    def start(
        self, name: str, records: object, options: object, slots: int, on_boundary: Any, on_end: Any, has_new: Any,
        *, short: bool,
    ) -> LiveQuery:  # fmt: skip
        live = LiveQuery(
            cast("Any", None), str(len(self.started)), cast("Any", None), slots, on_boundary, on_end, has_new
        )
        self.started.append(live)
        self.running.append(live)
        return live

    def stop(self, live: LiveQuery) -> None:
        self.running.remove(live)
        self.slots.give_back(live.slots)


class World:
    """A task in real time, and all that it stands on."""

    def __init__(self, slots: int = 4, envelope: str = "UPSERT") -> None:
        self.input, self.target, self.queries = TopicInput(), TopicTarget(envelope), Queries(slots)
        self.store = MemoryStore(Shared())
        self.reported: list[BatchResult] = []
        self.failed: list[Exception] = []
        self.task = self.new_task()

    def new_task(self) -> RealTimeTask:
        inner = Task(7, "s", {SOURCE: self.input}, RowPlan(), self.target, self.store)
        made = RealTimeTask(
            inner, cast("Any", self.queries), "it may",
            wake=lambda _: None, report=lambda _, result: self.reported.append(result),
            fail=lambda _, error: self.failed.append(error),
        )  # fmt: skip
        made.begin()
        return made

    def work(self) -> BatchResult | None:
        available = {SOURCE: self.input.end()}
        self.task.has_work(available)
        return self.task.run_batch(NO_SESSION, None, available)

    def boundary(self, *offsets: int, announced: int = 0) -> None:
        """``announced`` is how many boundaries the query has reached by now, as Spark said."""
        live = self.queries.running[-1]
        live.announced = announced
        text = json.dumps({"in": {str(partition): offset for partition, offset in enumerate(offsets)}})
        live.on_boundary(live, text)

    def fall(self, words: str) -> None:
        """The query ends by itself."""
        self.queries.running[-1].ended, self.queries.running[-1].failure = True, words

    @property
    def offset(self) -> int:
        ledger = self.store.shared.ledger
        assert ledger is not None
        (position,) = ledger.positions.values()
        assert isinstance(position, KafkaPosition)
        return sum(position.offsets)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(live_input, "DELIVERY", 0.0)
    return World()


def test_a_task_catches_up_in_batches_and_then_starts_a_query(world: World) -> None:
    world.input.offsets = [5]
    assert world.work() is not None
    assert world.target.tails == [None]
    assert world.task.is_live
    assert world.task.notice == "real time: it may"
    assert world.offset == 5


def test_a_boundary_moves_the_ledger_and_never_back(world: World) -> None:
    world.work()
    world.boundary(8)
    assert world.offset == 8
    assert [result.rows for result in world.reported] == [0, 8]
    world.boundary(7)
    assert world.offset == 8


def test_a_boundary_of_an_ended_query_is_too_late(world: World) -> None:
    world.work()
    old = world.queries.running[-1]
    world.task.finish(NO_SESSION)
    old.on_boundary(old, '{"in": {"0": 9}}')
    assert world.offset == 0


def test_an_end_that_was_meant_settles_what_the_query_has_done(world: World) -> None:
    world.target.end = 40
    world.work()
    world.input.offsets, world.target.end = [6], 45
    world.task.finish(NO_SESSION)
    assert world.offset == 6
    assert world.target.tails == [{0: 40}]
    assert world.queries.slots.free == 4
    assert not world.queries.unsettled


def test_what_a_boundary_that_is_told_late_finds_in_the_topic_may_come_after_the_next_one(world: World) -> None:
    world.target.end = 40
    world.work()
    world.target.end = 90  # part of it was written after the second boundary
    world.boundary(4, announced=2)
    world.boundary(6, announced=2)
    world.input.offsets = [9]
    world.task.finish(NO_SESSION)
    assert world.target.tails == [{0: 40}]


def test_a_query_is_settled_as_a_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first half would be compared with what the query has written of the second one, and be written again."""
    world.work()
    monkeypatch.setattr(TopicInput, "choose_end", LiveInput.choose_end)
    world.input.offsets = [2 * Limit().rows]
    world.task.finish(NO_SESSION)
    assert world.offset == 2 * Limit().rows
    assert world.target.tails == [{0: 0}]


def test_a_task_whose_ledger_could_not_be_stored_at_a_boundary_settles_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work()
    world.input.offsets = [4]
    with monkeypatch.context() as patch:
        patch.setattr(world.store, "advance", lambda *_: _refuse())
        world.boundary(3)
    assert world.task.has_work({SOURCE: world.input.end()})
    world.work()
    assert world.offset == 4
    assert len(world.queries.started) == 2
    world.boundary(5)
    assert world.offset == 5


def _refuse() -> None:
    raise DiskFull("/")


def test_what_is_behind_a_tail_is_what_the_topic_still_has() -> None:
    """Retention has deleted records of partition 0, and partition 1 is shorter than it was."""
    first, end = {0: 50, 1: 0, 2: 0}, {0: 70, 1: 10, 2: 3}
    cluster = SimpleNamespace(
        topics=lambda names: {name: Topic(name, "id", 3) for name in names},
        offsets=lambda topic, latest: end if latest else first,
    )
    target = TopicTarget()
    target.cluster = cast("Any", cluster)
    assert target.behind({0: 40, 1: 90}) == ({0: 50, 1: 10, 2: 0}, end)


def test_what_follows_a_settled_query_goes_on_at_once(world: World) -> None:
    world.work()
    world.task.finish(NO_SESSION)
    world.input.offsets = [3]
    world.task = world.new_task()
    assert world.work() is None
    assert world.task.is_live
    assert world.target.tails == []


def test_a_query_that_was_not_settled_is_settled_by_the_first_batch_after_it(world: World) -> None:
    world.target.end = 40
    world.work()
    world.input.offsets = [3]
    world.task.finish(NO_SESSION, settle=False)
    assert world.offset == 0
    world.task = world.new_task()
    world.work()
    assert world.target.tails == [{0: 40}]
    assert world.offset == 3
    assert world.task.is_live


def test_a_sink_without_a_key_is_never_settled_but_written_again() -> None:
    """Of records with the same key, or without one, only the last would count."""
    world = World(envelope="NONE")
    world.target.end = 40
    world.work()
    world.input.offsets = [3]
    world.task.finish(NO_SESSION, settle=False)
    world.task = world.new_task()
    world.work()
    assert world.target.tails == [None]
    assert world.offset == 3


def test_a_tail_leaves_nothing_out_of_what_a_topic_is_brought_in_step_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is left out would be taken for one that the relation does not have, and be deleted."""
    target = TopicTarget()
    target.tail = {0: 0}
    monkeypatch.setattr(KafkaTarget, "records", lambda *_: NO_FRAME)
    monkeypatch.setattr(target, "unwritten", lambda *_: pytest.fail("records were left out"))
    assert target.records(Append(NO_FRAME), 1) is NO_FRAME


def test_behind_a_bad_record_nothing_is_settled_and_a_batch_deals_with_it(world: World) -> None:
    world.work()
    world.input.offsets = [9]
    world.fall("headgate-bad-record:1/0/4")
    world.work()
    assert world.store.shared.ranges.keys() == {(1, 1), (1, 2)}
    assert [end[SOURCE].offsets for _, end in world.store.shared.ranges.values()] == [(4,), (9,)]  # type: ignore[union-attr]
    assert [tail is None for tail in world.target.tails] == [False, True]
    assert world.task.is_live


def test_frequent_bad_records_keep_a_task_in_batches_for_a_while(world: World) -> None:
    world.work()
    for offset in range(realtime.FALLS):
        world.input.offsets = [offset + 1]
        world.fall(f"headgate-bad-record:1/0/{offset}")
        world.work()
    assert not world.task.is_live
    assert world.task.notice == "micro-batch: bad records ended its query 3 times within 5 minutes"
    world.input.offsets = [9]
    assert world.work() is not None
    assert world.offset == 9


@pytest.mark.parametrize("known", [True, False])
def test_ids_that_no_schema_has_are_bad_records_and_new_versions_are_not(world: World, known: bool) -> None:
    world.work()
    for offset in range(realtime.FALLS):
        if known:
            world.input.side.known[90 + offset] = WrittenSchema("{}", id=90 + offset)
        world.input.offsets = [offset + 1]
        world.fall(f"headgate-schema-changed:1/0/{offset}/value/{90 + offset}")
        world.work()
    assert world.offset == realtime.FALLS
    assert world.task.is_live is known


def test_a_new_schema_ends_the_query_before_its_first_record(world: World) -> None:
    world.work()
    schema = WrittenSchema("{}", id=12)
    world.input.side.grown = [schema]
    world.input.offsets = [9]
    world.fall("headgate-schema-changed:1/0/4/value/12")
    with pytest.raises(ReplanNeeded) as needed:
        world.work()
    (arrived,) = needed.value.arrived
    assert (arrived.schema, arrived.record.offset, arrived.side) == (schema, 4, "value")
    assert world.offset == 4


def test_a_query_starts_again_before_records_of_a_version_that_changes_nothing(world: World) -> None:
    world.work()
    (first,) = world.queries.started
    world.input.side.known, first.outdated = {12: WrittenSchema("{}", id=12)}, True
    assert world.task.has_work({SOURCE: world.input.end()})
    world.work()
    assert world.task.is_live
    assert len(world.queries.started) == 2
    assert world.queries.running == world.queries.started[1:]


def test_a_version_that_the_source_follows_with_its_first_record_leaves_the_query_alone(world: World) -> None:
    world.work()
    (first,) = world.queries.started
    schema = WrittenSchema("{}", id=12)
    world.input.side.known, world.input.side.grown, first.outdated = {12: schema}, [schema], True
    world.work()
    assert world.queries.running == [first]
    assert not first.outdated


def test_a_task_without_slots_runs_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_input, "DELIVERY", 0.0)
    world = World(slots=1)
    world.input.offsets = [2, 2]
    # Many tasks may look for slots again and again: brokers and registries must not notice.
    monkeypatch.setattr(world.input, "partitions", lambda: pytest.fail("the broker was asked"))
    world.work()
    assert not world.task.is_live
    assert world.task.notice == "micro-batch: it needs 2 slots of Spark, and 1 of 1 are free"
    assert world.offset == 4


def test_added_partitions_end_the_query_and_are_counted(world: World) -> None:
    world.work()
    world.input.offsets = [0, 3]
    world.work()
    assert world.offset == 3
    assert world.task.is_live
    assert world.queries.slots.free == 2
