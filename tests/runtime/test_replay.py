"""REPLAY QUARANTINE over records that are at hand: what is written, what leaves, what stays, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from headgate.catalog.tasks import Quarantined
from headgate.connectors.kafka import Topic
from headgate.plan.source import SourcePlan
from headgate.runtime import replay as replaying
from headgate.runtime.decode import Decoder
from headgate.runtime.replay import GONE, Replayed, replay
from headgate.runtime.sink_task import EPOCH, SinkTask
from headgate.runtime.source import Arrived, latest_per_key
from tests.runtime.test_decode import Raw, decoded, plan

pytestmark = pytest.mark.spark

EARLIEST = 2  # offsets below are deleted


class Source:
    def __init__(self, session: SparkSession, source: SourcePlan, records: Sequence[Raw]) -> None:
        self.layout = source
        self._session = session
        self._records = records
        topic = Topic("t", "id", 1)
        self.cluster = SimpleNamespace(
            topic=lambda _: topic,
            offsets=lambda _, latest: {0: EARLIEST},
            offsets_at_time=lambda *_: {0: EARLIEST},
        )

    def ask_again(self) -> None:
        return

    def refresh(self) -> None:
        return

    def arrived(self, _: object) -> list[Arrived]:
        return []

    def between(self, _: SparkSession, start: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
        within = [r for r in self._records if start[r[0]] <= r[1] < end[r[0]]]
        return decoded(self._session, self.layout, within).drop(
            "hg_decoded", "hg_problem", "hg_key", "hg_value"
        )

    def decode(self, raw: DataFrame) -> DataFrame:
        return Decoder(self.layout).decode(raw)

    def changes(self, all_: DataFrame) -> DataFrame:
        good = all_.where("hg_problem IS NULL")
        return latest_per_key(good, self.layout) if self.layout.envelope == "UPSERT" else good


class Task:
    def __init__(self, source: Source, held: Iterable[int], reached: int) -> None:
        self.source = source
        self.id, self.name = 2, "s"
        self.topic = Topic("t", "id", 1)
        self.target = None
        self.reached = {0: reached}
        self.quarantine = {
            n: Quarantined(1, 2, "t", 0, n, EPOCH, None, "$.value", "text", "old") for n in held
        }

    def held(self) -> tuple[Quarantined, ...]:
        return tuple(self.quarantine.values())

    def outgoing(self, _: SparkSession, changed: DataFrame) -> DataFrame:
        return changed.select("hg_value")

    def quarantined(self, row: Row) -> Quarantined:
        return replace(self.quarantine[row["offset"]], reason=row["reason"])

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined]) -> None:
        for one in leaving:
            del self.quarantine[cast("int", one.offset)]
        for one in staying:
            self.quarantine[cast("int", one.offset)] = one


def test_what_fits_is_written_and_leaves_and_the_rest_stays(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[Raw] = [
        (0, 2, 0, None, b"good", []),
        (0, 3, 0, None, b"\xff", []),
        (0, 4, 0, None, b"was never bad", []),
    ]
    task = Task(Source(session, plan("WITH (ON ERROR = QUARANTINE)"), records), (1, 2, 3), 5)
    sent: list[str] = []

    def broken(records: DataFrame, _: object) -> None:
        raise OSError("the broker is away")

    monkeypatch.setattr(replaying, "send", broken)
    with pytest.raises(OSError, match="away"):
        replay(cast("SinkTask", task), session)
    assert {n: q.reason for n, q in task.quarantine.items()} == {1: "old", 2: "old", 3: "old"}

    monkeypatch.setattr(replaying, "send", lambda r, _: sent.extend(row[0] for row in r.collect()))
    assert replay(cast("SinkTask", task), session) == Replayed(1, 0, 2)
    assert sent == ["good"]
    assert {n: q.reason for n, q in task.quarantine.items()} == {1: GONE, 3: "it is not valid UTF-8"}


def test_an_old_value_of_a_key_is_not_brought_back(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[Raw] = [
        (0, 2, 0, b"a", b"old", []),
        (0, 3, 0, b"b", b"last", []),
        (0, 5, 0, b"a", b"new", []),
        (0, 6, 0, b"b", b"not read yet", []),
    ]
    source = Source(session, plan("ENVELOPE UPSERT WITH (ON ERROR = QUARANTINE)"), records)
    task = Task(source, (2, 3, 4), 6)  # offset 4 was taken away by compaction
    sent: list[str] = []
    monkeypatch.setattr(replaying, "send", lambda r, _: sent.extend(row[0] for row in r.collect()))
    assert replay(cast("SinkTask", task), session) == Replayed(1, 2, 0)
    assert sent == ["last"]
    assert task.quarantine == {}
