"""What one run of `headgate test` keeps: a world, an engine process, and a fresh project for every file.

Each service starts when a file first needs it. The engine starts before the first file and leaves one project for the
next, so that Spark starts once. What a file left behind is removed when the engine has left its project: before that,
a task might write it again.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.embedded.process import lifeline
from headgate.embedded.world import Progress, World
from headgate.serve.client import EngineAddress, EngineClient, token_file
from headgate.serve.errors import EngineError
from headgate.serve.process import EngineProcess, start_engine
from headgate.testing import leftovers
from headgate.testing.leftovers import Leftovers
from headgate.testing.stage import Stage
from headgate.testing.variables import Variables

WARM_UP = 300.0  # seconds; Spark alone takes 8 to 20 on two cores with nothing else to do


class RunningEngine(Protocol):
    """An engine process that was started here."""

    @property
    def client(self) -> EngineClient: ...

    @property
    def is_running(self) -> bool: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class StartEngine(Protocol):
    def __call__(self, project: Path, world: Path) -> RunningEngine: ...


@dataclass(slots=True)
class Project:
    """The project that the engine serves."""

    folder: Path
    postgres_database: str | None


class House:
    """Use ``opened_house``. ``stage`` gives a fresh stage; the one before must be done with."""

    def __init__(self, folder: Path, world: World, start: StartEngine) -> None:
        self.folder = folder
        self.world = world
        self._start = start
        self._engine: RunningEngine | None = None
        self._project: Project | None = None
        self._left: Leftovers | None = None

    @property
    def client(self) -> EngineClient:
        if self._engine is None:
            self._engine = self._start(self._home, self.world.folder)
            _warm_up(self._engine.client)
        return self._engine.client

    def stage(self, text: str, timeout: float, rewrite: bool) -> Stage:
        """For a file of this text. The services that it names are started now, so that no step's time-out has to cover
        that; it gets a database of its own if PostgreSQL is among them."""
        leftovers.bring_up(self.world)
        needed = _services(text)
        if needed:
            self.world.ensure(*needed)
        seed = f"s{secrets.token_hex(4)}"
        folder = self.folder / "projects" / seed
        files = folder / "files"
        files.mkdir(parents=True)
        database = f"spec_{seed}" if "postgres" in needed else None
        if database is not None:
            leftovers.create_database(self.world, database)
        self._leave_for(Project(folder, database))
        if self._left is not None:
            self._left.remove()
        self._left = Leftovers(self.world, database)
        stage = Stage(
            self, self.world, folder, files, Variables(), timeout, postgres_database=database, rewrite=rewrite
        )
        stage.variables = _variables(stage, seed)
        return stage

    def restart(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        self._start_again()

    def kill(self) -> None:
        if self._engine is not None:
            self._engine.kill()
        self._start_again()

    def close(self) -> None:
        if self._engine is not None:
            self._engine.stop()
            self._engine = None

    @property
    def _home(self) -> Path:
        """The engine's own project, which no file uses."""
        home = self.folder / "engine"
        home.mkdir(exist_ok=True)
        return home

    def _leave_for(self, project: Project) -> None:
        """An engine that a file brought down, or to a standstill, is replaced: the next file must not suffer for it."""
        if self._engine is not None and not self._engine.is_running:
            self._engine = None
        try:
            self._switch(project)
        except EngineError:
            if self._engine is None:
                raise
            self._engine.kill()
            self._engine = None
            self._switch(project)

    def _start_again(self) -> None:
        self._engine = None
        if self._project is not None:
            self._switch(self._project)

    def _switch(self, project: Project) -> None:
        self.client.switch(project.folder, self.world.folder, project.postgres_database)
        self._project = project
        _announce(self._home, project.folder)


@contextmanager
def opened_house(
    keep: Path | None = None, progress: Progress | None = None, start: StartEngine | None = None
) -> Iterator[House]:
    """``keep`` is the folder in which all stays for a look; otherwise nothing does."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-test-")) if keep is None else keep.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with World.open(folder / "world", progress) as world:
            house = House(folder, world, start or _start_engine)
            try:
                yield house
            finally:
                house.close()
                world.shut_down()
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _warm_up(client: EngineClient) -> None:
    """Let Spark start before a step's time-out runs. What may be wrong with it, the steps will tell."""
    with suppress(EngineError):
        list(client.run("SELECT 1 AS one;", WARM_UP))


def _services(text: str) -> list[str]:
    folded = text.lower().replace("${bootstrap}", "kafka")
    return [name for name in ("kafka", "registry", "postgres", "elasticsearch") if name in folded]


def _start_engine(project: Path, world: Path) -> EngineProcess:
    """Ends, in order, also when the run is killed."""
    return start_engine(project, environment={"HEADGATE_WORLD": str(world)}, by=lifeline(signal.SIGTERM))


def _variables(stage: Stage, seed: str) -> Variables:
    found = Variables(
        {
            "bootstrap": lambda: stage.kafka,
            "registry": lambda: stage.world.registry(),
            "postgres": lambda: stage.postgres,
            "elasticsearch": lambda: stage.elasticsearch,
        }
    )
    found.set("seed", seed)
    found.set("dir", str(stage.folder))
    return found


def _announce(home: Path, project: Path) -> None:
    """Tell in the project's folder which engine serves it, so that commands called there find it."""
    address = EngineAddress.read(home)
    if address is None or EngineAddress.read(project) == address:
        return
    target = EngineAddress.file(project)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"url": address.url, "pid": address.pid}), "utf-8")
    with suppress(FileNotFoundError):
        token_file(project).unlink()
    written = os.open(token_file(project), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(written, "w", encoding="utf-8") as file:
        file.write(token_file(home).read_text("utf-8"))
