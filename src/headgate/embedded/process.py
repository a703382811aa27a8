"""Child processes that cannot outlive the supervisor.

On Linux the kernel ends them with it (``lifeline``). Elsewhere, and to be sure, each is recorded with its process
id and start time, and the next supervisor of the folder ends what the record names and is still the same process.
Never by name.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import psutil

from headgate.embedded.host import User

LIFELINE = Path(__file__).with_name("lifeline.py")
INHERITED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "TZ")
SAME_START = 2.0  # seconds: start times are told relative to a boot time that clock corrections move


def lifeline(death_signal: signal.Signals, user: User | None = None) -> tuple[str, ...]:
    """What to put before a command, so that the program gets the signal when this process is gone. It must be started in
    the main thread: the kernel's signal comes when the *thread* that forked has ended."""
    uid, gid = (user.uid, user.gid) if user else (-1, -1)
    numbers = (os.getpid(), int(death_signal), uid, gid)
    return (sys.executable, "-I", "-S", str(LIFELINE), *map(str, numbers))


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a program. Its working folder must be one that its user can enter."""

    command: tuple[str, ...]
    folder: Path
    user: User | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL

    def full_command(self) -> tuple[str, ...]:
        return (*lifeline(self.death_signal, self.user), *self.command)

    def full_environment(self) -> dict[str, str]:
        """Little is inherited: a stray PGDATA or KAFKA_OPTS must not reach a service."""
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        # Without a locale of UTF-8, Java cannot open files whose path has letters beyond ASCII.
        return {**kept, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Record:
    """One process, told apart from a later one with the same id."""

    pid: int
    started: float

    def alive(self) -> bool:
        return self._find() is not None

    def _find(self) -> psutil.Process | None:
        with suppress(psutil.Error):
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < SAME_START
            if same and found.status() != psutil.STATUS_ZOMBIE:
                return found
        return None

    @classmethod
    def of(cls, pid: int) -> Record:
        return cls(pid, psutil.Process(pid).create_time())

    def end_tree(self, patience: float = 10) -> None:
        """Kill the process and all below it, and wait until they run no more."""
        top = self._find()
        if top is None:
            return
        doomed = [self]
        with suppress(psutil.Error):
            doomed += [Record.of(child.pid) for child in top.children(recursive=True)]
        for one in doomed:
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        deadline = time.monotonic() + patience
        while any(one.alive() for one in doomed) and time.monotonic() < deadline:
            time.sleep(0.02)


def reap(records: Iterable[Record]) -> int:
    """End what an earlier supervisor left behind; how many there were."""
    left = [record for record in records if record.alive()]
    for record in left:
        record.end_tree()
    return len(left)


@dataclass(slots=True)
class Process:
    """A running child. ``ended`` is done when it has ended, with its exit status (negative: by a signal)."""

    record: Record
    launch: Launch
    ended: asyncio.Future[int]
    _output: asyncio.BaseTransport = field(repr=False)
    _pump: asyncio.Task[None] = field(repr=False)

    @property
    def running(self) -> bool:
        return not self.ended.done()

    async def stop(self, grace: float) -> None:
        """Ask it to end, and kill it when it has not after so many seconds."""
        self._send(self.launch.stop_signal)
        await asyncio.wait((self.ended,), timeout=grace)
        await self.kill()

    async def kill(self) -> None:
        self._send(signal.SIGKILL)
        await asyncio.wait((self.ended,))
        # A grandchild may hold the pipe a moment longer; what it says then is of no interest.
        await asyncio.wait((self._pump,), timeout=0.5)
        self._pump.cancel()
        self._output.close()

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.record.pid, number)


async def spawn(launch: Launch, log_path: Path) -> Process:
    """Start the program, its output into the log. Must be called in the main thread (``lifeline``)."""
    child = subprocess.Popen(
        launch.full_command(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=launch.full_environment(),
        cwd=launch.folder,
        start_new_session=True,
        umask=0o077,
    )
    assert child.stdout is not None
    record, ended = Record.of(child.pid), _ended(child)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    output, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), child.stdout)
    return Process(record, launch, ended, output, asyncio.create_task(pump(reader, Log(log_path))))


def _ended(child: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    """The exit status, when there is one. asyncio's own processes also wait for the end of the output, which a
    grandchild can hold open; and a thread of its own cannot be kept waiting by a full pool."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()

    def wait() -> None:
        status = child.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            loop.call_soon_threadsafe(future.set_result, status)

    threading.Thread(target=wait, daemon=True).start()
    return future


async def run(launch: Launch, log_path: Path, patience: float) -> int | None:
    """Run a program to its end; its exit status, None if it was killed for taking longer than the patience."""
    process = await spawn(launch, log_path)
    await asyncio.wait((process.ended,), timeout=patience)
    late = process.running
    await process.kill()
    return None if late else process.ended.result()


LARGEST = 8 * 1024 * 1024
KEPT = 2


class Log:
    """A file that is set aside as `.1`, `.2` when it has grown, the oldest dropped."""

    def __init__(self, path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
        self.path = path
        self._largest = largest
        self._kept = kept
        self._file: BinaryIO = path.open("ab")

    def write(self, data: bytes) -> None:
        if self._file.tell() + len(data) > self._largest:
            self._turn()
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _turn(self) -> None:
        self._file.close()
        for number in range(self._kept, 0, -1):
            older = self.path if number == 1 else self._aside(number - 1)
            if older.exists():
                older.replace(self._aside(number))
        self._file = self.path.open("ab")

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


async def pump(source: asyncio.StreamReader, log: Log) -> None:
    """Write all that comes to the log, until the last writer is gone. On a full disk, what does not fit is lost:
    were it not read, the service would stand still at its next word."""
    try:
        while data := await source.read(65536):
            with suppress(OSError):
                log.write(data)
    finally:
        log.close()


def last_lines(path: Path, most: int = 12) -> tuple[str, ...]:
    """The end of a log, with over-long lines cut; nothing if there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 16384))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line[:240] for line in text.splitlines() if line.strip())[-most:]
