"""A client of a running engine, and engines that this process starts.

    client = EngineClient.of_project(Path("."))
    for event in client.run("SELECT * FROM orders;"):
        ...

A client connects to loopback unless a URL names another host, and never uses a proxy. The token is never shown in errors.
``start_engine`` runs `headgate serve` as a child process, for a command or for a run of specs.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from headgate.processes import is_alive, kill_all, last_lines, process_tree, program_environment
from headgate.serve import errors
from headgate.serve.protocol import Columns, Done, Event, Failed, Rows, Value, read_event

CONNECT_TIMEOUT = 10.0  # seconds
EXTRA_TIMEOUT = 15.0  # seconds beyond the time-out of a statement, in which the engine reports that it was cancelled


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The file in a project folder in which a running engine writes its address."""

    url: str
    pid: int
    grpc: str = ""  # host and port of gRPC

    @staticmethod
    def file(project: Path) -> Path:
        return project / ".headgate" / "engine.json"

    @classmethod
    def read(cls, project: Path) -> EngineAddress | None:
        """The address, or None without a readable file. The engine that wrote it may have ended."""
        try:
            data = json.loads(cls.file(project).read_text("utf-8"))
            return cls(str(data["url"]), int(data["pid"]), str(data.get("grpc", "")))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def token_file(project: Path) -> Path:
    """The file with the token that every `/api` request needs. Only its owner can read it."""
    return project / ".headgate" / "token"


class EngineClient:
    """Sends statements to an engine. Safe to share between threads.

    All statements of a client belong to one session: what one sets, for example the search path, holds for later ones.
    """

    def __init__(self, url: str, token: str, session: str | None = None, grpc: str = "") -> None:
        self.url = url.rstrip("/")
        self.grpc = grpc
        self._token = token
        self._session = session or uuid.uuid4().hex

    @property
    def token(self) -> str:
        """What proves to the engine that a request comes from the owner of the project."""
        return self._token

    def __repr__(self) -> str:
        return f"EngineClient({self.url})"

    @classmethod
    def of_project(cls, folder: Path, session: str | None = None) -> Self:
        """A client of the engine that runs for a project folder. Raises EngineNotRunning."""
        found = EngineAddress.read(folder)
        if found is None or not _is_running(found.pid):
            raise errors.EngineNotRunning(str(folder))
        try:
            token = token_file(folder).read_text("utf-8").strip()
        except OSError as error:
            raise errors.EngineNotRunning(str(folder)) from error
        return cls(found.url, token, session, found.grpc)

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
                raise errors.EngineUnreachable(self.url, _reason(error)) from error
        if not isinstance(last, Done | Failed):
            raise errors.EngineUnreachable(self.url, "its answer ended too early")

    def rows(self, sql: str, timeout: float | None = None) -> list[dict[str, Value]]:
        """The rows of a query by the names of their columns. Raises EngineUnreachable if it fails, and what ``run`` raises."""
        names: list[str] = []
        found: list[dict[str, Value]] = []
        for event in self.run(sql, timeout):
            match event:
                case Columns(columns):
                    names = [column.name for column in columns]
                case Rows(rows):
                    found += [dict(zip(names, row, strict=True)) for row in rows]
                case Failed(diagnostic):
                    raise errors.EngineUnreachable(self.url, diagnostic.message)
                case _:
                    pass
        return found

    def is_healthy(self) -> bool:
        """Whether the engine answers."""
        try:
            return self.send("GET", "/healthz", timeout=CONNECT_TIMEOUT).is_success
        except errors.EngineUnreachable:
            return False

    def send(self, method: str, path: str, *, timeout: float, token: str | None = None, **sent: Any) -> httpx.Response:
        """Send any request and return the response, whatever its status. Raises EngineUnreachable.

        ``token`` replaces the client's own token; an empty text sends none.
        """
        try:
            with self._http(httpx.Timeout(timeout), token) as http:
                return http.request(method, path, **sent)
        except httpx.HTTPError as error:
            raise errors.EngineUnreachable(self.url, _reason(error)) from error

    def _http(self, timeout: httpx.Timeout, token: str | None = None) -> httpx.Client:
        used = self._token if token is None else token
        headers = {"Authorization": f"Bearer {used}"} if used else {}
        # Reading the certificates takes 40 ms or more for every client, and plain HTTP needs none.
        verify = self.url.startswith("https:")
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False, verify=verify)

    def raise_for_status(self, response: httpx.Response) -> None:
        """Raise the error that the status of a response means, if it is not a success."""
        if response.status_code in (401, 403):
            raise errors.WrongToken(self.url)
        if not response.is_success:
            response.read()
            if response.status_code == 503:
                raise errors.TooManyStatements(self.url)
            raise errors.EngineRefused(self.url, response.status_code, " ".join(response.text.split())[:300])


def _lines(response: httpx.Response) -> Generator[bytes, None, None]:
    """Split at line feeds only. httpx would also split at U+2028 and others, which JSON allows inside a string."""
    rest = b""
    for part in response.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        yield from filter(bytes.strip, whole)
    if rest.strip():
        yield rest


def _reason(error: httpx.HTTPError) -> str:
    """What went wrong, without the text of the library, which may show the token."""
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "it takes no connection"
        case httpx.TimeoutException():
            return "it did not answer in time"
        case _:
            return "the connection broke off"


def _is_running(pid: int) -> bool:
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


START_TIMEOUT = 180.0  # seconds until an engine must be ready; Spark takes 8 to 20 on two cores
STOP_TIMEOUT = 90.0  # seconds in which an engine must finish its batches and end
POLL_INTERVAL = 0.05

# The command `headgate`, which also works where the package is not installed.
HEADGATE = (sys.executable, "-c", "from headgate.cli.main import main; main()")


class EngineProcess:
    """An engine that this process started, with Spark and its Python workers as descendants."""

    def __init__(self, project: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        self.project = project
        self.log = log
        self._process = process
        self._session = uuid.uuid4().hex

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def client(self) -> EngineClient:
        """A client of the engine. All clients of this object share one session."""
        return EngineClient.of_project(self.project, self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_until_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Raises EngineDidNotStart if the engine ends, or is not ready after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not self._is_ready():
            if (status := self._process.poll()) is not None:
                raise self._did_not_start(f"it ended with status {status}")
            if time.monotonic() > deadline:
                raise self._did_not_start(f"it was not ready within {timeout:.0f} s")
            time.sleep(POLL_INTERVAL)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop the engine and wait. After ``timeout`` seconds all its processes are killed. May be called again."""
        # Taken before the signal: a descendant that outlives the engine is found only through it.
        tree = process_tree(self.pid)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self._end(tree)

    def kill(self) -> None:
        """Kill the engine, Spark and the Python workers at once, as a power failure would."""
        self._end(process_tree(self.pid))

    def _is_ready(self) -> bool:
        found = EngineAddress.read(self.project)
        return found is not None and found.pid == self.pid and self.client.is_healthy()

    def _did_not_start(self, reason: str) -> errors.EngineDidNotStart:
        return errors.EngineDidNotStart(str(self.project), reason, str(self.log), last_lines(self.log))

    def _end(self, tree: list[psutil.Process]) -> None:
        kill_all(tree)
        self._process.wait()


def start_engine(
    project: Path, *, port: int = 0, environment: Mapping[str, str] | None = None, timeout: float = START_TIMEOUT,
    prefix: Sequence[str] = (),
) -> EngineProcess:  # fmt: skip
    """Start `headgate serve` in a new session and wait until it is ready. Raises EngineDidNotStart.

    As a context manager, the engine is stopped at the end of the block.
    ``port`` 0 means a free port. ``environment`` is added to that of this process. ``prefix`` is put before the command
    (see ``embedded.process.lifeline_command``).
    """
    folder = project / ".headgate"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "engine.log"
    command = (*prefix, *HEADGATE, "serve", "--project", str(project), "--port", str(port))
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=program_environment(environment),
        )  # fmt: skip
    started = EngineProcess(project, process, log)
    try:
        started.wait_until_ready(timeout)
    except BaseException:
        started.kill()
        raise
    return started
