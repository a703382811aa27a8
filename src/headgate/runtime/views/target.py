"""The storage of a materialized view as the target of its task. The commit of a batch moves the ledger."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.tasks import Ledger
from headgate.processes import crash_point
from headgate.runtime.errors import Fenced
from headgate.runtime.ports import Append, Batch, Changes, Diff, Limit, Upsert, Written
from headgate.runtime.views.errors import NullAsserted, ViewOutgrown, ViewStorageGone
from headgate.runtime.views.store import COMPACT_EVERY, LARGE_APART, WEIGHT, Head, ViewStore, frame_of

log = logging.getLogger(__name__)

ONE_FILE = 50_000  # rows of a batch that go into one file: many small files cost every reader
NULL_FOUND = "headgate: ASSERT NOT NULL "
"""The beginning of the error of Spark for a NULL in a column that follows."""


class ViewTarget:
    """One view. ``recorded`` is the ledger's copy in the catalog: with it, storage that was deleted is noticed. ``needed`` is
    the last batch that all readers of the log have read, None if nobody reads it. ``definition`` is what its stored rows must have
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
        needed: Callable[[], int | None] = lambda: None,
        definition: str = "",
    ) -> None:
        self.store = store
        self._name = name
        self._fence = fence
        self._session = session
        self._recorded = recorded
        self._needed = needed
        self._definition = definition
        self._compacted_at = -LARGE_APART  # when the log was folded into the snapshot

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
        session, written = rows.sparkSession, self.store.written(rows, batch.number)
        few = self.store.few(written) if isinstance(changes, Diff) and changes.few else None
        if few is None:
            count, committed = self._write_many(written, batch, before_commit)
        else:
            before_commit()
            count, committed = few.table.num_rows, self._commit(frame_of(session, [few]).coalesce(1), batch)
        if committed:
            self.store.remember(batch.number, few)
        if batch.number % COMPACT_EVERY == 0:
            self._tidy(session)
        return Written(count)

    def _write_many(self, written: DataFrame, batch: Batch, before_commit: Callable[[], None]) -> tuple[int, bool]:
        """Rows are kept by Spark while what was rejected is stored. Returns their number, and whether this call committed them."""
        kept = written.persist()
        try:
            count = kept.count()
            before_commit()
            return count, self._commit(kept.coalesce(1) if count <= ONE_FILE else kept, batch)
        finally:
            kept.unpersist()

    def _commit(self, written: DataFrame, batch: Batch) -> bool:
        """Commit a batch, unless the log stands at its end already. The log is looked at behind the commit too: Delta drops a
        batch in silence whose number is there."""
        session = written.sparkSession
        if self._is_there(session, batch):
            return False
        crash_point("in_write", batch.number)
        ledger = Ledger(batch.task, batch.generation, batch.number, batch.epoch, batch.end, batch.definition)
        self.store.append(written, ledger, self._fence)
        head = self.store.head(session)
        if head is None or head.ledger != ledger:
            raise self._fenced(head, batch.epoch)
        return True

    def _is_there(self, session: SparkSession, batch: Batch) -> bool:
        """Whether the log stands at the end of the batch. Raises Fenced if it does not stand at its start either."""
        head = self.store.head(session)
        ledger = None if head is None else head.ledger
        if ledger is not None and (ledger.number, ledger.positions) == (batch.number, batch.end):
            return True
        at_start = batch.number == 1 if ledger is None else ledger.positions == batch.start
        if head is None or head.epoch > batch.epoch or not at_start:
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
            self.store.compact(session, pinned, self._needed())
            self._compacted_at = time.monotonic()
        except Exception:
            log.exception("the log of materialized view %s was not compacted", self._name)

    def _is_too_soon(self, session: SparkSession) -> bool:
        return time.monotonic() < self._compacted_at + LARGE_APART and self.store.is_large(session)

    def contents(self, session: SparkSession) -> Upsert:
        pinned = self.store.pin(session)
        assert pinned is not None, "begin comes first"
        shown = self.store.visible(self.store.rows(session, pinned))
        return Upsert(shown.where(f"{WEIGHT} > 0").drop(WEIGHT), ())

    def explain(self, error: BaseException) -> BaseException:
        if (found := re.search(f"{NULL_FOUND}(.*)", str(error))) is not None:
            column = found[1].split("\n")[0].removesuffix(" SQLSTATE: P0001").rstrip(". ")
            return NullAsserted(self._name, column)
        return error

    def close(self) -> None:
        """Nothing is held between two batches."""
