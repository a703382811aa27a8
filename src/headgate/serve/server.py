"""The engine's door on loopback: statements, health and metrics over HTTP.

`POST /api/statements` answers a stream of JSON events, one per line (see ``protocol``). Every `/api` call needs the
token of the project's folder, which only its owner can read.
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
from headgate.errors import Diagnostic, HeadgateError, InternalError
from headgate.serve.errors import TooManyStatements
from headgate.serve.metrics import CONTENT_TYPE, metrics
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, Notice, Rows, write_event
from headgate.sql.redact import redacted_text

log = logging.getLogger(__name__)

MOST_SESSIONS = 1000

Run = Callable[[Cancellation], Iterator[results.Result]]


class Door:
    """The HTTP application of an engine."""

    def __init__(self, engine: Engine, token: str, streams: Streams | None = None) -> None:
        self.engine = engine
        self._streams = streams or Streams()
        self._token = token
        self._sessions: dict[str, Session] = {}

    def serve(self, engine: Engine) -> None:
        """Answer for another engine from now on. The clients' sessions belong to the old one and are forgotten."""
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
        if not self._allowed(request):
            return _refused()
        body = await _body(request)
        if body is None:
            return _malformed()
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
        """A script as desired state, in the same form and with the same answer as statements."""
        if not self._allowed(request):
            return _refused()
        body = await _body(request)
        if body is None:
            return _malformed()
        text = str(body.get("sql", ""))
        return self._answer(lambda _: do(self.engine, text), text, _url(request))

    def _session(self, name: object) -> Session:
        """What a client has set is kept under the name that it gives its session; without one it is forgotten."""
        if not isinstance(name, str):
            return Session()
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        return self._sessions.setdefault(name, Session())

    def _allowed(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _answer(self, run: Run, text: str, url: str) -> Response:
        """Events of a script that runs in a thread of its own; a client that goes away cancels it."""
        stream = self._streams.open(lambda put, cancellation: _work(run, text, put, cancellation))
        if stream is None:
            return JSONResponse(TooManyStatements(url).diagnostic().as_json(), status_code=503)
        return StreamedAnswer(stream)


def _work(run: Run, text: str, put: Put, cancellation: Cancellation) -> None:
    try:
        for result in run(cancellation):
            if not put(_event(result)):
                return
    except HeadgateError as error:
        put(Failed(error.diagnostic(redacted_text(text))))
    except Exception as error:
        log.exception("a statement failed in a way that it must not")
        put(Failed(InternalError(type(error).__name__).diagnostic()))


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


def _malformed() -> Response:
    told = Diagnostic("CLI-0107", "the body of the request is no JSON object of the form that is asked for")
    return JSONResponse(told.as_json(), status_code=400)


def _refused() -> Response:
    told = Diagnostic(
        "RUN-0403", "the token is missing or wrong", None, "It is in the file .headgate/token of the project."
    )
    return JSONResponse(told.as_json(), status_code=401)


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
