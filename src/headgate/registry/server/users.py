"""Who may use the registry, when it has users at all: basic authentication, readers and writers."""

from __future__ import annotations

import base64
import binascii
import hmac
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate.registry.server.errors import NotSignedIn, ReadOnlyUser, UserFileUnusable


@dataclass(frozen=True, slots=True)
class User:
    name: str
    password: str = field(repr=False)
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Users:
    """Without any user the registry is open to everybody who can reach it."""

    by_name: Mapping[str, User] = field(default_factory=dict)

    def admit(self, authorization: str, *, writes: bool) -> None:
        """Raises NotSignedIn or ReadOnlyUser for a request with this Authorization header."""
        if not self.by_name:
            return
        name, password = _credentials(authorization)
        user = self.by_name.get(name)
        # Compared also for a name that does not exist, so that the time taken does not tell which names do.
        expected = user.password if user is not None else ""
        right = hmac.compare_digest(password.encode(), expected.encode())
        if user is None or not right:
            raise NotSignedIn
        if writes and user.read_only:
            raise ReadOnlyUser(name)


def read_users(path: Path) -> Users:
    """One user per line: ``read-write NAME PASSWORD`` or ``read-only NAME PASSWORD``; # starts a comment line."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UserFileUnusable(str(path), "others than its owner can use it")
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise UserFileUnusable(str(path), reason or "it cannot be read") from failure
    users = [
        _user(path, number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not users:
        raise UserFileUnusable(str(path), "it names no user")
    return Users({user.name: user for user in users})


def _user(path: Path, number: int, line: str) -> User:
    match line.split(maxsplit=2):
        case ["read-write" | "read-only" as role, name, password]:
            return User(name, password.rstrip(), role == "read-only")
        case _:
            raise UserFileUnusable(str(path), f"line {number} is not understood")


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise NotSignedIn
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise NotSignedIn from None
    if not colon:
        raise NotSignedIn
    return name, password
