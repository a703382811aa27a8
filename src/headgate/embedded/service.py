"""One service of a world: the contract that each kind of service fulfils, and the runner that starts and stops it.

``Service`` is implemented once per kind in ``services``. ``ServiceRunner`` holds one service of one world over its life:
it is started when it is first needed, stopped, killed, and started again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from headgate.embedded import host
from headgate.embedded.errors import ServiceDidNotStart, ServiceDied, ServiceIsDown, UnknownService
from headgate.embedded.folder import WorldFolder, reservations_path
from headgate.embedded.process import Command, Process, ProcessId, run, spawn
from headgate.errors import similar_names
from headgate.processes import last_lines

ServiceName: TypeAlias = Literal["kafka", "registry", "postgres", "opensearch"]
SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)


def service_name(written: str) -> ServiceName:
    """The service of a name as users write it. "elasticsearch" means OpenSearch, which has the same API.

    Raises UnknownService.
    """
    for name in SERVICES:
        if written == name or (written, name) == ("elasticsearch", "opensearch"):
            return name
    raise UnknownService(written, similar_names(written, SERVICES))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one service of one world lives.

    ``ports`` are in the order of ``Requirements.ports``. ``user`` is the user that the service runs as, None for our own.
    ``secrets`` is the folder of generated passwords.
    """

    data: Path
    ports: tuple[int, ...]
    user: host.User | None
    secrets: Path
    log: Path

    @property
    def port(self) -> int:
        """The port for clients. Other ports are internal to the service."""
        return self.ports[0]


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a service needs to run.

    ``ports``: names under which the world folder remembers the ports, the port for clients first.
    ``memory``, ``disk``: megabytes that must be free before a start.
    ``start_timeout``: seconds from launch until the service must answer, enough for a slow machine.
    ``stop_timeout``: seconds from the stop signal until the service is killed.
    ``refuses_root``: under root, the service runs as another user.
    """

    ports: tuple[str, ...]
    memory: int
    disk: int
    start_timeout: float
    stop_timeout: float
    refuses_root: bool = False


@dataclass(frozen=True, slots=True)
class Commands:
    """The programs of a service. ``setup`` runs to its end before ``server`` starts; it is None unless the data folder is
    new."""

    server: Command
    setup: Command | None = None


class Service(Protocol):
    """One kind of service. Its methods may block; the runner calls them in threads."""

    @property
    def name(self) -> ServiceName: ...

    @property
    def requirements(self) -> Requirements: ...

    def prepare(self, placement: Placement) -> Commands:
        """Fetch jars and write configuration files. Quick if they exist already."""

    def is_ready(self, placement: Placement) -> bool:
        """Whether the service answers a real request. Must not raise while the service starts."""

    def after_start(self, placement: Placement) -> None:
        """Finish the set-up of a service that answers, for example create a database."""

    def address(self, placement: Placement) -> str:
        """The address for clients. It may contain a password."""

    def public_address(self, placement: Placement) -> str:
        """The address without a password, for logs and tables."""


def configuration(name: str) -> str:
    """A configuration file of a service, which is part of this package."""
    return (files("headgate.embedded.services") / name).read_text("utf-8")


ServiceState: TypeAlias = Literal["stopped", "starting", "running", "died", "down"]

MAX_DEATHS = 3  # a service that ended by itself so often within DEATH_WINDOW is not started again
DEATH_WINDOW = 60.0  # seconds
POLL_INTERVAL = 0.05  # seconds between two checks whether a starting service answers
SETUP_TIMEOUT = 120.0  # seconds

log = logging.getLogger("headgate.world")


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service as `headgate world status` shows it.

    The state ``down`` means that it was stopped on purpose, ``died`` that it ended by itself. ``address`` has no password.
    """

    service: ServiceName
    state: ServiceState
    address: str | None
    pid: int | None
    log: str
    data: str | None


class ServiceRunner:
    """Starts, stops and watches one service of one world.

    One lock orders all changes, so two clients that ask at the same time start the service once. ``on_change`` is called
    whenever the process of the service starts or ends.
    """

    def __init__(self, service: Service, folder: WorldFolder, on_change: Callable[[], None]) -> None:
        self.service = service
        self._folder = folder
        self._on_change = on_change
        self._fixed_port: int | None = None
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._placement: Placement | None = None
        self._state: ServiceState = "stopped"
        self._deaths: list[float] = []
        self._reservations = host.Reservations(reservations_path())

    @property
    def name(self) -> ServiceName:
        return self.service.name

    def process_id(self) -> ProcessId | None:
        """The process of the service, or None if it does not run."""
        return self._process.id if self._process and self._process.running else None

    def status(self) -> ServiceStatus:
        """The state now. Never waits for a start or stop that is in progress."""
        placement, process = self._placement, self.process_id()
        return ServiceStatus(
            self.name,
            self._state,
            address=self.service.public_address(placement) if placement else None,
            pid=process.pid if process else None,
            log=str(self._folder.log(self.name)),
            data=str(placement.data) if placement else None,
        )

    async def ensure(self) -> str:
        """The address of the service. Starts it if it does not run, also after it ended by itself.

        Raises ServiceIsDown if it was stopped on purpose.
        """
        async with self._lock:
            if self._state == "down":
                raise ServiceIsDown(self.name)
            return await self._ensure_running()

    async def start(self, port: int | None = None) -> str:
        """Like ``ensure``, but also starts a service that was stopped on purpose. A ``port`` stays fixed from now on."""
        async with self._lock:
            self._fixed_port = port or self._fixed_port
            return await self._ensure_running()

    async def stop(self, hard: bool = False, state: ServiceState = "down") -> None:
        """Stop the service, or kill it if ``hard``. It stays down until ``start`` is called."""
        async with self._lock:
            self._state = state
            await self._end(hard)

    async def _ensure_running(self) -> str:
        if self._state != "running" or self._placement is None:
            self._check_deaths()
            self._placement = await self._launch_with_retry()
        return self.service.address(self._placement)

    def _check_deaths(self) -> None:
        self._deaths = [at for at in self._deaths if time.monotonic() - at < DEATH_WINDOW]
        if len(self._deaths) >= MAX_DEATHS:
            path = self._folder.log(self.name)
            raise ServiceDied(self.name, len(self._deaths), str(path), last_lines(path))

    async def _launch_with_retry(self) -> Placement:
        """Launch the service. If another process took a port after we chose it, launch once more on other ports."""
        try:
            return await self._launch()
        except ServiceDidNotStart:
            ports = self._folder.ports()
            if self._fixed_port is not None or all(
                host.is_free(ports[name]) for name in self.service.requirements.ports
            ):
                raise
            return await self._launch()

    async def _launch(self) -> Placement:
        """Start the service and wait until it answers. If anything fails, nothing of it runs on."""
        began = time.monotonic()
        self._state = "starting"
        try:
            placement = self._choose_placement()
            commands = await asyncio.to_thread(self.service.prepare, placement)
            await self._run_setup(commands)
            self._process = await spawn(commands.server, placement.log)
            self._on_change()
            await self._wait_until_ready(self._process, placement)
            await asyncio.to_thread(self.service.after_start, placement)
        except BaseException:
            self._state = "stopped"
            await self._end(hard=True)
            raise
        self._state = "running"
        # Only now: an end during the start is reported as ServiceDidNotStart.
        self._process.ended.add_done_callback(self._on_exit)
        address, seconds = self.service.public_address(placement), time.monotonic() - began
        log.info("%s answers at %s after %.1f s", self.name, address, seconds)
        return placement

    def _choose_placement(self) -> Placement:
        requirements = self.service.requirements
        user = host.service_user(self.name) if requirements.refuses_root else None
        data = self._folder.data(self.name, as_other_user=user is not None)
        host.check_resources(self.name, data, requirements.memory, requirements.disk)
        return Placement(data, self._choose_ports(), user, self._folder.secrets, self._folder.log(self.name))

    def _choose_ports(self) -> tuple[int, ...]:
        """The fixed port if there is one, the ports of the last start if they are free, and new ones otherwise."""
        remembered = self._folder.ports()
        chosen: list[int] = []
        for name in self.service.requirements.ports:
            if self._fixed_port is not None and not chosen:
                port = host.require_port(self.name, self._fixed_port)
            else:
                others = {other for known, other in remembered.items() if known != name} | set(chosen)
                port = host.choose_port(remembered.get(name), others, self._reservations.take)
            chosen.append(port)
        for name, port in zip(self.service.requirements.ports, chosen, strict=True):
            self._folder.remember_port(name, port)
        return tuple(chosen)

    async def _run_setup(self, commands: Commands) -> None:
        if commands.setup is None:
            return
        status = await run(commands.setup, self._folder.log(self.name), SETUP_TIMEOUT)
        if status != 0:
            raise self._did_not_start(
                "its set-up took too long" if status is None else f"its set-up ended with status {status}"
            )

    async def _wait_until_ready(self, process: Process, placement: Placement) -> None:
        """Ask the service until it answers. Raises ServiceDidNotStart if it ends or takes too long."""
        deadline = time.monotonic() + self.service.requirements.start_timeout
        while not await asyncio.to_thread(self.service.is_ready, placement):
            if not process.running:
                raise self._did_not_start(f"it ended with status {process.ended.result()}")
            if time.monotonic() > deadline:
                timeout = self.service.requirements.start_timeout
                raise self._did_not_start(f"it did not answer within {timeout:.0f} s")
            await asyncio.sleep(POLL_INTERVAL)
        if not process.running:  # another process answers on this port
            raise self._did_not_start(f"port {placement.port} was taken meanwhile")

    def _did_not_start(self, reason: str) -> ServiceDidNotStart:
        path = self._folder.log(self.name)
        return ServiceDidNotStart(self.name, reason, str(path), last_lines(path))

    async def _end(self, hard: bool) -> None:
        """End the process if there is one. ``_process`` is cleared first, so that ``_on_exit`` sees no death."""
        process, self._process = self._process, None
        if process is None:
            return
        began = time.monotonic()
        if hard:
            await process.kill()
        else:
            await process.stop(self.service.requirements.stop_timeout)
        self._on_change()
        log.info("%s ended after %.1f s, status %s", self.name, time.monotonic() - began, process.ended.result())

    def _on_exit(self, ended: asyncio.Future[int]) -> None:
        """Called when a process that was ready ends. ``_end`` clears ``_process`` first, so any other end is a death."""
        if self._process is not None and self._process.ended is ended:
            self._process = None
            self._state = "died"
            self._deaths.append(time.monotonic())
            self._on_change()
            log.error("%s died with status %s", self.name, ended.result())
