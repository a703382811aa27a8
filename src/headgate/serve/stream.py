"""Answers that are sent while a thread makes them.

A thread does the work of a request while the event loop sends what it emits. Each such thread has a connection to Spark's driver, so
their number is bounded. They are not threads of the event loop's pool: health and metrics are answered however many statements run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from starlette.responses import Response

from headgate.control.sessions import Cancellation
from headgate.serve.protocol import Event, JsonRows, write_event

MAX_OPEN_STREAMS = 64
MAX_UNSENT_EVENTS = 8  # of up to 256 KB; then the thread waits until the client has read some
# Seconds until a statement that still runs after its cancellation is cancelled again: Spark may have begun a new job.
CANCEL_INTERVAL = 1.0

Item: TypeAlias = Event | JsonRows | bytes | Response
"""What work emits: events of the protocol, bytes that are sent as they are, or a whole response as the only item."""

Emit: TypeAlias = Callable[[Item], bool]  # returns False if nobody reads the items any more
Work: TypeAlias = Callable[[Emit, Cancellation], None]


class StatementStreams:
    """The answers that an engine is sending, up to a maximum."""

    def __init__(self, most: int = MAX_OPEN_STREAMS) -> None:
        self._free = threading.BoundedSemaphore(most)

    def start(self, work: Work) -> Stream | None:
        """Run ``work`` in a thread and return the stream of its events. None if too many streams are open."""
        if not self._free.acquire(blocking=False):
            return None
        return Stream(work, self._free.release)


class Stream:
    """The events of one answer. ``work`` emits them in a thread, and returns when ``emit`` returns False."""

    def __init__(self, work: Work, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Item | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_UNSENT_EVENTS)
        self._cancellation = Cancellation()
        self._ended = threading.Event()
        self._work = work
        self._on_end = on_end
        threading.Thread(target=self._run, name="statement", daemon=True).start()

    async def items(self) -> AsyncIterator[Item]:
        """What the work emits, until it has ended."""
        while (item := await self._events.get()) is not None:
            self._room.release()
            yield item

    async def lines(self) -> AsyncIterator[bytes]:
        """The events as lines, until the work has ended."""
        async for item in self.items():
            assert not isinstance(item, bytes | Response), "statements emit events"
            yield write_event(item)

    def close(self) -> None:
        """Cancel the work if it still runs, because nobody reads the events any more."""
        if not self._ended.is_set():
            threading.Thread(target=self._cancel, name="cancel", daemon=True).start()

    def _run(self) -> None:
        """The body of the thread. Readers get an end in any case."""
        try:
            self._work(self._emit, self._cancellation)
        finally:
            self._ended.set()
            self._on_end()
            self._send(None)

    def _emit(self, event: Item) -> bool:
        # Blocks while the client does not read, so that a fast query does not fill the memory.
        self._room.acquire()
        if self._cancellation.cancelled:
            self._room.release()
            return False
        return self._send(event)

    def _send(self, event: Item | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # the event loop has ended with the engine
            return False
        return True

    def _cancel(self) -> None:
        self._cancellation.cancel()
        self._room.release()  # the thread may wait for room that nobody makes any more
        while not self._ended.wait(CANCEL_INTERVAL):
            self._cancellation.cancel()
