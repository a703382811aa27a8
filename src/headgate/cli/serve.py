"""`headgate serve`: the engine process of a project. It runs until a signal stops it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Never, Self

import click
import uvicorn

from headgate.catalog.errors import CatalogError
from headgate.cli.errors import EnginePortTaken
from headgate.cli.main import exit_status
from headgate.cli.settings import Settings, project_option, read_settings, size_in_bytes
from headgate.control.engine import Engine, Project
from headgate.control.web_hook import HookAddress
from headgate.embedded.errors import ServiceDied, ServiceIsDown
from headgate.embedded.host import LOOPBACK, total_memory
from headgate.embedded.spark import default_heap, open_spark, query_settings
from headgate.embedded.world import World
from headgate.runtime.quarantine import QuarantineFiles
from headgate.runtime.query_process import QueryProcess, QuerySettings
from headgate.runtime.session import OpenSpark, Spark, kill_jvm
from headgate.serve.client import HEADGATE, EngineAddress
from headgate.serve.grpc_server import GrpcDoor
from headgate.serve.server import HttpApi

ENGINE_FILE = "engine.json"
TOKEN_FILE = "token"
SHUTDOWN_TIMEOUT = 10  # seconds in which running statements may end when the engine stops
NOISY_LOGGERS = ("py4j", "httpx", "httpcore", "asyncio")
# Logs every failed query of Spark with its values, which must not be logged. The client gets the failure anyway.
LOGGER_OF_VALUES = "SQLQueryContextLogger"

log = logging.getLogger(__name__)


@click.command()
@project_option
@click.option("--port", type=click.IntRange(0, 65535), help="Port on loopback. 0 means a free one.")
@click.option("--grpc-port", type=click.IntRange(0, 65535), help="Port of gRPC on loopback. 0 means a free one.")
@click.option("--world", "world_folder", type=click.Path(path_type=Path), help="Folder of the embedded world.")
def serve(project: Path, port: int | None, grpc_port: int | None, world_folder: Path | None) -> None:
    """Run the engine: accept statements, and keep tasks running.

    SIGTERM and Ctrl-C stop it: tasks finish their batch, and continue from there when an engine runs again.
    """
    folder = project.absolute()
    settings = read_settings(folder)
    given: dict[str, int | Path] = {"port": settings.port if port is None else port}
    if grpc_port is not None:
        given["grpc_port"] = grpc_port
    if world_folder is not None:
        given["world"] = world_folder.absolute()
    set_up_logging(settings, folder)
    settings = settings.model_copy(update=given)
    with Worlds() as worlds, listen(settings.port) as bound:
        opened = worlds.project(folder, settings.world_folder(folder))
        spark_died = EngineServer(folder, settings, opened).run(bound)
    if spark_died:
        log.info("the engine starts again, because Spark has died")
        replace_process((*HEADGATE, *sys.argv[1:]))


class Worlds:
    """The embedded worlds that the projects of this process use. Each is opened when a project first needs it."""

    def __init__(self) -> None:
        self._opened: dict[Path, World] = {}
        self._guard = threading.Lock()  # several threads may need the first address at once

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for world in self._opened.values():
            world.close()

    def project(self, folder: Path, world: Path | None, postgres_database: str | None = None) -> Project:
        """The project of a folder with the world of another folder, or without a world.

        ``postgres_database`` is the database of the world's PostgreSQL that the project uses; None is the default one.
        """
        if world is None:
            return Project(folder)

        known: dict[str, str] = {}  # the last address of each service

        def address(service: str) -> str:
            with self._guard:
                if world not in self._opened:
                    self._opened[world] = World.open(world)
            try:
                found = known[service] = self._opened[world].address(service)
            except (ServiceIsDown, ServiceDied):
                # It keeps its address, so that a client tells that it does not answer, and finds it when it is back.
                if service not in known:
                    raise
                found = known[service]
            if service == "postgres" and postgres_database is not None:
                return f"{found.rpartition('/')[0]}/{postgres_database}"
            return found

        return Project(folder, address)


class EngineServer:
    """The engine of one project at a time, with its Spark session and its HTTP server.

    Relative paths in the settings start at ``home``.
    """

    def __init__(self, home: Path, settings: Settings, project: Project, urgent_queries: bool = False) -> None:
        """``urgent_queries`` gives queries the priority of tasks: for specs, which wait for every query."""
        self._settings = settings
        self._spark = Spark(_spark_session(home, settings))
        self._queries = QueryProcess(lambda: _query_settings(home, settings, urgent_queries))
        self._files = QuarantineFiles(
            f"{settings.warehouse_address(home).rstrip('/')}/quarantine", settings.quarantine.in_catalog
        )
        self._views = f"{settings.warehouse_address(home).rstrip('/')}/views"
        self._spark_died = threading.Event()
        self._told_to_end = threading.Event()  # by a signal
        self._token = secrets.token_urlsafe(32)
        self._url = self._grpc = ""
        self._api = HttpApi(self._open(project), self._token, hosts=settings.hosts)
        self._grpc_door = GrpcDoor(lambda: self._api.engine.on_demand, self._token)
        config = uvicorn.Config(
            self._api.application(), log_level="warning", lifespan="off", timeout_graceful_shutdown=SHUTDOWN_TIMEOUT
        )
        self._server = uvicorn.Server(config)

    def open_project(self, project: Project) -> None:
        """Close the current project, and open another one, whose catalog may be new. Spark is kept.

        Called by another thread than the one in ``run``.
        """
        closed = self._api.engine
        closed.close()
        self._remove_address(closed.project.folder)
        engine = self._open(project)
        self._api.serve(engine)
        engine.start()
        self._write_address()

    def stop(self) -> None:
        """Make ``run`` return, also if it has not started yet. Any thread may call it."""
        self._server.should_exit = True

    def run(self, bound: socket.socket) -> bool:
        """Serve until ``stop`` or a signal, then close everything.

        Returns True if Spark has died by itself. Then the process must start again, because a Python process cannot start a
        second Spark. Nothing is lost: the state of the engine is in the catalog and the ledgers. A service manager sends its
        signal to all processes of a service: Spark may end by it first, and the engine must end all the same.
        """
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: self._end())
        self._api.engine.start()
        try:
            self._url = f"http://{LOOPBACK}:{bound.getsockname()[1]}"
            self._grpc = f"{LOOPBACK}:{self._listen_for_grpc()}"
            self._write_address()
            log.info("statements are taken at %s, gRPC at %s", self._url, self._grpc)
            if self._settings.spark.eager:
                self._spark.warm_up()
            if self._settings.queries.eager:
                self._queries.warm_up()
            self._server.run(sockets=[bound])
            log.info("stopping: tasks finish their batches")
        finally:
            self._close()
        return self._spark_died.is_set() and not self._told_to_end.is_set()

    def _end(self) -> None:
        self._told_to_end.set()
        self.stop()

    def _listen_for_grpc(self) -> int:
        port = self._settings.grpc_port
        try:
            return self._grpc_door.start(LOOPBACK, port)
        except OSError as error:
            raise EnginePortTaken(port) from error

    def _on_spark_death(self) -> None:
        log.error("Spark has died")
        self._spark_died.set()
        self.stop()

    def _on_lease_lost(self, lost: CatalogError) -> None:
        """Kill Spark and exit at once, because another engine may have taken over the catalog. Otherwise a batch that runs
        would be written after later batches of the other engine."""
        kill_jvm()
        log.error("%s", lost.diagnostic().render())
        logging.shutdown()
        os._exit(exit_status(lost))

    def _close(self) -> None:
        """Close every part, even if another one fails: Spark may have ended already, by the same signal."""
        for close in (self._grpc_door.close, self._queries.close, self._api.engine.close, self._spark.close):
            try:
                close()
            except Exception as error:  # noqa: BLE001 - the process ends, and the next one continues from the ledgers
                log.error("could not stop cleanly: %s", str(error).partition("\n")[0])
        self._remove_address(self._api.engine.project.folder)

    def _remove_address(self, project: Path) -> None:
        """Remove our address from a project folder. An engine that took over may have written its own there."""
        written = EngineAddress.read(project)
        if written is not None and written.pid == os.getpid():
            EngineAddress.file(project).unlink(missing_ok=True)

    def _write_address(self) -> None:
        """Write the token, which only the owner can read, and then the address into the project folder.

        Clients take the address as a sign that the engine is ready.
        """
        state = self._api.engine.project.state
        token = state / TOKEN_FILE
        with suppress(FileNotFoundError):
            token.unlink()
        with os.fdopen(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._token)
        address = {"url": self._url, "grpc": self._grpc, "pid": os.getpid(), "started": datetime.now(UTC).isoformat()}
        # Renamed into place, so that a client never reads half of it.
        part = state / f"{ENGINE_FILE}.part"
        part.write_text(json.dumps(address))
        part.replace(state / ENGINE_FILE)

    def _hook(self) -> HookAddress | None:
        events = self._settings.events
        if events.url is None or events.secret is None:
            return None
        return HookAddress(events.url, events.secret.get_secret_value())

    def _open(self, project: Project) -> Engine:
        slots = self._settings.spark.real_time_slots
        return Engine(
            project,
            self._spark,
            self._queries,
            self._on_spark_death,
            self._on_lease_lost,
            self._files,
            slots,
            self._views,
            self._hook(),
            size_in_bytes(self._settings.views.spare),
        )


def replace_process(command: tuple[str, ...]) -> Never:
    """Replace this process by another program."""
    with suppress(ChildProcessError):  # ended children would stay as zombies under the new program
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    os.execv(command[0], command)


def _spark_session(folder: Path, settings: Settings) -> OpenSpark:
    memory = settings.spark.memory or f"{default_heap(total_memory())}m"
    return lambda: open_spark(
        master=settings.spark.whole_master, memory=memory, settings=_spark_settings(folder, settings)
    )


def _spark_settings(folder: Path, settings: Settings) -> dict[str, str]:
    """The settings of both Sparks, that of tasks and that of queries."""
    return {
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.warehouse.dir": settings.warehouse_address(folder),
        **settings.spark.settings,
    }


def _query_settings(folder: Path, settings: Settings, urgent: bool) -> QuerySettings:
    made = query_settings(
        folder / ".headgate" / "queries",
        memory=settings.queries.memory,
        at_once=settings.queries.at_once,
        spool=size_in_bytes(settings.queries.spool),
        spark=_spark_settings(folder, settings),
    )
    return replace(made, niceness=0) if urgent else made


def listen(port: int) -> socket.socket:
    """A socket that listens on loopback. Port 0 means a free one. Raises EnginePortTaken."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise EnginePortTaken(port) from error


def set_up_logging(settings: Settings, folder: Path) -> None:
    """Log to the file of the settings, or to standard error. Libraries that log every call are silenced."""
    file = settings.log_file(folder)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=settings.log.level.upper(), format=form, handlers=[handler])
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(LOGGER_OF_VALUES).setLevel(logging.CRITICAL + 1)
