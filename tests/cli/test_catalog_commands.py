"""`headgate catalog`: work on a catalog that no engine holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.catalog.changes import ObjectCreated
from headgate.catalog.errors import CatalogUnreachable, LeaseHeld
from headgate.catalog.secrets import Secret
from headgate.catalog.store.keys import key_file_beside
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from headgate.cli.main import headgate
from headgate.sql.statement import Kind
from tests.catalog.building import created

pytestmark = pytest.mark.unit


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HEADGATE_SECRET_KEY", raising=False)
    path = tmp_path / ".headgate" / "catalog.db"
    path.parent.mkdir()
    SqliteStore(path).close()
    return path


def change_key(project: Path) -> Result:
    return CliRunner().invoke(headgate, ("catalog", "change-key", "--project", str(project)))


def test_every_secret_is_encrypted_with_a_new_key(catalog: Path, tmp_path: Path) -> None:
    with SqliteStore(catalog) as store:
        change = created(store.load(), Kind.SECRET, "s")
        store.commit([ObjectCreated(change.object, store.seal(Secret("hunter2")))], cause="statement")
    before = key_file_beside(catalog).read_text()
    assert change_key(tmp_path).stdout == "1 secrets encrypted with the new key\n"
    assert key_file_beside(catalog).read_text() != before
    with SqliteReader(catalog) as reader:
        assert reader.reveal(change.object.id) == Secret("hunter2")


def test_a_catalog_without_secrets_gets_no_key(catalog: Path, tmp_path: Path) -> None:
    assert change_key(tmp_path).stdout == "there are no secrets\n"
    assert not key_file_beside(catalog).exists()


def test_a_catalog_that_an_engine_holds_or_that_does_not_exist_is_left_alone(catalog: Path, tmp_path: Path) -> None:
    with SqliteStore(catalog):
        assert isinstance(change_key(tmp_path).exception, LeaseHeld)
    assert isinstance(change_key(tmp_path / "nowhere").exception, CatalogUnreachable)
    assert not (tmp_path / "nowhere").exists()
