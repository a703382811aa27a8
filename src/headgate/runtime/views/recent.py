"""The last batches of views, in the memory of the process that committed them.

Most batches are small, and most readers of a view want its last batch, or all rows of a small view. Read from Delta these are
several jobs of Spark's each; from memory there is none. A batch that was committed never changes, so that its copy is as good.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

MOST_ROWS = 20_000  # of one view: many more are planned slower than they are read from files
MOST_BATCHES = 100
MOST_BYTES = 64 << 20  # of all views


@dataclass(frozen=True, slots=True)
class FewRows:
    """Rows as the log has them, with their types in the words of Spark, which has more of them than Arrow."""

    table: pa.Table
    schema: StructType


class RecentBatches:
    """For the folder of each view the rows of its last batches, without a gap. Threads may share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[str, OrderedDict[int, FewRows]] = OrderedDict()
        self._most_bytes = most_bytes

    def add(self, folder: str, number: int, rows: FewRows | None) -> None:
        """Keep the rows of a batch that is committed. None if they are too many: what is kept ends there."""
        with self._lock:
            kept = self._views.setdefault(folder, OrderedDict())
            if rows is None or (kept and next(reversed(kept)) != number - 1):
                kept.clear()
            if rows is not None:
                kept[number] = rows
            while kept and (len(kept) > MOST_BATCHES or _rows(kept) > MOST_ROWS):
                kept.popitem(last=False)
            self._views.move_to_end(folder)
            while self._views and sum(map(_bytes, self._views.values())) > self._most_bytes:
                self._views.popitem(last=False)

    def between(self, folder: str, after: int, until: int) -> list[FewRows] | None:
        """The rows of the batches behind ``after`` up to ``until``; None if one of them is not kept, if their columns differ, or
        if there are none."""
        with self._lock:
            kept = self._views.get(folder, OrderedDict())
            found = [kept.get(number) for number in range(after + 1, until + 1)]
            rows = [each for each in found if each is not None]
            is_whole = len(rows) == len(found) > 0 and all(each.schema == rows[0].schema for each in rows)
            return rows if is_whole else None

    def forget(self, folder: str) -> None:
        """The storage of a view is not what this process left."""
        with self._lock:
            self._views.pop(folder, None)

    def last(self, folder: str) -> int | None:
        """The number of the last batch that is kept."""
        with self._lock:
            kept = self._views.get(folder)
            return next(reversed(kept)) if kept else None


def _rows(kept: OrderedDict[int, FewRows]) -> int:
    return sum(each.table.num_rows for each in kept.values())


def _bytes(kept: OrderedDict[int, FewRows]) -> int:
    return sum(each.table.nbytes for each in kept.values())
