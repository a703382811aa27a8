"""Compaction of a view's storage: the log is folded into the snapshot between two batches, a portion at a time.

A portion is the rows of one hash bucket. All portions of a round have the view as it was after one batch. A small view has
one portion, which is one commit in the place of the snapshot before. The portions of a larger one go to the other one of two
tables, and the commit of the last one makes that the snapshot, so that no reader ever sees a part of a round. What is lost in
a crash is begun again.

Files that no present version needs are kept for `RETENTION_SECONDS`, for readers that have pinned an older version. So every round
leaves a copy of the view on the disk for a while. Rounds are so far apart that these copies take no more than the setting `spare`,
or than the view where that is larger.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from pyspark.sql import SparkSession

from headgate.errors import InternalError
from headgate.runtime.views.store import COMPACT_EVERY, RETENTION_SECONDS, Portions, Snapshot, ViewStore, Whole

log = logging.getLogger(__name__)

SPARE = 256 << 20  # bytes, beside three copies of the view
PORTION, MOST_PORTIONS = 64 << 20, 256  # bytes of a portion as far as there are not too many
# A task that is paused, or halted, still needs the changes that it has not read. So many batches of them are kept one by one, and
# no more of them than the spare bytes plus what the view takes. Beyond that they become one change, from where the task stands.
MERGE_AFTER = 500
AGAIN = 60.0  # seconds after which what has failed is tried again


class Compaction:
    """What is to be done for one view between its batches. Used by one thread at a time. ``readers`` gives the last batches
    that the tasks which read the log have read."""

    def __init__(
        self, store: ViewStore, name: str, readers: Callable[[], Sequence[int]] = tuple, spare: int = SPARE
    ) -> None:
        self._store = store
        self._name = name
        self._readers = readers
        self._spare = spare
        self._steps: deque[Callable[[SparkSession], None]] = deque()
        self._wanted = False
        self._not_before = 0.0
        self._first: int | None = None  # the version of the first portion of this round
        self._left_at = 0.0  # when files were last left for readers
        # Since an earlier start of the engine there may be files that nobody needs.
        self._vacuum_at: float | None = time.time() + RETENTION_SECONDS

    def committed(self, number: int) -> None:
        """A batch is in the log."""
        self._wanted = self._wanted or number % COMPACT_EVERY == 0

    @property
    def due(self) -> float | None:
        """When the next step is wanted (``time.time``); None for not at all."""
        if self._steps:
            return 0.0
        times = [self._not_before] if self._wanted else []
        return min([*times, *([] if self._vacuum_at is None else [self._vacuum_at])], default=None)

    def step(self, session: SparkSession) -> None:
        """Do the next portion. The view is right whether it succeeds or not, so a failure is only logged, and the round is begun
        again later."""
        try:
            if not self._steps:
                self._begin(session)
            if self._steps:
                self._steps.popleft()(session)
        except Exception:
            log.exception("the log of materialized view %s was not compacted", self._name)
            self._steps.clear()
            self._wanted, self._not_before = True, time.time() + AGAIN

    def _begin(self, session: SparkSession) -> None:
        now = time.time()
        if self._vacuum_at is not None and self._vacuum_at <= now:
            later = self._left_at + RETENTION_SECONDS
            self._vacuum_at = later if later > now else None
            self._steps.append(self._store.vacuum)
        if self._wanted and self._not_before <= now:
            self._wanted = False
            self._steps.extend(self._round(session))

    def _round(self, session: SparkSession) -> Sequence[Callable[[SparkSession], None]]:
        """The steps of a round. The last one adds those that the new snapshot allows."""
        store, pinned = self._store, self._store.pin(session)
        if pinned is None or pinned.head.number == 0:
            return ()
        before, self._first = pinned.snapshot, None
        parts = portions(store.log_size(session) + store.snapshot_size(session, before)) if store.buckets_by else 1
        made = Portions(store.table_of_round(before, parts), pinned.head.number, parts, before)
        return (*(partial(self._write, made, part) for part in range(parts - 1)), partial(self._complete, made))

    def _write(self, made: Portions, part: int, session: SparkSession) -> None:
        version = self._store.write_portion(session, made, part)
        self._first = version if part == 0 else self._first

    def _complete(self, made: Portions, session: SparkSession) -> None:
        """Write the last portion, with which the snapshot is whole. What the snapshot before had of the log is then removed."""
        store = self._store
        trimmed, merged, new = self._trimming(session, made.before)
        store.write_portion(session, made, made.parts - 1, Whole(self._first, trimmed, merged))
        snapshot = store.snapshot(session)
        if snapshot is None or (snapshot.table, snapshot.number) != (made.table, made.number):
            raise InternalError("somebody else has written the snapshot")
        share = 2 * store.snapshot_size(session, snapshot) / max(1, self._spare)
        self._not_before = time.time() + RETENTION_SECONDS * min(1.0, share)
        self._steps.append(partial(store.trim, until=trimmed))
        self._steps.extend(partial(store.merge, first=first, last=last) for first, last in new)
        if made.before is not None and made.before.table != made.table:
            self._steps.append(partial(store.empty, table=made.before.table))
        self._steps.append(self._collect_later)

    def _collect_later(self, _: SparkSession) -> None:
        """The files that nobody needs are removed when the last reader of today may have ended."""
        self._left_at = time.time()
        self._vacuum_at = self._vacuum_at or self._left_at + RETENTION_SECONDS

    def _trimming(
        self, session: SparkSession, before: Snapshot | None
    ) -> tuple[int, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        """The batch up to which the log is to be removed, the ranges of batches that may be there as one, and those of them that
        become one now.

        A reader that has seen the snapshot before finds all it needs in the log. What comes after the last batch of a reader
        stays. Where that is much, it is merged between one reader and the next: the log then takes no more than two copies of the
        view for each of them, however long they are paused.
        """
        until, readers = 0 if before is None else before.number, self._readers()
        trimmed = min([until, *readers])
        merged = () if before is None else before.merged
        merged = tuple(range_ for range_ in merged if range_[1] > trimmed)
        new = () if self._store.grows else self._to_merge(session, before, merged, [r for r in readers if r < until])
        kept = (old for old in merged if not any(first <= old[0] < last for first, last in new))
        return trimmed, tuple(sorted((*kept, *new))), new

    def _to_merge(
        self,
        session: SparkSession,
        before: Snapshot | None,
        merged: Sequence[tuple[int, int]],
        readers: Sequence[int],
    ) -> tuple[tuple[int, int], ...]:
        """The ranges of batches that are to become one change: those between two readers, or the last reader and a batch that
        no reader is behind of, if they are many or large. The rows of a view that only grows cancel nothing, and its log is not
        larger than the view."""
        known, until = dict(merged), 0 if before is None else before.number
        ranges = [range_ for range_ in pairwise(sorted({*readers, until})) if range_ not in merged]
        large = self._spare + 2 * self._store.snapshot_size(session, before)
        if ranges and self._store.log_size(session) > large:
            return tuple(ranges)
        return tuple((first, last) for first, last in ranges if last - known.get(first, first) >= MERGE_AFTER)


def portions(size: int) -> int:
    """In how many portions a view of so many bytes is written: a power of two, so that the buckets of one round are parts or sums of
    those of another."""
    wanted = min(MOST_PORTIONS, -(-size // PORTION))
    return 1 << max(0, wanted - 1).bit_length()
