"""Starting an engine as a process, for the time of a command or of a run of specs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

import headgate
from headgate.serve.client import EngineAddress, EngineClient
from headgate.serve.errors import EngineDidNotStart

PATIENCE = 180.0  # seconds until an engine must be ready; Spark starts in 8 to 20 on two cores
DRAIN = 90.0  # seconds in which an engine that was told to stop must have ended its tasks
ASK_EVERY = 0.05
SHOWN = 20  # lines of the log in an error

# The command line as a program, also where it is not installed.
HEADGATE = (sys.executable, "-c", "from headgate.cli.main import main; main()")


class EngineProcess:
    """An engine that was started here, and its whole family of processes."""

    def __init__(self, project: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        self.project = project
        self.log = log
        self._process = process
        self._session = uuid.uuid4().hex

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def client(self) -> EngineClient:
        return EngineClient.of_project(self.project, self._session)

    def wait_until_ready(self, patience: float = PATIENCE) -> None:
        """Raises EngineDidNotStart when it ends, or is not ready in so many seconds."""
        deadline = time.monotonic() + patience
        while not self._is_ready():
            if (status := self._process.poll()) is not None:
                raise self._did_not_start(f"it ended with status {status}")
            if time.monotonic() > deadline:
                raise self._did_not_start(f"it was not ready within {patience:.0f} s")
            time.sleep(ASK_EVERY)

    def stop(self, patience: float = DRAIN) -> None:
        """In order; whatever of it is left after so many seconds is killed. May be called again."""
        family = self._family()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        self._end(family)

    def kill(self) -> None:
        """At once, Spark and its workers too, as a machine that loses power would."""
        self._end(self._family())

    def _is_ready(self) -> bool:
        found = EngineAddress.read(self.project)
        return found is not None and found.pid == self.pid and self.client.is_healthy()

    def _did_not_start(self, reason: str) -> EngineDidNotStart:
        return EngineDidNotStart(str(self.project), reason, str(self.log), last_lines(self.log))

    def _family(self) -> list[psutil.Process]:
        """Taken while the engine lives: the children of a process that has ended are no longer found by it."""
        try:
            found = psutil.Process(self.pid)
            return [found, *found.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _end(self, family: list[psutil.Process]) -> None:
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait()
        psutil.wait_procs(family, timeout=10)


def start_engine(
    project: Path, *, port: int = 0, environment: Mapping[str, str] | None = None, patience: float = PATIENCE,
    by: Sequence[str] = (),
) -> EngineProcess:  # fmt: skip
    """Start `headgate serve` in a session of its own and wait until it is ready. ``by`` is a command that becomes the one
    behind it."""
    folder = project / ".headgate"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "engine.log"
    command = (*by, *HEADGATE, "serve", "--project", str(project), "--port", str(port))
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=program_environment(environment),
        )  # fmt: skip
    started = EngineProcess(project, process, log)
    try:
        started.wait_until_ready(patience)
    except BaseException:
        started.kill()
        raise
    return started


@contextmanager
def started_engine(
    project: Path, *, port: int = 0, environment: Mapping[str, str] | None = None, patience: float = PATIENCE,
    by: Sequence[str] = (),
) -> Iterator[EngineProcess]:  # fmt: skip
    """An engine for the time of the block; ``environment`` is added to that of this process."""
    started = start_engine(project, port=port, environment=environment, patience=patience, by=by)
    try:
        yield started
    finally:
        started.stop()


def program_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which `HEADGATE` finds this very package."""
    sources = str(Path(headgate.__file__).parent.parent)
    paths = [sources, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths)), **(added or {})}


def last_lines(path: Path, most: int = SHOWN) -> tuple[str, ...]:
    """The end of a log, with over-long lines cut; nothing if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 32768))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line[:240] for line in text.splitlines() if line.strip())[-most:]
