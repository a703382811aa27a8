"""The rows of a query on their way out of Spark: its Python workers send them to a spool."""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Row, functions as F

CHUNK = 4 << 20  # bytes of rows that are sent at once
# A small partition is returned by its job, without a file, unless there are many: they would fill the driver.
INLINE_BYTES = 64 << 10
INLINE_PARTITIONS = 64
INLINE_SECONDS = 1.0  # the rows of a partition that takes longer are sent, because the job may take much longer yet
_PARTS = "part int, rows long, data binary"
HELLO = struct.Struct("!32siq")  # token, partition, and the attempt's id, which grows from attempt to attempt
SIZE = struct.Struct("!Q")
TAKEN = b"k"
ENDED = "headgate: the query has ended"
Address = tuple[str, int]
Batches = Iterable[pa.RecordBatch]


def push(frame: DataFrame, address: Address, token: str) -> list[Row]:
    """Send the rows of a frame to a spool. Returns one row for each partition: the number of its rows, and the rows
    themselves if they were few enough to be returned.

    The columns travel as one, because PySpark looks up each column of `mapInArrow` among all others: for 2,000 columns that
    was a third of the CPU time of a query.
    """

    def send_partition(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (pa.RecordBatch.from_struct_array(batch.column(0)) for batch in batches)
        yield _Partition(address, token).send(rows)

    return frame.select(F.struct("*").alias("row")).mapInArrow(send_partition, _PARTS).collect()


class _Partition:
    """The rows of one partition that were not sent yet."""

    def __init__(self, address: Address, token: str) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        self._part = context.partitionId()
        self._hello = HELLO.pack(token.encode(), self._part, context.taskAttemptId())
        self._address = address
        self._socket: socket.socket | None = None
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self._rows = 0
        self._started = time.monotonic()

    def send(self, batches: Batches) -> pa.RecordBatch:
        for batch in batches:
            self._rows += batch.num_rows
            step = max(1, min(batch.num_rows, CHUNK * batch.num_rows // max(1, batch.nbytes)))
            for first in range(0, batch.num_rows, step):
                self._hold(batch.slice(first, step))
        data = self._last()
        columns = {"part": [self._part], "rows": [self._rows], "data": [data]}
        types = pa.schema([("part", pa.int32()), ("rows", pa.int64()), ("data", pa.binary())])
        return pa.RecordBatch.from_pydict(columns, schema=types)

    def _hold(self, rows: pa.RecordBatch) -> None:
        self._held.append(rows)
        self._size += rows.nbytes
        if self._size >= CHUNK or self._is_slow():
            self._send_held()

    def _is_slow(self) -> bool:
        return time.monotonic() - self._started > INLINE_SECONDS

    def _last(self) -> bytes | None:
        """Send the rest, or return it if it is small and nothing was sent."""
        small = self._size <= INLINE_BYTES and self._part < INLINE_PARTITIONS and not self._is_slow()
        if self._socket is None and (small or not self._held):
            return bytes(self._stream()) if self._held else None
        if self._held:
            self._send_held()
        assert self._socket is not None
        self._transfer(SIZE.pack(0))
        self._socket.close()
        return None

    def _send_held(self) -> None:
        if self._socket is None:
            self._socket = socket.create_connection(self._address)
            self._socket.sendall(self._hello)
        data = self._stream()
        self._transfer(SIZE.pack(len(data)), data)
        self._held, self._size = [], 0

    def _transfer(self, *pieces: bytes | memoryview) -> None:
        """Send, and wait until it was taken. While the spool is full, this takes until the client has read some."""
        assert self._socket is not None
        try:
            for piece in pieces:
                self._socket.sendall(piece)
            taken = self._socket.recv(1) == TAKEN
        except OSError:
            taken = False
        if not taken:
            raise RuntimeError(ENDED)

    def _stream(self) -> memoryview:
        return arrow_stream(self._held[0].schema, self._held)


def arrow_stream(schema: pa.Schema, batches: Batches) -> memoryview:
    """Rows as `Spool.finish` takes them."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getbuffer()
