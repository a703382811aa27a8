"""A client of a running engine.

    client = EngineClient.of_project(Path("."))
    for event in client.run("SELECT * FROM orders;"):
        ...

It connects to loopback unless a URL names another host, and never uses a proxy. The token is never shown in errors.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from headgate.serve.errors import (
    EngineNotRunning,
    EngineRefused,
    EngineUnreachable,
    TooManyStatements,
    WrongToken,
)
from headgate.serve.protocol import Done, Event, Failed, read_event

CONNECT_TIMEOUT = 10.0  # seconds
EXTRA_TIMEOUT = 15.0  # seconds beyond the time-out of a statement, in which the engine reports that it was cancelled


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The file in a project folder in which a running engine writes its address."""

    url: str
    pid: int

    @staticmethod
    def file(project: Path) -> Path:
        return project / ".headgate" / "engine.json"

    @classmethod
    def read(cls, project: Path) -> EngineAddress | None:
        """The address, or None without a readable file. The engine that wrote it may have ended."""
        try:
            data = json.loads(cls.file(project).read_text("utf-8"))
            return cls(str(data["url"]), int(data["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def token_file(project: Path) -> Path:
    """The file with the token that every `/api` request needs. Only its owner can read it."""
    return project / ".headgate" / "token"


class EngineClient:
    """Sends statements to an engine. Safe to share between threads.

    All statements of a client belong to one session: what one sets, for example the search path, holds for later ones.
    """

    def __init__(self, url: str, token: str, session: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session = session or uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"EngineClient({self.url})"

    @classmethod
    def of_project(cls, folder: Path, session: str | None = None) -> Self:
        """A client of the engine that runs for a project folder. Raises EngineNotRunning."""
        found = EngineAddress.read(folder)
        if found is None or not _is_running(found.pid):
            raise EngineNotRunning(str(folder))
        try:
            token = token_file(folder).read_text("utf-8").strip()
        except OSError as error:
            raise EngineNotRunning(str(folder)) from error
        return cls(found.url, token, session)

    def run(self, sql: str, timeout: float | None = None) -> Generator[Event, None, None]:
        """Run a statement or script. Yields its events as they arrive; the last one is a Done or a Failed.

        ``timeout`` is in seconds, None for none. Closing the iterator cancels the statement. Raises EngineUnreachable if
        the answer breaks off, WrongToken, TooManyStatements, EngineRefused and UnreadableEvent.
        """
        body = {"sql": sql, "timeout": timeout, "session": self._session}
        wait = httpx.Timeout(CONNECT_TIMEOUT, read=None if timeout is None else timeout + EXTRA_TIMEOUT)
        last: Event | None = None
        try:
            with self._http(wait) as http, http.stream("POST", "/api/statements", json=body) as response:
                self.raise_for_status(response)
                with closing(_lines(response)) as lines:
                    for line in lines:
                        yield (last := read_event(line))
        except httpx.HTTPError as error:
            if not isinstance(last, Failed):
                raise EngineUnreachable(self.url, _reason(error)) from error
        if not isinstance(last, Done | Failed):
            raise EngineUnreachable(self.url, "its answer ended too early")

    def is_healthy(self) -> bool:
        """Whether the engine answers."""
        try:
            return self.send("GET", "/healthz", timeout=CONNECT_TIMEOUT).is_success
        except EngineUnreachable:
            return False

    def send(self, method: str, path: str, *, timeout: float, token: str | None = None, **sent: Any) -> httpx.Response:
        """Send any request and return the response, whatever its status. Raises EngineUnreachable.

        ``token`` replaces the client's own token; an empty text sends none.
        """
        try:
            with self._http(httpx.Timeout(timeout), token) as http:
                return http.request(method, path, **sent)
        except httpx.HTTPError as error:
            raise EngineUnreachable(self.url, _reason(error)) from error

    def _http(self, timeout: httpx.Timeout, token: str | None = None) -> httpx.Client:
        used = self._token if token is None else token
        headers = {"Authorization": f"Bearer {used}"} if used else {}
        # Reading the certificates takes 40 ms or more for every client, and plain HTTP needs none.
        verify = self.url.startswith("https:")
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False, verify=verify)

    def raise_for_status(self, response: httpx.Response) -> None:
        """Raise the error that the status of a response means, if it is not a success."""
        if response.status_code in (401, 403):
            raise WrongToken(self.url)
        if not response.is_success:
            response.read()
            if response.status_code == 503:
                raise TooManyStatements(self.url)
            raise EngineRefused(self.url, response.status_code, " ".join(response.text.split())[:300])


def _lines(response: httpx.Response) -> Generator[bytes, None, None]:
    """Split at line feeds only. httpx would also split at U+2028 and others, which JSON allows inside a string."""
    rest = b""
    for part in response.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        yield from filter(bytes.strip, whole)
    if rest.strip():
        yield rest


def _reason(error: httpx.HTTPError) -> str:
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "it takes no connection"
        case httpx.TimeoutException():
            return "it did not answer in time"
        case _:
            return "the connection broke off"


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
