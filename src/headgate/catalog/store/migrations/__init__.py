"""The formats of the catalog's file, in order: `0001_initial.sql`, `0002_….sql`, …

A file, once released, is never edited. Number n brings a file of format n-1 to format n; the format stands in
`user_version`. All that are missing run in one transaction. Formats up to `REFUSED` were never released and stored
definitions in another form: a file of such a format is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from headgate.errors import InternalError

REFUSED = 2


@cache
def migrations() -> tuple[str, ...]:
    """The scripts. The first makes the tables of an empty file."""
    found = sorted(f.name for f in files(__name__).iterdir() if f.name.endswith(".sql"))
    numbers = [int(name.partition("_")[0]) for name in found]
    if numbers != list(range(1, len(found) + 1)):
        raise InternalError(f"the catalog's migrations are not numbered without gaps: {numbers}")
    return tuple(files(__name__).joinpath(name).read_text("utf-8") for name in found)


def format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def newest_format(scripts: tuple[str, ...]) -> int:
    return REFUSED + len(scripts)


def migrate(database: sqlite3.Connection, scripts: tuple[str, ...]) -> None:
    """Bring the file to the newest format. Call it inside a write transaction."""
    done = max(0, format_of(database) - REFUSED)
    for script in scripts[done:]:
        for statement in _statements(script):
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {newest_format(scripts)}")


def _statements(script: str) -> Iterator[str]:
    """One at a time: sqlite3's own executescript would commit the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise InternalError("a migration ends in the middle of a statement")
