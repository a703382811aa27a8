"""What a file leaves in the services of the world: found by what was there before it, removed after it."""

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

import httpx
import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from psycopg import sql

from headgate.embedded.process import lifeline_command
from headgate.embedded.world import Progress, World
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryError
from headgate.serve.client import EngineAddress, EngineClient, token_file
from headgate.serve.errors import EngineError
from headgate.serve.process import EngineProcess, start_engine
from headgate.testing.context import SpecContext, Variables

TIMEOUT = 30.0


class Cleanup:
    """Made before a file runs; ``remove`` after it. Services that never ran are not started for it."""

    def __init__(self, world: World, database: str | None) -> None:
        self._world = world
        self._database = database
        running = _running(world)
        self._topics = _topics(world) if "kafka" in running else frozenset()
        self._subjects = _subjects(world) if "registry" in running else frozenset()
        self._indexes = _indexes(world) if "opensearch" in running else frozenset()

    def remove(self) -> None:
        running = _running(self._world)
        if "kafka" in running:
            _delete_topics(self._world, _topics(self._world) - self._topics)
        if "registry" in running:
            _delete_subjects(self._world, _subjects(self._world) - self._subjects)
        if "opensearch" in running:
            _delete_indexes(self._world, _indexes(self._world) - self._indexes)
        if self._database is not None:
            drop_database(self._world, self._database)


def start_stopped_services(world: World) -> None:
    """Start what a file left down."""
    down = [one.service for one in world.status().services if one.state == "down"]
    if down:
        world.start(*down)


def create_database(world: World, name: str) -> None:
    with psycopg.connect(world.postgres(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def drop_database(world: World, name: str) -> None:
    """Whoever is connected to it; replication slots that hold it are dropped first."""
    slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active"
    with psycopg.connect(world.postgres(), autocommit=True) as connection:
        connection.execute(slots, [name])
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _running(world: World) -> frozenset[str]:
    return frozenset(one.service for one in world.status().services if one.state == "running")


def _topics(world: World) -> frozenset[str]:
    admin = AdminClient({"bootstrap.servers": world.kafka(), "log_level": 0})
    return frozenset(name for name in admin.list_topics(timeout=TIMEOUT).topics if not name.startswith("__"))


def _delete_topics(world: World, names: frozenset[str]) -> None:
    if not names:
        return
    admin = AdminClient({"bootstrap.servers": world.kafka(), "log_level": 0})
    for deleted in admin.delete_topics(sorted(names), operation_timeout=TIMEOUT).values():
        with suppress(KafkaException):  # gone meanwhile
            deleted.result()


def _subjects(world: World) -> frozenset[str]:
    with RegistryClient([world.registry()]) as registry:
        return frozenset(registry.subjects(deleted=True))


def _delete_subjects(world: World, names: frozenset[str]) -> None:
    """In rounds, since a subject that another refers to goes after it."""
    left = sorted(names)
    with RegistryClient([world.registry()]) as registry:
        for permanent in (False, True):
            left = sorted(names)
            for _ in range(len(names)):
                left = [name for name in left if not _deleted(registry, name, permanent)]
                if not left:
                    break


def _deleted(registry: RegistryClient, name: str, permanent: bool) -> bool:
    try:
        registry.delete_subject(name, permanent=permanent)
    except RegistryError:
        return False
    return True


def _indexes(world: World) -> frozenset[str]:
    url = f"{world.elasticsearch()}/_cat/indices?format=json&expand_wildcards=open,closed"
    told = httpx.get(url, timeout=TIMEOUT, trust_env=False).raise_for_status().json()
    return frozenset(one["index"] for one in told if not one["index"].startswith("."))


def _delete_indexes(world: World, names: frozenset[str]) -> None:
    for name in names:
        httpx.delete(f"{world.elasticsearch()}/{name}", timeout=TIMEOUT, trust_env=False)


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


class SpecEnvironment:
    """Use ``opened_house``. ``context`` gives a fresh context; the one before must be done with."""

    def __init__(self, folder: Path, world: World, start: StartEngine) -> None:
        self.folder = folder
        self.world = world
        self._start = start
        self._engine: RunningEngine | None = None
        self._project: Project | None = None
        self._left: Cleanup | None = None

    @property
    def client(self) -> EngineClient:
        if self._engine is None:
            self._engine = self._start(self._home, self.world.folder)
            _warm_up(self._engine.client)
        return self._engine.client

    def new_context(self, text: str, timeout: float, rewrite: bool) -> SpecContext:
        """For a file of this text. The services that it names are started now, so that no step's time-out has to cover
        that; it gets a database of its own if PostgreSQL is among them."""
        start_stopped_services(self.world)
        needed = _services(text)
        if needed:
            self.world.ensure(*needed)
        seed = f"s{secrets.token_hex(4)}"
        folder = self.folder / "projects" / seed
        files = folder / "files"
        files.mkdir(parents=True)
        database = f"spec_{seed}" if "postgres" in needed else None
        if database is not None:
            create_database(self.world, database)
        self._leave_for(Project(folder, database))
        if self._left is not None:
            self._left.remove()
        self._left = Cleanup(self.world, database)
        context = SpecContext(
            self, self.world, folder, files, Variables(), timeout, postgres_database=database, rewrite=rewrite
        )
        context.variables = _variables(context, seed)
        return context

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
def open_environment(
    keep: Path | None = None, progress: Progress | None = None, start: StartEngine | None = None
) -> Iterator[SpecEnvironment]:
    """``keep`` is the folder in which all stays for a look; otherwise nothing does."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-test-")) if keep is None else keep.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with World.open(folder / "world", progress) as world:
            environment = SpecEnvironment(folder, world, start or _start_engine)
            try:
                yield environment
            finally:
                environment.close()
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
    return start_engine(
        project, environment={"HEADGATE_WORLD": str(world)}, prefix=lifeline_command(signal.SIGTERM)
    )


def _variables(context: SpecContext, seed: str) -> Variables:
    found = Variables(
        {
            "bootstrap": lambda: context.kafka,
            "registry": lambda: context.world.registry(),
            "postgres": lambda: context.postgres,
            "elasticsearch": lambda: context.elasticsearch,
        }
    )
    found.set("seed", seed)
    found.set("dir", str(context.folder))
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
