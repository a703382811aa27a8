"""The law of real time: random records, ends, failures and crashes of a task that runs in real time, against a model.

The ledger never passes what the target has or a query is about to write. Nothing is lost. An end that was meant repeats nothing.
A record that cannot be decoded is in the quarantine once the ledger is behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, cast

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.catalog.positions import KafkaPosition, distance
from headgate.connectors.errors import BrokerUnreachable
from headgate.errors import HeadgateError
from headgate.runtime import realtime
from headgate.runtime.ports import Limit, ReplanNeeded
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.task import Task
from tests.laws import TIMES
from tests.runtime.memory_live import BAD, OLD_ID, LawInput, LawPlan, LawQueries, LawTarget, LawTask, Topics
from tests.runtime.memory_ports import MemoryStore, Shared
from tests.runtime.test_realtime_task import NO_SESSION, SOURCE

pytestmark = pytest.mark.unit

MOST = 4  # records of an ordinary batch
FEW = st.sampled_from([2, 1, 0])
RECORDS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from([BAD, 0, 1, 1, 1, 1]), st.sampled_from([0, 0, 0, 0, 1])),
    min_size=1,
    max_size=5,
)


class RealTime(RuleBasedStateMachine):
    """One task, its topics, and engines that come and go."""

    keyed: ClassVar[bool]
    orderly: ClassVar[bool]  # whether nothing fails, so that nothing may be repeated

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(realtime, "count_rows", len)
        self.patch.setattr(realtime, "FALLS", 1000)
        self.patch.setattr(realtime, "BOUNDARY_TIMEOUT", 0.0)
        self.topics, self.shared = Topics(), Shared()
        self.values: Counter[str] = Counter()  # the last value of each key
        self.start_engine()
        self.work()

    def start_engine(self) -> None:
        self.queries, self.store = LawQueries(self.topics), MemoryStore(self.shared)
        self.failures: list[Exception] = []
        self.task = self.new_task()

    def new_task(self) -> RealTimeTask:
        self.input, self.target = LawInput(self.topics), LawTarget(self.topics, self.queries, keyed=self.keyed)
        self.queries.input = self.input
        inner = Task(
            7, "s", {SOURCE: self.input}, LawPlan(keyed=self.keyed), self.target, self.store, crash=lambda *_: None
        )  # fmt: skip
        made = LawTask(
            inner, cast("Any", self.queries), "it may",
            wake=lambda _: None, report=lambda *_: None, fail=lambda _, error: self.failures.append(error),
        )  # fmt: skip
        made.begin()
        return made

    def work(self, available: KafkaPosition | None = None) -> None:
        """What a worker does. A task that fails or must be planned anew is made anew, as the controller does it."""
        known = {SOURCE: available or self.topics.end()}
        self.task.has_work(known)
        try:
            self.task.run_batch(NO_SESSION, Limit(MOST), known)
        except ReplanNeeded as needed:
            self.topics.followed |= {one.schema.id or 0 for one in needed.arrived}
            self.replace_task()
        except HeadgateError:
            assert not self.orderly
            self.target.refuses, self.target.silent = None, False
            self.replace_task()

    def replace_task(self, *, settle: bool = True) -> None:
        with suppress(HeadgateError):
            self.task.finish(NO_SESSION, settle=settle)
        self.target.refuses, self.target.silent = None, False
        self.task = self.new_task()

    # What happens

    @rule(records=RECORDS)
    def records_arrive(self, records: list[tuple[str, int, int]]) -> None:
        """Some are bad, some have the value that the key has already, and some have the newest schema."""
        for key, grows, newest in records:
            self.values[key] += max(0, grows)
            value = BAD if grows == BAD else self.values[key]
            self.topics.put(key, value, max(self.topics.registered) if newest else OLD_ID)

    @rule()
    def a_schema_is_registered(self) -> None:
        self.topics.registered.add(max(self.topics.registered) + 1)

    @rule()
    def a_worker_works(self) -> None:
        self.work()

    @rule(records=RECORDS, unread=FEW, unsent=FEW)
    def records_arrive_and_the_query_works(self, records: list[tuple[str, int, int]], unread: int, unsent: int) -> None:
        """It has not read the last of them in some partition, and others are on their way to the target."""
        self.records_arrive(records)
        self.read(unread, unsent)

    @rule()
    def the_query_reads_all_and_a_worker_works(self) -> None:
        self.read_all()
        self.work()

    def read_all(self) -> None:
        self.read(0, 0)

    def read(self, unread: int, unsent: int) -> None:
        if (stream := self.queries.stream) is not None:
            for partition, records in enumerate(self.topics.source):
                for _ in range(len(records) - unread - stream.at_of(partition)):
                    stream.read(partition)
            stream.deliver(max(0, len(stream.sent) - unsent))

    @rule()
    def a_boundary_is_reached(self) -> None:
        self.queries.reach_boundary()
        self.queries.tell()

    @rule(key=st.sampled_from("abcd"))
    def a_worker_looks_before_the_query_meets_a_bad_record(self, key: str) -> None:
        self.read_all()
        self.topics.put(key, BAD, OLD_ID)
        self.work()

    @rule(keys=st.lists(st.sampled_from("abcd"), min_size=2, max_size=4))
    def boundaries_are_told_late(self, keys: list[str]) -> None:
        """The thread that tells of them was busy while the query reached them and went on."""
        for key in keys:
            self.queries.reach_boundary()
            self.records_arrive([(key, 1, 0)])
            self.read_all()
        while self.queries.waiting:
            self.queries.tell()

    @rule()
    def a_boundary_is_reached_and_told_later(self) -> None:
        self.queries.reach_boundary()

    @rule()
    def somebody_is_told(self) -> None:
        self.queries.tell()

    @rule(records=RECORDS, unread=FEW, unsent=FEW)
    def the_task_is_replaced_while_records_arrive(
        self, records: list[tuple[str, int, int]], unread: int, unsent: int
    ) -> None:
        self.records_arrive_and_the_query_works(records, unread, unsent)
        self.replace_task()

    @precondition(lambda self: not self.orderly)
    @rule()
    def the_task_is_replaced_before_it_could_settle(self) -> None:
        self.replace_task(settle=False)
        self.work()

    @rule()
    def a_statement_uses_the_task(self) -> None:
        try:
            self.task.settled(NO_SESSION)
        except ReplanNeeded as needed:
            self.topics.followed |= {one.schema.id or 0 for one in needed.arrived}
            self.replace_task()
        except HeadgateError:  # the statement fails, and the task goes on
            assert not self.orderly
            self.target.refuses = None

    @precondition(lambda self: not self.orderly)
    @rule()
    def the_query_fails(self) -> None:
        if (stream := self.queries.stream) is not None:
            stream.fall("the broker is away")

    @rule()
    def an_empty_partition_is_added(self) -> None:
        if len(self.topics.source) < 4:
            self.topics.source.append([])

    @precondition(lambda self: not self.orderly)
    @rule(refused=st.integers(0, 2))
    def the_next_write_fails(self, refused: int) -> None:
        self.target.refuses = refused

    @precondition(lambda self: not self.orderly)
    @rule()
    def the_broker_of_the_target_is_away_at_a_boundary(self) -> None:
        self.target.silent = True
        self.queries.reach_boundary()
        self.queries.tell()
        self.target.silent = False
        if self.failures:
            self.failures.clear()
            self.replace_task()

    @precondition(lambda self: not self.orderly)
    @rule()
    def the_ledger_cannot_be_stored_at_a_boundary(self) -> None:
        """The scheduler does not hear of it if a worker is busy with the task."""
        with self.patch.context() as patch:
            patch.setattr(self.store, "advance", _no_room)
            self.queries.reach_boundary()
            self.queries.tell()
        self.failures.clear()

    @precondition(lambda self: not self.orderly)
    @rule(delivered=st.integers(0, 3))
    def the_engine_crashes(self, delivered: int) -> None:
        for stream in [self.queries.stream, *self.queries.ending]:
            if stream is not None:
                stream.deliver(delivered)
        self.start_engine()

    # What must hold

    def reached(self) -> KafkaPosition:
        assert self.shared.ledger is not None
        position = self.shared.ledger.positions[SOURCE]
        assert isinstance(position, KafkaPosition)
        return position

    @invariant()
    def the_ledger_never_passes_what_is_written(self) -> None:
        pending = [] if self.queries.stream is None else self.queries.stream.sent
        pending = [*pending, *(row for one in self.queries.ending for row in one.sent)]
        written = [*self.topics.target, *pending]
        if self.keyed:
            self.each_key_shows_what_it_may({row.key: row.value for row in written})
        else:
            reached = self.topics.between(KafkaPosition("in", "in's id", ()), self.reached())
            assert {row.place for row in reached if row.value != BAD} <= {row.place for row in written}

    def each_key_shows_what_it_may(self, shown: Mapping[str, int]) -> None:
        """The newest record before the ledger, or a later one of the key."""
        reached = self.reached().by_partition
        for partition, records in enumerate(self.topics.source):
            good = [(offset, one) for offset, one in enumerate(records) if one.value != BAD]
            for key in {one.key for offset, one in good if offset < reached.get(partition, 0)}:
                newest = max(offset for offset, one in good if one.key == key and offset < reached[partition])
                may_show = {one.value for offset, one in good if one.key == key and offset >= newest}
                assert shown.get(key) in may_show, f"{key} shows {shown.get(key)}, and may show {may_show}"

    @invariant()
    def bad_records_before_the_ledger_are_kept(self) -> None:
        reached = self.reached().by_partition
        bad = {
            (p, offset)
            for p, records in enumerate(self.topics.source)
            for offset, one in enumerate(records)
            if one.value == BAD and offset < reached.get(p, 0)
        }
        assert bad <= set(self.shared.rejected)

    @invariant()
    def ends_that_are_meant_repeat_nothing(self) -> None:
        if self.orderly:
            count = Counter(row.place for row in self.topics.target)
            assert not {place: n for place, n in count.items() if n > 1}

    def teardown(self) -> None:
        """An engine works to the end."""
        try:
            self.start_engine()
            for _ in range(200):
                self.the_query_reads_all_and_a_worker_works()
                self.a_boundary_is_reached()
                if distance(self.reached(), self.topics.end()) == 0:
                    break
            assert distance(self.reached(), self.topics.end()) == 0
            self.the_ledger_never_passes_what_is_written()
            self.bad_records_before_the_ledger_are_kept()
        finally:
            self.patch.undo()


def _no_room(*_: object) -> None:
    raise BrokerUnreachable("memory", "No answer.")


class KeyedRealTime(RealTime):
    keyed = True
    orderly = False


class OrderlyRealTime(RealTime):
    keyed = True
    orderly = True


class AppendRealTime(RealTime):
    """A sink without a key, which repeats what came since the last boundary whenever its query ends."""

    keyed = False
    orderly = False


def _tried(machine: type[RealTime], count: int) -> type[Any]:
    case = machine.TestCase
    case.settings = settings(max_examples=count * TIMES, stateful_step_count=30, deadline=None)
    return case


TestKeyedRealTime = _tried(KeyedRealTime, 100)
TestOrderlyRealTime = _tried(OrderlyRealTime, 100)
TestAppendRealTime = _tried(AppendRealTime, 60)
