"""Compaction of a view's storage without a scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from headgate.runtime.views.compaction import Compaction
from headgate.runtime.views.store import COMPACT_EVERY, ViewStore


def begun(store: ViewStore, readers: Sequence[int] = (), spare: int = 1 << 20) -> Compaction:
    """A compaction that has to begin a round."""
    work = Compaction(store, "v", lambda: readers, spare)
    work.committed(COMPACT_EVERY)
    return work


def compact(store: ViewStore, session: SparkSession, readers: Sequence[int] = ()) -> None:
    """Do a whole round."""
    work = begun(store, readers)
    while work.due == 0.0:
        work.step(session)
    head, snapshot = store.head(session), store.snapshot(session)
    assert head is not None
    assert snapshot is not None
    assert snapshot.number == head.number, "a step has failed, as the log says"
