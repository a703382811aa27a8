"""The client of an engine, against an engine that answers what the test says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from headgate.errors import Diagnostic
from headgate.serve.client import EngineClient
from headgate.serve.errors import (
    EngineNotRunning,
    EngineRefused,
    EngineUnreachable,
    UnreadableEvent,
    WrongToken,
)
from headgate.serve.protocol import (
    Done,
    Event,
    Failed,
    Notice,
)
from tests.testing.fake_engine import TOKEN, FakeEngine, failure, result, run_fake_engine

pytestmark = pytest.mark.unit


def test_the_client_gives_all_events_in_order_with_line_separators_within_values() -> None:
    events = result({"a": "text"}, ("one\u2028two\x85three",), ("four",))
    with run_fake_engine(lambda sql: events) as engine:
        assert list(engine.client.run("SELECT a FROM b;", timeout=7)) == events
    assert (engine.asked, engine.timeouts) == (["SELECT a FROM b;"], [7])


def test_an_error_event_is_an_event_and_no_exception() -> None:
    with run_fake_engine(lambda sql: failure("SQL-0103", "no such thing")) as engine:
        [event] = engine.client.run("x;")
    assert event == Failed(Diagnostic("SQL-0103", "no such thing"))


def test_an_answer_that_breaks_off_is_an_error() -> None:
    def answer(sql: str) -> list[Event]:
        return [Notice("one moment")]

    with run_fake_engine(answer) as engine:
        with pytest.raises(EngineUnreachable, match="too early"):
            list(engine.client.run("x;"))
        engine.breaks_off = True
        with pytest.raises(UnreadableEvent):
            list(engine.client.run("x;"))


def test_a_wrong_token_is_reported_and_never_shown() -> None:
    with run_fake_engine(lambda sql: [Done("")]) as engine:
        client = EngineClient(engine.url, "stolen")
        with pytest.raises(WrongToken) as caught:
            list(client.run("x;"))
    assert "stolen" not in repr(client) + caught.value.diagnostic().render()


def test_an_address_without_a_server_is_reported() -> None:
    with run_fake_engine(lambda sql: [Done("")]) as engine:
        url = engine.url
    with pytest.raises(EngineUnreachable, match="takes no connection"):
        list(EngineClient(url, "t").run("x;"))
    assert not EngineClient(url, "t").is_healthy()


def test_a_refused_request_is_reported_with_its_status() -> None:
    with run_fake_engine(lambda sql: [Done("")]) as engine, pytest.raises(EngineRefused, match="404"):
        engine.client.raise_for_status(engine.client.send("GET", "/nowhere", timeout=5))


def test_the_engine_of_a_project_is_found_by_its_files(tmp_path: Path) -> None:
    with pytest.raises(EngineNotRunning):
        EngineClient.of_project(tmp_path)
    with run_fake_engine(lambda sql: [Done("SELECT 1")]) as engine:
        _announce(tmp_path, engine, os.getpid())
        assert list(EngineClient.of_project(tmp_path).run("x;")) == [Done("SELECT 1")]


def test_an_engine_whose_process_is_gone_does_not_run(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with run_fake_engine(lambda sql: []) as engine:
        _announce(tmp_path, engine, gone.pid)
        with pytest.raises(EngineNotRunning):
            EngineClient.of_project(tmp_path)


def _announce(project: Path, engine: FakeEngine, pid: int) -> None:
    (project / ".headgate").mkdir()
    (project / ".headgate" / "engine.json").write_text(json.dumps({"url": engine.url, "pid": pid}))
    (project / ".headgate" / "token").write_text(TOKEN + "\n")
