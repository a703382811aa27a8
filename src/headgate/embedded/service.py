"""What the supervisor must know about a service, and what a service is given."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from headgate.embedded.errors import ServiceDidNotStart, ServiceDied, ServiceIsDown, UnknownService
from headgate.embedded.folder import WorldFolder, reservations_path
from headgate.embedded.host import (
    Reservations,
    User,
    check_room,
    choose_port,
    claim_port,
    is_free,
    service_user,
)
from headgate.embedded.process import Launch, Process, Record, last_lines, run, spawn
from headgate.errors import similar_names

ServiceName: TypeAlias = Literal["kafka", "registry", "postgres", "opensearch"]
SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)


def service_name(written: str) -> ServiceName:
    """The service a person means; OpenSearch is also called by the name of the API that it serves."""
    for name in SERVICES:
        if written == name or (written, name) == ("elasticsearch", "opensearch"):
            return name
    raise UnknownService(written, similar_names(written, SERVICES))


@dataclass(frozen=True, slots=True)
class Site:
    """Where one service of one world lives."""

    data: Path
    ports: tuple[int, ...]
    user: User | None
    secrets: Path
    log: Path

    @property
    def port(self) -> int:
        """The port for clients; a service may have others for itself."""
        return self.ports[0]


@dataclass(frozen=True, slots=True)
class Needs:
    """Names of its ports as they are remembered, the clients' first; megabytes that must be there before it starts;
    seconds from launch to answering on a slow machine, and from the stop signal to the kill."""

    ports: tuple[str, ...]
    memory: int
    disk: int
    patience: float
    grace: float
    refuses_root: bool = False


@dataclass(frozen=True, slots=True)
class Launches:
    """What to run: ``first`` to its end before anything else, only on new data; then the service itself."""

    main: Launch
    first: Launch | None = None


class Service(Protocol):
    """One kind of service. Its methods block and are called in a thread."""

    @property
    def name(self) -> ServiceName: ...

    @property
    def needs(self) -> Needs: ...

    def prepare(self, site: Site) -> Launches:
        """Fetch and write what the service needs before it can be launched; quick when it is there."""

    def answers(self, site: Site) -> bool:
        """Whether it really serves, by asking it."""

    def settle(self, site: Site) -> None:
        """What is left to do once it serves."""

    def address(self, site: Site) -> str:
        """What clients connect to; it may hold a password."""

    def public_address(self, site: Site) -> str:
        """The same without a password, for logs and tables."""


State: TypeAlias = Literal["stopped", "starting", "running", "died", "down"]

DEATHS = 3
WITHIN = 60.0
ASK_EVERY = 0.05
FIRST_RUN = 120.0

log = logging.getLogger("headgate.world")


@dataclass(frozen=True, slots=True)
class Status:
    """A service as `headgate world status` shows it. ``down`` means stopped on purpose; ``died`` by itself."""

    service: ServiceName
    state: State
    address: str | None
    pid: int | None
    log: str
    data: str | None


class Keeper:
    def __init__(
        self,
        service: Service,
        folder: WorldFolder,
        changed: Callable[[], None],
        fixed_port: int | None = None,
    ) -> None:
        self.service = service
        self._folder = folder
        self._changed = changed
        self._fixed_port = fixed_port
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._site: Site | None = None
        self._state: State = "stopped"
        self._deaths: list[float] = []
        self._reservations = Reservations(reservations_path())

    @property
    def name(self) -> ServiceName:
        return self.service.name

    def record(self) -> Record | None:
        return self._process.record if self._process and self._process.running else None

    def status(self) -> Status:
        site, record = self._site, self.record()
        return Status(
            self.name,
            self._state,
            address=self.service.public_address(site) if site else None,
            pid=record.pid if record else None,
            log=str(self._folder.log(self.name)),
            data=str(site.data) if site else None,
        )

    async def ensure(self) -> str:
        """The address of the running service; starts it if need be, also after it died by itself."""
        async with self._lock:
            if self._state == "down":
                raise ServiceIsDown(self.name)
            return await self._running()

    async def start(self, port: int | None = None) -> str:
        """Like ensure, also after a stop. A port given here is the one it must have from now on."""
        async with self._lock:
            self._fixed_port = port or self._fixed_port
            return await self._running()

    async def stop(self, hard: bool = False, state: State = "down") -> None:
        """End the service, in order or at once. It stays down until it is started."""
        async with self._lock:
            self._state = state
            await self._end(hard)

    async def _running(self) -> str:
        if self._state != "running" or self._site is None:
            self._refuse_after_deaths()
            self._site = await self._launch_or_move()
        return self.service.address(self._site)

    def _refuse_after_deaths(self) -> None:
        self._deaths = [at for at in self._deaths if time.monotonic() - at < WITHIN]
        if len(self._deaths) >= DEATHS:
            path = self._folder.log(self.name)
            raise ServiceDied(self.name, len(self._deaths), str(path), last_lines(path))

    async def _launch_or_move(self) -> Site:
        """Launch; once more on other ports if somebody took one between our choice and the launch."""
        try:
            return await self._launch()
        except ServiceDidNotStart:
            ports = self._folder.ports()
            if self._fixed_port is not None or all(is_free(ports[name]) for name in self.service.needs.ports):
                raise
            return await self._launch()

    async def _launch(self) -> Site:
        began = time.monotonic()
        self._state = "starting"
        try:
            site = self._choose_site()
            launches = await asyncio.to_thread(self.service.prepare, site)
            await self._first_run(launches)
            self._process = await spawn(launches.main, site.log)
            self._changed()
            await self._wait_until_it_answers(self._process, site)
            await asyncio.to_thread(self.service.settle, site)
        except BaseException:
            self._state = "stopped"
            await self._end(hard=True)
            raise
        self._state = "running"
        self._process.ended.add_done_callback(self._noticed_end)
        log.info(
            "%s answers at %s after %.1f s",
            self.name,
            self.service.public_address(site),
            time.monotonic() - began,
        )
        return site

    def _choose_site(self) -> Site:
        needs = self.service.needs
        user = service_user(self.name) if needs.refuses_root else None
        data = self._folder.data(self.name, as_other_user=user is not None)
        check_room(self.name, data, needs.memory, needs.disk)
        return Site(data, self._choose_ports(), user, self._folder.secrets, self._folder.log(self.name))

    def _choose_ports(self) -> tuple[int, ...]:
        remembered = self._folder.ports()
        chosen: list[int] = []
        for name in self.service.needs.ports:
            if self._fixed_port is not None and not chosen:
                port = claim_port(self.name, self._fixed_port)
            else:
                others = {other for known, other in remembered.items() if known != name} | set(chosen)
                port = choose_port(remembered.get(name), others, self._reservations.take)
            chosen.append(port)
        for name, port in zip(self.service.needs.ports, chosen, strict=True):
            self._folder.remember_port(name, port)
        return tuple(chosen)

    async def _first_run(self, launches: Launches) -> None:
        if launches.first is None:
            return
        path = self._folder.log(self.name)
        status = await run(launches.first, path, FIRST_RUN)
        if status != 0:
            reason = (
                "its set-up took too long" if status is None else f"its set-up ended with status {status}"
            )
            raise ServiceDidNotStart(self.name, reason, str(path), last_lines(path))

    async def _wait_until_it_answers(self, process: Process, site: Site) -> None:
        deadline = time.monotonic() + self.service.needs.patience
        while not await asyncio.to_thread(self.service.answers, site):
            if not process.running:
                raise self._did_not_start(f"it ended with status {process.ended.result()}", site)
            if time.monotonic() > deadline:
                raise self._did_not_start(
                    f"it did not answer within {self.service.needs.patience:.0f} s", site
                )
            await asyncio.sleep(ASK_EVERY)
        if not process.running:  # then somebody else answers there
            raise self._did_not_start(f"port {site.port} was taken meanwhile", site)

    def _did_not_start(self, reason: str, site: Site) -> ServiceDidNotStart:
        return ServiceDidNotStart(self.name, reason, str(site.log), last_lines(site.log))

    async def _end(self, hard: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        began = time.monotonic()
        if hard:
            await process.kill()
        else:
            await process.stop(self.service.needs.grace)
        self._changed()
        log.info(
            "%s ended after %.1f s, status %s", self.name, time.monotonic() - began, process.ended.result()
        )

    def _noticed_end(self, ended: asyncio.Future[int]) -> None:
        """Called at every end of a process that had come to serve; one that we did not want is a death."""
        if self._process is not None and self._process.ended is ended:
            self._process = None
            self._state = "died"
            self._deaths.append(time.monotonic())
            self._changed()
            log.error("%s died with status %s", self.name, ended.result())
