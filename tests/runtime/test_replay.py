"""REPLAY QUARANTINE over records that are at hand: what is written, what leaves, what stays, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import KafkaPosition, KafkaRecord
from headgate.catalog.tasks import Ledger, Quarantined, QuarantineFolder
from headgate.connectors.connections import Clients
from headgate.connectors.errors import BrokerUnreachable
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.plan.definitions import (
    QueryDefinition,
    RecordEncoding,
    RelationDefinition,
    SinkDefinition,
    SourceDefinition,
    TaskDefinition,
    ViewDefinition,
    spark_name,
)
from headgate.plan.source import SourcePlan
from headgate.runtime.inputs.kafka import KafkaInput
from headgate.runtime.ports import LedgerStore
from headgate.runtime.quarantine import EPOCH, QuarantineFiles, explained
from headgate.runtime.replay import GONE, NOT_TRIED, Replayed, replay
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.source import SourceReader
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.task import Task
from headgate.schema.types import Field, Record, Text
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
        self.folders: list[QuarantineFolder] = []
        self.opened: list[QuarantineFolder] = []

    def quarantine_folders(self, task: int | None = None) -> tuple[QuarantineFolder, ...]:
        return tuple(self.folders)

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        self.opened += folders

    def replace_folders(self, old: Sequence[QuarantineFolder], new: QuarantineFolder | None) -> None:
        assert new is None or new in self.opened
        self.folders = [one for one in self.folders if one not in old] + ([] if new is None else [new])

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
        self.all_sent = [*getattr(self, "all_sent", []), *self.sent]


def made_task(
    session: SparkSession, layout: SourcePlan, records: Sequence[Raw], reached: int, query: str | None = None
) -> Task:
    """A task that writes the column `text` of a source over topic `t`, or of a view that computes it, and has read up to an
    offset."""
    topic = Topic("t", "id", 1)
    cluster = SimpleNamespace(
        brokers="b:1",
        topic=lambda _: topic,
        offsets=lambda _, latest: {0: EARLIEST},
        offsets_at_time=lambda *_: {0: EARLIEST},
    )
    clients = cast("Clients", SimpleNamespace(kafka=lambda *_: cluster))
    source = SourceDefinition(1, "s", "t", 3, layout)
    value = RecordEncoding("TEXT", ("text",), Record((Field("text", Text(), nullable=False),)))
    view = QueryDefinition(f"SELECT {query} AS text FROM {spark_name(1)}", (("text", None),), (1,))
    relations: dict[int, RelationDefinition] = {1: source, 4: ViewDefinition(4, "v", view, ("text",))}
    sink = SinkDefinition("s", 1 if query is None else 4, "out", 3, value, None, "NONE")
    input_ = KafkaInput(source, clients, 2, 'sink "s"', "b:1", "headgate-2")
    input_.reader = Reader(session, source, clients, records)
    plan_ = SinkPlan(TaskDefinition(2, "s", source, relations, sink))
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


def _fold(session: SparkSession, task: Task, files: QuarantineFiles, count: int) -> QuarantineFolder:
    """A folder with all records of the task's topic that cannot be decoded as UTF-8 text."""
    (input_,) = task.inputs.values()
    assert isinstance(input_, KafkaInput)
    reader, folder = input_.reader, QuarantineFolder("first", 1, 2, 1, count)
    bad = reader.with_problems(reader.decode(reader.between(session, {0: 0}, {0: 99}))).where("hg_problem IS NOT NULL")
    files.write(explained(bad, reader), folder)
    return folder


def test_the_records_of_a_folder_are_replayed_too_and_those_that_stay_get_another_one(
    session: SparkSession, tmp_path: Path
) -> None:
    bad: list[Raw] = [(0, offset, 0, None, b"\xff", []) for offset in (1, 2, 3, 5)]
    layout = plan("WITH (ON ERROR = QUARANTINE)")
    files, quarantine = QuarantineFiles(str(tmp_path / "quar'antine")), Quarantine(())
    quarantine.folders = [_fold(session, made_task(session, layout, bad, 9), files, 4)]
    now: list[Raw] = [
        (0, 2, 0, None, b"good", []),
        (0, 3, 0, None, b"\xfe", []),
        (0, 4, 0, None, b"was never bad", []),
        (0, 5, 0, None, b"too", []),
    ]
    task = made_task(session, layout, now, 9)
    assert isinstance(task.target, Target)
    assert replay(task, session, quarantine, files) == Replayed(2, 0, 2)
    assert sorted(task.target.sent) == ["good", "too"]
    (folder,) = quarantine.folders
    assert (folder.records, folder.batch, folder.name != "first") == (2, 1, True)
    rows = {row["offset"]: row for row in files.read(session, [folder]).collect()}
    assert {offset: (row["reason"], row["object"], row["task"]) for offset, row in rows.items()} == {
        1: (GONE, 1, 2),
        3: ("It is not valid UTF-8", 1, 2),
    }
    assert bytes(rows[1]["raw"]) == b"\xff"
    files.remove(session, folder)
    assert not Path(files.path(folder)).exists()


def test_a_folder_whose_records_have_all_left_is_gone(session: SparkSession, tmp_path: Path) -> None:
    layout = plan("ENVELOPE UPSERT WITH (ON ERROR = QUARANTINE)")
    files, quarantine = QuarantineFiles(str(tmp_path)), Quarantine(())
    bad: list[Raw] = [(0, 2, 0, b"a", b"\xff", []), (0, 3, 0, b"b", b"\xff", [])]
    quarantine.folders = [_fold(session, made_task(session, layout, bad, 9), files, 2)]
    now: list[Raw] = [(0, 2, 0, b"a", b"old", []), (0, 3, 0, b"b", b"last", []), (0, 4, 0, b"a", b"new", [])]
    task = made_task(session, layout, now, 5)
    assert isinstance(task.target, Target)
    assert replay(task, session, quarantine, files) == Replayed(1, 1, 0)
    assert (task.target.sent, quarantine.folders) == (["last"], [])


@pytest.mark.parametrize("on_error", ["QUARANTINE", "HALT"])
def test_a_record_that_fails_again_does_not_keep_the_others(session: SparkSession, on_error: str) -> None:
    """One cannot be decoded, one cannot be computed: both stay with their reasons."""
    values = {2: b"2", 3: b"\xff", 4: b"0", 5: b"4", 7: b"5"}
    records: list[Raw] = [(0, offset, 0, None, value, []) for offset, value in values.items()]
    task = made_task(session, plan(f"WITH (ON ERROR = {on_error})"), records, 9, query="string(100 / bigint(text))")
    assert isinstance(task.target, Target)
    quarantine = Quarantine(values)
    assert replay(task, session, quarantine) == Replayed(3, 0, 2)
    assert sorted(task.target.all_sent) == ["20.0", "25.0", "50.0"]
    reasons = quarantine.reasons()
    assert reasons.keys() == {3, 4}
    assert reasons[3] == "It is not valid UTF-8"
    assert "divide by zero" in reasons[4]


def test_records_that_all_fail_stay_after_a_bounded_number_of_attempts(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.runtime.replay.MOST_SENDS", 4)
    records: list[Raw] = [(0, offset, 0, None, b"0", []) for offset in range(2, 10)]
    task = made_task(session, plan("WITH (ON ERROR = QUARANTINE)"), records, 10, query="string(1 / bigint(text))")
    quarantine = Quarantine(range(2, 10))
    assert replay(task, session, quarantine) == Replayed(0, 0, 8)
    reasons = list(quarantine.reasons().values())
    assert reasons.count(NOT_TRIED) == 7
