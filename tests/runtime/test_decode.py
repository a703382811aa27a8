"""Raw records as Spark's Kafka reader gives them -> rows of a source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.plan.source import SourcePlan, plan_source
from headgate.runtime.decode import Decoder
from headgate.runtime.source import latest_per_key
from headgate.sql.script import parse_script
from headgate.sql.sources import CreateSource

pytestmark = pytest.mark.spark

RAW = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>"
)
Raw = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def plan(rest: str) -> SourcePlan:
    statement = parse_script(f"CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') FORMAT TEXT {rest};")[0]
    assert isinstance(statement, CreateSource)
    return plan_source(statement)


def decoded(session: SparkSession, source: SourcePlan, records: Sequence[Raw]) -> DataFrame:
    """Records are partition, offset, second, key, value and headers."""
    start = datetime(2026, 11, 15, tzinfo=UTC)
    rows = [("t", p, o, start + timedelta(seconds=s), k, v, h) for p, o, s, k, v, h in records]
    decoder = Decoder(source)
    return decoder.with_problems(decoder.decode(session.createDataFrame(rows, RAW)))


def test_a_header_that_is_no_text_is_a_bad_record_unless_bytes_are_asked_for(session: SparkSession) -> None:
    records: list[Raw] = [
        (0, 0, 0, None, b"a", [("h", b"\xff"), ("h", b"good")]),
        (0, 1, 0, None, b"b", [("h", b"good"), ("h", b"\xff")]),
        (0, 2, 0, None, b"c", [("h", None)]),
        (0, 3, 0, None, b"d", []),
    ]
    found = decoded(session, plan("INCLUDE HEADER 'h' AS h"), records).select("value", "hg_problem").collect()
    problems = {bytes(row["value"]): row["hg_problem"] for row in found}
    assert problems.pop(b"b").asDict() == {
        "side": "header", "reason": 'header "h" is not valid UTF-8', "schema_id": None,
    }  # fmt: skip
    assert problems == {b"a": None, b"c": None, b"d": None}
    as_bytes = decoded(session, plan("INCLUDE HEADER 'h' AS h BYTES"), records)
    assert as_bytes.where("hg_problem IS NOT NULL").count() == 0


def test_the_last_of_a_key_is_by_offset_within_a_partition_and_by_time_between_partitions(
    session: SparkSession,
) -> None:
    source = plan("ENVELOPE UPSERT")
    records: list[Raw] = [
        (0, 1, 50, b"same", b"first", []),
        (0, 2, 10, b"same", b"last", []),
        (0, 3, 90, b"moved", b"old", []),
        (0, 4, 10, b"moved", b"last of its partition", []),
        (1, 0, 20, b"moved", b"new", []),
    ]
    last = latest_per_key(decoded(session, source, records), source).select("hg_key", "hg_value").collect()
    assert {row["hg_key"]: row["hg_value"] for row in last} == {"same": "last", "moved": "new"}
