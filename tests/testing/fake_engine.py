"""A server that answers statements from a script: what the client's side of the protocol is tested against."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from headgate.errors import Diagnostic
from headgate.serve.client import EngineClient
from headgate.serve.protocol import Column, Columns, Done, Event, Failed, Row, Rows, write_event
from headgate.testing.environment import SpecProject

TOKEN = "the token of this test"

Answer = Callable[[str], Sequence[Event]]


def result(columns: dict[str, str], *rows: Row) -> list[Event]:
    """A query's events; columns by name and type."""
    header = Columns(tuple(Column(name, type_) for name, type_ in columns.items()))
    return [header, Rows(tuple(rows)), Done(f"SELECT {len(rows)}")]


def failure(code: str, message: str, detail: str | None = None, hint: str | None = None) -> list[Event]:
    return [Failed(Diagnostic(code, message, detail, hint))]


@dataclass
class FakeEngine:
    """An engine to a client: it says what ``answer`` says, and remembers what it was asked."""

    answer: Answer
    url: str = ""
    asked: list[str] = field(default_factory=list)
    timeouts: list[float | None] = field(default_factory=list)
    projects: list[SpecProject] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    routes: dict[str, tuple[int, object]] = field(default_factory=dict)
    breaks_off: bool = False

    @property
    def client(self) -> EngineClient:
        return EngineClient(self.url, TOKEN)

    is_running = True

    def start(self, home: Path, project: SpecProject) -> FakeEngine:
        """In place of ``engine.start_engine``."""
        self.projects.append(project)
        return self

    def open_project(self, project: SpecProject) -> None:
        self.projects.append(project)

    def restart(self) -> None:
        self.ended.append("restart")

    def stop(self) -> None:
        self.ended.append("stop")

    def kill(self) -> None:
        self.ended.append("kill")


@contextmanager
def run_fake_engine(answer: Answer) -> Iterator[FakeEngine]:
    engine = FakeEngine(answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(engine))
    engine.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(engine: FakeEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/healthz":
                return self._send(200, {"status": "ok"})
            return self._routed()

        def do_POST(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._send(401, {})
            if self.path != "/api/statements":
                return self._routed()
            body = json.loads(self._body())
            engine.asked.append(body["sql"])
            engine.timeouts.append(body["timeout"])
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.end_headers()
            for event in engine.answer(body["sql"]):
                self.wfile.write(write_event(event))
            if engine.breaks_off:
                self.wfile.write(b'{"event": "rows", "ro')
            return None

        def _routed(self) -> None:
            engine.asked.append(
                f"{self.command} {self.path} {self.headers.get('Authorization')} {self._body().decode()}"
            )
            self._send(*engine.routes.get(self.path, (404, {"error": "not found"})))

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: pytest shows what matters."""

    return Handler
