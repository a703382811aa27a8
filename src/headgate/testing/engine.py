"""The engine process of a run of specs, as the runner sees it.

It serves one project after another and keeps its Spark: a start of Spark costs 6 to 20 seconds, another project well
under one. The process (`headgate.cli.test_engine`) gets the next project over a socket that only the runner has.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from headgate.embedded.process import lifeline_command
from headgate.serve.client import EngineClient
from headgate.serve.errors import EngineDidNotStart, EngineError
from headgate.serve.process import EngineProcess, last_lines, program_environment

MODULE = "headgate.cli.test_engine"
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

    def stop(self, patience: float = 90.0) -> None:
        super().stop(patience)
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
