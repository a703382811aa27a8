"""The rows of queries on their way out of Spark: pushed by its Python workers, kept on disk, read by one client.

A worker sends Arrow chunks of about 4 MB to the receiver, which writes them to files and never holds a whole chunk. The
client reads them in the order of the partitions. So a partition may have any size, a job ends however slow its client is,
and a client that does not read fills no more than its share of the quota.

Measured with 1.5 GB in one partition: all rows with a heap of 512 MB. `toLocalIterator` failed at 1 GB.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from headgate.errors import InternalError
from headgate.runtime.errors import AnswerNotRead, DiskFull
from headgate.runtime.push import CHUNK, HELLO, SIZE, TAKEN, Address

LEAST_SHARE = 2 * CHUNK
BUFFER = 256 << 10
# Seconds without a read after which a client of a full spool has gone away for all we know. Its writers hold slots of Spark.
READ_TIMEOUT, READ_TIMEOUT_IF_OTHERS_WAIT = 30.0, 2.0
UNFED = 1.0  # seconds after which a query without rows may be waiting for a slot


class Receiver:
    """Takes the rows of all queries, over one socket on loopback. A random token of a spool is what lets a writer in."""

    def __init__(self, folder: Path, quota: int) -> None:
        """``quota`` is the number of bytes for all spools together."""
        self._folder = folder
        self._quota = quota
        self._guard = threading.Lock()
        self._spools: dict[str, Spool] = {}
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address: Address = self._socket.getsockname()
        self.slots = 8  # of Spark: so many paused writers leave none
        threading.Thread(target=self._accept, name="spool", daemon=True).start()

    def open(self) -> Spool:
        """A new spool. The caller closes it."""
        spool = Spool(self, self._folder)
        self.admit(spool)
        return spool

    def admit(self, spool: Spool) -> None:
        """Let writers in that have the present token of the spool."""
        with self._guard:
            self._spools[spool.token] = spool

    def forget(self, token: str) -> None:
        with self._guard:
            self._spools.pop(token, None)

    def share(self) -> int:
        """The bytes that each spool may hold unread now."""
        return max(LEAST_SHARE, self._quota // max(1, len(self._spools)))

    def others_wait(self, spool: Spool) -> bool:
        """Whether writers that wait for their clients keep another query from its first row."""
        others = [one for one in list(self._spools.values()) if one is not spool and one.waits]
        paused = sum(one.paused for one in list(self._spools.values()))
        return any(one.queued for one in others) or (bool(others) and paused >= self.slots - 1)

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), name="spool", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(EOFError, ConnectionError):
            token, part, attempt = HELLO.unpack(read_exactly(connection, HELLO.size))
            with self._guard:
                spool = self._spools.get(token.decode("ascii", "replace"))
            if spool is None:
                return
            writer = Writer(spool, token.decode(), part, attempt)
            while writer.take(connection):
                connection.sendall(TAKEN)


class Writer:
    """One attempt at a partition, as the receiver sees it."""

    def __init__(self, spool: Spool, token: str, part: int, attempt: int) -> None:
        self._spool = spool
        self._token = token
        self._part = part
        self._attempt = attempt
        self._chunks = 0
        self._accepted = spool.begin(token, part, attempt)

    def take(self, connection: socket.socket) -> bool:
        """Take the next chunk. False if there is none, or if nobody wants it any more."""
        if not self._accepted:
            return False
        (size,) = SIZE.unpack(read_exactly(connection, SIZE.size))
        if size == 0:
            if self._spool.end(self._token, self._part, self._attempt):
                connection.sendall(TAKEN)
            return False
        path = self._spool.folder / f"{self._token}-{self._part}-{self._attempt}-{self._chunks}"
        self._chunks += 1
        try:
            _copy(connection, path, size)
        except (ConnectionError, EOFError):
            raise
        except OSError:
            self._spool.fail(DiskFull(str(self._spool.folder)))
            return False
        return self._spool.add(self._token, self._part, self._attempt, path, size)


class Spool:
    """The rows of one query."""

    def __init__(self, receiver: Receiver, folder: Path) -> None:
        self._receiver = receiver
        self.token = uuid.uuid4().hex
        self.folder = folder / self.token
        self.folder.mkdir(parents=True)
        self._changed = threading.Condition()
        self.queued = True  # until its query has a slot
        self.paused = 0  # writers that wait for the client
        self._began = self._last_read = time.monotonic()
        self._client_waits = False
        self._reset()
        self._error: BaseException | None = None

    def _reset(self) -> None:
        self._attempts: dict[int, int] = {}
        self._chunks: dict[int, list[tuple[Path, int]]] = {}
        self._ended: set[int] = set()
        self._unread = 0
        self._inline: dict[int, bytes | memoryview | None] | None = None  # when the job has ended
        self._read = self._fed = False
        self._reading = 0  # the partition that the client is at

    @property
    def waits(self) -> bool:
        """Whether the query has had no row for a while, perhaps because it has no slot."""
        return not self._fed and self._error is None and time.monotonic() - self._began > UNFED

    # for writers

    def begin(self, token: str, part: int, attempt: int) -> bool:
        """Whether this attempt may write. What an earlier one wrote is dropped; if it was read, the query fails."""
        with self._changed:
            known = self._attempts.get(part)
            if token != self.token or self._error is not None or (known is not None and attempt <= known):
                return False
            if known is not None:
                if part < self._reading or (part == self._reading and self._read):
                    self._fail(InternalError("a partition was computed again after its rows were read"))
                    return False
                for path, size in self._chunks.pop(part, []):
                    path.unlink(missing_ok=True)
                    self._unread -= size
                self._ended.discard(part)
            self._attempts[part] = attempt
            return True

    def add(self, token: str, part: int, attempt: int, path: Path, size: int) -> bool:
        """Take a chunk that was written to a file, and wait while the spool is full. False if the query has ended."""
        with self._changed:
            if not self._is_current(token, part, attempt):
                path.unlink(missing_ok=True)
                return False
            self._fed = True
            self._chunks.setdefault(part, []).append((path, size))
            self._unread += size
            self._changed.notify_all()
            self.paused += 1
            try:
                while self._is_current(token, part, attempt) and self._is_full(part):
                    self._changed.wait(0.5)
                    self._give_up_on_client()
            finally:
                self.paused -= 1
            return self._is_current(token, part, attempt)

    def end(self, token: str, part: int, attempt: int) -> bool:
        with self._changed:
            if not self._is_current(token, part, attempt):
                return False
            self._ended.add(part)
            self._changed.notify_all()
            return True

    def _is_current(self, token: str, part: int, attempt: int) -> bool:
        return self._error is None and token == self.token and self._attempts.get(part) == attempt

    def _is_full(self, part: int) -> bool:
        """The client needs the partition that it is at next, so that one may always write one chunk more."""
        next_needed = part == self._reading and not self._chunks.get(part)
        return self._unread > self._receiver.share() and not next_needed

    def _give_up_on_client(self) -> None:
        timeout = READ_TIMEOUT_IF_OTHERS_WAIT if self._receiver.others_wait(self) else READ_TIMEOUT
        if not self._client_waits and time.monotonic() - self._last_read > timeout:
            self._fail(AnswerNotRead(self._receiver.share() >> 20))

    # for the query

    def start(self) -> None:
        """The query has a slot."""
        self.queued = False
        self._began = time.monotonic()

    def finish(self, inline: Mapping[int, bytes | memoryview | None]) -> None:
        """The job has ended; these are the partitions that it returned itself."""
        with self._changed:
            self._fed, self._inline = True, dict(inline)
            self._changed.notify_all()

    def restart(self) -> bool:
        """Drop all rows, because the query runs again. False if some were read already."""
        with self._changed:
            if self._read or self._error is not None:
                return False
            for path, _ in (chunk for chunks in self._chunks.values() for chunk in chunks):
                path.unlink(missing_ok=True)
            old, self.token = self.token, uuid.uuid4().hex
            self._reset()
            self._changed.notify_all()
        self._receiver.forget(old)
        self._receiver.admit(self)
        return True

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._changed.notify_all()

    def close(self) -> None:
        self.fail(EOFError("closed"))
        self._receiver.forget(self.token)
        shutil.rmtree(self.folder, ignore_errors=True)

    # for the client

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the result, as they come. Raises what ended the query."""
        while (chunk := self._next()) is not None:
            if isinstance(chunk, bytes | memoryview):
                yield from pa.ipc.open_stream(chunk)
            else:
                yield from self._stored(*chunk)

    def _stored(self, path: Path, size: int) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as file:
            yield from pa.ipc.open_stream(file)
        path.unlink(missing_ok=True)
        with self._changed:
            self._unread -= size
            self._changed.notify_all()

    @property
    def has_next(self) -> bool:
        """Whether the client need not wait for what comes next."""
        with self._changed:
            return bool(self._chunks.get(self._reading)) or self._inline is not None

    def was_read(self) -> None:
        """The client has taken some rows of the present chunk."""
        self._last_read = time.monotonic()

    def _next(self) -> tuple[Path, int] | bytes | memoryview | None:
        with self._changed:
            self._client_waits = True
            try:
                return self._wait_for_next()
            finally:
                self._client_waits = False
                self.was_read()

    def _wait_for_next(self) -> tuple[Path, int] | bytes | memoryview | None:
        while True:
            if self._error is not None:
                raise self._error
            part = self._reading
            if self._chunks.get(part):
                self._read = True
                return self._chunks[part].pop(0)
            if part in self._ended:
                self._reading += 1
            elif self._inline is not None:
                if part > max(self._inline, default=-1):
                    return None
                self._reading += 1
                if data := self._inline.get(part):
                    self._read = True
                    return data
            else:
                self._changed.wait(1.0)


def read_exactly(connection: socket.socket, size: int) -> bytearray:
    """So many bytes. Raises EOFError if the other end hangs up before."""
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        try:
            count = connection.recv_into(view[got:])
        except ConnectionError:
            count = 0
        if not count:
            raise EOFError
        got += count
    return data


def _copy(connection: socket.socket, path: Path, size: int) -> None:
    buffer = memoryview(bytearray(min(BUFFER, size)))
    with path.open("wb") as file:
        while size:
            count = connection.recv_into(buffer[: min(len(buffer), size)])
            if not count:
                raise EOFError
            file.write(buffer[:count])
            size -= count
