"""The last batches of views, in the memory of the process that committed them.

Most batches are small, and most readers of a view want its last batch, or all rows of a small view. Read from Delta these are
several jobs of Spark's each; from memory there is none. A batch that was committed never changes, so that its copy is as good.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.schema.render import spark_identifier

# What the driver takes of a batch: so many rows of each partition, with texts and bytes up to this length, or shorter ones where a
# row has several, so that a partition gives at most MOST_TEXT.
FEW, SHORT, MOST_TEXT = 4_000, 8_000, 32 << 20
# Types whose values Arrow brings to the driver and back as they are, and whose size is known.
_PLAIN = (
    BooleanType,
    NumericType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
)
_AT = "hg_at"
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


def few_rows(written: DataFrame) -> FewRows | None:
    """The rows of a batch as the log has them, if they are few and small, or else None. Everything that they are made from
    is read in any case. Only the driver has them then, so that no job must keep them between two others."""
    fields = written.schema.fields
    if not all(isinstance(field.dataType, _PLAIN) for field in fields):
        return None
    # The number of a row in its partition: the higher bits are the partition's.
    at = F.monotonically_increasing_id().bitwiseAND((1 << 33) - 1)
    texts = sum(isinstance(field.dataType, StringType | BinaryType) for field in fields)
    short = min(SHORT, MOST_TEXT // (FEW * max(1, texts)))
    cut = [_cut(field, short).alias(field.name) for field in fields]
    found = written.select(*cut, at.alias(_AT)).where(F.col(_AT) <= FEW).toArrow()
    if found.num_rows > FEW or any(_is_cut(found.column(at), short) for at in range(len(fields))):
        return None
    # Without what Arrow says of NULLs, which differs from batch to batch.
    return FewRows(pa.Table.from_arrays(found.columns[:-1], names=found.column_names[:-1]), written.schema)


def frame_of(session: SparkSession, rows: Sequence[FewRows]) -> DataFrame:
    """Rows of one or more batches, for Spark."""
    # In one chunk: Spark reads no further than to an empty one, and says nothing.
    table = pa.concat_tables([each.table for each in rows]).combine_chunks()
    fields = [StructField(field.name, field.dataType) for field in rows[0].schema.fields]
    return session.createDataFrame(table, StructType(fields))


def _cut(field: StructField, short: int) -> Column:
    """A column, without what is too long in its values."""
    value = F.col(spark_identifier(field.name))
    return F.substring(value, 1, short + 1) if isinstance(field.dataType, StringType | BinaryType) else value


def _is_cut(values: pa.ChunkedArray, short: int) -> bool:
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        longest = pc.max(pc.utf8_length(values)).as_py()
    elif pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        longest = pc.max(pc.binary_length(values)).as_py()
    else:
        return False
    return longest is not None and longest > short
