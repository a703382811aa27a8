"""The contract of `Target`, for every implementation: those in memory, Kafka topics with and without transactions, a PostgreSQL
table, an index, and the storage of materialized views."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, Positions
from headgate.catalog.tasks import ProgressSlot
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.connectors.options import ConnectionOptions
from headgate.embedded.world import World
from headgate.plan.definitions import PRESENT, RecordEncoding, SinkDefinition, SinkEnvelope, StoredColumn
from headgate.runtime.errors import Fenced
from headgate.runtime.ports import Append, Batch, Changes, Target, Upsert
from headgate.runtime.source import READER
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.targets.kafka_progress import ProgressTopic
from headgate.runtime.targets.kafka_transactions import KafkaTransactions
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.views.store import ViewStore
from headgate.runtime.views.target import ViewTarget
from headgate.schema.types import Bigint, Field, Record, Text
from tests.runtime.memory_ports import NO_SESSION, MemoryTable, MemoryTopic, Row, frame, rows_of
from tests.runtime.search_targets import SearchRows
from tests.runtime.tables import database, field, table
from tests.spark import small_frame

TASK = 9
_names = count()


class Harness(Protocol):
    """One kind of target: how it is made, given rows, and looked at."""

    keyed: bool

    def open(self) -> Target:
        """A target over the same topic or table each time."""

    def changes(self, rows: Sequence[Row], *, failing: bool = False) -> Changes:
        """Rows, or deletions of keys where the value is None. With `failing` computing the last one fails."""

    def held(self, target: Target) -> list[Row]:
        """The rows in the target, sorted."""


class Memory:
    def __init__(self, kind: type[MemoryTopic | MemoryTable], keyed: bool) -> None:
        self.keyed = keyed
        self._target = kind(keyed=keyed)

    def open(self) -> Target:
        return self._target

    def changes(self, rows: Sequence[Row], *, failing: bool = False) -> Changes:
        assert not failing
        return Upsert(frame(rows), ("key",)) if self.keyed else Append(frame(rows))

    def held(self, target: Target) -> list[Row]:
        return sorted(rows_of(target.contents(NO_SESSION)) if self.keyed else self._target.rows, key=str)


class OnSpark:
    """Rows are DataFrames."""

    def __init__(self, session: SparkSession, keyed: bool) -> None:
        self.session = session
        self.keyed = keyed
        self.name = f"contract_{next(_names)}"

    def changes(self, rows: Sequence[Row], *, failing: bool = False) -> Changes:
        present = self._frame([row for row in rows if row[1] is not None])
        if failing:
            bad = F.when(F.col("key") == rows[-1][0], F.raise_error(F.lit("bad"))).otherwise(F.col("value"))
            present = present.select("key", bad.cast("bigint").alias("value"))
        if not self.keyed:
            return Append(present)
        return Upsert(present, ("key",), self._frame(rows).select("key"))

    def marked(self, rows: Sequence[Row]) -> Changes:
        frame = self._frame(rows)
        return Upsert(frame.withColumn(PRESENT, F.col("value").isNotNull()), ("key",), marked=True)

    def _frame(self, rows: Sequence[Row]) -> DataFrame:
        return small_frame(self.session, rows, "key string, value bigint").repartition(2)


class Kafka(OnSpark):
    def __init__(self, session: SparkSession, keyed: bool, brokers: str) -> None:
        super().__init__(session, keyed)
        self._cluster = KafkaCluster(ConnectionOptions("kafka", (("BROKER", (brokers,)),)))
        self._cluster.create_topic(self.name, NewTopicOptions(2))

    @property
    def sink(self) -> SinkDefinition:
        columns = Record((Field("key", Text(), nullable=False), Field("value", Bigint(), nullable=True)))
        value = RecordEncoding("JSON", ("key", "value"), columns)
        key = RecordEncoding("TEXT", ("key",), Record(columns.fields[:1])) if self.keyed else None
        envelope: SinkEnvelope = "UPSERT" if self.keyed else "NONE"
        return SinkDefinition(self.name, 1, self.name, 1, value, key, envelope)

    def open(self) -> Target:
        return KafkaTarget(self.sink, self._cluster)

    def held(self, target: Target) -> list[Row]:
        if self.keyed:
            found = target.contents(self.session).rows.collect()
        else:
            reader = self.session.read.format("kafka").options(**self._cluster.spark(), **READER)
            found = reader.option("subscribe", self.name).load().select("value").collect()
        values = [json.loads(bytes(row["value"])) for row in found]
        return sorted((value["key"], value["value"]) for value in values)


class KafkaOnce(Kafka):
    """The same topics, written in transactions. Each has a slot of its own in one progress topic."""

    def open(self) -> Target:
        slot = ProgressSlot("contract", int(self.name.rpartition("_")[2]))
        progress = ProgressTopic(self._cluster, slot, f"uuid of {self.name}", self.name)
        return KafkaTransactions(self.sink, self._cluster, TASK, progress)


class Postgres(OnSpark):
    def __init__(self, session: SparkSession, keyed: bool, address: str) -> None:
        super().__init__(session, keyed)
        self._address = address
        self._task = int(self.name.rpartition("_")[2]) + 1000

    def open(self) -> Target:
        made = table(self.name, field("key", Text(), key=self.keyed), field("value", Bigint(), nullable=True))
        return PostgresTarget(made, database(self._address), self._task, f"{self._task:032x}")

    def held(self, target: Target) -> list[Row]:
        return sorted((row["key"], row["value"]) for row in target.contents(self.session).rows.collect())


class Search(OnSpark):
    def __init__(self, session: SparkSession, keyed: bool, url: str) -> None:
        super().__init__(session, keyed)
        self._rows = SearchRows(session, url, self.name, keyed=keyed)

    def open(self) -> Target:
        return self._rows.target()

    def _frame(self, rows: Sequence[Row]) -> DataFrame:
        return self._rows.frame(rows).repartition(2)

    def changes(self, rows: Sequence[Row], *, failing: bool = False) -> Changes:
        """The rows have positions, which make the ids of documents without a key."""
        made = super().changes(rows, failing=failing)
        if self.keyed or not failing:
            return made
        return Append(made.rows.join(self._frame(rows).drop("value"), "key"))

    def held(self, target: Target) -> list[Row]:
        return self._rows.held(target)


class Stored(OnSpark):
    """The storage of a view takes rows that came, and signed rows, but none by key."""

    def __init__(self, session: SparkSession, keyed: bool, folder: Path) -> None:
        assert not keyed
        super().__init__(session, keyed)
        self._folder = str(folder)

    def open(self) -> Target:
        columns = (StoredColumn("key", "STRING"), StoredColumn("value", "BIGINT"))
        return ViewTarget(ViewStore(self._folder, columns, TASK), self.name, self.name, lambda: self.session)

    def held(self, target: Target) -> list[Row]:
        return sorted((row["key"], row["value"]) for row in target.contents(self.session).rows.collect())


Kind = type[MemoryTopic | MemoryTable] | type[Kafka | KafkaOnce | Postgres | Search | Stored]


def _harnesses(*kinds: Kind, keyed: Sequence[bool] = (True, False)) -> pytest.MarkDecorator:
    """The test runs for these kinds of targets."""
    parameters = []
    for kind in kinds:
        marks = [pytest.mark.unit]
        if issubclass(kind, OnSpark):
            marks = [pytest.mark.spark if kind is Stored else pytest.mark.e2e, pytest.mark.timeout(600)]
        for one in keyed if kind is not Stored else [False]:
            name = f"{kind.__name__}-{'keyed' if one else 'append'}"
            parameters.append(pytest.param((kind, one), id=name, marks=marks))
    return pytest.mark.parametrize("harness", parameters, indirect=True)


every_target = _harnesses(MemoryTopic, MemoryTable, Kafka, KafkaOnce, Postgres, Search, Stored)
own_ledger = _harnesses(MemoryTable, KafkaOnce, Postgres, Stored)
fencing = _harnesses(MemoryTable, KafkaOnce, Postgres, Search)
keyed_target = _harnesses(MemoryTopic, MemoryTable, Kafka, KafkaOnce, Postgres, Search, keyed=[True])


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Harness:
    kind, keyed = request.param
    if issubclass(kind, MemoryTopic | MemoryTable):
        return Memory(kind, keyed)
    session: SparkSession = request.getfixturevalue("session")
    if kind is Stored:
        return Stored(session, keyed, request.getfixturevalue("tmp_path"))
    world: World = request.getfixturevalue("world")
    if issubclass(kind, Kafka):
        topic: Kafka = kind(session, keyed, world.ensure("kafka")["kafka"])
        return topic
    if issubclass(kind, Search):
        return Search(session, keyed, world.ensure("elasticsearch")["opensearch"])
    return Postgres(session, keyed, world.ensure("postgres")["postgres"])


@pytest.fixture
def target(harness: Harness) -> Iterator[Target]:
    opened = harness.open()
    yield opened
    opened.close()


def at(offset: int) -> Positions:
    return {7: KafkaPosition("orders", "id", (offset,))}


def batch(number: int, start: int, end: int, epoch: int = 1) -> Batch:
    return Batch(TASK, 1, number, epoch, at(start), at(end), "d", datetime(2026, 1, 1, tzinfo=UTC))


def write(target: Target, harness: Harness, rows: Sequence[Row], batch_: Batch, stored: list[str]) -> None:
    target.write(harness.changes(rows), batch_, lambda: stored.append("rejected"))


@every_target
def test_a_new_target_holds_no_ledger_and_nothing_else(harness: Harness, target: Target) -> None:
    assert target.begin(1) is None
    assert harness.held(target) == []


@every_target
def test_what_is_written_is_there(harness: Harness, target: Target) -> None:
    target.begin(1)
    stored: list[str] = []
    write(target, harness, [("a", 1), ("b", 2)], batch(1, 0, 2), stored)
    write(target, harness, [("a", 3), ("c", 4)], batch(2, 2, 4), stored)
    keyed, every = [("a", 3), ("b", 2), ("c", 4)], [("a", 1), ("a", 3), ("b", 2), ("c", 4)]
    assert harness.held(target) == (keyed if harness.keyed else every)
    assert stored == (["rejected"] * 2 if target.commit == "own" else [])


@keyed_target
def test_a_changed_key_without_a_row_is_deleted(harness: Harness, target: Target) -> None:
    target.begin(1)
    write(target, harness, [("a", 1), ("b", 2)], batch(1, 0, 2), [])
    write(target, harness, [("a", None), ("c", None), ("d", 5)], batch(2, 2, 5), [])
    assert harness.held(target) == [("b", 2), ("d", 5)]


@_harnesses(Kafka, KafkaOnce, Postgres, Search, keyed=[True])
def test_a_key_that_is_marked_as_absent_is_deleted(harness: Harness, target: Target) -> None:
    target.begin(1)
    write(target, harness, [("a", 1), ("b", 2)], batch(1, 0, 2), [])
    assert isinstance(harness, OnSpark)
    target.write(harness.marked([("a", None), ("c", None), ("b", 3), ("d", 5)]), batch(2, 2, 5), lambda: None)
    assert harness.held(target) == [("b", 3), ("d", 5)]


@own_ledger
def test_a_target_with_its_own_ledger_gives_it_to_the_next_writer(harness: Harness, target: Target) -> None:
    target.begin(1)
    write(target, harness, [("a", 1)], batch(1, 0, 2), [])
    found = target.begin(2)
    assert found is not None
    assert (found.generation, found.number, found.positions, found.definition) == (1, 1, at(2), "d")


@own_ledger
def test_a_batch_that_is_there_already_is_not_written_again(harness: Harness, target: Target) -> None:
    target.begin(1)
    for _ in range(2):
        write(target, harness, [("a", 1)], batch(1, 0, 2), [])
    assert harness.held(target) == [("a", 1)]


@own_ledger
@pytest.mark.parametrize(
    "other",
    [batch(2, 1, 4), batch(3, 3, 4), batch(1, 0, 3), batch(2, 2, 4, epoch=0)],
    ids=["starts-before", "starts-after", "other-end", "old-epoch"],
)
def test_a_batch_that_does_not_follow_is_refused(harness: Harness, target: Target, other: Batch) -> None:
    target.begin(1)
    write(target, harness, [("a", 1)], batch(1, 0, 2), [])
    with pytest.raises(Fenced):
        write(target, harness, [("b", 2)], other, [])
    assert harness.held(target) == [("a", 1)]


@fencing
def test_an_older_writer_is_fenced_off(harness: Harness, target: Target) -> None:
    target.begin(5)
    newer = harness.open()
    newer.begin(6)
    with pytest.raises(Fenced) as raised:
        write(target, harness, [("a", 1)], batch(1, 0, 2, epoch=5), [])
    assert (raised.value.held, raised.value.epoch) == (6, 5)
    with pytest.raises(Fenced):
        target.begin(5)
    write(newer, harness, [("b", 2)], batch(1, 0, 2, epoch=6), [])
    assert harness.held(newer) == [("b", 2)]
    if newer is not target:
        newer.close()


@_harnesses(Kafka, KafkaOnce, keyed=[False])
def test_nothing_is_visible_in_an_append_topic_before_all_is_computed(harness: Harness, target: Target) -> None:
    _fails_without_a_trace(harness, target)


@_harnesses(Postgres, Search, Stored)
def test_nothing_is_visible_in_a_table_before_all_is_computed(harness: Harness, target: Target) -> None:
    _fails_without_a_trace(harness, target)


def _fails_without_a_trace(harness: Harness, target: Target) -> None:
    target.begin(1)
    rows: list[Row] = [(f"k{n}", n) for n in range(50)]
    failing = harness.changes(rows, failing=True)
    with pytest.raises(Exception, match="bad"):
        target.write(failing, batch(1, 0, 50), lambda: None)
    assert harness.held(target) == []
