"""What REPLAY QUARANTINE sends through at once: some thousand records of the catalog, or the records of some folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.tasks import Quarantined, QuarantineFolder
from headgate.runtime.quarantine import EPOCH, FEW_RECORDS, QuarantineFiles, new_folder

MOST_AT_ONCE = 500_000  # records of folders in one portion

# What becomes of a record.
WRITTEN, OUTDATED, KEPT = "written", "outdated", "kept"


class Quarantine(Protocol):
    """The part of the catalog's store that a replay needs."""

    def quarantined(self, task: int | None = None) -> tuple[Quarantined, ...]:
        """Without their bytes."""

    def release(self, leaving: Iterable[Quarantined], staying: Iterable[Quarantined] = ()) -> None:
        """Take records out of the quarantine, and say of others why they stay."""

    def quarantine_folders(self, task: int | None = None) -> tuple[QuarantineFolder, ...]: ...

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None: ...

    def replace_folders(self, old: Sequence[QuarantineFolder], new: QuarantineFolder | None) -> None: ...


class Portion(Protocol):
    """Some quarantined records of one task."""

    @property
    def places(self) -> DataFrame:
        """Topic, partition, offset and time (in microseconds) of each record."""

    def settle(self, outcome: DataFrame, kept: int) -> None:
        """Let records go, or say why they stay. ``outcome`` has partition and offset of each record, its `fate`, and the
        schema id, path, expectation and reason of those that are KEPT, ``kept`` in number."""


def portions(
    task: int, topic: str, session: SparkSession, quarantine: Quarantine, files: QuarantineFiles | None
) -> Iterator[Portion]:
    """The quarantined records of a task that are of this topic, in portions."""
    held = [one for one in quarantine.quarantined(task) if one.topic == topic]
    for first in range(0, len(held), FEW_RECORDS):
        yield CatalogPortion(session, quarantine, held[first : first + FEW_RECORDS])
    folders = quarantine.quarantine_folders(task)
    assert files is not None or not folders, "a folder needs a warehouse"
    if files is not None:
        yield from (FolderPortion(session, quarantine, files, some) for some in _together(folders))


def _together(folders: Iterable[QuarantineFolder]) -> list[list[QuarantineFolder]]:
    """Groups of folders that are replayed at once: every group costs some Spark jobs, however few records it has."""
    groups: list[list[QuarantineFolder]] = []
    for folder in folders:
        last = groups[-1] if groups else []
        records = folder.records + sum(one.records for one in last)
        if last and records <= MOST_AT_ONCE and last[0].object == folder.object:
            last.append(folder)
        else:
            groups.append([folder])
    return groups


class CatalogPortion:
    """Records that are in the catalog itself."""

    def __init__(self, session: SparkSession, quarantine: Quarantine, held: Sequence[Quarantined]) -> None:
        self._quarantine = quarantine
        self._held = {(one.partition or 0, one.offset or 0): one for one in held}
        rows = [(q.topic, *place, int((q.time - EPOCH).total_seconds() * 1e6)) for place, q in self._held.items()]
        columns = "topic string, partition int, offset bigint, time bigint"
        self.places = F.broadcast(session.createDataFrame(rows, columns))

    def settle(self, outcome: DataFrame, kept: int) -> None:
        leaving, staying = [], []
        for row in outcome.collect():
            one = self._held[row["partition"], row["offset"]]
            if row["fate"] != KEPT:
                leaving.append(one)
            elif row["path"] is None:  # only the reason is new
                staying.append(replace(one, reason=row["reason"]))
            else:
                found = {name: row[name] for name in ("schema_id", "path", "expected", "reason")}
                staying.append(replace(one, **found))
        self._quarantine.release(leaving, staying)


class FolderPortion:
    """The records of folders of one object. Those that stay are written to another folder, which takes their place."""

    def __init__(
        self, session: SparkSession, quarantine: Quarantine, files: QuarantineFiles, folders: Sequence[QuarantineFolder]
    ) -> None:
        self._quarantine, self._files, self._folders = quarantine, files, folders
        self._stored = files.read(session, folders).drop("object", "task")
        self.places = self._stored.select("topic", "partition", "offset", "time")

    def settle(self, outcome: DataFrame, kept: int) -> None:
        if kept == 0:
            self._quarantine.replace_folders(self._folders, None)
            return
        last = self._folders[-1]
        new = new_folder(last.object, last.task, last.batch, kept)
        self._quarantine.open_folders(last.task, [new])
        self._files.write(self._staying(outcome), new)
        self._quarantine.replace_folders(self._folders, new)

    def _staying(self, outcome: DataFrame) -> DataFrame:
        found = outcome.where(F.col("fate") == KEPT).drop("fate")
        renamed = found.withColumnsRenamed(
            {name: f"new_{name}" for name in ("schema_id", "path", "expected", "reason")}
        )
        joined = self._stored.join(renamed, ["partition", "offset"])
        diagnosed = F.col("new_path").isNotNull()  # otherwise only the reason is new
        now = {
            name: F.when(diagnosed, F.col(f"new_{name}")).otherwise(F.col(name))
            for name in ("schema_id", "path", "expected")
        }
        replaced = joined.withColumns({**now, "reason": F.col("new_reason")})
        return replaced.select(*self._stored.columns)
