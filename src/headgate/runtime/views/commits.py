"""The last commits of a Delta table: what each says in `userMetadata`.

A table on the local file system is looked at by Python: its log is a folder of numbered JSON files, each made by a rename
(Delta's protocol). Any other one is asked for its history, which is a job of Spark's: 0.3 CPU seconds in a young JVM, and batches
of seven views asked 36 times.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import orjson
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headgate.schema.render import spark_identifier

RECENT_COMMITS = 10  # commits that Spark is asked for at first, and then ten times as many
_COMMIT_FILE = re.compile(r"(\d{20})\.json")
_LOG_FILE = re.compile(r"\.?(\d{20})\.")
KEPT_COMMITS = 50  # commits among which the last one that says something is looked for


class Commit(NamedTuple):
    """The version that a commit made, and what its writer said; None if it said nothing."""

    version: int
    said: str | None


def commits(session: SparkSession, table: str) -> Iterator[Commit] | None:
    """The commits of a table in a folder, the last one first; None if there is no table."""
    folder = local_folder(table)
    return _of_spark(session, table) if folder is None else _of_files(folder / "_delta_log")


def local_folder(table: str) -> Path | None:
    """The folder of a table on the local file system; None if it is elsewhere. A path without a scheme may be one of another
    file system, if Hadoop is configured so, so the folder around the table must be there."""
    parts = urlsplit(table)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    folder = Path(unquote(parts.path) if parts.scheme else table)
    return folder if folder.parent.is_dir() else None


def folder_size(folder: Path) -> int:
    """The bytes of all files below a folder. Some may go while they are counted."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def forget_commits(table: str, before: float) -> None:
    """Remove what says how a local table was up to the last checkpoint before a time. Delta does so too, but keeps the whole day of that
    time: a view with a batch a second would have 86,000 files by the evening, which every look at the table lists."""
    folder = local_folder(table)
    if folder is None or not (folder / "_delta_log").is_dir():
        return
    files = {path: int(found[1]) for path in (folder / "_delta_log").iterdir() if (found := _LOG_FILE.match(path.name))}
    made = {version: path for path, version in files.items() if _COMMIT_FILE.fullmatch(path.name)}
    old = [version for version, path in made.items() if path.stat().st_mtime < before]
    said = [version for version, path in sorted(made.items())[-KEPT_COMMITS:] if _said(path) is not None]
    checkpoints = [version for path, version in files.items() if path.name.endswith(".checkpoint.parquet")]
    ends = [version for version in checkpoints if old and said and version <= min(max(old), max(said))]
    for path, version in files.items():
        if ends and version < max(ends):
            path.unlink(missing_ok=True)


def remove_folder(session: SparkSession, folder: str) -> None:
    """Spark has one public way to remove a folder of any file system: to drop a database that lies in it."""
    name = f"headgate_leaving_{uuid.uuid4().hex}"
    path = folder.replace("\\", "\\\\").replace("'", "\\'")
    session.sql(f"CREATE DATABASE {name} LOCATION '{path}'")
    session.sql(f"DROP DATABASE {name} CASCADE")


def _of_files(log: Path) -> Iterator[Commit] | None:
    try:
        names = os.listdir(log)
    except FileNotFoundError:
        return None
    found = sorted((int(match[1]) for name in names if (match := _COMMIT_FILE.fullmatch(name))), reverse=True)
    return (Commit(version, _said(log / f"{version:020}.json")) for version in found) if found else None


def _said(file: Path) -> str | None:
    """What the writer of a commit said. Most commits have it in their first line."""
    with file.open("rb") as lines:
        for line in lines:
            if (info := orjson.loads(line).get("commitInfo")) is not None:
                said: str | None = info.get("userMetadata")
                return said
    return None


def _of_spark(session: SparkSession, table: str) -> Iterator[Commit] | None:
    first = _history(session, table, RECENT_COMMITS)
    return None if first is None else _with_older(session, table, first)


def _with_older(session: SparkSession, table: str, first: list[Commit]) -> Iterator[Commit]:
    known, asked = first, RECENT_COMMITS
    yield from known
    while len(known) == asked:
        asked *= 10
        seen, known = len(known), _history(session, table, asked) or []
        yield from known[seen:]


def _history(session: SparkSession, table: str, most: int) -> list[Commit] | None:
    try:
        rows = session.sql(f"DESCRIBE HISTORY delta.{spark_identifier(table)} LIMIT {most}")
        return [Commit(row["version"], row["userMetadata"]) for row in rows.select("version", "userMetadata").collect()]
    except AnalysisException as error:
        if _is_no_table(error):
            return None
        raise


def _is_no_table(error: AnalysisException) -> bool:
    """Whether Delta says that there is no table in a folder."""
    return error.getCondition() in (
        "DELTA_MISSING_DELTA_TABLE",
        "DELTA_TABLE_ONLY_OPERATION",
        "DELTA_PATH_DOES_NOT_EXIST",
    )
