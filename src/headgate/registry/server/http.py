"""From an HTTP request to a ``Call`` that a route can work with, and from its result or refusal to an answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.registry.server.errors import (
    BodyTooLarge,
    NoAcceptableType,
    NotSignedIn,
    Refusal,
    StoreFailed,
    UnknownContentType,
    UnreadableRequest,
)
from headgate.registry.server.requests import Users

MAX_BODY = 10_000_000
OWN_TYPE = "application/vnd.schemaregistry.v1+json"
ANSWER_TYPES = (OWN_TYPE, "application/vnd.schemaregistry+json", "application/json")
BODY_TYPES = (*ANSWER_TYPES, "application/octet-stream")

log = logging.getLogger(__name__)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is text already, and not to be written as JSON."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A request, checked and read."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: dict[str, Json]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name)
        try:
            return default if text is None else int(text)
        except ValueError:
            raise UnreadableRequest(f'"{name}" is not a number') from None

    def page(self, items: tuple[Json, ...]) -> list[Json]:
        """The part of a list that offset and limit ask for; a negative limit means all."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return list(items[offset:] if limit < 0 else items[offset : offset + limit])


Handler: TypeAlias = Callable[[Call], "Json | Raw"]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def endpoint(handler: Handler, users: Users, *, writes: bool = False) -> Endpoint:
    """A route's function for Starlette. It runs in a thread, because SQLite and parsing block.

    ``writes`` keeps read-only users out: looking up a schema and testing compatibility are POSTs that only read.
    """

    async def answer(request: Request) -> Response:
        accepted = ANSWER_TYPES[-1]
        try:
            users.admit(request.headers.get("authorization", ""), writes=writes)
            accepted = _accepted(request.headers.get("accept", ""))
            call = await _call(request)
            return _respond(await run_in_threadpool(handler, call), accepted)
        except Refusal as refusal:
            return refuse(refusal, accepted)
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


def refuse(refusal: Refusal, content_type: str = OWN_TYPE) -> Response:
    if isinstance(refusal, StoreFailed):
        log.error("%s", refusal)
    headers = {"WWW-Authenticate": 'Basic realm="registry"'} if isinstance(refusal, NotSignedIn) else None
    body: Json = {"error_code": refusal.registry_code, "message": refusal.message()}
    return Response(orjson.dumps(body), refusal.status, headers, content_type)


class EncodedPaths:
    """Lets routes see the path as it was sent: ``%2F`` in a subject's name is not the end of the name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


async def _call(request: Request) -> Call:
    path = {name: unquote(value) for name, value in request.path_params.items()}
    body = await _body(request) if request.method in ("POST", "PUT") else {}
    return Call(path, request.query_params, request.headers, body)


async def _body(request: Request) -> dict[str, Json]:
    content_type = request.headers.get("content-type", BODY_TYPES[0])
    if content_type.partition(";")[0].strip().lower() not in BODY_TYPES:
        raise UnknownContentType(content_type)
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_BODY:
            raise BodyTooLarge(MAX_BODY)
    try:
        body = orjson.loads(received)
    except orjson.JSONDecodeError as failure:
        raise UnreadableRequest(f"request body is not JSON: {failure}") from failure
    if not isinstance(body, dict):
        raise UnreadableRequest("request body is not a JSON object")
    return body


def _accepted(accept: str) -> str:
    """The first of our types that the client takes; quality values are not weighed, they all name the same JSON."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()]
    if not wanted or "*/*" in wanted or "application/*" in wanted:
        return OWN_TYPE
    for content_type in ANSWER_TYPES:
        if content_type in wanted:
            return content_type
    raise NoAcceptableType(accept)


def _respond(result: Json | Raw, content_type: str) -> Response:
    content = result.text.encode() if isinstance(result, Raw) else orjson.dumps(result)
    return Response(content, 200, None, content_type)
