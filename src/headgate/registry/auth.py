"""How a client shows who it is, and whom it trusts. Secrets are left out of every printed form."""

from __future__ import annotations

import ssl
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, assert_never

import httpx

from headgate.registry.errors import InvalidRegistrySetting


@dataclass(frozen=True, slots=True)
class Basic:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bearer:
    token: str = field(repr=False)


Credentials: TypeAlias = Basic | Bearer


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM form. Without ``ca`` the system's authorities are trusted; ``certificate`` is the client's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Raises InvalidRegistrySetting when a file is missing or is not what it should be."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as failure:
            raise InvalidRegistrySetting("ca", f'"{self.ca}" holds no certificates') from failure
        if self.certificate is not None:
            try:
                # Without a password OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, self.key, self.key_password or "")
            except (OSError, ssl.SSLError) as failure:
                problem = f'"{self.certificate}" and its key cannot be used together'
                raise InvalidRegistrySetting("certificate", problem) from failure
        elif self.key is not None:
            raise InvalidRegistrySetting("key", "there is no certificate for it")
        return context


def user_of(credentials: Credentials | None) -> str | None:
    return credentials.user if isinstance(credentials, Basic) else None


class Bearing(httpx.Auth):
    """Puts a token on every request."""

    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = self._header
        yield request


def httpx_auth(credentials: Credentials | None) -> httpx.Auth | None:
    match credentials:
        case None:
            return None
        case Basic(user, password):
            return httpx.BasicAuth(user, password)
        case Bearer(token):
            return Bearing(token)
        case _:
            assert_never(credentials)
