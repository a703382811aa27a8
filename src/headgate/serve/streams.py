"""Answers as streams: a thread works, the event loop sends, and a client that goes away cancels.

Every open answer has a thread, and with it a connection to Spark's driver, so their number is bounded; the threads are
their own, so that however many are open, health and metrics are answered.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headgate.control.cancellation import Cancellation
from headgate.serve.protocol import Event, write_event

MOST_OPEN = 64
WAITING = 100  # events that are ready and not sent yet; then the thread waits for the client
AGAIN = 1.0  # seconds after which what was cancelled and still runs is cancelled again: Spark may have begun a new job

Put = Callable[[Event], bool]
Work = Callable[[Put, Cancellation], None]


class Streams:
    """The open answers of an engine."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._free = threading.BoundedSemaphore(most)

    def open(self, work: Work) -> Stream | None:
        """The answer of ``work``, which begins at once in a thread; None if too many are open."""
        if not self._free.acquire(blocking=False):
            return None
        return Stream(work, self._free.release)


class Stream:
    """One answer. ``work`` puts its events, and goes on while ``put`` says that they are still wanted."""

    def __init__(self, work: Work, ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._room = threading.Semaphore(WAITING)
        self._cancellation = Cancellation()
        self._ended = threading.Event()
        self._work = work
        self._tell_ended = ended
        threading.Thread(target=self._run, name="statement", daemon=True).start()

    async def lines(self) -> AsyncIterator[bytes]:
        while (event := await self._events.get()) is not None:
            self._room.release()
            yield write_event(event)

    def close(self) -> None:
        """Nobody reads any more: cancel what runs still."""
        if not self._ended.is_set():
            threading.Thread(target=self._cancel, name="cancel", daemon=True).start()

    def _run(self) -> None:
        try:
            self._work(self._put, self._cancellation)
        finally:
            self._ended.set()
            self._tell_ended()
            self._send(None)

    def _put(self, event: Event) -> bool:
        self._room.acquire()
        if self._cancellation.cancelled:
            self._room.release()
            return False
        return self._send(event)

    def _send(self, event: Event | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # the loop has ended, and the engine with it
            return False
        return True

    def _cancel(self) -> None:
        self._cancellation.cancel()
        self._room.release()
        while not self._ended.wait(AGAIN):
            self._cancellation.cancel()


class StreamedAnswer(StreamingResponse):
    """Sends a stream, and closes it whatever becomes of the connection."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.lines(), media_type="application/x-ndjson")
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()
