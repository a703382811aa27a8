"""What clients and the supervisor say to each other: one JSON object per line over a socket of the owner alone.

    {"ask": "ensure", "services": ["kafka", "postgres"]}   ->  {"addresses": {"kafka": "127.0.0.1:21234", ...}}
    {"ask": "start", "services": ["kafka"], "port": 9092}  ->  {"addresses": {...}}
    {"ask": "stop", "services": ["kafka"], "hard": true}   ->  {"addresses": {}}
    {"ask": "status"}                                      ->  {"status": {...}}
    {"ask": "lease"}                                       ->  {"status": {...}}, and the world stays while we stay connected
    {"ask": "pin"}                                         ->  {"status": {...}}, and the world stays until shutdown
    {"ask": "shutdown"}                                    ->  {"status": {...}}, then the supervisor stops all and ends

An error travels as its code and its fields, and is raised on the other side as what it is.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from headgate.embedded.errors import RefusedBySupervisor
from headgate.embedded.service import Status
from headgate.errors import ErrorGroup, HeadgateError

GRACE = 3.0  # seconds that a world stays after its last lease, unless who starts it says otherwise

Ask: TypeAlias = Literal["ensure", "start", "stop", "status", "lease", "pin", "shutdown"]


@dataclass(frozen=True, slots=True)
class Request:
    ask: Ask
    services: tuple[str, ...] = ()
    hard: bool = False
    port: int | None = None


@dataclass(frozen=True, slots=True)
class WorldStatus:
    """A whole world. ``leases`` counts the connections that hold it; one that only asks for this is none."""

    folder: str
    pid: int
    pinned: bool
    leases: int
    services: tuple[Status, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    addresses: dict[str, str] = dataclasses.field(default_factory=dict)
    status: WorldStatus | None = None
    error: HeadgateError | None = None


def write_request(request: Request) -> bytes:
    return _line(dataclasses.asdict(request))


def read_request(line: bytes) -> Request:
    told = _object(line)
    if told.get("ask") not in get_args(Ask):
        raise RefusedBySupervisor(f"unknown request {told.get('ask')!r}")
    return Request(
        told["ask"],
        tuple(map(str, told.get("services") or ())),
        bool(told.get("hard")),
        _port(told.get("port")),
    )


def is_only_a_look(line: bytes) -> bool:
    """Whether the request wants nothing of the world but to be told how it is."""
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
    told = _object(line)
    if found := told.get("error"):
        return Reply(error=_error_from_json(found))
    return Reply(dict(told.get("addresses") or {}), _status(told["status"]) if told.get("status") else None)


def _status(told: dict[str, Any]) -> WorldStatus:
    services = tuple(Status(**one) for one in told.pop("services"))
    return WorldStatus(**told, services=services)


def _port(told: object) -> int | None:
    return told if isinstance(told, int) and 0 < told < 65536 else None


def _error_as_json(error: HeadgateError) -> dict[str, object]:
    if isinstance(error, ErrorGroup):
        error = error.errors[0]
    fields = {one.name: getattr(error, one.name) for one in dataclasses.fields(error)}  # type: ignore[arg-type]
    return {"code": error.code, "fields": fields, "told": error.message()}


def _error_from_json(told: dict[str, Any]) -> HeadgateError:
    for known in _subclasses(HeadgateError):
        if known.code == told["code"]:
            fields = {name: tuple(v) if isinstance(v, list) else v for name, v in told["fields"].items()}
            return known(**fields)
    return RefusedBySupervisor(str(told["told"]))


def _subclasses(top: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    for one in top.__subclasses__():
        yield one
        yield from _subclasses(one)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise RefusedBySupervisor("what came is not a JSON object")
    return told
