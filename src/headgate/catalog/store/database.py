"""Open the SQLite file and bring it to the newest format, run transactions, and translate the errors of SQLite for users."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from headgate.catalog import errors
from headgate.errors import InternalError

APPLICATION_ID = 0x48474154  # "HGAT", in the header of the file
BUSY_SECONDS = 10.0

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# A limit on file sizes appears as a failed write, and a full disk also as a failed extension of the -shm file.
_FULL = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}


def connect(path: Path, scripts: tuple[str, ...], *, writer: bool) -> sqlite3.Connection:
    """A connection to a catalog. Raises if the file is not a catalog or has a format that we cannot use.

    A writer creates the file if there is none, and may open an older format, which `migrate` then converts. A reader creates
    and changes nothing.
    """
    with translated(path):
        database = _open(path, writer=writer)
    try:
        with translated(path):
            _check_format(database, path, scripts, writer=writer)
            if writer:
                _make_ready(database, scripts)
            else:
                database.execute("PRAGMA query_only = ON")
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def transaction(database: sqlite3.Connection, path: Path, *, write: bool) -> Iterator[None]:
    """Run the block in a transaction. A write takes the lock of the file first, so that it cannot fail half-way."""
    with translated(path):
        database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # SQLite has rolled back by itself when the disk is full
                database.execute("ROLLBACK")
            raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of the catalog."""
    try:
        yield
    except sqlite3.ProgrammingError as failure:
        raise InternalError(f"the catalog was used wrongly: {failure}") from failure
    except sqlite3.Error as failure:
        raise _meaning(failure, str(path)) from failure
    except UnicodeEncodeError as failure:
        raise errors.NotUnicode() from failure
    except OSError as failure:
        raise errors.CatalogUnreachable(str(path), failure.strerror or "unknown reason") from failure


def _meaning(failure: sqlite3.Error, path: str) -> errors.CatalogError:
    extended = getattr(failure, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    primary = extended & 0xFF
    if primary in _DAMAGED:
        return errors.CatalogDamaged(path, str(failure))
    if primary == sqlite3.SQLITE_FULL or extended in _FULL:
        return errors.CatalogFull(path)
    if primary in _BUSY:
        return errors.CatalogBusy(path)
    if primary in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH):
        return errors.CatalogDamaged(path, str(failure))  # our own statements do not fail on an intact file
    return errors.CatalogUnreachable(path, str(failure))


def _open(path: Path, *, writer: bool) -> sqlite3.Connection:
    if writer:
        path.touch(mode=0o600)  # statements may contain private data; SQLite gives -wal and -shm the same mode
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    database.execute("PRAGMA synchronous = FULL")
    return database


def _check_format(database: sqlite3.Connection, path: Path, scripts: tuple[str, ...], *, writer: bool) -> None:
    ours = database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    empty = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not ours and not empty:
        raise errors.NotACatalog(str(path))
    found, newest = format_of(database), newest_format(scripts)
    if found > newest:
        raise errors.CatalogTooNew(str(path), found, newest)
    if 0 < found <= REFUSED:
        raise errors.CatalogNotConvertible(str(path), found, newest)
    if found == 0 and not writer:
        raise errors.CatalogUnreachable(str(path), "nothing has been written to it yet")
    if found < newest and not writer:
        raise errors.CatalogTooOld(str(path), found, newest)


def _make_ready(database: sqlite3.Connection, scripts: tuple[str, ...]) -> None:
    """Create the tables of a new file. An older file is migrated later, by the holder of the lease."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA secure_delete = ON")
    if format_of(database) > 0:
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        migrate(database, scripts)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


# formats of the file

# The formats of the file, in order: `0001_initial.sql`, `0002_….sql`, … A script, once released, is never edited. Number n
# brings a file of format n-1 to format n; the format stands in `user_version`. All that are missing run in one transaction.
MIGRATIONS = files("headgate.catalog.store") / "migrations"
REFUSED = 4  # formats up to this one were never released, and stored definitions in another form


@cache
def migrations() -> tuple[str, ...]:
    """The scripts. The first makes the tables of an empty file."""
    found = sorted(file.name for file in MIGRATIONS.iterdir())
    numbers = [int(name.partition("_")[0]) for name in found]
    if numbers != list(range(1, len(found) + 1)):
        raise InternalError(f"the catalog's migrations are not numbered without gaps: {numbers}")
    return tuple(MIGRATIONS.joinpath(name).read_text("utf-8") for name in found)


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
    """The statements of a script, to be run one by one: sqlite3's own executescript would commit the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise InternalError("a migration ends in the middle of a statement")
