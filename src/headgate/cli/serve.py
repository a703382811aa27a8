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
    _set_up_logging(settings, folder)
    settings = settings.model_copy(update=given)
    with _listen(settings.port) as bound:
        EngineServer(folder, settings).run(bound)


class EngineServer:
    """The engine process of one project at a time."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._home = folder
        self._settings = settings
        self._worlds: dict[Path, World] = {}
        self._spark = Spark(_spark_session(folder, settings))
        self._spark_died = threading.Event()
        self._engine = self._open(self._project(folder, settings.world_folder(folder)))
        self._token = secrets.token_urlsafe(32)
        self._door = HttpApi(self._engine, self._token, self._switch)

    def run(self, bound: socket.socket) -> None:
        """Until a signal ends it, in order."""
        state = self._home / ".headgate"
        config = uvicorn.Config(
            self._door.application(),
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        )
        self._server = server = uvicorn.Server(config)
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: setattr(server, "should_exit", True))
        self._engine.start()
        try:
            self._announce(state, bound.getsockname()[1])
            if self._settings.spark.eager:
                self._spark.warm_up()
            server.run(sockets=[bound])
            log.info("stopping: tasks end their batches")
        finally:
            self._end()
        if self._spark_died.is_set():
            self._begin_again()

    def _spark_gone(self) -> None:
        """A Python process cannot start a second Spark after the first has died, so the engine begins again as a whole:
        what it knows is in the catalog and the ledgers."""
        log.error("Spark has died, the engine starts again")
        self._spark_died.set()
        self._server.should_exit = True

    def _fenced(self, lost: LeaseLost) -> None:
        """Another engine goes on with the catalog. This one ends at once, its Spark with it: a batch that is under way
        would be written beside the other's."""
        log.error("%s", lost.diagnostic().render())
        logging.shutdown()
        os._exit(exit_status(lost))

    def _begin_again(self) -> None:
        with suppress(ChildProcessError):  # the dead Spark would stay a zombie of the next program
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        os.execv(
            sys.executable,
            [sys.executable, "-c", "from headgate.cli.main import main; main()", *sys.argv[1:]],
        )

    def _end(self) -> None:
        """Every part in turn, whatever the ones before it met: Spark may be gone already, told to stop with us."""
        worlds = [world.close for world in self._worlds.values()]
        for close in (self._door.engine.close, self._spark.close, *worlds):
            try:
                close()
            except Exception as error:  # noqa: BLE001 - the process ends, and the next one goes on from the ledgers
                log.error("could not stop in order: %s", str(error).partition("\n")[0])
        told = EngineAddress.read(self._home)
        if told is not None and told.pid == os.getpid():  # and not of the engine that took over
            EngineAddress.file(self._home).unlink(missing_ok=True)

    def _announce(self, state: Path, port: int) -> None:
        """The token first, readable only by the owner; then where the engine is."""
        token = state / TOKEN_FILE
        with suppress(FileNotFoundError):
            token.unlink()
        with os.fdopen(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._token)
        told = {
            "url": f"http://127.0.0.1:{port}",
            "pid": os.getpid(),
            "started": datetime.now(UTC).isoformat(),
        }
        part = state / f"{ENGINE_FILE}.part"
        part.write_text(json.dumps(told))
        part.replace(state / ENGINE_FILE)

    def _switch(self, wish: dict[str, object]) -> None:
        """Drain, and go on with the catalog of another folder."""
        self._door.engine.close()
        folder = Path(str(wish["folder"]))
        world = Path(str(wish["world"])) if wish.get("world") else self._settings.world_folder(self._home)
        database = str(wish["postgres_database"]) if wish.get("postgres_database") else None
        self._door.engine = self._open(self._project(folder, world, database))
        self._door.engine.start()

    def _open(self, project: Project) -> Engine:
        return Engine(project, self._spark, self._spark_gone, self._fenced)

    def _project(self, folder: Path, world_folder: Path | None, database: str | None = None) -> Project:
        if world_folder is None:
            return Project(folder)

        def address(service: str) -> str:
            if world_folder not in self._worlds:
                self._worlds[world_folder] = World.open(world_folder)
            found = self._worlds[world_folder].address(service)
            return found.rpartition("/")[0] + f"/{database}" if service == "postgres" and database else found

        return Project(folder, address)


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


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as wrong:
        raise EnginePortTaken(port) from wrong


def _set_up_logging(settings: Settings, folder: Path) -> None:
    """To the file of the settings, or to standard error. Libraries that tell of every call are silenced."""
    file = settings.log_file(folder)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=settings.log.level.upper(), format=form, handlers=[handler])
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(LOGGER_OF_VALUES).setLevel(logging.CRITICAL + 1)
