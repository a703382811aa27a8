"""What one job of `headgate test` keeps: a world, an engine process, and a fresh project for every file.

A job runs one file at a time and shares nothing with other jobs, so that what is in a service and was not there
before the file is the file's own. It is removed when the engine has left the file's project: a task that still runs
might write it again. Each service starts when a file first needs it, and the engine with the first file.

The engine process serves one project after another and keeps its Spark: a start of Spark costs 6 to 20 seconds, another
project well under one. The process (`headgate.cli.test`) gets the next project over a socket that only the runner has.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import httpx
import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from psycopg import sql

from headgate.embedded.process import lifeline_command
from headgate.embedded.world import Progress, World
from headgate.processes import last_lines, program_environment
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryError
from headgate.serve.client import STOP_TIMEOUT, EngineClient, EngineProcess
from headgate.serve.errors import EngineDidNotStart, EngineError
from headgate.testing.context import SpecContext, Variables

MODULE = "headgate.cli.test"
OPEN_TIMEOUT = 180.0  # seconds for an engine to end the batches of one project and to open another
WARM_UP_TIMEOUT = 300.0  # seconds; Spark alone takes 8 to 20 on two cores with nothing else to do


@dataclass(frozen=True, slots=True)
class SpecProject:
    """A project folder, the folder of its world, and the name of its database in the world's PostgreSQL."""

    folder: Path
    world: Path
    postgres_database: str | None = None

    def write(self) -> str:
        """One line, which ``read`` reads."""
        return json.dumps([str(self.folder), str(self.world), self.postgres_database])

    @classmethod
    def read(cls, line: str) -> Self:
        folder, world, postgres_database = json.loads(line)
        return cls(Path(folder), Path(world), postgres_database)


class RunningEngine(Protocol):
    """An engine process that was started for a run of specs."""

    @property
    def client(self) -> EngineClient: ...

    @property
    def is_running(self) -> bool: ...

    def open_project(self, project: SpecProject) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class StartEngine(Protocol):
    """How an environment starts its engine. Tests give another one."""

    def __call__(self, home: Path, project: SpecProject) -> RunningEngine:
        """``home`` is the folder for the log and the warehouse, the same for all engines of a run."""


class SpecEngine(EngineProcess):
    """Use ``start_engine``."""

    def __init__(
        self, project: SpecProject, process: subprocess.Popen[bytes], log: Path, commands: socket.socket
    ) -> None:
        super().__init__(project.folder, process, log)
        self._commands = commands

    def open_project(self, project: SpecProject) -> None:
        """Leave the current project in order for another one. Raises EngineDidNotStart."""
        try:
            self._commands.sendall(project.write().encode() + b"\n")
            with self._commands.makefile("r", encoding="utf-8") as answers:
                answer = answers.readline()
        except OSError as error:
            answer = f"{type(error).__name__}"
        if answer != "\n":
            reason = answer.strip() or "it ended"
            raise EngineDidNotStart(str(project.folder), reason, str(self.log), last_lines(self.log))
        self.project = project.folder

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        super().stop(timeout)
        self._commands.close()

    def kill(self) -> None:
        super().kill()
        self._commands.close()


def start_engine(home: Path, project: SpecProject) -> SpecEngine:
    """Start an engine and wait until it is ready for statements, Spark included.

    It ends in order when this process is killed. For this the thread that calls must live as long as the engine: on
    Linux the engine gets its signal when that thread ends."""
    log = home / ".headgate" / "engine.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    ours, theirs = socket.socketpair()
    ours.settimeout(OPEN_TIMEOUT)
    module = (sys.executable, "-m", MODULE, str(theirs.fileno()), str(home), project.write())
    with theirs, log.open("ab") as output:
        process = subprocess.Popen(
            (*lifeline_command(signal.SIGTERM), *module), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, env=program_environment(), pass_fds=[theirs.fileno()],
        )  # fmt: skip
    engine = SpecEngine(project, process, log, ours)
    try:
        engine.wait_until_ready()
        _warm_up(engine.client)
    except BaseException:
        engine.kill()
        raise
    return engine


def _warm_up(client: EngineClient) -> None:
    """Let Spark start before the time-out of a step begins. The steps will show what is wrong with it."""
    with suppress(EngineError):
        list(client.run("SELECT 1 AS one;", WARM_UP_TIMEOUT))


TIMEOUT = 30.0  # seconds for one request of a service


class SpecEnvironment:
    """Use ``open_environment``. ``new_context`` begins a file; the file before must have ended."""

    def __init__(self, folder: Path, world: World, start: StartEngine) -> None:
        self.folder = folder
        self.world = world
        self.started: set[str] = set()  # services that a file has needed so far
        self._start = start
        self._engine: RunningEngine | None = None
        self._project: SpecProject | None = None
        self._cleanup: Cleanup | None = None
        self._interrupted = threading.Event()

    @property
    def client(self) -> EngineClient:
        assert self._engine is not None, "no file has begun"
        return self._engine.client

    def new_context(self, services: Iterable[str], timeout: float, rewrite: bool = False) -> SpecContext:
        """Begin a file with an empty catalog. Its services start now, so that no time-out of a step has to cover that;
        if PostgreSQL is among them, the file gets a database of its own."""
        needed = sorted(services)
        start_stopped_services(self.world)
        if needed:
            self.world.ensure(*needed)
        self.started.update(needed)
        seed = f"s{secrets.token_hex(4)}"
        folder = self.folder / "projects" / seed
        files = folder / "files"
        files.mkdir(parents=True)
        database = f"spec_{seed}" if "postgres" in needed else None
        if database is not None:
            create_database(self.world, database)
        self._open(SpecProject(folder, self.world.folder, database))
        # Only now: the engine has left the project before, so none of its tasks can write again.
        if self._cleanup is not None:
            self._cleanup.remove()
        self._cleanup = Cleanup(self.world, database)
        context = SpecContext(
            self, self.world, folder, files, Variables(), timeout, self._interrupted,
            postgres_database=database, rewrite=rewrite,
        )  # fmt: skip
        context.variables = _variables(context, seed)
        return context

    def restart(self) -> None:
        """Stop the engine in order, and start one on the same catalog. Both are in the same process and have the same Spark,
        whose start would take most of the time; `kill` ends both."""
        assert self._project is not None, "no file has begun"
        self._open(self._project)

    def kill(self) -> None:
        """Kill the engine and its Spark, and start one on the same catalog."""
        if self._engine is not None:
            self._engine.kill()
        self._start_again()

    def interrupt(self) -> None:
        """Let the file that runs end soon. For another thread than the one that runs it."""
        self._interrupted.set()
        running = self._engine
        if running is not None:
            running.kill()

    def close(self) -> None:
        if self._engine is not None:
            self._engine.stop()
            self._engine = None

    def _open(self, project: SpecProject) -> None:
        """Let the engine leave its project for this one. An engine that a file has broken is replaced, so that the next
        file does not suffer for it."""
        self._project = project
        if self._engine is not None and self._engine.is_running:
            try:
                self._engine.open_project(project)
            except EngineError:
                self._engine.kill()
            else:
                return
        self._start_again()

    def _start_again(self) -> None:
        """Start an engine on the project of the file. Raises KeyboardInterrupt if the run was interrupted."""
        self._engine = None
        if self._interrupted.is_set():
            raise KeyboardInterrupt
        if self._project is not None:
            home = self.folder / "engine"
            home.mkdir(exist_ok=True)
            self._engine = self._start(home, self._project)


@contextmanager
def open_environment(
    keep: Path | None = None, progress: Progress | None = None, start: StartEngine | None = None
) -> Iterator[SpecEnvironment]:
    """``keep`` is a folder in which everything stays; without one nothing does."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-test-")) if keep is None else keep.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with World.open(folder / "world", progress) as world:
            environment = SpecEnvironment(folder, world, start or start_engine)
            try:
                yield environment
            finally:
                environment.close()
                world.shut_down()
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _variables(context: SpecContext, seed: str) -> Variables:
    """The variables that every file has. Addresses are asked for when they are used, which starts the service."""
    variables = Variables(
        {
            "bootstrap": lambda: context.kafka,
            "registry": lambda: context.world.registry(),
            "postgres": lambda: context.postgres,
            "elasticsearch": lambda: context.elasticsearch,
        }
    )
    variables.set("seed", seed)
    variables.set("dir", str(context.folder))
    return variables


class Cleanup:
    """Remembers what is in the services when a file begins. ``remove`` removes everything else. Neither starts a
    service."""

    def __init__(self, world: World, database: str | None) -> None:
        self._world = world
        self._database = database
        running = _running(world)
        self._before = {service: find(world) for service, (find, _) in _CONTENTS.items() if service in running}

    def remove(self) -> None:
        running = _running(self._world)
        for service, (find, delete) in _CONTENTS.items():
            if service in running and (new := find(self._world) - self._before.get(service, frozenset())):
                delete(self._world, new)
        if self._database is not None:
            drop_database(self._world, self._database)


def start_stopped_services(world: World) -> None:
    """Start the services that a file has left down."""
    down = [one.service for one in world.status().services if one.state == "down"]
    if down:
        world.start(*down)


def create_database(world: World, name: str) -> None:
    with psycopg.connect(world.postgres(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def drop_database(world: World, name: str) -> None:
    """Drop a database even if somebody is connected to it. Replication slots that hold it are dropped first."""
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
    admin = AdminClient({"bootstrap.servers": world.kafka(), "log_level": 0})
    for deleted in admin.delete_topics(sorted(names), operation_timeout=TIMEOUT).values():
        with suppress(KafkaException):  # the topic is gone already
            deleted.result()


def _subjects(world: World) -> frozenset[str]:
    with RegistryClient([world.registry()]) as registry:
        return frozenset(registry.subjects(deleted=True))


def _delete_subjects(world: World, names: frozenset[str]) -> None:
    """Delete subjects in rounds: one that others refer to can be deleted only after them."""
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
    found = httpx.get(url, timeout=TIMEOUT, trust_env=False).raise_for_status().json()
    return frozenset(one["index"] for one in found if not one["index"].startswith("."))


def _delete_indexes(world: World, names: frozenset[str]) -> None:
    for name in names:
        httpx.delete(f"{world.elasticsearch()}/{name}", timeout=TIMEOUT, trust_env=False)


# What a file may leave in a service: how to list it, and how to delete it.
_CONTENTS: dict[str, tuple[Callable[[World], frozenset[str]], Callable[[World, frozenset[str]], None]]] = {
    "kafka": (_topics, _delete_topics),
    "registry": (_subjects, _delete_subjects),
    "opensearch": (_indexes, _delete_indexes),
}
