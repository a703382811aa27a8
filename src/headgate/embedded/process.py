"""Child processes of the supervisor, which must not outlive it, and their log files.

On Linux the kernel kills them with the supervisor (see ``lifeline``). As a second line of defence the world folder
records the id and start time of each process, and the next supervisor kills those that still run. A process is never
identified by its name.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import psutil

from headgate.embedded.host import User
from headgate.processes import is_alive, kill_all, process_tree

LIFELINE = Path(__file__).with_name("lifeline.py")
INHERITED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "TZ")
# Seconds. The system computes a start time from the boot time, which moves when the clock is corrected.
START_TIME_TOLERANCE = 2.0


def lifeline_command(death_signal: signal.Signals, user: User | None = None) -> tuple[str, ...]:
    """The prefix of a command whose program shall get ``death_signal`` when this process ends.

    Start the command in the main thread: the kernel sends the signal when the *thread* that forked ends.
    """
    uid, gid = (user.uid, user.gid) if user else (-1, -1)
    numbers = (os.getpid(), int(death_signal), uid, gid)
    return (sys.executable, "-I", "-S", str(LIFELINE), *map(str, numbers))


@dataclass(frozen=True, slots=True)
class Command:
    """How to start and stop a program. Its user must be able to enter ``folder``, its working folder.

    ``stop_signal`` asks the program to end. ``death_signal`` is what the kernel sends if the supervisor dies.
    """

    arguments: tuple[str, ...]
    folder: Path
    user: User | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL

    def argv(self) -> tuple[str, ...]:
        """The arguments behind the prefix of ``lifeline_command``."""
        return (*lifeline_command(self.death_signal, self.user), *self.arguments)

    def environment(self) -> dict[str, str]:
        """A small environment: a PGDATA or KAFKA_OPTS of the user must not reach a service."""
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # Without a UTF-8 locale, Java cannot open files whose path has non-ASCII characters.
        return {**kept, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process. The start time tells it from a later process with the same pid."""

    pid: int
    started: float

    def alive(self) -> bool:
        try:
            found = psutil.Process(self.pid)
            return abs(found.create_time() - self.started) < START_TIME_TOLERANCE and is_alive(found)
        except psutil.Error:
            return False

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        return cls(pid, psutil.Process(pid).create_time())

    def kill_tree(self) -> None:
        """Kill the process and all its descendants, and wait until they have ended."""
        if self.alive():
            kill_all(process_tree(self.pid))


def kill_leftovers(processes: Iterable[ProcessId]) -> int:
    """Kill the processes that an earlier supervisor left behind. Returns how many there were."""
    running = [one for one in processes if one.alive()]
    for one in running:
        one.kill_tree()
    return len(running)


@dataclass(slots=True)
class Process:
    """A child process. ``ended`` is done when it has ended; its result is the exit status, negative after a signal."""

    id: ProcessId
    command: Command
    ended: asyncio.Future[int]
    _output: asyncio.BaseTransport = field(repr=False)
    _logging: asyncio.Task[None] = field(repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.done()

    async def stop(self, timeout: float) -> None:
        """Send the stop signal, and kill the process if it has not ended after ``timeout`` seconds."""
        self._send(self.command.stop_signal)
        await asyncio.wait((self.ended,), timeout=timeout)
        await self.kill()

    async def kill(self) -> None:
        """Kill the process and wait until it has ended and its output is in the log."""
        self._send(signal.SIGKILL)
        await asyncio.wait((self.ended,))
        # A grandchild may keep the pipe open. Its output is not worth more than a short wait.
        await asyncio.wait((self._logging,), timeout=0.5)
        self._logging.cancel()
        self._output.close()

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.id.pid, number)


async def spawn(command: Command, log_path: Path) -> Process:
    """Start the program and write its output to a log. Call it in the main thread (see ``lifeline_command``)."""
    child = subprocess.Popen(
        command.argv(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=command.environment(),
        cwd=command.folder,
        start_new_session=True,
        umask=0o077,
    )
    assert child.stdout is not None
    id_, ended = ProcessId.of(child.pid), _exit_status(child)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    output, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), child.stdout)
    logging = asyncio.create_task(copy_to_log(reader, Log(log_path)))
    return Process(id_, command, ended, output, logging)


def _exit_status(child: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    """A future of the exit status.

    asyncio's own processes are no help: they also wait for the end of the output, which a grandchild can keep open. The
    thread is not one of a pool, because a full pool would delay it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()

    def wait() -> None:
        status = child.wait()
        with suppress(RuntimeError):  # the event loop is closed, and nobody waits for the status
            loop.call_soon_threadsafe(future.set_result, status)

    threading.Thread(target=wait, daemon=True).start()
    return future


async def run(command: Command, log_path: Path, timeout: float) -> int | None:
    """Run a program to its end. Returns its exit status, or None if it was killed after ``timeout`` seconds."""
    process = await spawn(command, log_path)
    await asyncio.wait((process.ended,), timeout=timeout)
    late = process.running
    await process.kill()
    return None if late else process.ended.result()


MAX_LOG_BYTES = 8 * 1024 * 1024
KEPT_LOGS = 2


class Log:
    """A log file of bounded size. When it is full it becomes `.1`, the old `.1` becomes `.2`, and the oldest is deleted."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES, kept: int = KEPT_LOGS) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._file: BinaryIO = path.open("ab")

    def write(self, data: bytes) -> None:
        if self._file.tell() + len(data) > self._max_bytes:
            self._rotate()
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._kept, 0, -1):
            older = self.path if number == 1 else self._old_file(number - 1)
            if older.exists():
                older.replace(self._old_file(number))
        self._file = self.path.open("ab")

    def _old_file(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


async def copy_to_log(source: asyncio.StreamReader, log: Log) -> None:
    """Copy the output of a process to its log until all writers have closed it.

    Output that does not fit on a full disk is dropped. If it were not read, the pipe would fill up and block the service.
    """
    try:
        while data := await source.read(65536):
            with suppress(OSError):
                log.write(data)
    finally:
        log.close()
