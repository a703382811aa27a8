"""Reads the key that encrypts secrets, and the secrets that the catalog only refers to.

The key is in the environment (`HEADGATE_SECRET_KEY`), otherwise in a file beside the catalog that only its owner can read.
Several keys are separated by commas, the newest first: the first one encrypts, all of them decrypt.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import KeyFileExposed, SecretKeyMissing, SecretSourceMissing
from headgate.catalog.objects import Object
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, Secret, Vault, new_key

VARIABLE = "HEADGATE_SECRET_KEY"


def key_file_beside(catalog: Path) -> Path:
    return catalog.with_name(catalog.name + ".key")


class Keys:
    """The keys of one catalog. The file is read and its mode checked at each use: others must not be able to read it."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def vault(self, *, create: bool) -> Vault:
        """The vault. With `create`, a key file is created if there is no key."""
        given = self._environment.get(VARIABLE)
        if given is not None:
            return Vault(_split(given), f"environment variable {VARIABLE}")
        if create and not self._file.exists():
            _write_private(self._file, new_key(), exclusive=True)
        return Vault(self._read(), f'file "{self._file}"')

    def reveal(self, catalog: Catalog, secret: Object) -> Secret:
        """The value of a secret. The secret may exist only in the catalog of a plan so far."""
        name, source = catalog.display_name(secret.id), catalog.secrets[secret.id]
        match source:
            case EncryptedSecret():
                return self.vault(create=False).open(name, source)
            case FromEnvironment():
                return _from_environment(name, source.name, self._environment)
            case FromFile():
                return _from_file(name, Path(source.path))
            case _:
                assert_never(source)

    def add_new_key(self) -> None:
        """Put a new key before the keys in the file, which can still decrypt older secrets."""
        _write_private(self._file, ",".join((new_key(), *self._read())))

    def forget_old_keys(self) -> None:
        """Keep only the newest key in the file. Call it when every secret is encrypted with that key."""
        _write_private(self._file, self._read()[0])

    @property
    def in_file(self) -> bool:
        return VARIABLE not in self._environment

    def _read(self) -> list[str]:
        try:
            with self._file.open(encoding="ascii", errors="replace") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                if mode & 0o077:
                    raise KeyFileExposed(str(self._file), mode)
                return _split(file.read())
        except FileNotFoundError:
            raise SecretKeyMissing(str(self._file)) from None


def _split(text: str) -> list[str]:
    return [key.strip() for key in text.split(",") if key.strip()]


def _write_private(path: Path, text: str, *, exclusive: bool = False) -> None:
    """Write a file of mode 0600 and move it into place, so that it is never incomplete or readable by others."""
    part = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        _move(part, path, exclusive=exclusive)
    finally:
        part.unlink(missing_ok=True)
    _make_durable(path.parent)


def _move(part: Path, path: Path, *, exclusive: bool) -> None:
    if not exclusive:
        part.replace(path)
        return
    try:
        os.link(part, path)  # unlike a rename, this fails if another process was faster; its key is used then
    except FileExistsError:
        return


def _make_durable(folder: Path) -> None:
    """Sync the folder, because a secret must not be on disk before the key file is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _from_environment(name: str, variable: str, environment: Mapping[str, str]) -> Secret:
    value = environment.get(variable)
    if value is None:
        raise SecretSourceMissing(name, f"environment variable {variable}")
    return Secret(value)


def _from_file(name: str, path: Path) -> Secret:
    """The text of the file without the line break that editors put at its end."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise SecretSourceMissing(name, f'file "{path}"') from None
    return Secret(text.removesuffix("\n").removesuffix("\r"))
