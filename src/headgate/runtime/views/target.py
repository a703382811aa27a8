"""The storage of a materialized view as the target of its task. The commit of a batch moves the ledger."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.tasks import Ledger
from headgate.crash_points import crash_point
from headgate.runtime.errors import ComputationFailed, Fenced
from headgate.runtime.failures import translated
from headgate.runtime.ports import Append, Batch, Changes, Diff, Limit, Upsert, Written
from headgate.runtime.views.clock import only_time_passed
from headgate.runtime.views.costs import Costs
from headgate.runtime.views.errors import NullAsserted, ViewOutgrown, ViewStorageGone
from headgate.runtime.views.recent import FewRows, few_rows, frame_of
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import COMPACT_EVERY, LARGE_APART, Head, ViewStore

log = logging.getLogger(__name__)

MEASURED_APART = 10.0  # seconds
ONE_FILE = 50_000  # rows of a batch that go into one file: many small files cost every reader
NULL_FOUND = "headgate: ASSERT NOT NULL "
"""The beginning of the error of Spark for a NULL in a column that follows."""


class ViewTarget:
    """One view. ``recorded`` is the ledger's copy in the catalog: with it, storage that was deleted is noticed. ``readers``
    gives the last batches that the tasks which read the log have read. ``definition`` is what its stored rows must have
    been computed with."""

    takes: frozenset[type[Changes]] = frozenset({Append, Diff})
    commit: Literal["own", "catalog"] = "own"

    def __init__(
        self,
        store: ViewStore,
        name: str,
        fence: str,
        session: Callable[[], SparkSession],
        recorded: Callable[[], Ledger | None] = lambda: None,
        readers: Callable[[], Sequence[int]] = tuple,
        definition: str = "",
    ) -> None:
        self.store = store
        self._name = name
        self._fence = fence
        self._session = session
        self._recorded = recorded
        self._readers = readers
        self._definition = definition
        self.costs = Costs()
        self._compacted_at = -LARGE_APART  # when the log was folded into the snapshot
        self._stored_bytes, self._measured_at = 0, -MEASURED_APART

    def bounded(self, limit: Limit) -> Limit:
        return limit

    def begin(self, epoch: int) -> Ledger | None:
        """A new log has nothing that another writer could spoil, so that its first batch is the first to name the epoch."""
        session = self._session()
        head = self.store.head(session)
        if head is None:
            recorded = self._recorded()
            if recorded is not None and recorded.number > 0:
                raise ViewStorageGone(self._name, self.store.folder)
            self.store.create(session)
            return None
        if head.epoch > epoch:
            raise self._fenced(head, epoch)
        self._check_definition(head)
        self.store.adapt(session, head)
        ledger = None if head.ledger is None else replace(head.ledger, epoch=epoch)
        self.store.announce(session, ledger, epoch)
        return ledger

    def _check_definition(self, head: Head) -> None:
        written = "" if head.ledger is None else head.ledger.definition
        if head.number > 0 and written and self._definition and written != self._definition:
            raise ViewOutgrown(self._name)

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        """The rows are computed and kept by Spark first: what was rejected must be stored before they can be seen."""
        assert not isinstance(changes, Upsert)
        rows = changes.rows if isinstance(changes, Diff) else changes.rows.withColumn(WEIGHT, F.lit(1))
        session, began = rows.sparkSession, time.monotonic()
        few = isinstance(changes, Diff) and changes.few
        anew = changes.anew if isinstance(changes, Diff) else None
        as_a_whole = anew is not None and not few and self.costs.prefer_anew()
        try:
            chosen = anew() if anew is not None and as_a_whole else rows
            made = self._write_rows(chosen, few, batch, before_commit)
        except Exception as error:
            if anew is None or as_a_whole or not isinstance(translated(error), ComputationFailed):
                raise
            log.info("materialized view %s is computed anew, because its changes cannot be", self._name)
            made = self._write_rows(anew(), False, batch, before_commit)
        else:
            if made.committed and not few and (anew is not None or batch.number == 1):
                self.costs.took(time.monotonic() - began, anew=as_a_whole or batch.number == 1)
        if made.committed and batch.number % COMPACT_EVERY == 0:
            self._tidy(session)
        return made

    def _write_rows(self, rows: DataFrame, few: bool, batch: Batch, before_commit: Callable[[], None]) -> Written:
        written = self.store.written(rows, batch.number)
        taken = few_rows(written) if few else None
        if taken is None:
            return self._write_many(written, batch, before_commit)
        frame = frame_of(rows.sparkSession, [taken]).coalesce(1)
        return self._write_counted(taken.table.num_rows, frame, taken, batch, before_commit)

    def _write_many(self, written: DataFrame, batch: Batch, before_commit: Callable[[], None]) -> Written:
        """Rows are kept by Spark while what was rejected is stored."""
        kept = written.persist()
        try:
            count = kept.count()
            frame = kept.coalesce(1) if count <= ONE_FILE else kept
            return self._write_counted(count, frame, None, batch, before_commit)
        finally:
            kept.unpersist()

    def _write_counted(
        self, count: int, written: DataFrame, few: FewRows | None, batch: Batch, before_commit: Callable[[], None]
    ) -> Written:
        """Commit so many rows. A batch that only the time has brought, and that changes nothing, is left out: readers and disks
        need not hear of every second."""
        if count == 0 and batch.number > 1 and only_time_passed(batch.start, batch.end):
            return Written(0, committed=False)
        before_commit()
        if self._commit(written, batch):
            self.store.remember(batch.number, few)
        return Written(count)

    def _commit(self, written: DataFrame, batch: Batch) -> bool:
        """Commit a batch, unless the log stands at its end already. The log is looked at behind the commit too: Delta drops a
        batch in silence whose number is there."""
        session = written.sparkSession
        if self._is_there(session, batch):
            return False
        crash_point("in_write", batch.task, batch.number)
        ledger = Ledger(batch.task, batch.generation, batch.number, batch.epoch, batch.end, batch.definition)
        self.store.append(written, ledger, self._fence)
        head = self.store.head(session)
        if head is None or head.ledger != ledger:
            raise self._fenced(head, batch.epoch)
        return True

    def _is_there(self, session: SparkSession, batch: Batch) -> bool:
        """Whether the log stands at the end of the batch. Raises Fenced if it does not stand at its start either."""
        head = self.store.head(session)
        if head is None:
            raise ViewStorageGone(self._name, self.store.folder)
        ledger = head.ledger
        if ledger is not None and (ledger.number, ledger.positions) == (batch.number, batch.end):
            return True
        at_start = batch.number == 1 if ledger is None else ledger.positions == batch.start
        if head.epoch > batch.epoch or not at_start:
            raise self._fenced(head, batch.epoch)
        return False

    def _fenced(self, head: Head | None, epoch: int) -> Fenced:
        return Fenced("its storage", f'materialized view "{self._name}"', 0 if head is None else head.epoch, epoch)

    def _tidy(self, session: SparkSession) -> None:
        """Fold the log into the snapshot. The batch is committed, so that a failure is only logged."""
        try:
            pinned = self.store.pin(session)
            if pinned is None or (pinned.snapshot is not None and self._is_too_soon(session)):
                return
            self.store.compact(session, pinned, self._readers())
            self._compacted_at = time.monotonic()
        except Exception:
            log.exception("the log of materialized view %s was not compacted", self._name)

    def _is_too_soon(self, session: SparkSession) -> bool:
        return time.monotonic() < self._compacted_at + LARGE_APART and self.store.is_large(session)

    def contents(self, session: SparkSession) -> Upsert:
        pinned = self.store.pin(session)
        assert pinned is not None, "begin comes first"
        shown = self.store.visible(self.store.rows(session, pinned))
        return Upsert(shown.where(F.col(WEIGHT) > 0).drop(WEIGHT), ())

    def stored_bytes(self) -> int:
        """What the files of the view take. Counted at most once in MEASURED_APART seconds."""
        if time.monotonic() >= self._measured_at + MEASURED_APART:
            self._stored_bytes, self._measured_at = self.store.size(self._session()), time.monotonic()
        return self._stored_bytes

    def explain(self, error: BaseException) -> BaseException:
        if (found := re.search(f"{NULL_FOUND}(.*)", str(error))) is not None:
            column = found[1].split("\n")[0].removesuffix(" SQLSTATE: P0001").rstrip(". ")
            return NullAsserted(self._name, column)
        return error

    def close(self) -> None:
        """Nothing is held between two batches."""
