"""The storage of a materialized view: a signed log and a snapshot, Delta tables on any file system of Hadoop's.

Every batch is one commit of the log: rows with their weight and the number of the batch. The commit's metadata is the ledger
of the view's task. A commit is fenced by its number (`txnAppId` and `txnVersion`), so that no batch is there twice. The
snapshot holds the view as it was after some batch. Its rows and those of the log behind it are the view. It is written in one
or more commits (`headgate.runtime.views.compaction`); the metadata of the last one says that it is whole. Where it takes several,
they go to the table that does not have the snapshot before, so there are two tables for it.

Readers pin the versions of the log and of the snapshot. A change of the log in another way than by a batch keeps the ledger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import dump_positions, load_positions
from headgate.catalog.tasks import Ledger
from headgate.errors import InternalError
from headgate.plan.definitions import MaterializedDefinition, StoredColumn
from headgate.runtime.views.commits import commits, folder_size, forget_commits, local_folder
from headgate.runtime.views.recent import FewRows, RecentBatches, frame_of
from headgate.runtime.views.signed import WEIGHT, repeated, summed
from headgate.runtime.views.stored_columns import (
    PRESENT,
    as_stored,
    buckets_by,
    converted,
    default_value,
    physical_names,
    spark_type,
    stored_type,
)
from headgate.schema.render import spark_identifier

log = logging.getLogger(__name__)

# Names in files. The planner refuses columns of views that begin like these (`plan.materialized_views`).
BATCH, SIGNED, BUCKET = "hg_batch", "hg_weight", "hg_bucket"
COMPACT_EVERY = 50  # batches after which the log is folded into the snapshot
# How long files are kept that no present version needs: longer than a query or a batch that has pinned an old version.
RETENTION_MINUTES = 15
RETENTION_SECONDS = RETENTION_MINUTES * 60.0
RETENTION = f"interval {RETENTION_MINUTES} minutes"
_PROPERTIES = {
    "delta.deletedFileRetentionDuration": RETENTION,
    "delta.logRetentionDuration": RETENTION,
    "delta.checkpointInterval": "20",
}


@dataclass(frozen=True, slots=True)
class Head:
    """The version of the log, and what the commit of its last batch says. ``ledger`` is None before batch 1."""

    version: int
    epoch: int
    ledger: Ledger | None

    @property
    def number(self) -> int:
        return 0 if self.ledger is None else self.ledger.number


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version of a table that has the snapshot, and the batch after which the view was so. The log has no changes of batches
    up to ``trimmed`` any more. ``merged`` are ranges of batches, each from behind its first number to its last one, whose changes
    may be there as one. The rows are in ``parts`` buckets by the columns ``buckets_by``,
    each with its type."""

    table: str
    version: int
    number: int
    trimmed: int = 0
    merged: tuple[tuple[int, int], ...] = ()
    parts: int = 1
    buckets_by: tuple[tuple[str, str], ...] = ()

    def has_batch(self, number: int) -> bool:
        """Whether the log tells the changes up to this batch from those behind it."""
        return number >= self.trimmed and not any(first < number < last for first, last in self.merged)


@dataclass(frozen=True, slots=True)
class Portions:
    """A snapshot that is being written to a table, in so many portions: the view after a batch, made from the snapshot ``before``
    and the log."""

    table: str
    number: int
    parts: int
    before: Snapshot | None


@dataclass(frozen=True, slots=True)
class Whole:
    """What the last portion of a snapshot says of it. ``first`` is the version that the commit of the first portion made; None if
    there is only one."""

    first: int | None
    trimmed: int = 0
    merged: tuple[tuple[int, int], ...] = ()


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
    were committed lately. ``key`` are the columns of the view's key, if it has one."""

    def __init__(
        self,
        folder: str,
        columns: Sequence[StoredColumn],
        task: int,
        *,
        grows: bool = False,
        recent: RecentBatches | None = None,
        key: Sequence[str] = (),
    ) -> None:
        self.folder = folder.rstrip("/")
        self._recent = RecentBatches() if recent is None else recent
        self.columns = tuple(columns)
        self._task = task
        self.grows = grows
        self.buckets_by = buckets_by(self.columns, key)
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
        """The present version of the log, and what its last batch said; None if there is no log. Commits behind that batch only put the
        same changes in other files. Delta reads no version but the present one when it is older than the time of retention."""
        last = None
        for version, said in commits(session, self._log) or ():
            last = version if last is None else last
            if said is not None:
                return self._head(last, said)
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
            snapshot = self.snapshot(session)
            if snapshot is None or snapshot.number <= head.number:
                return Pinned(head, snapshot)
        return None

    def snapshot(self, session: SparkSession) -> Snapshot | None:
        """The newest snapshot that is whole."""
        found = [self._snapshot_in(session, table) for table in self._tables]
        return max((each for each in found if each is not None), key=lambda each: each.number, default=None)

    def _snapshot_in(self, session: SparkSession, table: str) -> Snapshot | None:
        """The last snapshot that was completed in a table. It is whole if nobody else has written between its portions."""
        for version, said in commits(session, table) or ():
            if said is None:
                continue
            found = orjson.loads(said)
            parts, first = found.get("parts", 1), found.get("first", version)
            if version == first + parts - 1:
                merged = tuple((first, last) for first, last in found.get("merged", ()))
                by = tuple((name, type_) for name, type_ in found.get("buckets_by", ()))
                return Snapshot(table, version, found["number"], found.get("trimmed", 0), merged, parts, by)
        return None

    def rows(self, session: SparkSession, pinned: Pinned, number: int | None = None) -> DataFrame:
        """The stored rows, with their weight, after a batch that the log still has; by default the last one."""
        return self.consolidated(self.signed_rows(session, pinned, number))

    def signed_rows(
        self, session: SparkSession, pinned: Pinned, number: int | None = None, kept: Column | None = None
    ) -> DataFrame:
        """The same with rows that came and went, which cancel. ``kept`` chooses buckets of the snapshot."""
        until = pinned.head.number if number is None else number
        snapshot = pinned.snapshot
        begin = 0 if snapshot is None else snapshot.number
        first, last = min(begin, until), max(begin, until)
        changes = self.changes(session, pinned.head, first, last)
        if until < begin:
            changes = changes.withColumn(WEIGHT, -F.col(WEIGHT))
        if snapshot is None:
            return changes
        folded = _at(session, snapshot.table, snapshot.version)
        rows = self._read(folded if kept is None else folded.where(kept)).unionAll(changes)
        # A snapshot that is newer has rows which came later.
        return self._each_once(rows) if self.grows and until < begin else rows

    def changes(self, session: SparkSession, head: Head, after: int, until: int) -> DataFrame:
        """The signed rows of the batches behind ``after`` up to ``until``. Some may cancel."""
        recent = self._recent.between(self.folder, after, until)
        if recent is not None:
            return self._read(frame_of(session, recent))
        logged = _at(session, self._log, head.version)
        return self._read(logged.where((F.col(BATCH) > after) & (F.col(BATCH) <= until)))

    def _read(self, table: DataFrame, *more: str) -> DataFrame:
        """The stored columns of a table of ours, and the weight. A column that came later has its default, and one whose type has
        changed is converted."""
        there = {field.name: field.dataType for field in table.schema.fields}
        columns = []
        if PRESENT in there and PRESENT not in self._physical:
            table = table.where(PRESENT)  # stored for a query that was replaced
        for column in self.columns:
            name, wanted = self._physical[column.name], spark_type(column.type)
            if name not in there:
                columns.append(default_value(column).alias(column.name))
            else:
                value = F.col(spark_identifier(name))
                columns.append(converted(value, there[name], wanted, column.inner).alias(column.name))
        return table.select(*columns, F.col(SIGNED).alias(WEIGHT), *more)

    def _written(self, rows: DataFrame, *more: str) -> DataFrame:
        """Rows under the names that they have in files."""
        named = [as_stored(column).alias(self._physical[column.name]) for column in self.columns]
        own = ((WEIGHT, SIGNED), *((name, name) for name in more))
        return rows.select(*named, *(F.col(name).cast("bigint").alias(called) for name, called in own))

    def adapt(self, session: SparkSession, head: Head) -> None:
        """Give the log the columns and types that the view has now. The snapshot gets them with the next compaction. Readers
        of older versions are not disturbed."""
        table = _at(session, self._log, head.version)
        wanted = {self._physical[column.name]: spark_type(stored_type(column.type)) for column in self.columns}
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
        return rows if self.grows else self._each_once(rows)

    def _each_once(self, rows: DataFrame) -> DataFrame:
        return rows.groupBy(*self._names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)

    def visible(self, stored: DataFrame) -> DataFrame:
        """The columns that the view shows of stored rows, and the weight."""
        names = [spark_identifier(column.name) for column in self.columns if not column.hidden]
        shown = stored.where(PRESENT) if any(column.name == PRESENT for column in self.columns) else stored
        return shown.select(*names, WEIGHT)

    def shown(self, session: SparkSession, pinned: Pinned, number: int | None = None) -> DataFrame:
        """The rows that the view shows, each as often as it is there."""
        return repeated(summed(self.visible(self.signed_rows(session, pinned, number)), skip=self.grows))

    def nothing_stored(self, session: SparkSession) -> DataFrame:
        """No rows, with the stored columns and the weight."""
        listed = ", ".join(f"CAST(NULL AS {c.type}) AS {spark_identifier(c.name)}" for c in self.columns)
        return session.sql(f"SELECT {listed}, CAST(0 AS BIGINT) AS {spark_identifier(WEIGHT)} WHERE false")

    def nothing(self, session: SparkSession) -> DataFrame:
        """No rows, with the columns that the view shows."""
        listed = ", ".join(f"{spark_identifier(c.name)} {c.type}" for c in self.columns if not c.hidden)
        return session.createDataFrame([], listed)

    # compaction

    def log_size(self, session: SparkSession) -> int:
        """The bytes of the log, without files that are only kept for old readers."""
        return self._table_size(session, self._log)

    def snapshot_size(self, session: SparkSession, snapshot: Snapshot | None) -> int:
        return 0 if snapshot is None else self._table_size(session, snapshot.table)

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
            return sum(self._table_size(session, table) for table in (self._log, *self._tables))
        return folder_size(folder)

    def table_of_round(self, before: Snapshot | None, parts: int) -> str:
        """The table for a snapshot of so many portions. One commit can take the place of the snapshot before, several cannot."""
        first, second = self._tables
        if before is None:
            return first
        return before.table if parts == 1 else second if before.table == first else first

    def write_portion(self, session: SparkSession, portions: Portions, part: int, whole: Whole | None = None) -> int:
        """Write one portion of a snapshot, and return the version that its commit made. The first one takes the place of what was
        in the table. ``whole`` comes with the last one, and makes the snapshot whole."""
        pinned = self.pin(session)
        if pinned is None or pinned.snapshot != portions.before:
            raise InternalError("somebody else has written the snapshot")
        rows = self._written(self._bucket(session, pinned, portions, part).withColumn(BUCKET, F.lit(part)), BUCKET)
        writer = rows.coalesce(1).write.format("delta").options(**_PROPERTIES)
        if part == 0:
            writer = writer.mode("overwrite").option("overwriteSchema", "true").partitionBy(BUCKET)
        else:
            writer = writer.mode("append")
        if whole is not None:
            writer = writer.option("userMetadata", self._said(portions, whole))
        writer.save(portions.table)
        return next(commit.version for commit in commits(session, portions.table) or ())

    def _said(self, portions: Portions, whole: Whole) -> str:
        found = {"number": portions.number, "parts": portions.parts, "trimmed": whole.trimmed, "merged": whole.merged}
        first = {} if whole.first is None else {"first": whole.first}
        return orjson.dumps({**found, **first, "buckets_by": self.buckets_by}).decode()

    def _bucket(self, session: SparkSession, pinned: Pinned, portions: Portions, part: int) -> DataFrame:
        """The rows of one bucket. The snapshot before is read only where it can have some of them."""
        parts, before = portions.parts, portions.before
        if parts == 1:
            return self.rows(session, pinned, portions.number)
        kept = None
        if before is not None and before.parts > 1 and before.buckets_by == self.buckets_by:
            fewer = min(parts, before.parts)
            kept = F.pmod(F.col(BUCKET), F.lit(fewer)) == part % fewer
        hashed = F.xxhash64(*(spark_identifier(name) for name, _ in self.buckets_by))
        rows = self.signed_rows(session, pinned, portions.number, kept)
        return self.consolidated(rows.where(F.pmod(hashed, F.lit(parts)) == part))

    def trim(self, session: SparkSession, until: int) -> None:
        """Remove the changes of batches up to this one from the log."""
        if until > 0:
            session.sql(f"DELETE FROM {_table(self._log)} WHERE {BATCH} <= {until}")

    def empty(self, session: SparkSession, table: str) -> None:
        """Remove the rows of a table whose snapshot is not the newest."""
        session.sql(f"DELETE FROM {_table(table)}")

    def vacuum(self, session: SparkSession) -> None:
        """Remove the files that no version of the last RETENTION_MINUTES needs."""
        for path in (self._log, *self._tables):
            if commits(session, path) is not None:
                session.sql(f"VACUUM {_table(path)}")
                forget_commits(path, time.time() - RETENTION_SECONDS)

    def merge(self, session: SparkSession, first: int, last: int) -> None:
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
    def _tables(self) -> tuple[str, str]:
        """Where a snapshot can be."""
        return f"{self.folder}/snapshot", f"{self.folder}/snapshot-2"


def view_store(view: MaterializedDefinition, folder: str, recent: RecentBatches | None = None) -> ViewStore:
    """The storage of a view in a folder."""
    return ViewStore(folder, view.stored, view.id, grows=view.stored_grows, recent=recent, key=view.key or ())


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
