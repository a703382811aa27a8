"""The web hook: every event arrives, in order, signed; what does not arrive is tried again, also by the next engine."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headgate.catalog.changes import ObjectCreated
from headgate.catalog.names import DEFAULT_PATH, parent_and_name
from headgate.catalog.objects import Object
from headgate.catalog.store.sqlite import SqliteStore, utc_now
from headgate.control.engine import Engine, Project
from headgate.control.sessions import Session
from headgate.control.web_hook import HookAddress, WebHook
from headgate.runtime.session import Spark, SparkSession
from headgate.sql.objects import CreateSchema
from headgate.sql.statement import Kind, ObjectName, print_statement
from headgate.text.cursor import Identifier
from tests.serve.client_helpers import QueriesInThread

pytestmark = pytest.mark.unit

SECRET = "s3cret"
TIMEOUT = 60


class Receiver:
    """A local HTTP server. ``refusals`` are the statuses of the next requests; then it takes everything."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.refusals: list[int] = []
        self.refused = 0
        self.came = threading.Condition()

    def take(self, headers: Any, body: bytes) -> int:
        with self.came:
            if self.refusals:
                self.refused += 1
                self.came.notify_all()
                return self.refusals.pop(0) if len(self.refusals) > 1 else self.refusals[0]
            self.bodies.append(body)
            self.headers.append(headers)
            self.came.notify_all()
            return 204

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.bodies) >= count, TIMEOUT)
            return [json.loads(body) for body in self.bodies]

    def wait_for_refusals(self, count: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: self.refused >= count, TIMEOUT)


@contextmanager
def receiving() -> Iterator[tuple[Receiver, HookAddress]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = receiver.take(self.headers, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver, HookAddress(f"http://127.0.0.1:{server.server_port}/hook", SECRET)
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def sending(store: SqliteStore, address: HookAddress) -> Iterator[None]:
    hook = WebHook(store, address, clock=lambda: 1_700_000_000.9, pause=0.01)
    hook.start()
    try:
        yield
    finally:
        hook.stop()


def create(store: SqliteStore, *names: str) -> None:
    for name in names:
        statement = CreateSchema(ObjectName((Identifier(name),)))
        parent, exact = parent_and_name(store.load(), DEFAULT_PATH, statement.name, Kind.SCHEMA)
        made = Object(
            store.load().next_id, Kind.SCHEMA, parent, exact, utc_now(), print_statement(statement), statement
        )
        store.commit([ObjectCreated(made)], cause="a test")


def test_every_event_arrives_in_order_and_signed(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "catalog.db") as store, receiving() as (receiver, address):
        create(store, "a")
        with sending(store, address):
            create(store, "b", "c")
            found = receiver.wait_for(len(store.events()))
        assert [one["sequence"] for one in found] == [event.sequence for event in store.events()]
        assert [one["object"] for one in found][-3:] == [event.object for event in store.events()][-3:]
        for headers, body in zip(receiver.headers, receiver.bodies, strict=True):
            expected = hmac.new(SECRET.encode(), b"1700000000." + body, hashlib.sha256).hexdigest()
            assert headers["Headgate-Signature"] == f"t=1700000000,v1={expected}"
            assert headers["Headgate-Event"] == f"{store.project_uuid()}-{json.loads(body)['sequence']}"
        assert store.hook_position(address.name) == store.events()[-1].sequence


@pytest.mark.parametrize("status", [500, 404, 302])
def test_an_event_that_is_refused_is_sent_again_and_the_next_ones_wait(tmp_path: Path, status: int) -> None:
    with SqliteStore(tmp_path / "catalog.db") as store, receiving() as (receiver, address):
        receiver.refusals = [status]
        create(store, "a", "b")
        with sending(store, address):
            receiver.wait_for_refusals(3)
            assert receiver.bodies == []
            receiver.refusals = []
            found = receiver.wait_for(len(store.events()))
        assert [one["sequence"] for one in found] == [event.sequence for event in store.events()]


def test_the_next_engine_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    with receiving() as (receiver, address):
        with SqliteStore(tmp_path / "catalog.db") as store:
            create(store, "a")
            with sending(store, address):
                receiver.wait_for(len(store.events()))
            receiver.refusals = [503]
            create(store, "b")
            with sending(store, address):
                receiver.wait_for_refusals(1)
        receiver.refusals = []
        with SqliteStore(tmp_path / "catalog.db") as store, sending(store, address):
            found = receiver.wait_for(len(store.events()))
            assert [one["sequence"] for one in found] == [event.sequence for event in store.events()]


def test_an_engine_sends_its_events(tmp_path: Path) -> None:
    with receiving() as (receiver, address):
        engine = Engine(Project(tmp_path), Spark(_no_spark), QueriesInThread(_no_spark, tmp_path), hook=address)
        engine.start()
        try:
            list(engine.run("CREATE SCHEMA made", Session()))
            found = receiver.wait_for(len(engine.store.events()))
        finally:
            engine.close()
        assert (found[-1]["object"], found[-1]["event"]) == ("made", "created")


def _no_spark() -> SparkSession:
    raise AssertionError("this engine has no Spark")


def test_an_address_nobody_listens_at_disturbs_nothing_and_is_never_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = HookAddress("http://user:hunter2@127.0.0.1:9/hook", SECRET)
    with SqliteStore(tmp_path / "catalog.db") as store:
        create(store, "a")
        with sending(store, address):
            create(store, "b")
        assert store.hook_position(address.name) == 0
    assert "hunter2" not in caplog.text + repr(address)
    assert SECRET not in caplog.text + repr(address)
