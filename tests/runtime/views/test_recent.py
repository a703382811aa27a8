"""Batches that are kept in memory have no gap, and their number and size have a bound. Commits are found without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from headgate.runtime.views.commits import commits, folder_size, local_folder
from headgate.runtime.views.recent import MOST_BATCHES, MOST_ROWS, FewRows, RecentBatches

pytestmark = pytest.mark.unit

NO_SESSION = cast("SparkSession", None)


LONG = StructType([StructField("n", LongType())])


def rows(count: int, first: int = 0, schema: StructType = LONG) -> FewRows:
    return FewRows(pa.table({"n": pa.array(range(first, first + count), pa.int64())}), schema)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, MOST_ROWS), st.booleans()), max_size=30))
def test_what_is_found_is_what_was_added_last_under_each_number(added: list[tuple[int, int, bool]]) -> None:
    recent, last = RecentBatches(), dict[int, FewRows | None]()
    for at, (number, count, is_few) in enumerate(added):
        last[number] = rows(count, at) if is_few else None
        recent.add("f", number, last[number])
    for after in range(12):
        for until in range(after, 13):
            found = recent.between("f", after, until)
            if found is not None:
                assert until > after
                assert found == [last[number] for number in range(after + 1, until + 1)]
                assert sum(each.table.num_rows for each in found) <= MOST_ROWS


def test_a_gap_or_a_large_batch_ends_what_is_kept() -> None:
    recent = RecentBatches()
    for number in (1, 2, 4):
        recent.add("f", number, rows(number))
    assert recent.between("f", 1, 2) is None
    assert recent.between("f", 3, 4) == [rows(4)]
    assert (recent.last("f"), recent.last("other")) == (4, None)
    recent.add("f", 5, rows(1, schema=StructType([StructField("m", LongType())])))
    assert recent.between("f", 3, 5) is None
    recent.add("f", 6, None)
    assert recent.last("f") is None
    recent.add("f", 7, rows(1))
    recent.forget("f")
    assert recent.between("f", 6, 7) is None


def test_old_batches_and_views_that_were_written_long_ago_make_room() -> None:
    recent = RecentBatches()
    for number in range(1, MOST_BATCHES + 2):
        recent.add("f", number, rows(1))
    assert recent.between("f", 0, 1) is None
    assert recent.between("f", 1, MOST_BATCHES + 1) is not None
    small = RecentBatches(most_bytes=rows(10).table.nbytes)
    small.add("f", 1, rows(8))
    small.add("g", 1, rows(8))
    assert small.between("f", 0, 1) is None
    assert small.between("g", 0, 1) == [rows(8)]


def test_the_commits_of_a_local_table_are_read_from_its_log_the_last_one_first(tmp_path: Path) -> None:
    table = tmp_path / "a table"
    assert local_folder(str(table / "deeper")) is None
    assert commits(NO_SESSION, str(table)) is None
    log = table / "_delta_log"
    log.mkdir(parents=True)
    assert commits(NO_SESSION, str(table)) is None
    for version, said in ((0, None), (9, "one"), (10, "two"), (11, None)):
        info = {"commitInfo": {"operation": "WRITE", **({} if said is None else {"userMetadata": said})}}
        lines = [orjson.dumps({"txn": {}}), orjson.dumps(info)] if version == 9 else [orjson.dumps(info)]
        (log / f"{version:020}.json").write_bytes(b"\n".join(lines))
    (log / f"{12:020}.json").write_bytes(b'{"txn": {}}\n')
    (log / f".{13:020}.json.tmp").write_bytes(b"half")
    found = commits(NO_SESSION, str(table))
    assert found is not None
    assert list(found) == [(12, None), (11, None), (10, "two"), (9, "one"), (0, None)]


def test_a_table_is_only_looked_at_by_python_if_it_is_on_the_local_file_system(tmp_path: Path) -> None:
    table = tmp_path / "a table"
    table.joinpath("_delta_log").mkdir(parents=True)
    assert local_folder(str(table)) == table
    assert local_folder(table.as_uri()) == table
    for elsewhere in (f"hdfs://host{table}", f"s3a://bucket{table}", f"file://host{table}"):
        assert local_folder(elsewhere) is None


def test_all_files_below_a_folder_count(tmp_path: Path) -> None:
    assert folder_size(tmp_path / "none") == 0
    (tmp_path / "log" / "_delta_log").mkdir(parents=True)
    (tmp_path / "log" / "a.parquet").write_bytes(b"abc")
    (tmp_path / "log" / "_delta_log" / "0.json").write_bytes(b"{}")
    assert folder_size(tmp_path) == 5
