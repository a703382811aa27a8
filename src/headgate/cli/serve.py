"""`headgate serve`: the engine of a project, until it is told to stop."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import uvicorn

from headgate.control.engine import Engine, Project
from headgate.embedded.jars import fetch
from headgate.embedded.java import find_java
from headgate.embedded.world import World
from headgate.runtime.session import OpenSpark, Spark, SparkSession, open_session
from headgate.serve.server import Door

ENGINE_FILE = "engine.json"
TOKEN_FILE = "token"


@click.command()
@click.option("--project", type=click.Path(path_type=Path), default=Path(), help="The project's folder.")
@click.option("--port", default=0, show_default=True, help="Port on loopback; 0 takes a free one.")
@click.option(
    "--world", "world_folder", type=click.Path(path_type=Path), help="Folder of the embedded world."
)
def serve(project: Path, port: int, world_folder: Path | None) -> None:
    """Run the engine: take statements, and keep tasks running."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    folder = project.absolute()
    Served(folder, world_folder or folder / ".headgate" / "world", port).run()


class Served:
    """The engine process of one project at a time."""

    def __init__(self, folder: Path, world_folder: Path, port: int) -> None:
        self._home = folder
        self._port = port
        self._worlds: dict[Path, World] = {}
        self._spark = Spark(_spark_session(folder))
        self._engine = Engine(self._project(folder, world_folder), self._spark)
        self._token = secrets.token_urlsafe(32)
        self._door = Door(self._engine, self._token, self._switch)

    def run(self) -> None:
        state = self._home / ".headgate"
        server = uvicorn.Server(
            uvicorn.Config(
                self._door.application(),
                host="127.0.0.1",
                port=self._port,
                log_level="warning",
                lifespan="off",
            )
        )
        with server.config.bind_socket() as bound:
            self._announce(state, bound.getsockname()[1])
            self._spark.warm_up()
            self._engine.start()
            signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
            try:
                server.run(sockets=[bound])
            finally:
                self._door.engine.close()
                with suppress(FileNotFoundError):
                    (state / ENGINE_FILE).unlink()
                self._spark.close()
                for world in self._worlds.values():
                    world.close()

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
        world = Path(str(wish["world"])) if wish.get("world") else self._home / ".headgate" / "world"
        database = str(wish["postgres_database"]) if wish.get("postgres_database") else None
        self._door.engine = Engine(self._project(folder, world, database), self._spark)
        self._door.engine.start()

    def _project(self, folder: Path, world_folder: Path, database: str | None = None) -> Project:
        def address(service: str) -> str:
            if world_folder not in self._worlds:
                self._worlds[world_folder] = World.open(world_folder)
            found = self._worlds[world_folder].address(service)
            return found.rpartition("/")[0] + f"/{database}" if service == "postgres" and database else found

        return Project(folder, address)


def _spark_session(folder: Path) -> OpenSpark:
    def open_() -> SparkSession:
        settings = {"spark.sql.caseSensitive": "true", "spark.sql.ansi.enabled": "true"}
        warehouse = folder / ".headgate" / "warehouse"
        return open_session(fetch("spark"), java=find_java().path, warehouse=warehouse, settings=settings)

    return open_
