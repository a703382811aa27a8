"""The spool of a query: order, quota, attempts, and what ends it. Writers are threads that speak as workers do."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
import pytest

from headgate.errors import InternalError
from headgate.runtime import spool as module
from headgate.runtime.errors import AnswerNotRead, DiskFull, QueryCancelled
from headgate.runtime.spool import Receiver, Spool

pytestmark = pytest.mark.unit


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    opened = Receiver(tmp_path, 64 << 20)
    yield opened
    opened.close()


@pytest.fixture
def spool(receiver: Receiver) -> Iterator[Spool]:
    opened = receiver.open()
    opened.start()
    yield opened
    opened.close()


class Start(Protocol):
    def __call__(self, token: str, part: int, attempt: int = 0) -> Worker: ...


class Worker:
    """One attempt at a partition, on the other side of the receiver's socket."""

    def __init__(self, receiver: Receiver, token: str, part: int, attempt: int = 0) -> None:
        self._socket = socket.create_connection(receiver.address)
        self._socket.sendall(struct.pack("!32siq", token.encode(), part, attempt))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *numbers: int) -> bool:
        """Send a chunk. Returns whether it was taken; this waits as long as the spool is full."""
        data = stream(*numbers)
        return self._transfer(struct.pack("!Q", len(data)) + data)

    def end(self) -> bool:
        return self._transfer(struct.pack("!Q", 0))

    def _transfer(self, data: bytes) -> bool:
        try:
            self._socket.sendall(data)
            return self._socket.recv(1) == b"k"
        except ConnectionError:
            return False


@pytest.fixture
def worker(receiver: Receiver) -> Iterator[Start]:
    with ExitStack() as started:
        yield lambda token, part, attempt=0: started.enter_context(Worker(receiver, token, part, attempt))


def stream(*numbers: int) -> bytes:
    out = pa.BufferOutputStream()
    batch = pa.record_batch({"n": list(numbers)})
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def numbers(spool: Spool) -> Iterator[int]:
    for batch in spool.batches():
        yield from batch["n"].to_pylist()


def until(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to hold")


def test_rows_come_in_the_order_of_their_partitions(worker: Start, spool: Spool) -> None:
    later, first = worker(spool.token, 2), worker(spool.token, 0)
    assert later.send(5, 6)
    assert later.end()
    assert first.send(1)
    assert first.send(2, 3)
    assert first.end()
    spool.finish({0: None, 1: stream(4), 2: None, 3: None})
    assert list(numbers(spool)) == [1, 2, 3, 4, 5, 6]


def test_files_are_removed_as_they_are_read_and_at_the_end(worker: Start, spool: Spool) -> None:
    sending = worker(spool.token, 0)
    assert sending.send(1)
    assert sending.send(2)
    read = numbers(spool)
    assert next(read) == 1
    assert len(list(spool.folder.iterdir())) == 2
    assert next(read) == 2
    assert len(list(spool.folder.iterdir())) == 1
    spool.close()
    assert not spool.folder.exists()


def test_a_writer_waits_while_the_spool_is_full(
    receiver: Receiver, worker: Start, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "share", lambda: 100)
    sending = worker(spool.token, 0)
    sent: list[int] = []

    def write() -> None:
        for number in range(4):
            assert sending.send(number)
            sent.append(number)
        sending.end()
        spool.finish({0: None})

    writing = threading.Thread(target=write)
    writing.start()
    until(lambda: spool.paused == 1)
    assert sent == []
    assert list(numbers(spool)) == [0, 1, 2, 3]
    writing.join()


def test_a_client_that_does_not_read_ends_its_query(
    receiver: Receiver, worker: Start, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "share", lambda: 100)
    monkeypatch.setattr(module, "READ_TIMEOUT", 0.1)
    sending = worker(spool.token, 0)
    assert not sending.send(1)
    with pytest.raises(AnswerNotRead):
        next(numbers(spool))


def test_patience_is_short_only_while_another_query_waits(receiver: Receiver, spool: Spool) -> None:
    other = receiver.open()
    assert not receiver.others_wait(spool)
    other._began -= 60
    assert receiver.others_wait(spool), "the other one is in the queue"
    other.start()
    other._began -= 60
    assert not receiver.others_wait(spool), "it has a slot, and Spark has free ones"
    spool.paused = receiver.slots
    assert receiver.others_wait(spool)
    other.finish({})
    assert not receiver.others_wait(spool)
    other.close()


def test_a_later_attempt_replaces_what_an_earlier_one_wrote(worker: Start, spool: Spool) -> None:
    first = worker(spool.token, 0, attempt=7)
    assert first.send(1)
    second = worker(spool.token, 0, attempt=8)
    assert second.send(2)
    assert not first.send(3)
    assert second.end()
    spool.finish({0: None})
    assert list(numbers(spool)) == [2]


def test_a_later_attempt_at_rows_that_were_read_ends_the_query(worker: Start, spool: Spool) -> None:
    assert worker(spool.token, 0, attempt=7).send(1)
    read = numbers(spool)
    assert next(read) == 1
    assert not worker(spool.token, 0, attempt=8).send(1)
    with pytest.raises(InternalError):
        next(read)


def test_a_query_that_runs_again_drops_the_rows_of_its_first_run(worker: Start, spool: Spool) -> None:
    old = worker(spool.token, 0)
    assert old.send(1)
    assert spool.restart()
    assert not old.send(2)
    new = worker(spool.token, 0)
    assert new.send(3)
    assert new.end()
    spool.finish({0: None})
    assert list(numbers(spool)) == [3]
    assert not spool.restart(), "rows were read"


def test_nobody_writes_without_the_token(worker: Start, spool: Spool) -> None:
    assert not worker("0" * 32, 0).send(1)
    spool.finish({})
    assert list(numbers(spool)) == []


def test_a_cancelled_query_ends_writers_and_the_reader(worker: Start, spool: Spool) -> None:
    sending = worker(spool.token, 0)
    assert sending.send(1)
    spool.fail(QueryCancelled())
    assert not sending.send(2)
    with pytest.raises(QueryCancelled):
        next(numbers(spool))


def test_a_disk_without_room_is_named(worker: Start, spool: Spool) -> None:
    spool.folder.rmdir()
    assert not worker(spool.token, 0).send(1)
    with pytest.raises(DiskFull):
        next(numbers(spool))


def test_spools_share_the_quota(receiver: Receiver, spool: Spool) -> None:
    assert receiver.share() == 64 << 20
    others = [receiver.open() for _ in range(3)]
    assert receiver.share() == 16 << 20
    for other in others:
        other.close()
