"""The storage of a materialized view: a signed log and a snapshot, both Delta tables on any file system of Hadoop's.

Every batch is one commit of the log: rows with their weight and the number of the batch. The commit's metadata is the ledger
of the view's task. A commit is fenced by its number (`txnAppId` and `txnVersion`), so that no batch is there twice. The
snapshot holds the view as it was after some batch. Its rows and those of the log behind it are the view.

Readers pin the version of both tables. A change of the log in another way than by a batch (`compact`) keeps the ledger.
"""

from __future__ import annotations

import logging
import re
import string
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from urllib.parse import quote

import orjson
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession, functions as F
from pyspark.sql.types import DataType, StructField, StructType

from headgate.catalog.positions import dump_positions, load_positions
from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import MaterializedDefinition, StoredColumn
from headgate.runtime.views.commits import commits, folder_size, local_folder
from headgate.runtime.views.recent import FewRows, RecentBatches, frame_of
from headgate.runtime.views.signed import WEIGHT, repeated, summed
from headgate.schema.render import spark_identifier

log = logging.getLogger(__name__)

# Names in files. The planner refuses columns of views that begin like these (`plan.materialized_views`).
BATCH, SIGNED = "hg_batch", "hg_weight"
PRESENT = "hg_present"
_SAFE = (
    string.ascii_letters + string.digits + "_!#$&*+-./:<>?@[]^|~"
)  # characters that Delta takes in the name of a column
COMPACT_EVERY = 50  # batches after which the log is folded into the snapshot
# How long files are kept that no present version needs: longer than a query or a batch that has pinned an old version.
RETENTION_MINUTES = 15
RETENTION = f"interval {RETENTION_MINUTES} minutes"
# Every compaction leaves a copy of the view for the time of retention. Those of a large view are farther apart, so that
# there are never more than two.
LARGE, LARGE_APART = 100 << 20, RETENTION_MINUTES * 60 / 2  # bytes, seconds
# A task that is paused, or halted, still needs the changes that it has not read. So many batches of them are kept one by one, and
# no more of them than LARGE plus what the view takes. Beyond that they become one change, from where the task stands.
MERGE_AFTER = 500
_PROPERTIES = {
    "delta.deletedFileRetentionDuration": RETENTION,
    "delta.logRetentionDuration": RETENTION,
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True, slots=True)
class Head:
    """The version of the log after its last batch, and what that batch's commit says. ``ledger`` is None before batch 1."""

    version: int
    epoch: int
    ledger: Ledger | None

    @property
    def number(self) -> int:
        return 0 if self.ledger is None else self.ledger.number


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version of the snapshot, and the batch after which the view was so. The log has no changes of batches up to
    ``trimmed`` any more. ``merged`` are ranges of batches, each from behind its first number to its last one, whose changes may
    be there as one."""

    version: int
    number: int
    trimmed: int = 0
    merged: tuple[tuple[int, int], ...] = ()

    def has_batch(self, number: int) -> bool:
        """Whether the log tells the changes up to this batch from those behind it."""
        return number >= self.trimmed and not any(first < number < last for first, last in self.merged)


@dataclass(frozen=True, slots=True)
class Pinned:
    """A state of a view that stays the same however often it is read."""

    head: Head
    snapshot: Snapshot | None

    def has_batch(self, number: int) -> bool:
        """Whether the rows of the view after this batch are known, and the changes from there."""
        return self.snapshot is None or self.snapshot.has_batch(number)


class ViewStore:
    """The storage of one generation of a view, in one folder. ``grows`` says that rows only come. ``recent`` has batches that
    were committed lately."""

    def __init__(
        self,
        folder: str,
        columns: Sequence[StoredColumn],
        task: int,
        *,
        grows: bool = False,
        recent: RecentBatches | None = None,
    ) -> None:
        self.folder = folder.rstrip("/")
        self._recent = RecentBatches() if recent is None else recent
        self.columns = tuple(columns)
        self._task = task
        self._grows = grows
        self._names = [spark_identifier(column.name) for column in columns]
        self._physical = dict(zip((column.name for column in columns), physical_names(columns), strict=True))

    # the log

    def create(self, session: SparkSession) -> None:
        """Make the log, unless it exists."""
        self._recent.forget(self.folder)
        listed = ", ".join(f"{spark_identifier(self._physical[c.name])} {stored_type(c.type)}" for c in self.columns)
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in _PROPERTIES.items())
        session.sql(
            f"CREATE TABLE IF NOT EXISTS {_table(self._log)} ({listed}, {SIGNED} BIGINT, {BATCH} BIGINT) USING delta "
            f"TBLPROPERTIES ({properties})"
        )

    def head(self, session: SparkSession) -> Head | None:
        """The last commit of ours; None if there is no log."""
        last = None
        for version, said in commits(session, self._log) or ():
            if said is not None:
                return self._head(version, said)
            last = version if last is None else last
        return None if last is None else Head(last, 0, None)

    def _head(self, version: int, text: str) -> Head:
        found = orjson.loads(text)
        if found["positions"] is None:
            return Head(version, found["epoch"], None)
        positions = load_positions(found["positions"])
        ledger = Ledger(
            self._task, found["generation"], found["number"], found["epoch"], positions, found["definition"]
        )
        return Head(version, found["epoch"], ledger)

    def written(self, rows: DataFrame, number: int) -> DataFrame:
        """Rows of a batch, which have the stored columns and the weight, as the log has them."""
        return self._written(rows.withColumn(BATCH, F.lit(number)), BATCH)

    def append(self, written: DataFrame, ledger: Ledger, fence: str) -> None:
        """Commit what `written` gave, with the ledger. ``fence`` identifies the writer's task and generation. Nothing is
        committed if a batch with this number is there."""
        writer = written.write.format("delta").mode("append").option("userMetadata", _metadata(ledger, ledger.epoch))
        writer.option("txnAppId", fence).option("txnVersion", ledger.number).save(self._log)

    def remember(self, number: int, rows: FewRows | None) -> None:
        """Keep the rows of a batch that was just committed at hand; None if they are not few."""
        self._recent.add(self.folder, number, rows)

    def has_at_hand(self, after: int, until: int) -> bool:
        """Whether the changes of these batches, and if there are none before them all rows, are few and in memory."""
        return self._recent.between(self.folder, after, until) is not None

    def announce(self, session: SparkSession, ledger: Ledger | None, epoch: int) -> None:
        """A commit without rows, which tells other writers of a larger epoch. What is kept in memory is of this storage only if
        it is not ahead of it."""
        if (self._recent.last(self.folder) or 0) > (0 if ledger is None else ledger.number):
            self._recent.forget(self.folder)
        stored = self._written(self.nothing_stored(session).withColumn(BATCH, F.lit(0)), BATCH)
        writer = stored.write.format("delta").mode("append").option("userMetadata", _metadata(ledger, epoch))
        writer.save(self._log)

    # reading

    def pin(self, session: SparkSession) -> Pinned | None:
        """The present state; None if there is no log. The log is looked at first: what a later snapshot holds beyond it is
        then known by its number, and looked at again."""
        while (head := self.head(session)) is not None:
            snapshot = self._snapshot(session)
            if snapshot is None or snapshot.number <= head.number:
                return Pinned(head, snapshot)
        return None

    def _snapshot(self, session: SparkSession) -> Snapshot | None:
        for version, said in commits(session, self._kept) or ():
            if said is not None:
                found = orjson.loads(said)
                merged = tuple((first, last) for first, last in found.get("merged", ()))
                return Snapshot(version, found["number"], found.get("trimmed", 0), merged)
        return None

    def rows(self, session: SparkSession, pinned: Pinned, number: int | None = None) -> DataFrame:
        """The stored rows, with their weight, after a batch that the log still has; by default the last one."""
        return self.consolidated(self.signed_rows(session, pinned, number))

    def signed_rows(self, session: SparkSession, pinned: Pinned, number: int | None = None) -> DataFrame:
        """The same with rows that came and went, which cancel."""
        until = pinned.head.number if number is None else number
        snapshot = pinned.snapshot
        begin = 0 if snapshot is None else snapshot.number
        first, last = min(begin, until), max(begin, until)
        changes = self._log_rows(session, pinned.head, first, last)
        if until < begin:
            changes = changes.withColumn(WEIGHT, -F.col(WEIGHT))
        return changes if snapshot is None else self._read(_at(session, self._kept, snapshot.version)).unionAll(changes)

    def changes(self, session: SparkSession, head: Head, after: int, until: int) -> DataFrame:
        """The signed rows of the batches behind ``after`` up to ``until``. Some may cancel."""
        return self._log_rows(session, head, after, until)

    def _log_rows(self, session: SparkSession, head: Head, after: int, until: int) -> DataFrame:
        recent = self._recent.between(self.folder, after, until)
        if recent is not None:
            return self._read(frame_of(session, recent))
        logged = _at(session, self._log, head.version)
        return self._read(logged.where((F.col(BATCH) > after) & (F.col(BATCH) <= until)))

    def _read(self, table: DataFrame, *more: str) -> DataFrame:
        """The stored columns of a table of ours, and the weight. A column that came later has its default, and one that was
        widened is cast."""
        there = {field.name: field.dataType for field in table.schema.fields}
        columns = []
        if PRESENT in there and PRESENT not in self._physical:
            table = table.where(PRESENT)  # stored for a query that was replaced
        for column in self.columns:
            name, wanted = self._physical[column.name], _type(column.type)
            if name not in there:
                columns.append(_default(column).alias(column.name))
            elif there[name] == wanted:
                columns.append(F.col(spark_identifier(name)).alias(column.name))
            else:
                # A wider type takes every value, and every stored time of the day is one. Rows of a query that was replaced
                # may have another type altogether.
                columns.append(F.col(spark_identifier(name)).try_cast(wanted).alias(column.name))
        return table.select(*columns, F.col(SIGNED).alias(WEIGHT), *more)

    def _written(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows under the names that they have in files."""
        named = [_stored(column).alias(self._physical[column.name]) for column in self.columns]
        own = ((WEIGHT, SIGNED), *((name, name) for name in more))
        return rows.select(*named, *(F.col(name).cast("bigint").alias(called) for name, called in own))

    def adapt(self, session: SparkSession, head: Head) -> None:
        """Give the log the columns and types that the view has now. The snapshot gets them with the next compaction. Readers
        of older versions are not disturbed."""
        table = _at(session, self._log, head.version)
        wanted = {self._physical[column.name]: _type(stored_type(column.type)) for column in self.columns}
        there = {field.name: field.dataType for field in table.schema.fields if field.name not in (SIGNED, BATCH)}
        if there == wanted:
            return
        log.info("the log of view %s gets other columns", self._task)
        self._recent.forget(self.folder)
        rows = self._written(self._read(table, BATCH), BATCH)
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.option("userMetadata", _metadata(head.ledger, head.epoch)).save(self._log)

    def consolidated(self, rows: DataFrame) -> DataFrame:
        """Each row once, with the sum of its weights. Where rows only come, nothing can cancel, so they stay as they are."""
        if self._grows:
            return rows
        return rows.groupBy(*self._names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)

    def visible(self, stored: DataFrame) -> DataFrame:
        """The columns that the view shows of stored rows, and the weight."""
        names = [spark_identifier(column.name) for column in self.columns if not column.hidden]
        shown = stored.where(PRESENT) if any(column.name == PRESENT for column in self.columns) else stored
        return shown.select(*names, WEIGHT)

    def shown(self, session: SparkSession, pinned: Pinned, number: int | None = None) -> DataFrame:
        """The rows that the view shows, each as often as it is there."""
        return repeated(summed(self.visible(self.signed_rows(session, pinned, number)), skip=self._grows))

    def nothing_stored(self, session: SparkSession) -> DataFrame:
        """No rows, with the stored columns and the weight."""
        listed = ", ".join(f"CAST(NULL AS {c.type}) AS {spark_identifier(c.name)}" for c in self.columns)
        return session.sql(f"SELECT {listed}, CAST(0 AS BIGINT) AS {spark_identifier(WEIGHT)} WHERE false")

    def nothing(self, session: SparkSession) -> DataFrame:
        """No rows, with the columns that the view shows."""
        columns = [column for column in self.columns if not column.hidden]
        return session.createDataFrame([], ", ".join(f"{spark_identifier(c.name)} {c.type}" for c in columns))

    # compaction

    def is_large(self, session: SparkSession) -> bool:
        """Whether the snapshot is larger than LARGE."""
        return self._table_size(session, self._kept) > LARGE

    def _table_size(self, session: SparkSession, path: str) -> int:
        if commits(session, path) is None:
            return 0
        row = session.sql(f"DESCRIBE DETAIL {_table(path)}").select("sizeInBytes").first()
        return 0 if row is None else int(row["sizeInBytes"])

    def size(self, session: SparkSession) -> int:
        """The bytes of all files, also those that are kept for a while for old readers. On another file system than the local
        one these are not counted."""
        folder = local_folder(self.folder)
        if folder is None:
            return self._table_size(session, self._log) + self._table_size(session, self._kept)
        return folder_size(folder)

    def compact(self, session: SparkSession, pinned: Pinned, readers: Sequence[int] = ()) -> None:
        """Write the view after its last batch as the snapshot, and remove what the snapshot before had of the log.

        A reader that has seen the snapshot before finds all it needs in the log. ``readers`` are the last batches that the tasks
        which read the log have read: what comes after them stays. Where that is much, it is merged between one reader and the
        next: the log then takes no more than two copies of the view for each of them, however long they are paused.
        """
        before = 0 if pinned.snapshot is None else pinned.snapshot.number
        trimmed = min([before, *readers])
        merged = () if pinned.snapshot is None else pinned.snapshot.merged
        merged = tuple(range_ for range_ in merged if range_[1] > trimmed)
        new = () if self._grows else self._to_merge(session, merged, [r for r in readers if r < before], before)
        merged = (*(old for old in merged if not any(first <= old[0] < last for first, last in new)), *new)
        rows = self._written(self.rows(session, pinned).coalesce(1))
        found = {"number": pinned.head.number, "trimmed": trimmed, "merged": sorted(merged)}
        self._overwrite(rows, self._kept).option("userMetadata", orjson.dumps(found).decode()).save(self._kept)
        session.sql(f"DELETE FROM {_table(self._log)} WHERE {BATCH} <= {trimmed}")
        for first, last in new:
            self._merge(session, first, last)
        for path in (self._log, self._kept):
            session.sql(f"VACUUM {_table(path)}")

    def _overwrite(self, rows: DataFrame, path: str) -> DataFrameWriter:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        return writer.options(**_PROPERTIES)

    def _to_merge(
        self, session: SparkSession, merged: Sequence[tuple[int, int]], readers: Sequence[int], until: int
    ) -> tuple[tuple[int, int], ...]:
        """The ranges of batches that are to become one change: those between two readers, or the last reader and a batch that
        no reader is behind of, if they are many or large. The rows of a view that only grows cancel nothing, and its log is not
        larger than the view."""
        known = dict(merged)
        ranges = [range_ for range_ in pairwise(sorted({*readers, until})) if range_ not in merged]
        if ranges and self._table_size(session, self._log) > LARGE + 2 * self._table_size(session, self._kept):
            return tuple(ranges)
        return tuple((first, last) for first, last in ranges if last - known.get(first, first) >= MERGE_AFTER)

    def _merge(self, session: SparkSession, first: int, last: int) -> None:
        """Put one change in the place of those behind a batch up to another one. It counts as the last of them."""
        head = self.head(session)
        assert head is not None, "the log was read before"
        within = f"{BATCH} > {first} AND {BATCH} <= {last}"
        changes = self._read(_at(session, self._log, head.version).where(within))
        rows = self._written(self.consolidated(changes).withColumn(BATCH, F.lit(last)), BATCH)
        rows.write.format("delta").mode("overwrite").option("replaceWhere", within).save(self._log)

    @property
    def _log(self) -> str:
        return f"{self.folder}/log"

    @property
    def _kept(self) -> str:
        return f"{self.folder}/snapshot"


def view_store(view: MaterializedDefinition, folder: str, recent: RecentBatches | None = None) -> ViewStore:
    """The storage of a view in a folder."""
    return ViewStore(folder, view.stored, view.id, grows=view.stored_grows, recent=recent)


def remove_folder(session: SparkSession, folder: str) -> None:
    """Spark has one public way to remove a folder of any file system: to drop a database that lies in it."""
    name = f"headgate_leaving_{uuid.uuid4().hex}"
    path = folder.replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"CREATE DATABASE {name} LOCATION '{path}'")
    session.sql(f"DROP DATABASE {name} CASCADE")


def physical_names(columns: Sequence[StoredColumn]) -> list[str]:
    """The names of columns in files: Delta refuses some characters, and names that differ only in case."""
    names: list[str] = []
    for column in columns:
        name = quote(column.name, safe=_SAFE)
        while name.lower() in {known.lower() for known in names}:
            name += "%"
        names.append(name)
    return names


@lru_cache(maxsize=1024)
def _type(ddl: str) -> DataType:
    """A type from the words of Spark. PySpark asks the JVM for most."""
    return DataType.fromDDL(ddl)


_NAME_OR_TIME = re.compile(r"`(?:[^`]|``)*`|\bTIME\b")


def stored_type(ddl: str) -> str:
    """The type of a column in files. Delta has none for a time of the day, so that it is a text there, and refuses some characters
    in the names of fields, which a cast does not look at."""
    return _NAME_OR_TIME.sub(lambda found: _stored_name(found[0]) if found[0].startswith("`") else "STRING", ddl)


def _stored_name(field: str) -> str:
    return spark_identifier(quote(field[1:-1].replace("``", "`"), safe=_SAFE))


def _stored(column: StoredColumn) -> Column:
    """A column as it is in files."""
    value, type_ = F.col(spark_identifier(column.name)), stored_type(column.type)
    return value if type_ == column.type else value.cast(_type(type_))


def _default(column: StoredColumn) -> Column:
    """The value of a column in rows that were stored before it came."""
    if column.name == PRESENT:
        return F.lit(True)
    if column.default is None:
        return F.lit(None).cast(_type(column.type))
    parsed = F.from_json(F.lit(f'{{"v": {column.default}}}'), StructType([StructField("v", _type(column.type))]))
    return parsed.getField("v")


def _table(path: str) -> str:
    return f"delta.{spark_identifier(path)}"


def _at(session: SparkSession, path: str, version: int) -> DataFrame:
    return session.read.format("delta").option("versionAsOf", version).load(path)


def _metadata(ledger: Ledger | None, epoch: int) -> str:
    if ledger is None:
        return orjson.dumps({"epoch": epoch, "positions": None}).decode()
    found = {
        "generation": ledger.generation,
        "number": ledger.number,
        "epoch": epoch,
        "positions": dump_positions(ledger.positions),
        "definition": ledger.definition,
    }
    return orjson.dumps(found).decode()
