"""The difference between what a keyed topic holds and what a replaced query gives."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.step import difference, part_of

pytestmark = pytest.mark.spark


def test_only_what_differs_is_written_and_only_known_keys_are_deleted(session: SparkSession) -> None:
    record = "topic string, key binary, value binary"
    wanted = session.createDataFrame(
        [
            ("t", b"same", b"1"),
            ("t", b"other", b"2"),
            ("t", b"new", b"3"),
            ("t", b"gone", None),
            ("t", b"never", None),
        ],
        record,
    )
    held = session.createDataFrame(
        [(b"same", b"1"), (b"other", b"0"), (b"gone", b"4"), (b"not in the input any more", b"5")],
        "key binary, value binary",
    )
    found = {bytes(row["key"]): row["value"] for row in difference(wanted, held).collect()}
    assert found == {b"other": b"2", b"new": b"3", b"gone": None}


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_every_key_is_in_one_part(session: SparkSession, parts: int) -> None:
    keys = session.range(100).selectExpr("CAST(CAST(id AS string) AS binary) AS key")
    found = [bytes(row["key"]) for part in range(parts) for row in part_of(keys, part, parts).collect()]
    assert sorted(found) == sorted(str(number).encode() for number in range(100))
