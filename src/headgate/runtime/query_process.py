"""The process that runs SELECTs: Python with a small Spark of its own, beside the engine's.

A query can end the JVM that runs it: a value of 500 MB, a `collect_list` of everything, an array of 200 million elements.
No way of reading the rows prevents that. So queries run where no task runs, at a lower priority, and the process is started
again when it ends.

The engine and the process share a control socket. The engine sends one end of a socket pair over it for each query: no name
in the file system, nobody else can connect. On that socket goes one request, and answers come back. Closing it cancels the
query, not reading it lets the query wait, and an end without a last answer means that the process has ended. The process
ends when the engine closes the control socket, and so also when the engine is killed.

Messages are pickled, because both ends are the same program of the same user.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from headgate.processes import kill_all, process_tree
from headgate.runtime.errors import QueryCancelled, QueryProcessEnded
from headgate.runtime.query import Answer, Failed, Finished, Grown, QueryRequest
from headgate.runtime.spool import read_exactly

log = logging.getLogger(__name__)

MODULE = "headgate.runtime.query_server"
START_DELAYS = (0.0, 1.0, 5.0, 30.0)  # seconds before a process that ended at once is started again


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a query process is started with. ``spool`` is the number of bytes of rows that may wait on disk."""

    folder: Path
    jars: tuple[Path, ...]
    java: Path | None = None
    archive: Path | None = None
    memory: str = "512m"
    at_once: int = 4
    spool: int = 1 << 30
    spark: Mapping[str, str] = field(default_factory=dict)
    niceness: int = 5  # with 5 it gets a third of what tasks get of a busy core, with 10 a tenth


# messages

_LENGTH = struct.Struct("!Q")


def write_message(connection: socket.socket, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def read_message(connection: socket.socket) -> object:
    """The next message. Raises EOFError at the end, also in the middle of a message."""
    (length,) = _LENGTH.unpack(read_exactly(connection, _LENGTH.size))
    return pickle.loads(read_exactly(connection, length))


# in the engine


class RunningQuery(Protocol):
    def answers(self) -> Iterator[Answer]:
        """The answers as they come. Raises what the query failed with."""

    def cancel(self) -> None:
        """Called by another thread. May be called again."""

    def close(self) -> None:
        """End the query if it still runs."""


class Queries(Protocol):
    """Runs queries."""

    def open(self, request: QueryRequest) -> RunningQuery: ...


class QueryConnection:
    """A query that was sent to the process. ``ended`` makes the error of a process that has ended."""

    def __init__(
        self, connection: socket.socket, ended: Callable[[], QueryProcessEnded], over: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._ended = ended
        self._over = over
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            self._connection.close()
            self._over()

    def answers(self) -> Iterator[Answer]:
        while True:
            try:
                answer = read_message(self._connection)
            except (EOFError, OSError):
                raise QueryCancelled if self._cancelled else self._ended() from None
            match answer:
                case Failed(error):
                    raise error
                case _:
                    yield answer  # type: ignore[misc]
            if isinstance(answer, Finished | Grown):
                return


class QueryClient:
    """The engine's end of a control socket."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.gone = threading.Event()
        self.reason = "It ended without a word"
        self._guard = threading.Lock()
        self._running = 0

    def open(self, request: QueryRequest) -> RunningQuery:
        """Send a query. Raises OSError if the process has ended."""
        ours, theirs = socket.socketpair()
        with theirs, self._guard:
            socket.send_fds(self.control, [b"q"], [theirs.fileno()])
            self._running += 1
        query = QueryConnection(ours, self._ended, self._over)
        try:
            write_message(ours, request)
        except OSError:
            query.close()
            raise
        return query

    def _over(self) -> None:
        with self._guard:
            self._running -= 1

    def _ended(self) -> QueryProcessEnded:
        others = max(0, self._running - 1)
        self.gone.wait(5.0)
        return QueryProcessEnded(self.reason, others)


class QueryProcess:
    """The query process of an engine: started in the background, and started again whenever it ends."""

    def __init__(self, settings: Callable[[], QuerySettings]) -> None:
        """``settings`` is called by a thread of this class. It may take time, and may raise."""
        self._settings = settings
        self._changed = threading.Condition()
        self._client: QueryClient | None = None
        self._failure: BaseException | None = None
        self._closing = self._started = self._wanted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name="query process", daemon=True)

    def warm_up(self) -> None:
        with self._changed:
            if not self._started:
                self._started = True
                self._thread.start()

    def open(self, request: QueryRequest) -> RunningQuery:
        """Send a query, as soon as the process runs."""
        self.warm_up()
        while True:
            client = self._running_client()
            try:
                return client.open(request)
            except OSError:  # it ended before it took the query, which can go to the next one
                client.gone.wait(1.0)

    @property
    def pid(self) -> int | None:
        """The process that was started last."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        with self._changed:
            self._closing = True
            client = self._client
            self._changed.notify_all()
        if client is not None:
            _hang_up(client.control)
        if self._started:
            self._thread.join(30)
        if self._process is not None and self._process.poll() is None:
            kill_all(process_tree(self._process.pid))
            self._process.wait()

    def _running_client(self) -> QueryClient:
        with self._changed:
            self._failure, self._wanted = None, True
            self._changed.notify_all()
            while self._client is None or self._client.gone.is_set():
                if self._failure is not None:
                    raise self._failure
                if self._closing:
                    raise QueryCancelled
                self._changed.wait(1.0)
            return self._client

    # the thread that keeps it running

    def _keep_running(self) -> None:
        """A process that could not start is started again after a delay, or when a query needs it."""
        failed = 0
        while not self._closing:
            failed = 0 if self._run_once() else failed + 1
            with self._changed:
                self._wanted = False
                delay = START_DELAYS[min(failed, len(START_DELAYS) - 1)]
                self._changed.wait_for(lambda: self._closing or self._wanted, delay)

    def _run_once(self) -> bool:
        """Start a process and wait until it has ended. Returns whether it came so far as to take queries."""
        try:
            client, process = self._start()
        except Exception as error:  # noqa: BLE001 - the query that waits for the process raises it
            self._fail(error)
            return False
        with client.control:
            ran = self._follow(client)
            status = process.wait()
        client.gone.set()
        if not self._closing:
            log.warning("the query process ended with status %s: %s", status, client.reason)
            if not ran:
                self._fail(QueryProcessEnded("It could not start; the engine's log says why"))
        return ran

    def _start(self) -> tuple[QueryClient, subprocess.Popen[bytes]]:
        settings = self._settings()
        ours, theirs = socket.socketpair()
        with theirs:
            command = (sys.executable, "-m", MODULE, str(theirs.fileno()))
            # Ctrl-C is for the engine, which ends this process in order: so it is in a session of its own.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._process = process
        with contextlib.suppress(OSError):
            write_message(ours, settings)
        return QueryClient(ours), process

    def _follow(self, client: QueryClient) -> bool:
        """Listen to the process until it has ended: its first message says that it is ready, another why it ends."""
        ran = False
        with contextlib.suppress(EOFError, OSError):
            while True:
                reason = read_message(client.control)
                if not ran:
                    ran = True
                    with self._changed:
                        self._client = client
                        self._changed.notify_all()
                else:
                    client.reason = str(reason)
        return ran

    def _fail(self, error: BaseException) -> None:
        """Let the queries that wait fail. The next query makes another try."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()


def _hang_up(control: socket.socket) -> None:
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)
