"""An engine in a thread of the test, behind its real HTTP API, and clients for it."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from headgate.control.engine import Engine, Project
from headgate.embedded.host import LOOPBACK
from headgate.runtime.query import QueryRequest
from headgate.runtime.query_process import QueryClient, RunningQuery
from headgate.runtime.query_server import QueryServer
from headgate.runtime.session import OpenSpark, Spark, SparkSession
from headgate.serve.client import EngineAddress, EngineClient, token_file
from headgate.serve.server import HttpApi

TOKEN = "the token of a test"


def _no_spark() -> SparkSession:
    raise AssertionError("this engine has no Spark")


class QueriesInThread:
    """Runs queries as the query process does, in threads of the test and with its Spark."""

    def __init__(self, spark: OpenSpark, folder: Path, at_once: int = 4, spool: int = 1 << 30) -> None:
        self._spark = spark
        self._folder = folder / "spool"
        self._limits = at_once, spool
        self._guard = threading.Lock()
        self._client: QueryClient | None = None

    def open(self, request: QueryRequest) -> RunningQuery:
        return self._running_client().open(request)

    def _running_client(self) -> QueryClient:
        """The first query starts the server. Two queries may come at once."""
        with self._guard:
            if self._client is None:
                session = self._spark()
                ours, theirs = socket.socketpair()
                server = QueryServer(session, self._folder, *self._limits, die=_never)
                threading.Thread(target=_serve, args=(server, theirs), daemon=True).start()
                self._client = QueryClient(ours)
            return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.control.close()


def _serve(server: QueryServer, control: socket.socket) -> None:
    with control:
        server.serve(control)
    server.close()


def _never(reason: str) -> None:
    raise AssertionError(reason)


@contextmanager
def engine_in_thread(folder: Path, spark: OpenSpark = _no_spark) -> Iterator[EngineClient]:
    """The engine of a project folder without its tasks. Commands find it by its files, like any engine."""
    queries = QueriesInThread(spark, folder)
    engine = Engine(Project(folder), Spark(spark), queries)
    api = HttpApi(engine, TOKEN)
    server = uvicorn.Server(
        uvicorn.Config(api.application(), host=LOOPBACK, port=0, log_level="critical", lifespan="off")
    )
    with server.config.bind_socket() as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield _write_address(folder, bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
            queries.close()
            engine.close()


def _write_address(folder: Path, port: int) -> EngineClient:
    url = f"http://{LOOPBACK}:{port}"
    EngineAddress.file(folder).write_text(json.dumps({"url": url, "pid": os.getpid()}))
    token_file(folder).write_text(TOKEN)
    client = EngineClient.of_project(folder)
    deadline = time.monotonic() + 30
    while not client.is_healthy() and time.monotonic() < deadline:
        time.sleep(0.02)
    return client


class RawRequest:
    """A statement over a connection of its own, which the test can drop while the statement runs."""

    def __init__(self, client: EngineClient, sql: str) -> None:
        address = urlsplit(client.url)
        self._socket = socket.create_connection((address.hostname, address.port))
        body = json.dumps({"sql": sql}).encode()
        head = (
            f"POST /api/statements HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer {TOKEN}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)

    @property
    def ended(self) -> bool:
        """Whether the answer is complete: a chunked body ends with an empty chunk."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(65536).endswith(b"0\r\n\r\n")
        except BlockingIOError:
            return False
        finally:
            self._socket.setblocking(True)

    def disconnect(self) -> None:
        self._socket.close()
