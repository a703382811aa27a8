"""`GET /api/materializations/<name>/rows`: the rows of a materialization ON DEMAND as one JSON object.

    {"rows": [{…}, …], "position": {…}, "skipped": 0, "left_out": {}}

Rows are sent as they come. A call that fails before its first row is answered with the status of its error. One that fails later has the
member "error", a diagnostic, in place of the members after "rows".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import closing

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.control.on_demand import OnDemand, RowsCall, RowsEnd
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError, InternalError, similar_names
from headgate.plan.materialization_errors import MalformedLimit, NotOnDemand
from headgate.plan.on_demand import RowsRequest
from headgate.serve.errors import UnknownParameter
from headgate.serve.stream import Emit, Stream
from headgate.text.lexer import shortened

log = logging.getLogger(__name__)

PARAMETERS = ("filter", "fields", "limit", "key")


def rows_request(request: Request) -> RowsRequest:
    """What the address of a request asks for. Raises UnknownParameter and MalformedLimit."""
    given = request.query_params
    for name in given:
        if name not in PARAMETERS:
            raise UnknownParameter(shortened(name), PARAMETERS, similar_names(name, PARAMETERS))
    fields = [name.strip() for text in given.getlist("fields") for name in text.split(",")]
    limit = given.get("limit") or None
    if limit is not None and not (limit.isascii() and limit.lstrip("-").isdigit() and len(limit) < 20):
        raise MalformedLimit(shortened(limit))
    return RowsRequest(
        given.get("filter", ""),
        tuple(filter(None, fields)),
        None if limit is None else int(limit),
        given.get("key"),
    )


def send_rows(calls: OnDemand, name: str, asked: RowsRequest) -> Callable[[Emit, Cancellation], None]:
    """The work of one request: emits the parts of the answer, or a whole response if nothing could be sent."""

    def work(emit: Emit, cancellation: Cancellation) -> None:
        sent = runs = False
        try:
            call = RowsCall(calls.find(name), asked, "object")
            calls.check(call)
            runs = True
            with closing(calls.rows(call, cancellation)) as parts:
                for part in parts:
                    if isinstance(part, RowsEnd):
                        emit((b"" if sent else b'{"rows":[') + _end(part))
                    elif not emit((b"," if sent else b'{"rows":[') + b",".join(part)):
                        return
                    sent = True
        except HeadgateError as error:
            _fail(emit, error, _status(error, runs), None if runs else asked.filter, sent)
        except Exception as error:
            log.exception("unexpected error in a call")
            _fail(emit, InternalError(type(error).__name__), 500, None, sent)

    return work


def _end(end: RowsEnd) -> bytes:
    rest = {"position": end.position, "skipped": end.skipped, "left_out": end.left_out or {}}
    return b"]," + orjson.dumps(rest)[1:]


def _fail(emit: Emit, error: HeadgateError, status: int, source: str | None, sent: bool) -> None:
    diagnostic = error.diagnostic(source or None).as_json()
    if sent:
        emit(b'],"error":' + orjson.dumps(diagnostic) + b"}")
    else:
        emit(JSONResponse(diagnostic, status))


def _status(error: HeadgateError, runs: bool) -> int:
    match error:
        case UnknownObject() | WrongKind() | NotOnDemand():
            return 404
        case InternalError():
            return 500
        case _ if error.retryable:
            return 503
        case _:
            return 422 if runs else 400


async def rows_response(stream: Stream, request: Request) -> Response:
    """The response to a request. Waits for the first part, because its status depends on it."""
    items = stream.items()
    first = asyncio.ensure_future(anext(items))
    gone = asyncio.ensure_future(_disconnected(request))
    await asyncio.wait((first, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not first.done():
        stream.close()
        first.cancel()
        return Response(status_code=499)  # nobody reads it
    item = first.result()
    return item if isinstance(item, Response) else RowsResponse(stream, item, items)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class RowsResponse(StreamingResponse):
    """Sends the parts of an answer, and closes their stream however the connection ends."""

    def __init__(self, stream: Stream, first: object, others: AsyncIterator[object]) -> None:
        async def parts() -> AsyncIterator[bytes]:
            assert isinstance(first, bytes)
            yield first
            async for part in others:
                assert isinstance(part, bytes)
                yield part

        super().__init__(parts(), media_type="application/json")
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()
