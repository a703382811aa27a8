"""The engine's HTTP API on loopback: statements, health and metrics.

`POST /api/statements` answers with a stream of JSON events, one per line (see ``protocol``). Every `/api` request needs the
token from the project folder, which only its owner can read. Every request must name a host that is ours (``HostCheck``), and
every refusal is a diagnostic as JSON.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.control import sessions
from headgate.control.apply import apply, plan
from headgate.control.engine import Engine
from headgate.errors import HeadgateError, InternalError
from headgate.plan.materialization_errors import MalformedLimit
from headgate.serve import errors
from headgate.serve.metrics import CONTENT_TYPE, metrics
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, JsonRows, Notice, Rows
from headgate.serve.rows import rows_request, rows_response, send_rows
from headgate.serve.stream import Emit, StatementStreams, Stream, Work
from headgate.sql.redact import redacted_diagnostic
from headgate.text.lexer import shortened

log = logging.getLogger(__name__)

MAX_SESSIONS = 1000
MAX_BODY = 16 * 1024 * 1024  # bytes; a script of a megabyte is large already

Run = Callable[[sessions.Cancellation], Iterator[sessions.Result]]


class HttpApi:
    """The HTTP application of an engine."""

    def __init__(
        self, engine: Engine, token: str, streams: StatementStreams | None = None, hosts: tuple[str, ...] = ()
    ) -> None:
        """``hosts`` are the names besides those of loopback by which clients may call the engine."""
        self.engine = engine
        self._hosts = hosts
        self._streams = streams or StatementStreams()
        self._token = token
        self._sessions: dict[str, sessions.Session] = {}

    def serve(self, engine: Engine) -> None:
        """Answer for another engine from now on. The sessions of clients belong to the old one and are forgotten."""
        self._sessions.clear()
        self.engine = engine

    def application(self) -> Starlette:
        """The ASGI application: routes, the check of the host, and the answers to failures."""
        application = Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/metrics", self._metrics),
                Route("/api/statements", self._statements, methods=["POST"]),
                Route("/api/plan", self._plan, methods=["POST"]),
                Route("/api/apply", self._apply, methods=["POST"]),
                Route("/api/materializations/{name}/rows", self._rows),
            ],
            middleware=[Middleware(HostCheck, hosts=self._hosts)],
            exception_handlers={HTTPException: _not_found, HeadgateError: _refused, Exception: _failed},
        )
        application.router.redirect_slashes = False
        return application

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "project": str(self.engine.project.folder)})

    async def _metrics(self, _: Request) -> Response:
        store = self.engine.store
        return PlainTextResponse(metrics(store.load(), store.statuses()), media_type=CONTENT_TYPE)

    async def _statements(self, request: Request) -> Response:
        script = await self._script(request)
        session = self._session(script.session)
        return self._answer(lambda cancel: self.engine.run(script.sql, session, cancel), script.sql, request)

    async def _plan(self, request: Request) -> Response:
        return await self._desired(request, plan)

    async def _apply(self, request: Request) -> Response:
        return await self._desired(request, apply)

    async def _desired(self, request: Request, do: Callable[[Engine, str], Iterator[sessions.Result]]) -> Response:
        """Plan or apply a script. Request and answer have the same form as for statements."""
        script = await self._script(request)
        return self._answer(lambda _: do(self.engine, script.sql), script.sql, request)

    async def _rows(self, request: Request) -> Response:
        """The rows of a materialization ON DEMAND."""
        if not self._is_authorized(request):
            raise errors.TokenRequired
        work = send_rows(self.engine.on_demand, request.path_params["name"], rows_request(request))
        return await rows_response(self._started(work, request), request)

    async def _script(self, request: Request) -> Script:
        """The script of a request. Raises TokenRequired before anything of the body is read."""
        if not self._is_authorized(request):
            raise errors.TokenRequired
        return _read_script(await _body(request))

    def _session(self, name: str | None) -> sessions.Session:
        """The session of a name, which keeps what its statements have set. A request without a name has a new session.

        The oldest session is dropped when there are too many.
        """
        if name is None:
            return sessions.Session()
        # A client never says that it has ended, so the number of sessions must be bounded here.
        while len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        return self._sessions.setdefault(name, sessions.Session())

    def _is_authorized(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _answer(self, run: Run, text: str, request: Request) -> Response:
        """Run a script in a thread and stream its events. The script is cancelled if the client disconnects."""
        return StreamingAnswer(self._started(partial(_run_statements, run, text), request))

    def _started(self, work: Work, request: Request) -> Stream:
        """The stream of some work, which runs in a thread from now on. Raises TooManyStatements."""
        stream = self._streams.start(work)
        if stream is None:
            raise errors.TooManyStatements(str(request.base_url).rstrip("/"))
        return stream


def _run_statements(run: Run, text: str, emit: Emit, cancellation: sessions.Cancellation) -> None:
    """Emit the events of a script. An error becomes the last event; its excerpt of the script hides secrets."""
    try:
        for result in run(cancellation):
            if not emit(_event(result)):
                return
    except HeadgateError as error:
        emit(Failed(redacted_diagnostic(error, text)))
    except Exception as error:
        log.exception("unexpected error in a statement")
        emit(Failed(InternalError(type(error).__name__).diagnostic()))


def _event(result: sessions.Result) -> Event | JsonRows:
    """A result of the engine as an event of the protocol."""
    match result:
        case sessions.Notice(message):
            return Notice(message)
        case sessions.ResultColumns(columns):
            return Columns(tuple(Column(name, type_) for name, type_ in columns))
        case sessions.ResultRows(rows):
            return Rows(rows)
        case sessions.JsonRows(text):
            return JsonRows(text)
        case sessions.Done(tag):
            return Done(tag)


@dataclass(frozen=True, slots=True)
class Script:
    """The body of a request: the text of the statements, and the name of the client's session if it has one."""

    sql: str
    session: str | None = None


async def _body(request: Request) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is longer than the bound."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise errors.BodyTooLarge(MAX_BODY)
    return bytes(body)


def _read_script(body: bytes) -> Script:
    """Read the body. orjson refuses lone surrogates, NaN and deep nesting, which Python's reader does not."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.MalformedBody(f"it is no JSON: {error}") from error
    match given:
        case {"sql": str(sql), **rest} if isinstance(session := rest.get("session"), str | None):
            return Script(sql, session)
        case {"sql": str()}:
            raise errors.MalformedBody('"session" is not a text')
        case {"sql": _}:
            raise errors.MalformedBody('"sql" is not a text')
        case dict():
            raise errors.MalformedBody('it has no "sql"')
        case _:
            raise errors.MalformedBody("it is not an object")


class HostCheck:
    """Refuses a request whose Host header names neither loopback nor a host of the settings.

    A page of a foreign site can make its name point to 127.0.0.1 after the browser has loaded it (DNS rebinding). Then the
    browser lets the page read our answers, but the Host header still has the foreign name.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value for name, value in scope.get("headers", ()) if name == b"host"]
        is_ours = len(given) == 1 and self._is_ours(given[0].decode("latin-1"))
        if is_ours or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await _refusal(errors.UnknownHost())(scope, receive, send)

    def _is_ours(self, given: str) -> bool:
        host = host_name(given)
        if host is None:
            return False
        try:
            return ipaddress.ip_address(host).is_loopback or host in self._hosts
        except ValueError:
            return host == "localhost" or host in self._hosts


def host_name(given: str) -> str | None:
    """The name or address in a Host header, in lower case, without port, brackets and final dot. None if it is malformed."""
    host, colon, port = given.rpartition(":") if not given.endswith("]") else (given, "", "")
    if not colon:
        host = given
    elif not (port.isascii() and port.isdigit()):
        return None
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1].lower()
    return host.lower().rstrip(".") or None


_STATUSES: dict[type[HeadgateError], int] = {
    errors.MalformedBody: 400,
    errors.UnknownParameter: 400,
    MalformedLimit: 400,
    errors.TokenRequired: 401,
    errors.UnknownPath: 404,
    errors.MethodNotAllowed: 405,
    errors.BodyTooLarge: 413,
    errors.UnknownHost: 421,
    errors.TooManyStatements: 503,
}


def _refusal(error: HeadgateError) -> Response:
    return JSONResponse(error.diagnostic().as_json(), _STATUSES.get(type(error), 500))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HeadgateError)
    return _refusal(error)


async def _not_found(request: Request, error: Exception) -> Response:
    """The answer for a path or a method that no route has."""
    assert isinstance(error, HTTPException)
    path = shortened(request.url.path)
    if error.status_code != _STATUSES[errors.MethodNotAllowed]:
        return _refusal(errors.UnknownPath(path))
    answer = _refusal(errors.MethodNotAllowed(request.method, path))
    answer.headers.update(error.headers or {})
    return answer


async def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse(InternalError(type(error).__name__).diagnostic().as_json(), 500)


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
