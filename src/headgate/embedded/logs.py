"""Log files of bounded size, and the end of one for an error message."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

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
