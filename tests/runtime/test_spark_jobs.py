"""How batches use Spark: their session, their settings, and how they are cancelled."""

from __future__ import annotations

import threading
import time

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.session import LARGE_POOL, POOL, SMALL_POOL, SparkJobs

pytestmark = pytest.mark.spark

LONG = 120.0  # seconds; no test waits so long unless it fails


def test_a_batch_has_settings_and_a_pool_for_its_size(session: SparkSession) -> None:
    jobs, found = SparkJobs(lambda: session), []
    for small in (True, False, True):
        with jobs.batch("tag", small=small) as own:
            pool = own.sparkContext.getLocalProperty(POOL)
            found.append((pool, own.conf.get("spark.sql.adaptive.enabled")))
            assert own.range(5).selectExpr("sum(id) AS s").collect()[0]["s"] == 10
    assert found == [(SMALL_POOL, "false"), (LARGE_POOL, "true"), (SMALL_POOL, "false")]
    assert session.conf.get("spark.sql.codegen.wholeStage") == "true"  # nobody else's session


def test_a_thread_has_one_session_for_all_its_batches(session: SparkSession) -> None:
    jobs = SparkJobs(lambda: session)
    with jobs.batch("one", small=True) as first, jobs.batch("two", small=True) as second:
        assert first is second
    with jobs.batch("three", small=True) as third:
        assert third is first
        assert third is not session


def test_a_tag_is_gone_when_its_batch_has_failed(session: SparkSession) -> None:
    jobs = SparkJobs(lambda: session)
    tags: list[set[str]] = []

    def fail() -> None:
        with jobs.batch("gone", small=True):
            tags.append({str(tag) for tag in session.sparkContext.getJobTags()})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert tags == [{"gone"}]
    assert "gone" not in session.sparkContext.getJobTags()


def test_a_batch_is_cancelled_by_its_tag_and_another_one_is_not(session: SparkSession) -> None:
    jobs, failures, sums = SparkJobs(lambda: session), [], []
    ended = threading.Event()

    def endless() -> None:
        try:
            with jobs.batch("endless", small=False) as own:
                own.range(0, 10**15, 1, 1).selectExpr("sum(id % 7)").collect()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failures.append(str(error))
        ended.set()

    def other() -> None:
        with jobs.batch("other", small=False) as own:
            sums.append(own.range(10**7).selectExpr("sum(id) AS s").collect()[0]["s"])

    threads = [threading.Thread(target=endless), threading.Thread(target=other)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LONG
    while not ended.wait(0.5):
        jobs.cancel("endless")
        assert time.monotonic() < deadline
    threads[1].join(LONG)
    assert len(failures) == 1
    assert sums == [sum(range(10**7))]
