"""Programs of peers: child processes that end with the benchmark, and whose log is in the error if they fail."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.embedded.jars import find_java
from headgate.embedded.process import lifeline_command
from headgate.processes import kill_all, last_lines, process_tree

LINES = 30  # of a log that an error shows
LOGGING = """
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1} %m%n
"""


class PeerFailed(Exception):
    """A side of a comparison failed, or wrote something else than it should."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running program. ``name`` is for errors."""

    name: str
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_running(self) -> bool:
        return self.process.poll() is None


@contextmanager
def java(
    name: str, folder: Path, class_path: Sequence[Path], arguments: Sequence[str], environment: dict[str, str]
) -> Iterator[Child]:
    """Start a program of Java in a folder that keeps its log and temporary files, with Java's own defaults for all else.

    It is killed at the end: what it has written counts, not how it ends.
    """
    settings = folder / "log4j2.properties"
    settings.write_text(LOGGING)
    options = (f"-Djava.io.tmpdir={folder}", f"-Dlog4j2.configurationFile={settings}")
    command = (str(find_java().path), *options, "-cp", os.pathsep.join(map(str, class_path)), *arguments)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            (*lifeline_command(signal.SIGKILL), *command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TZ": "UTC", **environment},
            cwd=folder,
        )
    try:
        yield Child(name, process)
    except PeerFailed as failure:
        failure.add_note("\n".join(("The end of its log:", *last_lines(log, LINES))))
        raise
    finally:
        kill_all(process_tree(process.pid))
        process.wait()
