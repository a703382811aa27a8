"""`headgate serve`: the engine of a project, until it is told to stop."""

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
from datetime import UTC, datetime
from pathlib import Path
from typing import Never, Self

import click
import uvicorn

from headgate.catalog.errors import LeaseLost
from headgate.cli.errors import EnginePortTaken
from headgate.cli.main import exit_status
from headgate.cli.settings import Settings, project_option, read_settings
from headgate.control.engine import Engine, Project
from headgate.embedded.host import LOOPBACK
from headgate.embedded.jars import fetch, find_java
from headgate.embedded.world import World
from headgate.runtime.session import OpenSpark, Spark, SparkSession, open_session
from headgate.serve.client import EngineAddress
from headgate.serve.process import HEADGATE
from headgate.serve.server import HttpApi

ENGINE_FILE = "engine.json"
TOKEN_FILE = "token"
SHUTDOWN_TIMEOUT = 10  # seconds in which answers that are under way may end when the engine is told to stop
NOISY_LOGGERS = ("py4j", "httpx", "httpcore", "asyncio")
# Tells every failed query of Spark with its values, which may not be logged; failures are told as diagnostics.
LOGGER_OF_VALUES = "SQLQueryContextLogger"

log = logging.getLogger(__name__)


@click.command()
@project_option
@click.option("--port", type=click.IntRange(0, 65535), help="Port on loopback; 0 takes a free one.")
@click.option(
    "--world", "world_folder", type=click.Path(path_type=Path), help="Folder of the embedded world."
)
def serve(project: Path, port: int | None, world_folder: Path | None) -> None:
    """Run the engine: take statements, and keep tasks running.

    SIGTERM and Ctrl-C end it in order: tasks finish their batch and go on from there when an engine runs again.
    """
    folder = project.absolute()
    settings = read_settings(folder)
    given: dict[str, int | Path] = {"port": settings.port if port is None else port}
    if world_folder is not None:
        given["world"] = world_folder.absolute()
    set_up_logging(settings, folder)
    settings = settings.model_copy(update=given)
    with Worlds() as worlds, listen(settings.port) as bound:
        spark_died = EngineServer(
            folder, settings, worlds.project(folder, settings.world_folder(folder))
        ).run(bound)
    if spark_died:
        become((*HEADGATE, *sys.argv[1:]))


class Worlds:
    """The embedded worlds that the projects of this process use. Each is opened when a project first needs it."""

    def __init__(self) -> None:
        self._opened: dict[Path, World] = {}
        self._guard = threading.Lock()  # statements of several threads ask for addresses

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for world in self._opened.values():
            world.close()

    def project(self, folder: Path, world: Path | None, postgres_database: str | None = None) -> Project:
        """A project with the world in that folder, if any. It uses ``postgres_database`` of the world's PostgreSQL, or
        the one that all share."""
        if world is None:
            return Project(folder)

        def address(service: str) -> str:
            with self._guard:
                if world not in self._opened:
                    self._opened[world] = World.open(world)
            found = self._opened[world].address(service)
            if service == "postgres" and postgres_database is not None:
                return f"{found.rpartition('/')[0]}/{postgres_database}"
            return found

        return Project(folder, address)


class EngineServer:
    """The engine process of one project at a time. ``home`` is the folder that the settings are relative to."""

    def __init__(self, home: Path, settings: Settings, project: Project) -> None:
        self._settings = settings
        self._spark = Spark(_spark_session(home, settings))
        self._spark_died = threading.Event()
        self._token = secrets.token_urlsafe(32)
        self._url = ""
        self._door = HttpApi(self._open(project), self._token)
        config = uvicorn.Config(
            self._door.application(),
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        )
        self._server = uvicorn.Server(config)

    def open_project(self, project: Project) -> None:
        """Close the current project in order, and open another one, whose catalog may be new. Spark is kept.

        For a thread beside the one in ``run``."""
        closed = self._door.engine
        closed.close()
        self._withdraw(closed.project.folder)
        engine = self._open(project)
        self._door.serve(engine)
        engine.start()
        self._announce()

    def stop(self) -> None:
        """Let ``run`` end, or not begin. May be called by any thread."""
        self._server.should_exit = True

    def run(self, bound: socket.socket) -> bool:
        """Serve until ``stop`` or a signal, then end in order. True if Spark has died and the process must start again:
        a Python process cannot start a second Spark. What the engine knows is in the catalog and the ledgers."""
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: self.stop())
        self._door.engine.start()
        try:
            self._url = f"http://{LOOPBACK}:{bound.getsockname()[1]}"
            self._announce()
            if self._settings.spark.eager:
                self._spark.warm_up()
            self._server.run(sockets=[bound])
            log.info("stopping: tasks end their batches")
        finally:
            self._end()
        return self._spark_died.is_set()

    def _spark_gone(self) -> None:
        log.error("Spark has died, the engine starts again")
        self._spark_died.set()
        self.stop()

    def _fenced(self, lost: LeaseLost) -> None:
        """Another engine goes on with the catalog. This one ends at once, its Spark with it: a batch that is under way
        would be written beside the other's."""
        log.error("%s", lost.diagnostic().render())
        logging.shutdown()
        os._exit(exit_status(lost))

    def _end(self) -> None:
        """Every part in turn, whatever the ones before it met: Spark may be gone already, told to stop with us."""
        for close in (self._door.engine.close, self._spark.close):
            try:
                close()
            except Exception as error:  # noqa: BLE001 - the process ends, and the next one goes on from the ledgers
                log.error("could not stop in order: %s", str(error).partition("\n")[0])
        self._withdraw(self._door.engine.project.folder)

    def _withdraw(self, project: Path) -> None:
        """Remove the address from a project's folder, unless it is that of an engine that took over."""
        told = EngineAddress.read(project)
        if told is not None and told.pid == os.getpid():
            EngineAddress.file(project).unlink(missing_ok=True)

    def _announce(self) -> None:
        """Write the token, readable only by the owner, and then the engine's address into the project's folder."""
        state = self._door.engine.project.state
        token = state / TOKEN_FILE
        with suppress(FileNotFoundError):
            token.unlink()
        with os.fdopen(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._token)
        told = {"url": self._url, "pid": os.getpid(), "started": datetime.now(UTC).isoformat()}
        part = state / f"{ENGINE_FILE}.part"
        part.write_text(json.dumps(told))
        part.replace(state / ENGINE_FILE)

    def _open(self, project: Project) -> Engine:
        return Engine(project, self._spark, self._spark_gone, self._fenced)


def become(command: tuple[str, ...]) -> Never:
    """Let another program take the place of this process."""
    with suppress(ChildProcessError):  # a child that has ended would stay a zombie of the next program
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    os.execv(command[0], command)


def _spark_session(folder: Path, settings: Settings) -> OpenSpark:
    def open_() -> SparkSession:
        given = {
            "spark.sql.caseSensitive": "true",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.warehouse.dir": settings.warehouse_address(folder),
            **settings.spark.settings,
        }
        master = settings.spark.master
        return open_session(fetch("spark"), master=master, java=find_java().path, settings=given)

    return open_


def listen(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as wrong:
        raise EnginePortTaken(port) from wrong


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
