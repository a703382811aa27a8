"""Opening a world: the way in for all other code.

    with World.open(folder) as world:
        brokers = world.kafka()

The services live in a supervisor process, which the first opener starts and all share. An open ``World`` is a lease:
when the last is closed, or its process killed, the supervisor stops them. If the supervisor itself is killed, the
next call starts another, and the services come back with their data and ports.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import headgate
from headgate.embedded.errors import (
    RefusedBySupervisor,
    SupervisorDidNotStart,
    SupervisorEnding,
    WorldFolderUnusable,
    WorldInUse,
)
from headgate.embedded.folder import WorldFolder, is_locked, lock_holder, open_folder
from headgate.embedded.jars import fetch, jar_sets
from headgate.embedded.process import last_lines
from headgate.embedded.protocol import GRACE, Reply, Request, WorldStatus, read_reply, write_request
from headgate.embedded.service import SERVICES, ServiceName, service_name

Progress = Callable[[str], None]

TRIES = 3
PATIENCE = 60.0  # seconds for a supervisor to answer; an earlier one may have to stop its services first


class World:
    """A lease on the world in a folder. May be used by several threads at once."""

    def __init__(self, folder: WorldFolder, progress: Progress | None, grace: float, patience: float) -> None:
        self.folder = folder.path
        self._folder = folder
        self._progress = progress
        self._grace = grace
        self._patience = patience
        self._fetched: set[str] = set()
        self._lease: socket.socket | None = None
        self._guard = threading.Lock()

    @classmethod
    def open(
        cls,
        folder: Path | str,
        progress: Progress | None = None,
        *,
        grace: float = GRACE,
        patience: float = PATIENCE,
    ) -> Self:
        """Join the folder's supervisor, or start one. ``progress`` is told what is downloaded or started; ``grace`` is
        how many seconds the services stay after the last lease, if this is who starts the supervisor."""
        world = cls(open_folder(Path(folder)), progress, grace, patience)
        world._hold()
        return world

    @classmethod
    def running(cls, folder: Path | str) -> WorldStatus | None:
        """The state of the world in a folder if it has a supervisor; starts nothing."""
        path = Path(folder)
        if not (path / "world.json").exists():
            return None
        opened = open_folder(path)
        found = _connect(opened, 5)
        if found is None:
            return None
        with found:
            try:
                return _converse(found, Request("status")).status
            except ConnectionError:
                return None
            except TimeoutError as error:
                raise WorldInUse(str(path), lock_holder(opened)) from error

    def kafka(self) -> str:
        """`host:port` of the broker."""
        return self.address("kafka")

    def registry(self) -> str:
        """The registry's URL."""
        return self.address("registry")

    def postgres(self) -> str:
        """A libpq URL with the password."""
        return self.address("postgres")

    def elasticsearch(self) -> str:
        """OpenSearch's URL."""
        return self.address("opensearch")

    def address(self, service: str) -> str:
        return self.ensure(service)[service_name(service)]

    def ensure(self, *services: str) -> dict[ServiceName, str]:
        """Addresses of these services, or of all; those that do not run yet start side by side."""
        names = [service_name(one) for one in services] or list(SERVICES)
        self._fetch(names)
        return self._addresses(Request("ensure", tuple(names)))

    def start(self, *services: str, port: int | None = None) -> dict[ServiceName, str]:
        """Like ensure, also for services that were stopped. ``port`` is for one service, which must have that one."""
        names = [service_name(one) for one in services]
        self._fetch(names)
        return self._addresses(Request("start", tuple(names), port=port))

    def stop(self, *services: str) -> None:
        """Stop services in order; they stay down until they are started."""
        self._ask(Request("stop", services))

    def stop_hard(self, *services: str) -> None:
        """Kill services, as a crash would; they stay down until they are started."""
        self._ask(Request("stop", services, hard=True))

    def status(self) -> WorldStatus:
        return _status(self._ask(Request("status")))

    def pin(self) -> WorldStatus:
        """Let the world stay when the last lease is gone, until ``shut_down``."""
        return _status(self._ask(Request("pin")))

    def shut_down(self) -> None:
        """Stop all services and the supervisor, whoever holds leases, and wait until they are gone."""
        if (found := _connect(self._folder, self._patience)) is not None:
            with found, suppress(ConnectionError, SupervisorEnding):
                _converse(found, Request("shutdown"))
        self.close()
        deadline = time.monotonic() + self._patience
        while is_locked(self._folder):
            if time.monotonic() > deadline:
                raise WorldInUse(str(self.folder), lock_holder(self._folder))
            time.sleep(0.05)

    def close(self) -> None:
        """Give the lease back."""
        with self._guard:
            if self._lease is not None:
                self._lease.close()
                self._lease = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fetch(self, names: Sequence[ServiceName]) -> None:
        """Download here and not in the supervisor, so that whoever waits sees it happen; once, as it reads all jars."""
        for jar_set in jar_sets():
            if (
                jar_set.partition("-")[0] in names and jar_set not in self._fetched
            ):  # OpenSearch has a set per module
                fetch(jar_set, self._progress)
                self._fetched.add(jar_set)

    def _addresses(self, request: Request) -> dict[ServiceName, str]:
        if self._progress:
            running = {one.service for one in self.status().services if one.state == "running"}
            if waiting := [name for name in request.services if name not in running]:
                self._progress(f"starting {', '.join(waiting)}")
        return {service_name(name): address for name, address in self._ask(request).addresses.items()}

    def _ask(self, request: Request) -> Reply:
        """One connection per request, so that threads do not wait for each other. All requests may be repeated, and
        are when the supervisor ended meanwhile."""
        for _ in range(TRIES):
            self._hold()
            found = _connect(self._folder, self._patience)
            if found is not None:
                try:
                    with found:
                        return _converse(found, request)
                except TimeoutError:
                    break
                except (ConnectionError, SupervisorEnding):
                    pass
            self.close()
        raise WorldInUse(str(self.folder), lock_holder(self._folder))

    def _hold(self) -> None:
        """Have a lease on a living supervisor."""
        with self._guard:
            if self._lease is not None and not _is_over(self._lease):
                return
            if self._lease is not None:
                self._lease.close()
                self._lease = None
            self._lease = self._join()

    def _join(self) -> socket.socket:
        deadline = time.monotonic() + self._patience
        starting: subprocess.Popen[bytes] | None = None
        while True:
            if (lease := self._take_lease()) is not None:
                return lease
            if starting is None or starting.returncode == 0:
                starting = self._start_supervisor()
            elif starting.returncode is not None:
                log = self._folder.log("supervisor-start")
                raise SupervisorDidNotStart(str(self.folder), str(log), last_lines(log))
            if time.monotonic() > deadline:
                raise WorldInUse(str(self.folder), lock_holder(self._folder))
            time.sleep(0.03)

    def _start_supervisor(self) -> subprocess.Popen[bytes]:
        try:
            return _start_supervisor(self._folder, self._grace)
        except OSError as error:  # the folder was removed, its disk is full
            raise WorldFolderUnusable(str(self.folder), (error.strerror or str(error)).lower()) from error

    def _take_lease(self) -> socket.socket | None:
        connection = _connect(self._folder, min(5.0, self._patience))
        if connection is None:
            return None
        try:
            _converse(connection, Request("lease"))
        except (OSError, SupervisorEnding):  # the former also if it stands still
            connection.close()
            return None
        connection.settimeout(None)
        return connection


def _connect(folder: WorldFolder, timeout: float) -> socket.socket | None:
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


def _converse(connection: socket.socket, request: Request) -> Reply:
    if request.ask in ("ensure", "start", "stop"):
        connection.settimeout(None)  # the supervisor has time-outs of its own for these
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
        raise RefusedBySupervisor("it did not tell its status")
    return reply.status


def _is_over(lease: socket.socket) -> bool:
    """Whether the other side has gone. Nothing is ever sent to a lease, so readable means ended."""
    try:
        return lease.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _start_supervisor(folder: WorldFolder, grace: float) -> subprocess.Popen[bytes]:
    """In a session of its own, so that neither a terminal nor the end of this process ends it."""
    sources = str(Path(headgate.__file__).parent.parent)
    paths = [sources, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}
    command = (sys.executable, "-m", "headgate.embedded.supervisor", str(folder.path), str(grace))
    with folder.log("supervisor-start").open("wb") as output:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd="/", start_new_session=True
        )  # fmt: skip
    # Reaped whenever it ends, or a command that outlives it would keep a zombie.
    threading.Thread(target=started.wait, daemon=True).start()
    return started
