"""What a topic lacks after a streaming query has ended: the last record of each key, if it is not there already."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.positions import KafkaPosition
from headgate.registry.errors import RegistryUnreachable
from headgate.runtime import live_queries
from headgate.runtime.failures import StoppedAt, stopped_at
from headgate.runtime.live_input import kafka_offsets, lacking
from headgate.runtime.live_queries import LiveQueries, LiveQuery, Slots
from tests.embedded.world_fixtures import eventually
from tests.runtime.memory_tasks import LONG

Records = list[tuple[bytes, bytes | None]]


def _lacking(session: SparkSession, wanted: Records, held: Records) -> set[tuple[str, bytes, bytes | None]]:
    rows = session.createDataFrame(
        [("out", k, v) for k, v in wanted], "topic string, key binary, value binary"
    ).coalesce(1)
    there = [(k, v, offset) for offset, (k, v) in enumerate(held)]
    found = session.createDataFrame(there, "key binary, value binary, offset bigint")
    return {
        (row["topic"], bytes(row["key"]), None if row["value"] is None else bytes(row["value"]))
        for row in lacking(rows, found).collect()
    }


@pytest.mark.spark
def test_only_what_is_not_there_is_written(session: SparkSession) -> None:
    wanted: Records = [(b"a", b"1"), (b"b", b"2"), (b"c", None), (b"d", None)]
    held: Records = [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"c", None)]
    assert _lacking(session, wanted, held) == {("out", b"b", b"2"), ("out", b"d", None)}


@pytest.mark.spark
def test_the_last_record_of_a_key_counts_on_both_sides(session: SparkSession) -> None:
    """`a` came back to what it was before, and that was not written."""
    wanted: Records = [(b"a", b"2"), (b"a", b"1"), (b"b", b"1"), (b"b", b"2")]
    held: Records = [(b"a", b"1"), (b"a", b"2"), (b"b", b"2")]
    assert _lacking(session, wanted, held) == {("out", b"a", b"1")}


@pytest.mark.spark
def test_headers_count_as_the_value_does(session: SparkSession) -> None:
    schema = "key binary, value binary, headers array<struct<key: string, value: binary>>"
    old, new = [("h", b"1")], [("h", b"2")]
    wanted = session.createDataFrame([(b"a", b"1", old), (b"b", b"1", new), (b"c", b"1", []), (b"d", b"1", [])], schema)
    held = [(b"a", b"1", old, 0), (b"b", b"1", old, 1), (b"c", b"1", None, 2), (b"d", b"1", old, 3)]
    found = session.createDataFrame(held, f"{schema}, offset bigint")
    assert {bytes(row["key"]) for row in lacking(wanted, found).collect()} == {b"b", b"d"}


@pytest.mark.spark
def test_nothing_is_lacking_of_nothing(session: SparkSession) -> None:
    assert _lacking(session, [], [(b"a", b"1")]) == set()


@pytest.mark.unit
def test_slots_are_counted() -> None:
    slots = Slots(3)
    assert slots.take(2)
    assert not slots.take(2)
    assert slots.free == 1
    slots.give_back(2)
    assert slots.take(3)


@pytest.mark.unit
def test_a_query_is_told_of_a_new_version_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_queries, "WATCH_EVERY", 0.001)
    monkeypatch.setattr(live_queries, "WATCH_PAUSE", 0.0)
    queries = LiveQueries(cast("Any", None), tmp_path / "queries", 1)
    told: list[LiveQuery] = []
    closed = RuntimeError("the client has been closed")  # of a connection that was changed
    answers = iter([RegistryUnreachable("http://registry", "No answer."), closed, False, True])

    def has_new_version() -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    live = LiveQuery(cast("Any", None), "1", tmp_path, 1, lambda *_: None, told.append, has_new_version)
    queries._running["1"] = live
    queries.open()
    assert eventually(lambda: told == [live], LONG)
    assert live.outdated
    queries.close()


@pytest.mark.unit
def test_a_query_that_does_not_end_holds_its_slots_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_queries, "WATCH_EVERY", 0.001)
    tries: list[int] = []

    def stop() -> None:
        tries.append(queries.slots.free)
        if len(tries) < 3:
            raise TimeoutError("it has not ended")

    queries = LiveQueries(cast("Any", None), tmp_path / "queries", 1)
    live = LiveQuery(cast("Any", SimpleNamespace(stop=stop)), "1", tmp_path / "c", 1, lambda *_: None, lambda _: None)
    assert queries.slots.take(1)
    queries._running["1"] = live
    with pytest.raises(TimeoutError):
        queries.stop(live)
    queries.open()
    assert eventually(lambda: queries.slots.free == 1, LONG)
    assert tries == [0, 0, 0]
    queries.close()


class RefusedStream:
    """A stream that Spark refuses when it has made its checkpoint."""

    def __getattr__(self, name: str) -> RefusedStream:
        return self

    def __call__(self, *_: object, **__: object) -> RefusedStream:
        return self

    def option(self, name: str, folder: str) -> RefusedStream:
        Path(folder).mkdir()
        return self

    def start(self) -> None:
        raise ValueError("Spark refuses it")


@pytest.mark.unit
def test_a_query_that_cannot_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, stream = LiveQueries(cast("Any", None), tmp_path, 1), cast("Any", RefusedStream())
    monkeypatch.setattr(queries, "_own_session", lambda: stream)
    with pytest.raises(ValueError, match="refuses"):
        queries.start("task 1", lambda _: stream, {}, 1, lambda *_: None, lambda _: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.unit
def test_the_record_that_stopped_a_query_is_read_from_its_words() -> None:
    assert stopped_at("java.lang.RuntimeException: headgate-bad-record:7/2/41 SQLSTATE") == StoppedAt(2, 41)
    assert stopped_at("headgate-schema-changed:7/0/3/value/12") == StoppedAt(0, 3, "value", 12)
    assert stopped_at("the broker is away") is None


@pytest.mark.unit
def test_offsets_are_read_as_spark_writes_them() -> None:
    offsets = kafka_offsets('{"in":{"1":7,"0":5}}', "in")
    assert KafkaPosition("in", "id", tuple(offsets[p] for p in sorted(offsets))).offsets == (5, 7)
