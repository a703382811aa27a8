"""Rejected records: why each is bad, and the folders of those that are too many for the catalog.

The executors find out what is wrong with a record and write the folders; the driver sees counts. A folder is on the
warehouse, any file system of Hadoop's, and holds the records of one batch of one task as Parquet. The catalog names it in
the commit of its batch, and only then are its records shown (`catalog.store.sqlite.SqliteStore.open_folders`).
`QuarantineCleaner` removes the folders that nobody needs any more: replayed, dropped with their task, or left by a crash.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession, functions as F

from headgate.catalog.positions import KafkaRecord
from headgate.catalog.tasks import Quarantined, QuarantineFolder
from headgate.runtime.failures import path_of, reason_of
from headgate.runtime.source import SourceReader
from headgate.schema.written import WrittenSchema

FEW_RECORDS = 10_000  # rejected records of a task that the catalog keeps; further ones go to folders
FEW_BYTES = 16 << 20  # bytes of those of a batch: the driver holds all of them at once
SMALLEST_FOLDER = 100  # fewer rejected records of a batch are not worth a folder
LARGEST_KEPT = 100_000  # bytes of a bad record that are kept in the quarantine
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_RAW = "CASE WHEN hg_problem.side = 'key' THEN key WHEN hg_problem IS NOT NULL THEN value END"
_PROBLEMS = (
    "topic",
    "partition",
    "offset",
    "unix_micros(timestamp) AS time",
    "hg_problem.side AS side",
    "hg_problem.reason AS reason",
    "hg_problem.schema_id AS schema_id",
    f"{_RAW} AS raw",
)
_EXPLAINED = (
    "topic string, partition int, offset bigint, time bigint, schema_id bigint, path string, expected string, "
    "reason string, raw binary"
)
_STORED = f"object bigint, task bigint, {_EXPLAINED}"

# Positions are printed as `catalog.positions.dump_record` prints them.
_POSITION = (
    "to_json(named_struct('kind', 'kafka', 'topic', topic, 'partition', partition, 'offset', offset, "
    "'topic_id', CAST(NULL AS string)), map('ignoreNullFields', 'false')) AS position"
)


# Why a record is bad


def explained(decoded: DataFrame, reader: SourceReader) -> DataFrame:
    """Place, time, schema id, path, expectation, reason and bytes of each record. A good record has none of the last four."""
    writers = {
        (side, id_): schema for side, one in reader.schemas.items() for id_, schema in one.writers().known.items()
    }
    expected = {side: reader.expected(side) for side in ("key", "value", "header")}
    return decoded.selectExpr(*_PROBLEMS).mapInArrow(_explain(writers, expected), _EXPLAINED)


def _explain(
    writers: Mapping[tuple[str, int], WrittenSchema], expected: Mapping[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def explain(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _explained_batch(batch, writers, expected)

    return explain


def _explained_batch(
    batch: pa.RecordBatch, writers: Mapping[tuple[str, int], WrittenSchema], expected: Mapping[str, str]
) -> pa.RecordBatch:
    columns = {name: batch.column(name) for name in ("topic", "partition", "offset", "time", "schema_id")}
    paths: list[str | None] = []
    expectations: list[str | None] = []
    reasons: list[str | None] = []
    kept: list[bytes | None] = []
    sides, given, ids, raws = (batch.column(name).to_pylist() for name in ("side", "reason", "schema_id", "raw"))
    for side, why, id_, raw in zip(sides, given, ids, raws, strict=True):
        if side is None:
            reason = path = None
        else:
            reason = reason_of(why, raw, writers.get((side, id_)))
            path = path_of(side, reason)
            reason += _not_kept(raw)
        paths.append(path)
        expectations.append(expected.get(side))
        reasons.append(reason)
        kept.append(raw if raw is not None and len(raw) <= LARGEST_KEPT else None)
    texts = {"path": paths, "expected": expectations, "reason": reasons}
    found = {**columns, **{name: pa.array(values, pa.string()) for name, values in texts.items()}}
    return pa.RecordBatch.from_pydict({**found, "raw": pa.array(kept, pa.binary())})


def _not_kept(raw: bytes | None) -> str:
    """Why the quarantine has no bytes of a record that has some."""
    if raw is None or len(raw) <= LARGEST_KEPT:
        return ""
    return f" (its {len(raw):,} bytes are too many to be kept here)"


def quarantined(row: Row, object_: int, task: int) -> Quarantined:
    """A row of `explained`."""
    return Quarantined(
        object_,
        task,
        KafkaRecord(row["topic"], row["partition"], row["offset"]),
        EPOCH + timedelta(microseconds=row["time"]),
        row["schema_id"],
        row["path"],
        row["expected"],
        row["reason"],
        None if row["raw"] is None else bytes(row["raw"]),
    )


# Folders


def new_folder(object_: int, task: int, batch: int, records: int) -> QuarantineFolder:
    """A folder that nothing was written to yet. Another attempt at the batch gets another one."""
    return QuarantineFolder(f"{task}-{batch}-{uuid.uuid4().hex[:16]}", object_, task, batch, records)


@dataclass(frozen=True, slots=True)
class QuarantineFiles:
    """Where folders are, and how many records of a task the catalog keeps before they go there."""

    address: str
    few_records: int = FEW_RECORDS

    def takes(self, count: int, size: int, in_catalog: int) -> bool:
        """Whether the rejected records of a batch, with ``size`` bytes, go to a folder. ``in_catalog`` of their task are in the
        catalog already: batches may be small, and the catalog must not grow without end."""
        is_many = count > self.few_records or size > FEW_BYTES
        return is_many or (count > SMALLEST_FOLDER and in_catalog + count > self.few_records)

    def path(self, folder: QuarantineFolder) -> str:
        return f"{self.address.rstrip('/')}/{folder.name}"

    def write(self, records: DataFrame, folder: QuarantineFolder) -> None:
        """Write rows of `explained`. They are all there when it returns."""
        ids = F.lit(folder.object).cast("bigint").alias("object"), F.lit(folder.task).cast("bigint").alias("task")
        records.select(*ids, "*").write.parquet(self.path(folder))

    def read(self, session: SparkSession, folders: Iterable[QuarantineFolder]) -> DataFrame:
        """The rows of `explained` of some folders, with the ids of object and task. Only the columns that are used are read."""
        return session.read.schema(_STORED).parquet(*map(self.path, folders))

    def remove(self, session: SparkSession, folder: QuarantineFolder) -> None:
        """Spark has one public way to remove a folder of any file system: to drop a database that lies in it."""
        name = f"headgate_leaving_{uuid.uuid4().hex}"
        path = self.path(folder).replace("\\", "\\\\").replace("'", "\\'")
        session.sql(f"CREATE DATABASE {name} LOCATION '{path}'")
        session.sql(f"DROP DATABASE {name} CASCADE")


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A folder, and the names that its object and its task have now."""

    folder: QuarantineFolder
    object: str
    task: str


@dataclass(frozen=True, slots=True)
class FolderRows:
    """The records of folders as rows of `headgate_catalog.quarantine`."""

    files: QuarantineFiles
    folders: tuple[NamedFolder, ...]

    def frame(self, session: SparkSession) -> DataFrame:
        named = {(one.folder.object, one.folder.task, one.object, one.task) for one in self.folders}
        columns = "object bigint, task bigint, object_name string, task_name string"
        names = F.broadcast(session.createDataFrame(sorted(named), columns))
        stored = self.files.read(session, [one.folder for one in self.folders])
        return stored.join(names, ["object", "task"]).selectExpr(
            "object_name AS object", "task_name AS task", "topic", "partition", "offset",
            "timestamp_micros(time) AS time", "schema_id", "path", "expected", "reason", "raw", _POSITION,
        )  # fmt: skip


log = logging.getLogger(__name__)

CLEAN_EVERY = 60.0  # seconds
GRACE = timedelta(minutes=10)  # in which a query may still read a folder, and a cancelled batch may still write one


class Folders(Protocol):
    """The part of the catalog's store that the cleaner needs."""

    def leaving_folders(self, before: datetime) -> tuple[QuarantineFolder, ...]: ...

    def forget_folder(self, folder: QuarantineFolder) -> None: ...


class QuarantineCleaner:
    """Runs in a thread of its own from ``start`` to ``stop``. Uses Spark only if there is something to remove."""

    def __init__(
        self,
        store: Folders,
        files: QuarantineFiles,
        session: Callable[[], SparkSession],
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """``also`` is called after each round: it removes what else is to be removed."""
        self._store = store
        self._files = files
        self._session = session
        self._also = also
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quarantine cleaner", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def clean(self, before: datetime) -> None:
        """Remove the folders that have been leaving since before this time. What fails is tried again next time."""
        for folder in self._store.leaving_folders(before):
            if self._ended.is_set():
                return
            self._files.remove(self._session(), folder)
            self._store.forget_folder(folder)

    def _run(self) -> None:
        """Before the first batch and the first query of this engine nobody uses such a folder, so there is no grace."""
        before = datetime.now(UTC)
        while not self._ended.is_set():
            try:
                self.clean(before)
                self._also()
            except Exception as error:  # noqa: BLE001 - a folder that stays is no harm
                log.warning("a folder of the quarantine could not be removed: %s", str(error)[:200])
            self._ended.wait(CLEAN_EVERY)
            before = datetime.now(UTC) - GRACE
