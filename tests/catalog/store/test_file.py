"""Files of other versions, of other programs, damaged or out of reach: each is told apart, and none is changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headgate.catalog.changes import Change, apply
from headgate.catalog.errors import (
    CatalogBusy,
    CatalogDamaged,
    CatalogNotConvertible,
    CatalogTooNew,
    CatalogTooOld,
    CatalogUnreachable,
    LeaseHeld,
    NotACatalog,
)
from headgate.catalog.store import database as opening
from headgate.catalog.store.database import REFUSED, format_of, migrations, newest_format
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from headgate.errors import InternalError
from headgate.sql.statement import Kind
from tests.catalog.building import created

pytestmark = pytest.mark.unit

FORMAT = newest_format(migrations())
NEWER = (*migrations(), "CREATE TABLE added (\n  a TEXT);\nINSERT INTO added\nSELECT name FROM objects;")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A catalog with something in it."""
    path = tmp_path / "catalog.db"
    with SqliteStore(path) as store:
        catalog, changes = store.load(), list[Change]()
        for number in range(200):
            change = created(catalog, Kind.VIEW, f"view{number}", "a integer")
            catalog = apply(catalog, change)
            changes.append(change)
        store.commit(changes, cause="statement")
    return path


def run(path: Path, *statements: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(path, isolation_level=None)
    rows = [row for statement in statements for row in database.execute(statement)]
    database.close()
    return rows


def test_an_older_catalog_is_brought_up_to_date_by_a_writer(path: Path) -> None:
    with SqliteReader(path) as reader:
        before = reader.load()
    with SqliteStore(path, scripts=NEWER) as store:
        assert store.load() == before
    assert run(path, "PRAGMA user_version") == [(newest_format(NEWER),)]
    assert len(run(path, "SELECT a FROM added")) == len(before.objects)


def test_an_older_catalog_is_not_for_readers(path: Path) -> None:
    with pytest.raises(CatalogTooOld) as caught:
        SqliteReader(path, scripts=NEWER)
    assert (caught.value.version, caught.value.wanted) == (FORMAT, FORMAT + 1)


def test_a_catalog_with_definitions_of_another_form_is_refused_and_left_alone(path: Path) -> None:
    run(path, f"PRAGMA user_version = {REFUSED}")
    before = path.read_bytes()
    for kind in (SqliteStore, SqliteReader):
        with pytest.raises(CatalogNotConvertible) as caught:
            kind(path)
        assert "older version" in caught.value.message()
    assert path.read_bytes() == before


def test_a_newer_catalog_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path, scripts=NEWER).close()
    before = path.read_bytes()
    for kind in (SqliteStore, SqliteReader):
        with pytest.raises(CatalogTooNew) as caught:
            kind(path)
        assert caught.value.detail() == (
            f"The file has format {FORMAT + 1}, and this version reads formats up to {FORMAT}."
        )
    assert path.read_bytes() == before


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    with pytest.raises(CatalogDamaged):
        SqliteStore(path, scripts=(*NEWER, "CREATE TABLE more (a TEXT);\nDROP TABLE nowhere;"))
    assert run(path, "PRAGMA user_version") == [(FORMAT,)]
    assert run(path, "SELECT count(*) FROM sqlite_master WHERE name IN ('added', 'more')") == [(0,)]
    SqliteStore(path).close()


def test_a_migration_waits_for_the_lease(path: Path) -> None:
    with SqliteStore(path):
        with pytest.raises(LeaseHeld):
            SqliteStore(path, scripts=NEWER)
        assert run(path, "PRAGMA user_version") == [(FORMAT,)]


def test_a_migration_must_end_its_last_statement(path: Path) -> None:
    with pytest.raises(InternalError):
        SqliteStore(path, scripts=(*migrations(), "CREATE TABLE unfinished (a TEXT)"))


def test_migrations_are_numbered_and_the_format_is_their_number(path: Path) -> None:
    database = sqlite3.connect(path)
    assert format_of(database) == newest_format(migrations())
    database.close()


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    run(path, "CREATE TABLE theirs (a)")
    before = path.read_bytes()
    for kind in (SqliteStore, SqliteReader):
        with pytest.raises(NotACatalog):
            kind(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_damaged(path: Path) -> None:
    path.write_bytes(b"garbage, not a database" * 1000)
    with pytest.raises(CatalogDamaged):
        SqliteStore(path)
    with pytest.raises(CatalogDamaged):
        SqliteReader(path)


def test_a_page_that_was_overwritten_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8 * 4096 : 16 * 4096] = b"\xff" * (8 * 4096)
    path.write_bytes(content)
    with pytest.raises(CatalogDamaged), SqliteReader(path) as reader:
        reader.load()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE objects SET kind = 'nonsense' WHERE id = 3",
        "UPDATE objects SET parent = 4711 WHERE id = 3",
        "INSERT INTO secrets VALUES (4711, 'sealed', '')",
        "INSERT INTO secrets VALUES (3, 'nowhere', '')",
        "INSERT INTO dependencies VALUES (3, 0, 4711, 'reads', 1)",
        "DELETE FROM state",
        "DROP TABLE columns",
    ],
)
def test_rows_that_no_catalog_writes_are_damage(path: Path, damage: str) -> None:
    run(path, damage)
    with pytest.raises(CatalogDamaged), SqliteReader(path) as reader:
        reader.load()


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "catalog.db"):
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"catalog.db": 0o600, "catalog.db-wal": 0o600, "catalog.db-shm": 0o600}


def test_a_reader_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnreachable):
        SqliteReader(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_left_empty_by_a_crash_is_nothing_to_read_and_a_new_catalog_to_a_writer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "catalog.db"
    path.touch()
    with pytest.raises(CatalogUnreachable):
        SqliteReader(path)
    with SqliteStore(path) as store:
        assert store.load().version == 0


def test_a_folder_that_is_not_there_is_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(CatalogUnreachable) as caught:
        SqliteStore(tmp_path / "nowhere" / "catalog.db")
    assert caught.value.code == "CAT-0305"


def test_a_file_that_another_program_locks_is_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CatalogBusy):
        SqliteStore(path)
    other.execute("ROLLBACK")
    other.close()
    SqliteStore(path).close()
