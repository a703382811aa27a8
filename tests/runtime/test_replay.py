"""REPLAY QUARANTINE over records that are at hand: what is written, what leaves, what stays, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import KafkaPosition, KafkaRecord
from headgate.catalog.tasks import Ledger, Quarantined
from headgate.connectors.connections import Clients
from headgate.connectors.errors import BrokerUnreachable
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.plan.definitions import (
    RecordEncoding,
    SinkDefinition,
    SourceDefinition,
    TaskDefinition,
)
from headgate.plan.source import SourcePlan
from headgate.runtime.inputs.kafka import EPOCH, KafkaInput
from headgate.runtime.ports import LedgerStore
from headgate.runtime.replay import GONE, Replayed, replay
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.source import SourceReader
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.task import Task
from headgate.schema.types import Record
from tests.runtime.test_decode import Raw, decoded, plan

pytestmark = pytest.mark.spark

EARLIEST = 2  # offsets below are deleted


class Reader(SourceReader):
    """Reads records that are at hand."""

    def __init__(
        self, session: SparkSession, source: SourceDefinition, clients: Clients, records: Sequence[Raw]
    ) -> None:
        super().__init__(source, clients)
        self._session = session
        self._records = records

    def between(
        self, _: SparkSession, start: Mapping[int, int], end: Mapping[int, int], group: str | None = None
    ) -> DataFrame:
        within = [r for r in self._records if start[r[0]] <= r[1] < end[r[0]]]
        return decoded(self._session, cast("SourcePlan", self.layout), within).drop(
            "hg_decoded", "hg_problem", "hg_key", "hg_value"
        )


class Quarantine:
    """The store's part that holds the quarantined records, by offset."""

    def __init__(self, held: Iterable[int]) -> None:
        self.records = {
            n: Quarantined(1, 2, KafkaRecord("t", 0, n), EPOCH, None, "$.value", "text", "old") for n in held
        }

    def quarantined(self, task: int | None = None) -> tuple[Quarantined, ...]:
        return tuple(self.records.values())

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        for one in leaving:
            del self.records[cast("int", one.offset)]
        for one in staying:
            self.records[cast("int", one.offset)] = one

    def reasons(self) -> dict[int, str]:
        return {n: q.reason for n, q in self.records.items()}


class Target(KafkaTarget):
    """Collects what it is given to send."""

    away = False

    def send(self, records: DataFrame) -> None:
        if self.away:
            raise BrokerUnreachable("b:1", "The broker is away.")
        self.sent = [bytes(row["value"]).decode() for row in records.collect()]


def made_task(session: SparkSession, layout: SourcePlan, records: Sequence[Raw], reached: int) -> Task:
    """A task that writes the column `text` of a source over topic `t`, and has read up to an offset."""
    topic = Topic("t", "id", 1)
    cluster = SimpleNamespace(
        brokers="b:1",
        topic=lambda _: topic,
        offsets=lambda _, latest: {0: EARLIEST},
        offsets_at_time=lambda *_: {0: EARLIEST},
    )
    clients = cast("Clients", SimpleNamespace(kafka=lambda *_: cluster))
    source = SourceDefinition(1, "s", "t", 3, layout)
    value = RecordEncoding("TEXT", ("text",), Record(()))
    sink = SinkDefinition("s", 1, "out", 3, None, value, None, "NONE")
    input_ = KafkaInput(source, clients, 2, 'sink "s"', "b:1", "headgate-2")
    input_.reader = Reader(session, source, clients, records)
    plan_ = SinkPlan(TaskDefinition(2, "s", source, {1: source}, sink))
    task = Task(2, "s", {1: input_}, plan_, Target(sink, cast("KafkaCluster", cluster)), cast("LedgerStore", None))
    task.ledger = Ledger(2, 1, 1, 1, {1: KafkaPosition("t", "id", (reached,))})
    return task


def test_what_fits_is_written_and_leaves_and_the_rest_stays(session: SparkSession) -> None:
    records: list[Raw] = [
        (0, 2, 0, None, b"good", []),
        (0, 3, 0, None, b"\xff", []),
        (0, 4, 0, None, b"was never bad", []),
    ]
    task = made_task(session, plan("WITH (ON ERROR = QUARANTINE)"), records, 5)
    assert isinstance(task.target, Target)
    quarantine = Quarantine((1, 2, 3))
    task.target.away = True
    with pytest.raises(BrokerUnreachable):
        replay(task, session, quarantine)
    assert quarantine.reasons() == {1: "old", 2: "old", 3: "old"}

    task.target.away = False
    assert replay(task, session, quarantine) == Replayed(1, 0, 2)
    assert task.target.sent == ["good"]
    assert quarantine.reasons() == {1: GONE, 3: "It is not valid UTF-8"}


def test_an_old_value_of_a_key_is_not_brought_back(session: SparkSession) -> None:
    records: list[Raw] = [
        (0, 2, 0, b"a", b"old", []),
        (0, 3, 0, b"b", b"last", []),
        (0, 5, 0, b"a", b"new", []),
        (0, 6, 0, b"b", b"not read yet", []),
    ]
    layout = plan("ENVELOPE UPSERT WITH (ON ERROR = QUARANTINE)")
    task = made_task(session, layout, records, 6)
    assert isinstance(task.target, Target)
    quarantine = Quarantine((2, 3, 4))  # offset 4 was taken away by compaction
    assert replay(task, session, quarantine) == Replayed(1, 2, 0)
    assert task.target.sent == ["last"]
    assert quarantine.records == {}
