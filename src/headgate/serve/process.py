"""Start an engine as a child process, for a command or for a run of specs."""

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

START_TIMEOUT = 180.0  # seconds until an engine must be ready; Spark takes 8 to 20 on two cores
STOP_TIMEOUT = 90.0  # seconds in which an engine must finish its batches and end
POLL_INTERVAL = 0.05
LOG_LINES = 20  # lines of the log that an error shows

# The command `headgate`, which also works where the package is not installed.
HEADGATE = (sys.executable, "-c", "from headgate.cli.main import main; main()")


class EngineProcess:
    """An engine that this process started, with Spark and its Python workers as descendants."""

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
        """A client of the engine. All clients of this object share one session."""
        return EngineClient.of_project(self.project, self._session)

    def wait_until_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Raises EngineDidNotStart if the engine ends, or is not ready after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not self._is_ready():
            if (status := self._process.poll()) is not None:
                raise self._did_not_start(f"it ended with status {status}")
            if time.monotonic() > deadline:
                raise self._did_not_start(f"it was not ready within {timeout:.0f} s")
            time.sleep(POLL_INTERVAL)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop the engine and wait. After ``timeout`` seconds all its processes are killed. May be called again."""
        tree = self._process_tree()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self._end(tree)

    def kill(self) -> None:
        """Kill the engine, Spark and the Python workers at once, as a power failure would."""
        self._end(self._process_tree())

    def _is_ready(self) -> bool:
        found = EngineAddress.read(self.project)
        return found is not None and found.pid == self.pid and self.client.is_healthy()

    def _did_not_start(self, reason: str) -> EngineDidNotStart:
        return EngineDidNotStart(str(self.project), reason, str(self.log), last_lines(self.log))

    def _process_tree(self) -> list[psutil.Process]:
        """The engine and its descendants. Call it while the engine runs: later its children have another parent."""
        try:
            found = psutil.Process(self.pid)
            return [found, *found.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _end(self, tree: list[psutil.Process]) -> None:
        for one in tree:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait()
        psutil.wait_procs(tree, timeout=10)


def start_engine(
    project: Path, *, port: int = 0, environment: Mapping[str, str] | None = None, timeout: float = START_TIMEOUT,
    prefix: Sequence[str] = (),
) -> EngineProcess:  # fmt: skip
    """Start `headgate serve` in a new session and wait until it is ready. Raises EngineDidNotStart.

    ``port`` 0 means a free port. ``environment`` is added to that of this process. ``prefix`` is put before the command
    (see ``embedded.process.lifeline_command``).
    """
    folder = project / ".headgate"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "engine.log"
    command = (*prefix, *HEADGATE, "serve", "--project", str(project), "--port", str(port))
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=program_environment(environment),
        )  # fmt: skip
    started = EngineProcess(project, process, log)
    try:
        started.wait_until_ready(timeout)
    except BaseException:
        started.kill()
        raise
    return started


@contextmanager
def started_engine(
    project: Path, *, port: int = 0, environment: Mapping[str, str] | None = None, timeout: float = START_TIMEOUT,
    prefix: Sequence[str] = (),
) -> Iterator[EngineProcess]:  # fmt: skip
    """Like ``start_engine``; the engine is stopped at the end of the block."""
    started = start_engine(project, port=port, environment=environment, timeout=timeout, prefix=prefix)
    try:
        yield started
    finally:
        started.stop()


def program_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process, with this package on PYTHONPATH, so that `HEADGATE` imports the same code."""
    sources = str(Path(headgate.__file__).parent.parent)
    paths = [sources, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths)), **(added or {})}


def last_lines(path: Path, most: int = LOG_LINES) -> tuple[str, ...]:
    """The last lines of a log that are not blank, each cut at 240 characters. Empty if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 32768))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line[:240] for line in text.splitlines() if line.strip())[-most:]
