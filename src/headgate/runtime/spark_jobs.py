"""How a worker of the scheduler uses Spark: a session of its own, the settings of a batch, a pool, and a tag to cancel it by."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from headgate.runtime.errors import SparkGone

log = logging.getLogger(__name__)

POOL = "spark.scheduler.pool"
SMALL_POOL, LARGE_POOL = "small", "large"  # share the slots equally, so that large batches do not delay small ones

# A small batch is mostly planning. Adaptive execution and generated code cost more than they save there: five records
# from topic to topic took 195 ms of CPU, 152 without adaptive execution, and 133 without generated code.
SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
LARGE_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


class SparkJobs:
    """One session for each thread that runs batches. A session for each task would stay in Spark's memory after it."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session
        self._of_thread = threading.local()

    @contextmanager
    def batch(self, tag: str, *, small: bool) -> Iterator[SparkSession]:
        """The session of this thread, for one batch. All its jobs have the tag and run in the pool of their size."""
        root = self._session()
        try:
            session = self._own_session(root)
            self._configure(session, small=small)
            session.sparkContext.setLocalProperty(POOL, SMALL_POOL if small else LARGE_POOL)
            session.sparkContext.addJobTag(tag)
        except Exception as error:  # a dead Spark answers every question with an error of its own
            raise SparkGone(str(error)[:200]) from error
        try:
            yield session
        finally:
            with suppress(Exception):  # Spark may be gone, and the batch has failed for that
                session.sparkContext.removeJobTag(tag)

    def cancel(self, tag: str) -> None:
        """Cancel the jobs that run now with this tag. Repeat it until the batch has ended: it may be between two jobs."""
        try:
            self._session().sparkContext.cancelJobsWithTag(tag)
        except Exception as error:  # noqa: BLE001 - a Spark that is gone runs no jobs
            log.warning("the jobs of a batch could not be cancelled: %s", str(error)[:200])

    def _own_session(self, root: SparkSession) -> SparkSession:
        if getattr(self._of_thread, "root", None) is not root:
            self._of_thread.root = root
            self._of_thread.session = root.newSession()
            self._of_thread.small = None
        session: SparkSession = self._of_thread.session
        return session

    def _configure(self, session: SparkSession, *, small: bool) -> None:
        if self._of_thread.small is not small:
            for name, value in (SMALL_SETTINGS if small else LARGE_SETTINGS).items():
                session.conf.set(name, value)
            self._of_thread.small = small
