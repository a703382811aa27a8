"""Secrets: values that do not print, what the catalog stores instead of them, and the vault that encrypts them.

The catalog stores a `SecretSource`: an encrypted value, or the place from which the value is read at use. This module does
no I/O; `store.keys` reads keys and places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from headgate.catalog.errors import SecretKeyMalformed, SecretUnreadable
from headgate.schema.names import quote_identifier, quote_literal

REDACTED = "***"


class Secret:
    """A value that repr, str, format, log and pickle do not show. Only `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({REDACTED})"

    def __str__(self) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret does not leave its process")


@dataclass(frozen=True, slots=True)
class EncryptedSecret:
    """CREATE SECRET … AS '…': the value as the vault encrypted it."""

    token: str

    def __repr__(self) -> str:
        return f"EncryptedSecret({REDACTED})"


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    name: str


@dataclass(frozen=True, slots=True)
class FromFile:
    path: str


SecretSource: TypeAlias = EncryptedSecret | FromEnvironment | FromFile


class Vault:
    """Encrypts with the first of its keys and decrypts with any of them, so that the key can be changed."""

    def __init__(self, keys: Sequence[str], place: str) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise SecretKeyMalformed(place) from None  # the cause would quote the key

    def seal(self, secret: Secret) -> EncryptedSecret:
        return EncryptedSecret(self._fernet.encrypt(secret.reveal().encode("utf-8", "surrogatepass")).decode())

    def open(self, name: str, sealed: EncryptedSecret) -> Secret:
        try:
            return Secret(self._fernet.decrypt(sealed.token.encode()).decode("utf-8", "surrogatepass"))
        except InvalidToken:
            raise SecretUnreadable(name) from None

    def reencrypt(self, name: str, sealed: EncryptedSecret) -> EncryptedSecret:
        """The same secret, encrypted with the first key."""
        try:
            return EncryptedSecret(self._fernet.rotate(sealed.token.encode()).decode())
        except InvalidToken:
            raise SecretUnreadable(name) from None


def new_key() -> str:
    return Fernet.generate_key().decode()


def redacted_statement(verb: str, name: str, source: SecretSource) -> str:
    """The statement that history and SHOW CREATE show for a secret, whatever the user wrote."""
    match source:
        case EncryptedSecret():
            given = f"AS {quote_literal(REDACTED)}"
        case FromEnvironment():
            given = f"FROM ENV {quote_literal(source.name)}"
        case FromFile():
            given = f"FROM FILE {quote_literal(source.path)}"
    return f"{verb} SECRET {quote_identifier(name)} {given}"
