"""Headgate's registry for the time of a test: on a free port, or in this process without a network."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.testclient import TestClient

from headgate.registry.server.__main__ import listen
from headgate.registry.server.requests import Users
from headgate.registry.server.routes import create_app
from headgate.registry.server.rules import CompatibilityCheck, check_level
from headgate.registry.server.store import Store


@contextmanager
def registry(folder: Path, users: Users | None = None, check: CompatibilityCheck = check_level) -> Iterator[str]:
    """The registry in a thread of this process. Yields its URL."""
    store = Store(folder)
    try:
        with serving(create_app(store, users=users, check=check)) as url:
            yield url
    finally:
        store.close()


@contextmanager
def in_process(
    folder: Path, users: Users | None = None, check: CompatibilityCheck = check_level
) -> Iterator[RegistryApi]:
    """The registry without a network: enough for a test of its answers, and ten times as fast."""
    store = Store(folder)
    try:
        with TestClient(create_app(store, users=users, check=check), raise_server_exceptions=False) as http:
            yield RegistryApi(http)
    finally:
        store.close()


@contextmanager
def serving(application: Any, scheme: str = "http", **settings: Any) -> Iterator[str]:
    """Any ASGI application on a free port, with further settings of uvicorn."""
    listening = listen("127.0.0.1", 0)
    server = _Server(uvicorn.Config(application, log_level="warning", lifespan="off", **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class _Server(uvicorn.Server):
    """Checks ten times as often whether it must stop, because hundreds of tests wait for it."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)


class RegistryApi:
    """Plain HTTP requests to a registry, without our client."""

    def __init__(self, http: TestClient | httpx.Client) -> None:
        self._http = http

    def send(self, method: str, path: str, body: Any = None, **settings: Any) -> Any:
        return self._http.request(method, path, json=body, **settings)

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.send(method, path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        """HTTP status and error code of a request that must fail."""
        answer = self.send(method, path, body)
        assert answer.status_code >= 400, answer.text
        assert set(answer.json()) == {"error_code", "message"}
        return answer.status_code, answer.json()["error_code"]

    def register(self, subject: str, schema: dict[str, Any], query: str = "") -> int:
        schema_id = self.ok("POST", f"/subjects/{subject}/versions{query}", schema)["id"]
        assert isinstance(schema_id, int)
        return schema_id


def avro(*fields: str, name: str = "r", defaults: bool = True) -> dict[str, Any]:
    """The body of a request with an Avro record of these int fields."""
    default = {"default": 0} if defaults else {}
    record = {
        "type": "record",
        "name": name,
        "fields": [{"name": f, "type": "int", **default} for f in fields],
    }
    return {"schema": json.dumps(record)}
