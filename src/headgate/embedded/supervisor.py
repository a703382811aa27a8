"""The process that owns the services of a world folder: `python -m headgate.embedded.supervisor FOLDER [IDLE_TIMEOUT]`.

It runs as long as there is a lease, or until a shutdown if the world is pinned. A lease is an open connection, so the
kernel ends it when its holder is killed. After the last lease the supervisor waits for ``idle_timeout`` seconds, because a
restarted engine may come back. Then it stops the services and exits. It also exits when its folder is removed.

Clients (``world``) send requests and get replies, one JSON object per line, over a socket that only the user can open:

    {"ask": "ensure", "services": ["kafka", "postgres"]}   ->  {"addresses": {"kafka": "127.0.0.1:21234", ...}}
    {"ask": "start", "services": ["kafka"], "port": 9092}  ->  {"addresses": {...}}
    {"ask": "stop", "services": ["kafka"], "hard": true}   ->  {"addresses": {}}
    {"ask": "status"}                                      ->  {"status": {...}}
    {"ask": "lease"}                                       ->  {"status": {...}}, and the world runs while the connection lives
    {"ask": "pin"}                                         ->  {"status": {...}}, and the world runs until a shutdown
    {"ask": "shutdown"}                                    ->  {"status": {...}}, then the supervisor stops all and ends

An error is sent as its code and its fields, and the client raises the same error.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from headgate.embedded.errors import RefusedBySupervisor, SupervisorEnding, WorldError, WorldFolderUnusable
from headgate.embedded.folder import (
    WorldFolder,
    is_listening,
    lock_folder,
    make_socket_path,
    open_folder,
    register_root_data,
    remove_orphans,
)
from headgate.embedded.host import is_root
from headgate.embedded.process import ProcessId, kill_leftovers
from headgate.embedded.service import Service, ServiceRunner, ServiceStatus, service_name
from headgate.errors import ErrorGroup, HeadgateError, InternalError

IDLE_TIMEOUT = 3.0  # seconds that services run on after the last lease has ended

Ask: TypeAlias = Literal["ensure", "start", "stop", "status", "lease", "pin", "shutdown"]


@dataclass(frozen=True, slots=True)
class Request:
    """``hard`` is for "stop", ``port`` for "start" of one service."""

    ask: Ask
    services: tuple[str, ...] = ()
    hard: bool = False
    port: int | None = None


@dataclass(frozen=True, slots=True)
class WorldStatus:
    """The state of a world. ``leases`` counts the connections that keep it running."""

    folder: str
    pid: int
    pinned: bool
    leases: int
    services: tuple[ServiceStatus, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """``addresses`` may contain passwords. With an ``error`` there is nothing else."""

    addresses: dict[str, str] = dataclasses.field(default_factory=dict)
    status: WorldStatus | None = None
    error: HeadgateError | None = None


def write_request(request: Request) -> bytes:
    return _line(dataclasses.asdict(request))


def read_request(line: bytes) -> Request:
    """Raises RefusedBySupervisor for what no client of this version sends."""
    data = _object(line)
    if data.get("ask") not in get_args(Ask):
        raise RefusedBySupervisor(f"unknown request {data.get('ask')!r}")
    services, port = tuple(map(str, data.get("services") or ())), data.get("port")
    is_port = isinstance(port, int) and 0 < port < 65536
    return Request(data["ask"], services, bool(data.get("hard")), port if is_port else None)


def is_status_request(line: bytes) -> bool:
    """Whether the request only reads the state. An unreadable request counts as one: it must not keep a world running."""
    try:
        return read_request(line).ask == "status"
    except RefusedBySupervisor:
        return True


def write_reply(reply: Reply) -> bytes:
    if reply.error is not None:
        return _line({"error": _error_as_json(reply.error)})
    status = dataclasses.asdict(reply.status) if reply.status else None
    return _line({"addresses": reply.addresses, "status": status})


def read_reply(line: bytes) -> Reply:
    data = _object(line)
    if found := data.get("error"):
        return Reply(error=_error_from_json(found))
    return Reply(dict(data.get("addresses") or {}), _status(data["status"]) if data.get("status") else None)


def _status(data: dict[str, Any]) -> WorldStatus:
    services = tuple(ServiceStatus(**one) for one in data.pop("services"))
    return WorldStatus(**data, services=services)


def _error_as_json(error: HeadgateError) -> dict[str, object]:
    if isinstance(error, ErrorGroup):
        error = error.errors[0]
    fields = {one.name: getattr(error, one.name) for one in dataclasses.fields(error)}  # type: ignore[arg-type]
    return {"code": error.code, "fields": fields, "message": error.message()}


def _error_from_json(data: dict[str, Any]) -> HeadgateError:
    for known in _subclasses(HeadgateError):
        if known.code == data["code"]:
            fields = {name: tuple(v) if isinstance(v, list) else v for name, v in data["fields"].items()}
            return known(**fields)
    return RefusedBySupervisor(str(data["message"]))


def _subclasses(top: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    for one in top.__subclasses__():
        yield one
        yield from _subclasses(one)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    """A line as a JSON object. Raises RefusedBySupervisor."""
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise RefusedBySupervisor("what came is not a JSON object")
    return data


FIRST_CLIENT_TIMEOUT = 10.0  # seconds in which the command that started us must connect
LOCK_TIMEOUT = 40.0  # seconds; an earlier supervisor may still be stopping its services
CHECK_INTERVAL = 2.0  # seconds between two checks whether to exit

log = logging.getLogger("headgate.world")


class Supervisor:
    """Answers requests and keeps the services. The services do not depend on each other and start side by side."""

    def __init__(self, folder: WorldFolder, services: Sequence[Service], idle_timeout: float = IDLE_TIMEOUT) -> None:
        self.folder = folder
        self._runners = {one.name: ServiceRunner(one, folder, self._remember_processes) for one in services}
        self._idle_timeout = idle_timeout
        self._leases: set[asyncio.StreamWriter] = set()  # connections that keep the world running
        self._pinned = False
        self._exit_at: float | None = time.monotonic() + FIRST_CLIENT_TIMEOUT
        self._ending = False
        self._wake = asyncio.Event()  # set to check at once whether to exit
        self._work: set[asyncio.Task[Reply]] = set()

    async def run(self, socket: Path) -> None:
        """Answer requests until nobody needs the world any more, then stop the services."""
        # The socket gets its mode and its entry in the folder before the first client can connect.
        server = await asyncio.start_unix_server(self._on_connection, socket, start_serving=False)
        socket.chmod(0o600)
        self.folder.remember_supervisor(ProcessId.of(os.getpid()), socket)
        await server.start_serving()
        await self._wait_until_unused()
        self._ending = True
        # Close the socket first. A client that comes now starts another supervisor, which waits for our lock.
        socket.unlink(missing_ok=True)
        server.close()
        await self._stop_all()

    def end(self) -> None:
        self._ending = True
        self._wake.set()

    async def _wait_until_unused(self) -> None:
        """Return when the last lease has ended long enough ago, the folder is gone, or ``end`` was called."""
        while not self._ending:
            if self._exit_at is not None and time.monotonic() >= self._exit_at:
                log.info("nobody needs this world any more")
                return
            if self.folder.id == "":
                log.info("the world folder is gone")
                return
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._next_check())

    def _next_check(self) -> float:
        left = CHECK_INTERVAL if self._exit_at is None else self._exit_at - time.monotonic()
        return min(CHECK_INTERVAL, max(0.01, left))

    async def _stop_all(self) -> None:
        """Cancel what is in progress and stop all services."""
        for work in self._work:  # a start in progress holds the lock of its service
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.gather(*(runner.stop(state="stopped") for runner in self._runners.values()))

    def _remember_processes(self) -> None:
        processes = {str(name): id_ for name, runner in self._runners.items() if (id_ := runner.process_id())}
        with suppress(OSError):  # the folder was removed
            self.folder.remember_processes(processes)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. It is a lease from its first request on, except for status requests: a program that
        watches a world must not keep it running."""
        try:
            await self._answer_requests(reader, writer)
        except (ConnectionError, ValueError):  # the client has gone, or sent a line that is too long
            pass
        finally:
            if writer in self._leases:
                self._leases.remove(writer)
                self._set_exit_time()
            writer.close()

    async def _answer_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request per line.

        The next line is read while a request is handled. This is how we notice that a client has gone: its lease ends, but
        the start that it asked for goes on in case it comes back.
        """
        next_line = asyncio.create_task(reader.readline())
        try:
            while line := await next_line:
                next_line = asyncio.create_task(reader.readline())
                if not is_status_request(line):
                    self._leases.add(writer)
                    self._set_exit_time()
                work = self._start_work(line)
                await asyncio.wait((work, next_line), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    return
                writer.write(write_reply(work.result()))
                await writer.drain()
        finally:
            next_line.cancel()

    def _set_exit_time(self) -> None:
        """The last lease has ended, or there is one again."""
        unused = not self._leases and not self._pinned
        self._exit_at = time.monotonic() + self._idle_timeout if unused else None
        self._wake.set()

    def _start_work(self, line: bytes) -> asyncio.Task[Reply]:
        work = asyncio.create_task(self._answer(line))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return work

    async def _answer(self, line: bytes) -> Reply:
        """The reply to one line. Never raises: an error is a reply, too."""
        try:
            return await self._handle(read_request(line))
        except HeadgateError as error:
            log.warning("%s", error)
            return Reply(error=error)
        except Exception as error:  # a bug is reported to the client, and the world runs on
            log.exception("unexpected")
            return Reply(error=InternalError(f"{type(error).__name__} in the world's supervisor"))

    async def _handle(self, request: Request) -> Reply:
        """Do what a request asks for."""
        if self._ending and request.ask != "status":
            raise SupervisorEnding(str(self.folder.path))
        match request.ask:
            case "ensure" | "start" | "stop":
                return await self._handle_services(request)
            case "pin":
                self._pinned = True
            case "shutdown":
                log.info("asked to shut down")
                self.end()
            case "status" | "lease":
                pass
        return Reply(status=self._status())

    async def _handle_services(self, request: Request) -> Reply:
        """Do the same to several services side by side. The first error is raised when all have ended."""
        names = [service_name(written) for written in request.services]
        results = await asyncio.gather(
            *(self._handle_service(request, self._runners[name]) for name in names), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Reply(addresses={name: str(result) for name, result in zip(names, results, strict=True) if result})

    async def _handle_service(self, request: Request, runner: ServiceRunner) -> str | None:
        if request.ask == "stop":
            await runner.stop(request.hard)
            return None
        return await (runner.ensure() if request.ask == "ensure" else runner.start(request.port))

    def _status(self) -> WorldStatus:
        states = tuple(runner.status() for runner in self._runners.values())
        return WorldStatus(str(self.folder.path), os.getpid(), self._pinned, len(self._leases), states)


async def supervise(folder: WorldFolder, idle_timeout: float = IDLE_TIMEOUT) -> None:
    """Run the supervisor of a folder whose lock we hold. First kills what an earlier supervisor left behind."""
    if ended := kill_leftovers(folder.processes().values()):
        log.warning("ended %d processes that an earlier supervisor left behind", ended)
    if is_root():
        register_root_data(folder, ProcessId.of(os.getpid()))
        for path in remove_orphans(folder.state):
            log.info("removed %s, whose world folder is gone", path)
    # Imported here, because clients import this module and do not need the libraries of the services.
    from headgate.embedded.services import all_services

    supervisor = Supervisor(folder, all_services(), idle_timeout)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.end)
    await supervisor.run(make_socket_path(folder.path))


def main(path: str, idle_timeout: float) -> int:
    """The process: lock the folder, supervise, exit. Returns the exit status."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = open_folder(Path(path))
    _log_to(folder.log("supervisor"))
    if not _wait_for_lock(folder, os.getppid()):
        return 0
    log.info("supervisor %d of %s", os.getpid(), folder.path)
    try:
        asyncio.run(supervise(folder, idle_timeout))
    except OSError as error:  # most likely a full disk
        log.exception("unexpected")
        raise WorldFolderUnusable(str(folder.path), (error.strerror or str(error)).lower()) from error
    finally:
        with suppress(OSError):
            folder.forget_supervisor()
        log.info("ended")
    return 0


def _wait_for_lock(folder: WorldFolder, parent: int) -> bool:
    """Lock the folder. Returns False if this process is not needed: another supervisor serves the folder, the process
    that started us has gone, or the lock stays taken."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while lock_folder(folder) is None:
        serving = folder.supervisor()
        if (serving and is_listening(serving[1])) or os.getppid() != parent or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _log_to(path: Path) -> None:
    handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else IDLE_TIMEOUT))
    except WorldError as error:
        sys.exit(error.diagnostic().render())
