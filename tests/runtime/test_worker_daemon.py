"""Python workers of Spark are forked from a process that has imported what they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.runtime.worker_daemon import MODULE

pytestmark = pytest.mark.spark


def test_workers_are_forked_from_our_daemon(session: SparkSession) -> None:
    def parent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            words = psutil.Process().parent().cmdline()  # type: ignore[union-attr]
            yield pa.RecordBatch.from_pydict({"words": [" ".join(words)]})

    (row,) = session.range(0, 1, 1, 1).mapInArrow(parent, "words string").collect()
    assert f"-m {MODULE}" in row["words"]
