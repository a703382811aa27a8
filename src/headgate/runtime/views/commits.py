"""The last commits of a Delta table: what each says in `userMetadata`.

A table on the local file system is looked at by Python: its log is a folder of numbered JSON files, each made by a rename
(Delta's protocol). Any other one is asked for its history, which is a job of Spark's: 0.3 CPU seconds in a young JVM, and batches
of seven views asked 36 times.
"""

from __future__ import annotations

import os
import re
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
