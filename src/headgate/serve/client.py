"""A client of a running engine.

    client = EngineClient.of_project(Path("."))
    for event in client.run("SELECT * FROM orders;"):
        ...

Only loopback is spoken to unless a URL says otherwise, and never through a proxy. The token is sent, never shown.
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

CONNECT = 10.0  # seconds to reach the engine
GRACE = 15.0  # seconds beyond a statement's own time-out in which the engine may tell that it ended


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """What an engine writes into its project folder when it is ready."""

    url: str
    pid: int

    @staticmethod
    def file(project: Path) -> Path:
        return project / ".headgate" / "engine.json"

    @classmethod
    def read(cls, project: Path) -> EngineAddress | None:
        """None if there is none; the engine that wrote it may be gone."""
        try:
            told = json.loads(cls.file(project).read_text("utf-8"))
            return cls(str(told["url"]), int(told["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def token_file(project: Path) -> Path:
    return project / ".headgate" / "token"


class EngineClient:
    """May be used by several threads at once. What it sets (the search path) holds for its later statements."""

    def __init__(self, url: str, token: str, session: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session = session or uuid.uuid4().hex

    def __repr__(self) -> str:
        return f"EngineClient({self.url})"

    @classmethod
    def of_project(cls, folder: Path, session: str | None = None) -> Self:
        """The engine of a project folder. Raises EngineNotRunning."""
        found = EngineAddress.read(folder)
        if found is None or not _lives(found.pid):
            raise EngineNotRunning(str(folder))
        try:
            token = token_file(folder).read_text("utf-8").strip()
        except OSError as wrong:
            raise EngineNotRunning(str(folder)) from wrong
        return cls(found.url, token, session)

    def run(self, sql: str, timeout: float | None = None) -> Generator[Event, None, None]:
        """The events of one statement or script, as they come; ``timeout`` in seconds, None for none. The last is a
        Done or a Failed; an answer that ends otherwise raises EngineUnreachable. Closing the iterator cancels."""
        body = {"sql": sql, "timeout": timeout, "session": self._session}
        wait = httpx.Timeout(CONNECT, read=None if timeout is None else timeout + GRACE)
        last: Event | None = None
        try:
            with self._http(wait) as http, http.stream("POST", "/api/statements", json=body) as response:
                self.refuse(response)
                with closing(_lines(response)) as lines:
                    for line in lines:
                        yield (last := read_event(line))
        except httpx.HTTPError as wrong:
            if not isinstance(last, Failed):
                raise EngineUnreachable(self.url, _reason(wrong)) from wrong
        if not isinstance(last, Done | Failed):
            raise EngineUnreachable(self.url, "its answer ended too early")

    def is_healthy(self) -> bool:
        try:
            return self.send("GET", "/healthz", timeout=CONNECT).is_success
        except EngineUnreachable:
            return False

    def send(
        self, method: str, path: str, *, timeout: float, token: str | None = None, **sent: Any
    ) -> httpx.Response:
        """Any request of the engine's own server, answered whatever its status. ``token`` in place of the client's
        own; an empty one sends none."""
        try:
            with self._http(httpx.Timeout(timeout), token) as http:
                return http.request(method, path, **sent)
        except httpx.HTTPError as wrong:
            raise EngineUnreachable(self.url, _reason(wrong)) from wrong

    def _http(self, timeout: httpx.Timeout, token: str | None = None) -> httpx.Client:
        used = self._token if token is None else token
        headers = {"Authorization": f"Bearer {used}"} if used else {}
        # Reading the certificates takes 40 ms or more for every client, and plain HTTP needs none.
        verify = self.url.startswith("https:")
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=False, verify=verify
        )

    def refuse(self, response: httpx.Response) -> None:
        """Raise what an answer without success means."""
        if response.status_code in (401, 403):
            raise WrongToken(self.url)
        if not response.is_success:
            response.read()
            if response.status_code == 503:
                raise TooManyStatements(self.url)
            raise EngineRefused(self.url, response.status_code, " ".join(response.text.split())[:300])


def _lines(response: httpx.Response) -> Generator[bytes, None, None]:
    """Split at line feeds alone: other characters that end lines may stand within JSON."""
    waiting = b""
    for part in response.iter_bytes():
        *whole, waiting = (waiting + part).split(b"\n")
        yield from filter(bytes.strip, whole)
    if waiting.strip():
        yield waiting


def _reason(wrong: httpx.HTTPError) -> str:
    match wrong:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "it takes no connection"
        case httpx.TimeoutException():
            return "it did not answer in time"
        case _:
            return "the connection broke off"


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
