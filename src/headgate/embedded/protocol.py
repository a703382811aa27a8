"""Requests of clients to the supervisor and its replies: one JSON object per line, over a socket of the user.

    {"ask": "ensure", "services": ["kafka", "postgres"]}   ->  {"addresses": {"kafka": "127.0.0.1:21234", ...}}
    {"ask": "start", "services": ["kafka"], "port": 9092}  ->  {"addresses": {...}}
    {"ask": "stop", "services": ["kafka"], "hard": true}   ->  {"addresses": {}}
    {"ask": "status"}                                      ->  {"status": {...}}
    {"ask": "lease"}                                       ->  {"status": {...}}, and the world runs while the connection lives
    {"ask": "pin"}                                         ->  {"status": {...}}, and the world runs until a shutdown
    {"ask": "shutdown"}                                    ->  {"status": {...}}, then the supervisor stops all and ends

An error is sent as its code and its fields, and the client raises the same error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from headgate.embedded.errors import RefusedBySupervisor
from headgate.embedded.service import ServiceStatus
from headgate.errors import ErrorGroup, HeadgateError

IDLE_TIMEOUT = 3.0  # seconds that services run on after the last lease has ended

Ask: TypeAlias = Literal["ensure", "start", "stop", "status", "lease", "pin", "shutdown"]


@dataclass(frozen=True, slots=True)
class Request:
    """``hard`` is for "stop", ``port`` for "start" of one service."""

    ask: Ask
    services: tuple[str, ...] = ()
    hard: bool = False
    port: int | None = None


@dataclass(frozen=True, slots=True)
class WorldStatus:
    """The state of a world. ``leases`` counts the connections that keep it running."""

    folder: str
    pid: int
    pinned: bool
    leases: int
    services: tuple[ServiceStatus, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """``addresses`` may contain passwords. With an ``error`` there is nothing else."""

    addresses: dict[str, str] = dataclasses.field(default_factory=dict)
    status: WorldStatus | None = None
    error: HeadgateError | None = None


def write_request(request: Request) -> bytes:
    return _line(dataclasses.asdict(request))


def read_request(line: bytes) -> Request:
    data = _object(line)
    if data.get("ask") not in get_args(Ask):
        raise RefusedBySupervisor(f"unknown request {data.get('ask')!r}")
    return Request(
        data["ask"],
        tuple(map(str, data.get("services") or ())),
        bool(data.get("hard")),
        _port(data.get("port")),
    )


def is_status_request(line: bytes) -> bool:
    """Whether the request only reads the state. An unreadable request counts as one: it must not keep a world running."""
    try:
        return read_request(line).ask == "status"
    except RefusedBySupervisor:
        return True


def write_reply(reply: Reply) -> bytes:
    if reply.error is not None:
        return _line({"error": _error_as_json(reply.error)})
    status = dataclasses.asdict(reply.status) if reply.status else None
    return _line({"addresses": reply.addresses, "status": status})


def read_reply(line: bytes) -> Reply:
    data = _object(line)
    if found := data.get("error"):
        return Reply(error=_error_from_json(found))
    return Reply(dict(data.get("addresses") or {}), _status(data["status"]) if data.get("status") else None)


def _status(data: dict[str, Any]) -> WorldStatus:
    services = tuple(ServiceStatus(**one) for one in data.pop("services"))
    return WorldStatus(**data, services=services)


def _port(data: object) -> int | None:
    return data if isinstance(data, int) and 0 < data < 65536 else None


def _error_as_json(error: HeadgateError) -> dict[str, object]:
    if isinstance(error, ErrorGroup):
        error = error.errors[0]
    fields = {one.name: getattr(error, one.name) for one in dataclasses.fields(error)}  # type: ignore[arg-type]
    return {"code": error.code, "fields": fields, "told": error.message()}


def _error_from_json(data: dict[str, Any]) -> HeadgateError:
    for known in _subclasses(HeadgateError):
        if known.code == data["code"]:
            fields = {name: tuple(v) if isinstance(v, list) else v for name, v in data["fields"].items()}
            return known(**fields)
    return RefusedBySupervisor(str(data["told"]))


def _subclasses(top: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    for one in top.__subclasses__():
        yield one
        yield from _subclasses(one)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise RefusedBySupervisor("what came is not a JSON object")
    return data
