"""The engine's HTTP API on loopback: statements, health and metrics.

`POST /api/statements` answers with a stream of JSON events, one per line (see ``protocol``). Every `/api` request needs the
token from the project folder, which only its owner can read.

A thread runs the statements of a request while the event loop sends the events. Each such thread has a connection to
Spark's driver, so their number is bounded. They are not threads of the event loop's pool: health and metrics are answered
however many statements run.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headgate.control import results
from headgate.control.applying import apply, plan
from headgate.control.cancellation import Cancellation
from headgate.control.engine import Engine
from headgate.control.executor import Session
from headgate.errors import HeadgateError, InternalError
from headgate.serve.errors import MalformedBody, TokenRequired, TooManyStatements
from headgate.serve.metrics import CONTENT_TYPE, metrics
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, Notice, Rows, write_event
from headgate.sql.redact import redacted_text

log = logging.getLogger(__name__)

MAX_SESSIONS = 1000
MAX_OPEN_STREAMS = 64
MAX_UNSENT_EVENTS = 100  # then the thread waits until the client has read some
# Seconds until a statement that still runs after its cancellation is cancelled again: Spark may have begun a new job.
CANCEL_INTERVAL = 1.0

Run = Callable[[Cancellation], Iterator[results.Result]]
Emit = Callable[[Event], bool]  # returns False if nobody reads the events any more
Work = Callable[[Emit, Cancellation], None]


class HttpApi:
    """The HTTP application of an engine."""

    def __init__(self, engine: Engine, token: str, streams: StatementStreams | None = None) -> None:
        self.engine = engine
        self._streams = streams or StatementStreams()
        self._token = token
        self._sessions: dict[str, Session] = {}

    def serve(self, engine: Engine) -> None:
        """Answer for another engine from now on. The sessions of clients belong to the old one and are forgotten."""
        self._sessions.clear()
        self.engine = engine

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/metrics", self._metrics),
                Route("/api/statements", self._statements, methods=["POST"]),
                Route("/api/plan", self._plan, methods=["POST"]),
                Route("/api/apply", self._apply, methods=["POST"]),
            ]
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "project": str(self.engine.project.folder)})

    async def _metrics(self, _: Request) -> Response:
        store = self.engine.store
        return PlainTextResponse(metrics(store.load(), store.statuses()), media_type=CONTENT_TYPE)

    async def _statements(self, request: Request) -> Response:
        if not self._is_authorized(request):
            return _unauthorized()
        body = await _body(request)
        if body is None:
            return _bad_request()
        text = str(body.get("sql", ""))
        session = self._session(body.get("session"))
        return self._answer(
            lambda cancellation: self.engine.run(text, session, cancellation), text, _url(request)
        )

    async def _plan(self, request: Request) -> Response:
        return await self._desired(request, plan)

    async def _apply(self, request: Request) -> Response:
        return await self._desired(request, apply)

    async def _desired(
        self, request: Request, do: Callable[[Engine, str], Iterator[results.Result]]
    ) -> Response:
        """Plan or apply a script. Request and answer have the same form as for statements."""
        if not self._is_authorized(request):
            return _unauthorized()
        body = await _body(request)
        if body is None:
            return _bad_request()
        text = str(body.get("sql", ""))
        return self._answer(lambda _: do(self.engine, text), text, _url(request))

    def _session(self, name: object) -> Session:
        """The session of a name, which keeps what its statements have set. A request without a name has a new session.

        The oldest session is dropped when there are too many.
        """
        if not isinstance(name, str):
            return Session()
        while len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        return self._sessions.setdefault(name, Session())

    def _is_authorized(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _answer(self, run: Run, text: str, url: str) -> Response:
        """Run a script in a thread and stream its events. The script is cancelled if the client disconnects."""
        stream = self._streams.start(
            lambda emit, cancellation: _run_statements(run, text, emit, cancellation)
        )
        if stream is None:
            return JSONResponse(TooManyStatements(url).diagnostic().as_json(), status_code=503)
        return StreamingAnswer(stream)


def _run_statements(run: Run, text: str, emit: Emit, cancellation: Cancellation) -> None:
    """Emit the events of a script. An error becomes the last event; its excerpt of the script hides secrets."""
    try:
        for result in run(cancellation):
            if not emit(_event(result)):
                return
    except HeadgateError as error:
        emit(Failed(error.diagnostic(redacted_text(text))))
    except Exception as error:
        log.exception("unexpected error in a statement")
        emit(Failed(InternalError(type(error).__name__).diagnostic()))


def _event(result: results.Result) -> Event:
    match result:
        case results.Notice(message):
            return Notice(message)
        case results.ResultColumns(columns):
            return Columns(tuple(Column(name, type_) for name, type_ in columns))
        case results.ResultRows(rows):
            return Rows(rows)
        case results.Done(tag):
            return Done(tag)


async def _body(request: Request) -> dict[str, object] | None:
    try:
        body = await request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _url(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _bad_request() -> Response:
    return JSONResponse(MalformedBody().diagnostic().as_json(), status_code=400)


def _unauthorized() -> Response:
    return JSONResponse(TokenRequired().diagnostic().as_json(), status_code=401)


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
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_UNSENT_EVENTS)
        self._cancellation = Cancellation()
        self._ended = threading.Event()
        self._work = work
        self._on_end = on_end
        threading.Thread(target=self._run, name="statement", daemon=True).start()

    async def lines(self) -> AsyncIterator[bytes]:
        """The events as lines, until the work has ended."""
        while (event := await self._events.get()) is not None:
            self._room.release()
            yield write_event(event)

    def close(self) -> None:
        """Cancel the work if it still runs, because nobody reads the events any more."""
        if not self._ended.is_set():
            threading.Thread(target=self._cancel, name="cancel", daemon=True).start()

    def _run(self) -> None:
        try:
            self._work(self._emit, self._cancellation)
        finally:
            self._ended.set()
            self._on_end()
            self._send(None)

    def _emit(self, event: Event) -> bool:
        self._room.acquire()
        if self._cancellation.cancelled:
            self._room.release()
            return False
        return self._send(event)

    def _send(self, event: Event | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # the event loop has ended with the engine
            return False
        return True

    def _cancel(self) -> None:
        self._cancellation.cancel()
        self._room.release()
        while not self._ended.wait(CANCEL_INTERVAL):
            self._cancellation.cancel()


class StreamingAnswer(StreamingResponse):
    """A response that sends a stream, and closes it however the connection ends."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.lines(), media_type="application/x-ndjson")
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()
