"""A client that goes away takes its Spark jobs with it, and nobody else's."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.serve.protocol import Columns, Rows
from tests.serve.client_helpers import RawRequest, engine_in_thread

pytestmark = pytest.mark.spark

# It takes hours, and takes no processor from other tests. `tests/runtime/test_query_process.py` cancels a query that computes.
ENDLESS = """SELECT max(pause) AS most
  FROM (SELECT reflect('java.lang.Thread', 'sleep', CAST(20 AS bigint)) AS pause FROM range(1000000)) AS pauses"""
ENDLESS_ROWS = "SELECT id FROM range(0, 1000000000, 1, 100000)"


def test_a_client_that_goes_away_ends_its_job_and_no_other(session: SparkSession, tmp_path: Path) -> None:
    with engine_in_thread(tmp_path, lambda: session) as client:
        first, second = RawRequest(client, ENDLESS), RawRequest(client, ENDLESS)
        _until(lambda: len(_jobs(session)) == 2)
        first.disconnect()
        _until(lambda: len(_jobs(session)) == 1)
        assert not second.ended
        second.disconnect()
        _until(lambda: not _jobs(session))
        assert [event for event in client.run("SELECT 1 AS one") if isinstance(event, Rows)] == [Rows(((1,),))]


def test_a_client_that_reads_no_further_ends_its_job(session: SparkSession, tmp_path: Path) -> None:
    with engine_in_thread(tmp_path, lambda: session) as client:
        events = client.run(ENDLESS_ROWS)
        assert isinstance(next(events), Columns)
        assert isinstance(next(events), Rows)
        events.close()
        _until(lambda: not _jobs(session))


def _jobs(session: SparkSession) -> list[int]:
    return list(session.sparkContext.statusTracker().getActiveJobsIds())


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to hold")
