"""Secrets are sealed in the file, read only with the key, and shown nowhere."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.catalog.changes import ObjectCreated, SecretChanged
from headgate.catalog.errors import (
    KeyFileExposed,
    SecretKeyMalformed,
    SecretKeyMissing,
    SecretSourceMissing,
    SecretUnreadable,
)
from headgate.catalog.secrets import (
    EncryptedSecret,
    FromEnvironment,
    FromFile,
    Secret,
    SecretSource,
    Vault,
    new_key,
)
from headgate.catalog.store.keys import VARIABLE, Keys, key_file_beside
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from headgate.errors import HeadgateError
from headgate.sql.connections import CreateSecret, SecretText
from headgate.sql.statement import Kind
from tests.catalog.building import created, written

pytestmark = pytest.mark.unit

PLAIN = "hunter2-and-its-friends"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path, environment={}) as opened:
        yield opened


def add_secret(store: SqliteStore, source: SecretSource, name: str = "s") -> int:
    """As an engine that forgot to hide the value in the statement would do it."""
    change = created(store.load(), Kind.SECRET, name)
    definition = CreateSecret(written(name), SecretText(PLAIN))
    new = replace(change.object, statement=f"CREATE SECRET {name} AS '{PLAIN}'", definition=definition)
    store.commit([ObjectCreated(new, source)], cause="statement", statement=new.statement)
    return new.id


def test_a_secret_is_nowhere_in_the_files_in_plain(store: SqliteStore, path: Path) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    store.commit(
        [SecretChanged(secret, store.seal(Secret(PLAIN + "!")))],
        cause="statement",
        statement=f"ALTER '{PLAIN}!'",
    )
    assert store.reveal(secret).reveal() == PLAIN + "!"
    files = sorted(path.parent.iterdir())
    assert [f.name for f in files] == ["catalog.db", "catalog.db-shm", "catalog.db-wal", "catalog.db.key"]
    assert not [f.name for f in files if PLAIN.encode() in f.read_bytes()]
    store.close()
    assert PLAIN.encode() not in path.read_bytes()


def test_history_shows_statements_without_the_secret(store: SqliteStore) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    alter = SecretChanged(secret, FromEnvironment("PGPASSWORD"))
    store.commit([alter], cause="statement", statement=f"ALTER SECRET s AS '{PLAIN}'")
    assert [e.statement for e in store.history()] == [
        "CREATE SECRET s AS '***'",
        "ALTER SECRET s FROM ENV 'PGPASSWORD'",
    ]
    assert PLAIN not in repr((store.load(), store.history(), store.events()))


def test_a_secret_prints_redacted_and_stays_in_its_process() -> None:
    secret = Secret(PLAIN)
    assert (repr(secret), str(secret), f"{secret}") == ("Secret(***)", "***", "***")
    assert repr(EncryptedSecret("token")) == "EncryptedSecret(***)"
    assert (secret == Secret(PLAIN), secret == Secret("other"), secret == PLAIN) == (True, False, False)
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            copied(secret)


def test_the_key_file_is_made_for_its_owner_alone_and_only_when_needed(store: SqliteStore, path: Path) -> None:
    assert not key_file_beside(path).exists()
    add_secret(store, store.seal(Secret(PLAIN)))
    assert key_file_beside(path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_file_that_others_can_reach_is_refused(store: SqliteStore, path: Path, mode: int) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    key_file_beside(path).chmod(mode)
    for use in (lambda: store.reveal(secret), lambda: store.seal(Secret("x"))):
        with pytest.raises(KeyFileExposed) as caught:
            use()
        assert f"mode {mode:04o}" in caught.value.message()


def test_another_key_cannot_open_a_secret(store: SqliteStore, path: Path) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    with (
        SqliteReader(path, environment={VARIABLE: new_key()}) as reader,
        pytest.raises(SecretUnreadable) as caught,
    ):
        reader.reveal(secret)
    assert caught.value.message() == 'cannot decrypt secret "s": it was encrypted with another key'


def test_without_any_key_a_secret_is_not_opened_and_no_key_is_made(store: SqliteStore, path: Path) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    key_file_beside(path).unlink()
    with pytest.raises(SecretKeyMissing):
        store.reveal(secret)
    assert not key_file_beside(path).exists()


@pytest.mark.parametrize("key", ["", "short", "ä" * 44, "not base64 at all, not even nearly, to be honest"])
def test_a_malformed_key_is_refused_without_showing_it(path: Path, key: str) -> None:
    with pytest.raises(SecretKeyMalformed) as caught:
        Keys(path, {VARIABLE: key}).vault(create=False)
    assert not key or key not in str(caught.value.diagnostic())


def test_the_environment_goes_before_the_file(path: Path) -> None:
    with SqliteStore(path, environment={VARIABLE: new_key()}) as store:
        secret = add_secret(store, store.seal(Secret(PLAIN)))
        assert store.reveal(secret) == Secret(PLAIN)
        assert not key_file_beside(path).exists()


def test_a_secret_from_the_environment_is_read_at_use(path: Path) -> None:
    environment = {"PGPASSWORD": "one"}
    with SqliteStore(path, environment=environment) as store:
        secret = add_secret(store, FromEnvironment("PGPASSWORD"))
        assert store.reveal(secret) == Secret("one")
        environment["PGPASSWORD"] = "two"
        assert store.reveal(secret) == Secret("two")
        del environment["PGPASSWORD"]
        with pytest.raises(SecretSourceMissing) as caught:
            store.reveal(secret)
    assert caught.value.message() == 'could not read secret "s" from environment variable PGPASSWORD'


def test_a_secret_from_a_file_is_read_at_use_without_its_line_break(store: SqliteStore, tmp_path: Path) -> None:
    place = tmp_path / "password"
    secret = add_secret(store, FromFile(str(place)))
    for content in (b"", b"\xff\xfe"):
        if content:
            place.write_bytes(content)
        with pytest.raises(SecretSourceMissing):
            store.reveal(secret)
    place.write_text(" päss word \r\n", encoding="utf-8", newline="")
    assert store.reveal(secret) == Secret(" päss word ")


def test_changing_the_key_keeps_every_secret(store: SqliteStore, path: Path) -> None:
    sealed = [add_secret(store, store.seal(Secret(f"{PLAIN}{n}")), f"s{n}") for n in range(3)]
    add_secret(store, FromEnvironment("X"), "elsewhere")
    old_key, old_sources = key_file_beside(path).read_text(), store.load().secrets
    after = store.change_key()
    assert [store.reveal(i).reveal() for i in sealed] == [f"{PLAIN}{n}" for n in range(3)]
    assert old_key.strip() not in key_file_beside(path).read_text()
    assert [i for i in old_sources if after.secrets[i] != old_sources[i]] == sealed
    with (
        SqliteReader(path, environment={VARIABLE: old_key.strip()}) as reader,
        pytest.raises(SecretUnreadable),
    ):
        reader.reveal(sealed[0])


def test_a_crash_while_the_key_changes_leaves_every_secret_readable(store: SqliteStore, path: Path) -> None:
    secret = add_secret(store, store.seal(Secret(PLAIN)))
    store.keys.add_new_key()  # and no further
    assert store.reveal(secret) == Secret(PLAIN)
    store.change_key()
    assert store.reveal(secret) == Secret(PLAIN)
    assert "," not in key_file_beside(path).read_text()


def test_a_key_in_the_environment_is_changed_by_putting_the_new_one_first(path: Path) -> None:
    old, new = new_key(), new_key()
    with SqliteStore(path, environment={VARIABLE: old}) as store:
        secret = add_secret(store, store.seal(Secret(PLAIN)))
    with SqliteStore(path, environment={VARIABLE: f"{new},{old}"}) as store:
        store.change_key()
    with SqliteReader(path, environment={VARIABLE: new}) as reader:
        assert reader.reveal(secret) == Secret(PLAIN)


def test_any_text_can_be_a_secret() -> None:
    vault = Vault([new_key()], "a test")
    for text in ("", "\0", "\udcff from the environment", "\N{GRINNING FACE}" * 1000):
        assert vault.open("s", vault.seal(Secret(text))) == Secret(text)
    with pytest.raises(SecretUnreadable):
        vault.reencrypt("s", EncryptedSecret("not a token"))


def test_errors_about_secrets_hold_no_cause_that_shows_them(path: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        Vault(["a-key-that-is-wrong"], "a test")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
