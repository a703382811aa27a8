"""The process that owns the services of one world folder: `python -m headgate.embedded.supervisor FOLDER [GRACE]`.

It lives as long as somebody holds a lease or the world is pinned. A lease is an open connection, so the kernel
ends it when its holder is killed. When the last is gone it waits a moment, for a restarted engine to come back,
stops the services and ends. It also ends when its folder is removed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from headgate.embedded.errors import RefusedBySupervisor, SupervisorEnding, WorldError, WorldFolderUnusable
from headgate.embedded.folder import (
    WorldFolder,
    claim,
    is_served,
    lock_folder,
    make_socket_path,
    open_folder,
    prune,
)
from headgate.embedded.host import is_root
from headgate.embedded.process import Record, reap
from headgate.embedded.protocol import (
    GRACE,
    Reply,
    Request,
    WorldStatus,
    is_only_a_look,
    read_request,
    write_reply,
)
from headgate.embedded.service import Keeper, Service, service_name
from headgate.embedded.services.kafka import Kafka
from headgate.embedded.services.opensearch import OpenSearch
from headgate.embedded.services.postgres import Postgres
from headgate.embedded.services.registry import Registry
from headgate.errors import HeadgateError, InternalError

FIRST_CLIENT = 10.0  # seconds that the command which started us has to come
LOCK_PATIENCE = 40.0  # an earlier supervisor may still be stopping its services
LOOK_EVERY = 2.0

log = logging.getLogger("headgate.world")


def services() -> tuple[Service, ...]:
    """None of them uses another, so they start and stop side by side."""
    return (Kafka(), Registry(), Postgres(), OpenSearch())


class Lease:
    """What one connection holds of the world: nothing yet, or one lease, which is given back once."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._held = False

    def begin(self) -> None:
        if not self._held:
            self._held = True
            self._supervisor.count_lease(+1)

    def end(self) -> None:
        if self._held:
            self._held = False
            self._supervisor.count_lease(-1)


class Supervisor:
    def __init__(self, folder: WorldFolder, known: Sequence[Service], grace: float = GRACE) -> None:
        self.folder = folder
        self._keepers = {one.name: Keeper(one, folder, self._remember) for one in known}
        self._grace = grace
        self._leases = 0
        self._pinned = False
        self._leave_at: float | None = time.monotonic() + FIRST_CLIENT
        self._ending = False
        self._look = asyncio.Event()  # set when it is time to look whether to end
        self._work: set[asyncio.Task[Reply]] = set()

    async def run(self, socket: Path) -> None:
        """Serve until nobody needs the world any more, then stop the services."""
        server = await asyncio.start_unix_server(self._talk, socket, start_serving=False)
        socket.chmod(0o600)
        self.folder.remember_supervisor(Record.of(os.getpid()), socket)
        await server.start_serving()
        await self._wait_for_the_end()
        self._ending = True
        # First be unreachable: whoever comes now starts a supervisor of its own, which waits for our lock.
        socket.unlink(missing_ok=True)
        server.close()
        await self._stop_all()

    def end(self) -> None:
        self._ending = True
        self._look.set()

    async def _wait_for_the_end(self) -> None:
        while not self._ending:
            if self._leave_at is not None and time.monotonic() >= self._leave_at:
                log.info("nobody needs this world any more")
                return
            if self.folder.id == "":
                log.info("the world folder is gone")
                return
            self._look.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), self._until_next_look())

    def _until_next_look(self) -> float:
        if self._leave_at is None:
            return LOOK_EVERY
        return min(LOOK_EVERY, max(0.01, self._leave_at - time.monotonic()))

    async def _stop_all(self) -> None:
        for work in self._work:  # starts under way hold their service's lock
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.gather(*(keeper.stop(state="stopped") for keeper in self._keepers.values()))

    def _remember(self) -> None:
        records = {str(name): record for name, keeper in self._keepers.items() if (record := keeper.record())}
        with suppress(OSError):  # the folder was removed
            self.folder.remember_processes(records)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a lease from its first request to its end. Only to look at the status is not one, or
        whoever watches a world would keep it."""
        lease = Lease(self)
        try:
            await self._converse(reader, writer, lease)
        except (ConnectionError, ValueError):  # gone, or a line without end
            pass
        finally:
            lease.end()
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lease: Lease
    ) -> None:
        """Answer line by line. Reading goes on while we work, to notice a client that is gone: its lease ends then,
        the start that it asked for goes on in case it comes back."""
        coming = asyncio.create_task(reader.readline())
        try:
            while line := await coming:
                coming = asyncio.create_task(reader.readline())
                if not is_only_a_look(line):
                    lease.begin()
                work = self._begin(line)
                await asyncio.wait((work, coming), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    return
                writer.write(write_reply(work.result()))
                await writer.drain()
        finally:
            coming.cancel()

    def count_lease(self, change: int) -> None:
        self._leases += change
        nobody = self._leases == 0 and not self._pinned
        self._leave_at = time.monotonic() + self._grace if nobody else None
        self._look.set()

    def _begin(self, line: bytes) -> asyncio.Task[Reply]:
        work = asyncio.create_task(self._answer(line))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        return work

    async def _answer(self, line: bytes) -> Reply:
        try:
            return await self._do(read_request(line))
        except HeadgateError as error:
            log.warning("%s", error)
            return Reply(error=error)
        except Exception as error:  # a bug must reach the client, and must not end the world
            log.exception("unexpected")
            return Reply(error=InternalError(f"{type(error).__name__} in the world's supervisor"))

    async def _do(self, request: Request) -> Reply:
        if self._ending and request.ask != "status":
            raise SupervisorEnding(str(self.folder.path))
        match request.ask:
            case "ensure" | "start" | "stop":
                return await self._serve(request)
            case "pin":
                self._pinned = True
            case "shutdown":
                log.info("asked to shut down")
                self.end()
            case "status" | "lease":
                pass
        return Reply(status=self._status())

    async def _serve(self, request: Request) -> Reply:
        names = [service_name(written) for written in request.services]
        results = await asyncio.gather(
            *(self._one(request, self._keepers[name]) for name in names), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Reply(
            addresses={name: str(result) for name, result in zip(names, results, strict=True) if result}
        )

    async def _one(self, request: Request, keeper: Keeper) -> str | None:
        match request.ask:
            case "ensure":
                return await keeper.ensure()
            case "start":
                return await keeper.start(request.port)
            case "stop":
                await keeper.stop(request.hard)
                return None
            case _:
                raise RefusedBySupervisor(f"{request.ask} is not about services")

    def _status(self) -> WorldStatus:
        states = tuple(keeper.status() for keeper in self._keepers.values())
        return WorldStatus(str(self.folder.path), os.getpid(), self._pinned, self._leases, states)


async def supervise(folder: WorldFolder, grace: float = GRACE) -> None:
    """Take over the folder, whose lock we hold: end what was left behind, then serve."""
    if ended := reap(folder.processes().values()):
        log.warning("ended %d processes that an earlier supervisor left behind", ended)
    if is_root():
        claim(folder, Record.of(os.getpid()))
        for path in prune(folder.state):
            log.info("removed %s, whose world folder is gone", path)
    supervisor = Supervisor(folder, services(), grace)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.end)
    await supervisor.run(make_socket_path(folder.path))


def main(path: str, grace: float) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = open_folder(Path(path))
    _log_to(folder.log("supervisor"))
    if not _wait_for_lock(folder, os.getppid()):
        return 0
    log.info("supervisor %d of %s", os.getpid(), folder.path)
    try:
        asyncio.run(supervise(folder, grace))
    except OSError as error:  # a full disk, most likely
        log.exception("unexpected")
        raise WorldFolderUnusable(str(folder.path), (error.strerror or str(error)).lower()) from error
    finally:
        with suppress(OSError):
            folder.forget_supervisor()
        log.info("ended")
    return 0


def _wait_for_lock(folder: WorldFolder, parent: int) -> bool:
    """Take the folder's lock; not if it is not for us to have: another supervisor serves, or who wanted us is gone."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while lock_folder(folder) is None:
        serving = folder.supervisor()
        if (serving and is_served(serving[1])) or os.getppid() != parent or time.monotonic() > deadline:
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
        sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else GRACE))
    except WorldError as error:
        sys.exit(error.diagnostic().render())
