"""The way into an embedded world, for all other code.

    with World.open(folder) as world:
        brokers = world.kafka()

A supervisor process owns the services. The first ``World.open`` starts it, later ones share it. An open ``World`` is a
lease: when the last one is closed, or its process is killed, the supervisor stops the services. If the supervisor itself
is killed, the next call starts another one, and the services come back with their data and ports.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from headgate.embedded import errors
from headgate.embedded.folder import WorldFolder, is_locked, lock_holder, open_folder
from headgate.embedded.jars import fetch, jar_sets
from headgate.embedded.service import SERVICES, ServiceName, service_name
from headgate.embedded.supervisor import IDLE_TIMEOUT, Reply, Request, WorldStatus, read_reply, write_request
from headgate.processes import last_lines, program_environment

Progress = Callable[[str], None]

TRIES = 3
TIMEOUT = 60.0  # seconds for a supervisor to answer; an earlier one may have to stop its services first
RETRY_INTERVAL = 0.03  # seconds between two attempts to reach a supervisor that starts


class World:
    """A lease on the world in a folder. Safe to share between threads.

    All methods that talk to the supervisor raise WorldInUse if it does not answer.
    """

    def __init__(self, folder: WorldFolder, progress: Progress | None, idle_timeout: float, timeout: float) -> None:
        self.folder = folder.path
        self._folder = folder
        self._progress = progress
        self._idle_timeout = idle_timeout
        self._timeout = timeout
        self._fetched: set[str] = set()
        self._lease: socket.socket | None = None
        self._guard = threading.Lock()

    @classmethod
    def open(
        cls,
        folder: Path | str,
        progress: Progress | None = None,
        *,
        idle_timeout: float = IDLE_TIMEOUT,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Connect to the supervisor of a folder, or start one.

        ``progress`` is called with a line of text for each download and start. ``idle_timeout`` is the time in seconds
        that the services run on after the last lease; it counts if this call starts the supervisor. ``timeout`` is the
        time in seconds to wait for an answer of the supervisor.
        """
        world = cls(open_folder(Path(folder)), progress, idle_timeout, timeout)
        world._ensure_lease()
        return world

    @classmethod
    def running(cls, folder: Path | str) -> WorldStatus | None:
        """The state of the world in a folder, or None if it does not run. Starts nothing."""
        path = Path(folder)
        if not (path / "world.json").exists():  # ``open_folder`` would create a world
            return None
        opened = open_folder(path)
        found = _connect(opened, 5)
        if found is None:
            return None
        with found:
            try:
                return _request(found, Request("status")).status
            except ConnectionError:
                return None
            except TimeoutError as error:
                raise errors.WorldInUse(str(path), lock_holder(opened)) from error

    def kafka(self) -> str:
        """`host:port` of the broker."""
        return self.address("kafka")

    def registry(self) -> str:
        """The registry's URL."""
        return self.address("registry")

    def postgres(self) -> str:
        """The URL for libpq, with the password."""
        return self.address("postgres")

    def elasticsearch(self) -> str:
        """The URL of OpenSearch."""
        return self.address("opensearch")

    def address(self, service: str) -> str:
        """The address of one service, which is started if it does not run."""
        return self.ensure(service)[service_name(service)]

    def ensure(self, *services: str) -> dict[ServiceName, str]:
        """The addresses of these services, or of all. Services that do not run are started side by side.

        Raises ServiceIsDown for a service that was stopped on purpose, and other errors of family WLD.
        """
        names = [service_name(one) for one in services] or list(SERVICES)
        self._fetch(names)
        return self._addresses(Request("ensure", tuple(names)))

    def start(self, *services: str, port: int | None = None) -> dict[ServiceName, str]:
        """Like ``ensure``, but also starts services that were stopped on purpose. ``port`` is for a single service."""
        names = [service_name(one) for one in services]
        self._fetch(names)
        return self._addresses(Request("start", tuple(names), port=port))

    def stop(self, *services: str) -> None:
        """Stop services. They stay down until ``start``."""
        self._send(Request("stop", services))

    def stop_hard(self, *services: str) -> None:
        """Kill services as a crash would. They stay down until ``start``."""
        self._send(Request("stop", services, hard=True))

    def status(self) -> WorldStatus:
        return _status(self._send(Request("status")))

    def pin(self) -> WorldStatus:
        """Keep the world running without a lease, until ``shut_down``."""
        return _status(self._send(Request("pin")))

    def shut_down(self) -> None:
        """Stop all services and the supervisor, even if others hold leases, and wait until they have ended."""
        if (found := _connect(self._folder, self._timeout)) is not None:
            with found, suppress(ConnectionError, errors.SupervisorEnding):
                _request(found, Request("shutdown"))
        self.close()
        deadline = time.monotonic() + self._timeout
        while is_locked(self._folder):
            if time.monotonic() > deadline:
                raise errors.WorldInUse(str(self.folder), lock_holder(self._folder))
            time.sleep(0.05)

    def close(self) -> None:
        """End the lease. The next call takes a new one."""
        with self._guard:
            if self._lease is not None:
                self._lease.close()
                self._lease = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fetch(self, names: Sequence[ServiceName]) -> None:
        """Download the jars of services. This happens here and not in the supervisor, so that ``progress`` can show it. Each
        set is checked only once, because that reads all jars."""
        for jar_set in jar_sets():
            service = jar_set.partition("-")[0]  # OpenSearch has one set per module: opensearch-lib, …
            if service in names and jar_set not in self._fetched:
                fetch(jar_set, self._progress)
                self._fetched.add(jar_set)

    def _addresses(self, request: Request) -> dict[ServiceName, str]:
        if self._progress:
            running = {one.service for one in self.status().services if one.state == "running"}
            if waiting := [name for name in request.services if name not in running]:
                self._progress(f"starting {', '.join(waiting)}")
        return {service_name(name): address for name, address in self._send(request).addresses.items()}

    def _send(self, request: Request) -> Reply:
        """Send a request and return the reply.

        Each request has a connection of its own, so that threads do not wait for each other. All requests may be repeated;
        this one is repeated if the supervisor ends.
        """
        for _ in range(TRIES):
            self._ensure_lease()
            found = _connect(self._folder, self._timeout)
            if found is not None:
                try:
                    with found:
                        return _request(found, request)
                except TimeoutError:
                    break
                except (ConnectionError, errors.SupervisorEnding):
                    pass
            self.close()
        raise errors.WorldInUse(str(self.folder), lock_holder(self._folder))

    def _ensure_lease(self) -> None:
        """Take a lease, unless we have one on a supervisor that still runs."""
        with self._guard:
            if self._lease is not None:
                if not _is_closed(self._lease):
                    return
                self._lease.close()
                self._lease = None
            self._lease = self._new_lease()

    def _new_lease(self) -> socket.socket:
        """A lease on the supervisor of the folder, which is started if there is none."""
        deadline = time.monotonic() + self._timeout
        starting: subprocess.Popen[bytes] | None = None
        while True:
            if (lease := self._take_lease()) is not None:
                return lease
            # Status 0 means that the supervisor was not needed, because another one serves or served the folder.
            if starting is None or starting.returncode == 0:
                starting = self._start_supervisor()
            elif starting.returncode is not None:
                log = self._folder.log("supervisor-start")
                raise errors.SupervisorDidNotStart(str(self.folder), str(log), last_lines(log))
            if time.monotonic() > deadline:
                raise errors.WorldInUse(str(self.folder), lock_holder(self._folder))
            time.sleep(RETRY_INTERVAL)

    def _start_supervisor(self) -> subprocess.Popen[bytes]:
        try:
            return _start_supervisor(self._folder, self._idle_timeout)
        except OSError as error:  # the folder was removed, or its disk is full
            raise errors.WorldFolderUnusable(str(self.folder), (error.strerror or str(error)).lower()) from error

    def _take_lease(self) -> socket.socket | None:
        """A connection that is a lease, None if the supervisor is ending or does not answer."""
        connection = _connect(self._folder, min(5.0, self._timeout))
        if connection is None:
            return None
        try:
            _request(connection, Request("lease"))
        except (OSError, errors.SupervisorEnding):  # a TimeoutError of a stopped process is an OSError
            connection.close()
            return None
        connection.settimeout(None)
        return connection


def _connect(folder: WorldFolder, timeout: float) -> socket.socket | None:
    """A connection to the supervisor of a folder, None if none listens."""
    found = folder.supervisor()
    if found is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(found[1]))
    except OSError:
        connection.close()
        return None
    return connection


def _request(connection: socket.socket, request: Request) -> Reply:
    """Send a request and wait for the reply. Raises the error that the supervisor replies with."""
    if request.ask in ("ensure", "start", "stop"):
        connection.settimeout(None)  # the supervisor has its own time-outs for these
    connection.sendall(write_request(request))
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            raise ConnectionResetError("the supervisor ended before it had answered")
        line += part
    reply = read_reply(line)
    if reply.error is not None:
        raise reply.error
    return reply


def _status(reply: Reply) -> WorldStatus:
    if reply.status is None:
        raise errors.RefusedBySupervisor("it did not tell its status")
    return reply.status


def _is_closed(lease: socket.socket) -> bool:
    """Whether the supervisor closed the connection. It never sends anything over a lease unasked."""
    try:
        return lease.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _start_supervisor(folder: WorldFolder, idle_timeout: float) -> subprocess.Popen[bytes]:
    """Start the supervisor in a new session, so that it survives the terminal and this process."""
    command = (sys.executable, "-m", "headgate.embedded.supervisor", str(folder.path), str(idle_timeout))
    with folder.log("supervisor-start").open("wb") as output:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=program_environment(), cwd="/", start_new_session=True
        )  # fmt: skip
    # Wait for its end in a thread. Otherwise it would stay a zombie of a command that outlives it.
    threading.Thread(target=started.wait, daemon=True).start()
    return started
