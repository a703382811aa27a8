"""An engine, without Spark unless one is given, behind its real door, in a thread of the test: found by commands as any engine is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from headgate.control.engine import Engine, Project
from headgate.embedded.host import LOOPBACK
from headgate.runtime.session import OpenSpark, Spark, SparkSession
from headgate.serve.client import EngineAddress, EngineClient, token_file
from headgate.serve.server import Door

TOKEN = "the token of a test"


def _no_spark() -> SparkSession:
    raise AssertionError("this engine has no Spark")


@contextmanager
def served(folder: Path, spark: OpenSpark = _no_spark) -> Iterator[EngineClient]:
    """The engine of ``folder``; its tasks are not run."""
    engine = Engine(Project(folder), Spark(spark))
    door = Door(engine, TOKEN, lambda _: None)
    server = uvicorn.Server(
        uvicorn.Config(door.application(), host=LOOPBACK, port=0, log_level="critical", lifespan="off")
    )
    with server.config.bind_socket() as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield _announced(folder, bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
            engine.store.close()


def _announced(folder: Path, port: int) -> EngineClient:
    url = f"http://{LOOPBACK}:{port}"
    EngineAddress.file(folder).write_text(json.dumps({"url": url, "pid": os.getpid()}))
    token_file(folder).write_text(TOKEN)
    client = EngineClient.of_project(folder)
    deadline = time.monotonic() + 30
    while not client.is_healthy() and time.monotonic() < deadline:
        time.sleep(0.02)
    return client
