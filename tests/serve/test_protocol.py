"""Events over the wire, and the client that reads them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import Diagnostic
from headgate.serve.client import EngineClient
from headgate.serve.errors import (
    EngineDidNotStart,
    EngineNotRunning,
    EngineRefused,
    EngineUnreachable,
    UnreadableEvent,
    WrongToken,
)
from headgate.serve.process import EngineProcess, start_engine
from headgate.serve.protocol import (
    Column,
    Columns,
    Done,
    Event,
    Failed,
    Notice,
    Progress,
    Rows,
    Value,
    read_event,
    write_event,
)
from tests.testing.fake_engine import TOKEN, FakeEngine, failure, result, run_fake_engine

pytestmark = pytest.mark.unit

text = st.text(st.characters(exclude_categories=["Cs"]))
values: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
rows = st.lists(st.lists(values, max_size=3).map(tuple), max_size=3).map(tuple)
optional = st.none() | text
diagnostics = st.builds(
    Diagnostic,
    text,
    text,
    optional,
    optional,
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
    optional,
)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Notice, text),
    st.builds(Progress, text, st.none() | st.integers(0)),
    st.builds(Columns, st.lists(st.builds(Column, text, text), max_size=3).map(tuple)),
    st.builds(Rows, rows),
    st.builds(Done, text),
    st.builds(Failed, diagnostics),
)


@given(events)
def test_an_event_is_one_line_and_reads_back_as_it_was(event: Event) -> None:
    line = write_event(event)
    assert read_event(line) == event
    assert line.count(b"\n") == 1


def test_events_have_the_form_that_other_programs_read() -> None:
    assert json.loads(write_event(Columns((Column("id", "bigint"),)))) == {
        "event": "columns",
        "columns": [{"name": "id", "type": "bigint"}],
    }
    assert json.loads(write_event(Rows(((2**63, "x", None),)))) == {
        "event": "rows",
        "rows": [[2**63, "x", None]],
    }
    assert json.loads(write_event(Failed(Diagnostic("SQL-0103", "no", hint="Say yes.", line=2)))) == {
        "event": "error",
        "code": "SQL-0103",
        "message": "no",
        "hint": "Say yes.",
        "line": 2,
    }


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"event": "applause"}', '{"event": "rows", "rows": [1]}', "{}"]
)
def test_a_line_that_is_no_event_is_an_error(line: str) -> None:
    with pytest.raises(UnreadableEvent):
        read_event(line)


def test_members_that_are_not_known_are_ignored() -> None:
    assert read_event('{"event": "done", "tag": "DROP SINK", "took": 5}') == Done("DROP SINK")


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


def test_an_engine_that_ends_at_once_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("some line\nthe disk is full\n")
    process = subprocess.Popen(["false"])
    engine = EngineProcess(tmp_path, process, tmp_path / "engine.log")
    with pytest.raises(EngineDidNotStart) as caught:
        engine.wait_until_ready(10)
    assert caught.value.reason == "it ended with status 1"
    assert "the disk is full" in caught.value.detail()


def test_an_engine_that_never_becomes_ready_is_reported_and_killed(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path, subprocess.Popen(["sleep", "60"]), tmp_path / "engine.log")
    with pytest.raises(EngineDidNotStart, match="not ready within"):
        engine.wait_until_ready(0.2)
    assert engine.is_running
    engine.kill()
    assert not engine.is_running


def test_an_engine_that_ignores_its_end_is_killed_with_its_children(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    EngineProcess(tmp_path, process, tmp_path / "log").stop(timeout=0.3)
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_command_that_cannot_serve_is_an_error(tmp_path: Path) -> None:
    """Python itself does not start so."""
    with pytest.raises(EngineDidNotStart) as caught:
        start_engine(tmp_path, environment={"PYTHONHOME": str(tmp_path)}, timeout=60)
    assert any("init" in line for line in caught.value.last)
