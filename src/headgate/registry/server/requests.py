"""What clients send and get: users, paths, bodies and answers.

`endpoint` turns an HTTP request into a `Call` for a route, and the route's result or refusal into a response.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast
from urllib.parse import unquote

import orjson
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.registry.schemas import ParsedSchema, Reference, Schema
from headgate.registry.server import errors
from headgate.registry.server.rules import Config, Mode, PostedSchema, parse_level, parse_mode
from headgate.registry.server.store import LATEST, StoredVersion
from headgate.registry.wire import MAX_ID
from headgate.schema.written import SchemaFormat

MAX_BODY = 10_000_000
OWN_TYPE = "application/vnd.schemaregistry.v1+json"
ANSWER_TYPES = (OWN_TYPE, "application/vnd.schemaregistry+json", "application/json")
BODY_TYPES = (*ANSWER_TYPES, "application/octet-stream")

log = logging.getLogger(__name__)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is a text and not JSON."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A request after all checks, with its JSON body."""

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
            raise errors.UnreadableRequest(f'"{name}" is not a number') from None

    def page(self, items: tuple[Json, ...]) -> list[Json]:
        """The part of a list that `offset` and `limit` select. A negative limit means no limit."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return list(items[offset:] if limit < 0 else items[offset : offset + limit])


Handler: TypeAlias = Callable[[Call], "Json | Raw"]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def endpoint(handler: Handler, users: Users, *, writes: bool = False) -> Endpoint:
    """The function of a route for Starlette. It runs in a thread, because SQLite and parsing block.

    `writes` keeps read-only users out. It is not the HTTP method: looking up a schema and testing compatibility are
    POST requests that only read.
    """

    async def answer(request: Request) -> Response:
        accepted = ANSWER_TYPES[-1]
        try:
            users.admit(request.headers.get("authorization", ""), writes=writes)
            accepted = _accepted(request.headers.get("accept", ""))
            call = await _call(request)
            return _respond(await run_in_threadpool(handler, call), accepted)
        except errors.Refusal as refusal:
            return refuse(refusal, accepted)
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


def refuse(refusal: errors.Refusal, content_type: str = OWN_TYPE) -> Response:
    if isinstance(refusal, errors.StoreFailed):
        log.error("%s", refusal)
    headers = {"WWW-Authenticate": 'Basic realm="registry"'} if isinstance(refusal, errors.NotSignedIn) else None
    body: Json = {"error_code": refusal.registry_code, "message": refusal.message()}
    return Response(orjson.dumps(body), refusal.status, headers, content_type)


class EncodedPaths:
    """Gives routes the path as it was sent, so that `%2F` in a subject's name does not end the name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


async def _call(request: Request) -> Call:
    path = {name: unquote(value) for name, value in request.path_params.items()}
    body = await _read_body(request) if request.method in ("POST", "PUT") else {}
    return Call(path, request.query_params, request.headers, body)


async def _read_body(request: Request) -> dict[str, Json]:
    """The JSON object of a request. Reading stops as soon as the body is too large."""
    content_type = request.headers.get("content-type", BODY_TYPES[0])
    if content_type.partition(";")[0].strip().lower() not in BODY_TYPES:
        raise errors.UnknownContentType(content_type)
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_BODY:
            raise errors.BodyTooLarge(MAX_BODY)
    try:
        body = orjson.loads(received)
    except orjson.JSONDecodeError as failure:
        raise errors.UnreadableRequest(f"request body is not JSON: {failure}") from failure
    if not isinstance(body, dict):
        raise errors.UnreadableRequest("request body is not a JSON object")
    return body


def _accepted(accept: str) -> str:
    """The first of our types that the client accepts. Quality values do not matter: all types are the same JSON."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",") if part.strip()]
    if not wanted or "*/*" in wanted or "application/*" in wanted:
        return OWN_TYPE
    for content_type in ANSWER_TYPES:
        if content_type in wanted:
            return content_type
    raise errors.NoAcceptableType(accept)


def _respond(result: Json | Raw, content_type: str) -> Response:
    content = result.text.encode() if isinstance(result, Raw) else orjson.dumps(result)
    return Response(content, 200, None, content_type)


@dataclass(frozen=True, slots=True)
class User:
    """A user of the registry."""

    name: str
    password: str = field(repr=False)
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Users:
    """Without any user the registry is open to everybody who can reach it."""

    by_name: Mapping[str, User] = field(default_factory=dict)

    def admit(self, authorization: str, *, writes: bool) -> None:
        """Raises NotSignedIn or ReadOnlyUser for a request with this Authorization header."""
        if not self.by_name:
            return
        name, password = _credentials(authorization)
        user = self.by_name.get(name)
        # Compare for unknown names, too. Otherwise the time taken would show which names exist.
        expected = user.password if user is not None else ""
        right = hmac.compare_digest(password.encode(), expected.encode())
        if user is None or not right:
            raise errors.NotSignedIn
        if writes and user.read_only:
            raise errors.ReadOnlyUser(name)


def read_users(path: Path) -> Users:
    """Read the file of users. Raises UserFileUnusable.

    A line is `read-write NAME PASSWORD` or `read-only NAME PASSWORD`. A line that starts with # is a comment.
    """
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise errors.UserFileUnusable(str(path), "users other than its owner can read or write it")
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is no text"
        raise errors.UserFileUnusable(str(path), reason or "it cannot be read") from failure
    users = [
        _user(path, number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not users:
        raise errors.UserFileUnusable(str(path), "it names no user")
    return Users({user.name: user for user in users})


def _user(path: Path, number: int, line: str) -> User:
    match line.split(maxsplit=2):
        case ["read-write" | "read-only" as role, name, password]:
            return User(name, password.rstrip(), role == "read-only")
        case _:
            raise errors.UserFileUnusable(str(path), f"line {number} is not understood")


def _credentials(authorization: str) -> tuple[str, str]:
    """User name and password of a Basic header. Any other header counts as no login."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise errors.NotSignedIn
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise errors.NotSignedIn from None
    if not colon:
        raise errors.NotSignedIn
    return name, password


_DEFAULT_CONTEXT = ":.:"
_ALL_CONTEXTS = ":*:"
_RESERVED = ("__GLOBAL", "__EMPTY")


def subject_name(name: str) -> str:
    """The plain name of a subject. There is only the default context, written `:.:name` or just `name`."""
    plain = name.removeprefix(_DEFAULT_CONTEXT)
    if plain.startswith((":.", _ALL_CONTEXTS)):
        raise errors.InvalidSubject(name, "this registry has the default context only")
    if not plain or plain in _RESERVED:
        raise errors.InvalidSubject(name, "the name is empty or reserved")
    if not plain.isprintable():
        raise errors.InvalidSubject(name, "it has control characters")
    return plain


def subject_prefix(text: str) -> str:
    """The beginning of subject names, without a context in front of it."""
    for context in (_DEFAULT_CONTEXT, _ALL_CONTEXTS):
        text = text.removeprefix(context)
    return text


def version_number(text: str) -> int:
    """A version's number, or LATEST."""
    if text.strip().lower() == "latest":
        return LATEST
    try:
        number = int(text)
    except ValueError:
        raise errors.InvalidVersion(text) from None
    if number != LATEST and not 1 <= number < 2**31:
        raise errors.InvalidVersion(text)
    return number


# Data contracts are refused, because accepting them without applying them would mislead.
_NOT_KEPT = ("metadata", "ruleSet", "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")


def schema_request(body: dict[str, Json]) -> PostedSchema:
    """The body that registers, looks up or tests a schema. Raises InvalidSchema."""
    _refuse_contracts(body)
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise errors.InvalidSchema("the schema is empty")
    schema = Schema(text, _schema_type(body.get("schemaType")), _references(body.get("references")))
    return PostedSchema(schema, _given_number(body, "id"), _given_number(body, "version"))


def config_change(body: dict[str, Json]) -> Config:
    """Read a change of settings. Other settings of Confluent's registry (alias, compatibilityGroup, …) are accepted
    and ignored."""
    _refuse_contracts(body)
    level, normalize = body.get("compatibility"), body.get("normalize")
    if level is not None and not isinstance(level, str):
        raise errors.UnreadableRequest('"compatibility" is not text')
    if normalize is not None and not isinstance(normalize, bool):
        raise errors.UnreadableRequest('"normalize" is neither true nor false')
    return Config(None if level is None else parse_level(level), normalize)


def mode_change(body: dict[str, Json]) -> Mode:
    return parse_mode(str(body.get("mode")))


def version_answer(version: StoredVersion, text: str) -> dict[str, Json]:
    answer: dict[str, Json] = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    return {**answer, **schema_answer(version.schema, text)}


def schema_answer(schema: Schema, text: str) -> dict[str, Json]:
    """The form of Confluent's registry: it leaves out the type AVRO and an empty list of references."""
    answer: dict[str, Json] = {}
    if schema.type is not SchemaFormat.AVRO:
        answer["schemaType"] = schema.type.value
    if schema.references:
        answer["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return {**answer, "schema": text}


def config_answer(config: Config, level_name: str) -> dict[str, Json]:
    """`level_name` is "compatibility" in the answer to a change and "compatibilityLevel" in the answer to a
    question."""
    answer: dict[str, Json] = {level_name: config.level} if config.level is not None else {}
    return answer if config.normalize is None else {**answer, "normalize": config.normalize}


def serialized(parsed: ParsedSchema) -> str:
    """A Protobuf schema as its file descriptor, in base64."""
    if parsed.schema.type is not SchemaFormat.PROTOBUF:
        raise errors.InvalidSchema(f"a schema of type {parsed.schema.type} has no serialized form")
    file = FileDescriptorProto()
    file.CopyFrom(cast(tuple[FileDescriptorProto, ...], parsed.definition)[0])
    file.ClearField("name")  # A registered schema has no file name.
    return base64.b64encode(file.SerializeToString()).decode()


def _schema_type(value: Json) -> SchemaFormat:
    if value is None:
        return SchemaFormat.AVRO
    try:
        return SchemaFormat(str(value).upper())
    except ValueError:
        raise errors.InvalidSchema(f'"{str(value)[:40]}" is no type of schema; write AVRO, JSON or PROTOBUF') from None


def _references(value: Json) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise errors.InvalidSchema("references are not a list")
    return tuple(_reference(item) for item in value)


def _reference(item: Json) -> Reference:
    match item:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, subject_name(subject), version_number(str(version)))
        case _:
            raise errors.InvalidSchema("a reference needs a name, a subject and a version")


def _given_number(body: dict[str, Json], name: str) -> int | None:
    """An id or version, None if it is not given. Clients send -1 for a missing id and 0 or -1 for a missing version."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value > MAX_ID:
        raise errors.UnreadableRequest(f'"{name}" is not a number that an {name} can have')
    lowest = 0 if name == "id" else 1
    return value if value >= lowest else None


def _refuse_contracts(body: dict[str, Json]) -> None:
    for name in _NOT_KEPT:
        if body.get(name):
            raise errors.InvalidSchema(f'this registry keeps no data contracts: leave out "{name}"')
