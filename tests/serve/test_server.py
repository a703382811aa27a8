"""The engine's door: who is let in, what the answer to a script looks like, and what is never events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

from headgate.control.engine import Engine, Project
from headgate.control.sessions import Cancellation
from headgate.runtime.session import Spark
from headgate.serve.protocol import Columns, Done, Failed, Notice, Rows, read_event, write_event
from headgate.serve.server import MAX_BODY, HttpApi
from headgate.serve.stream import MAX_UNSENT_EVENTS, Emit, StatementStreams
from tests.serve.client_helpers import QueriesInThread

pytestmark = pytest.mark.unit

TOKEN = "s3cret-token"
BYTES = {b"authorization": f"Bearer {TOKEN}".encode()}
URL = "http://localhost"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}


def no_spark() -> SparkSession:
    raise RuntimeError("payload hunter2")


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    """The door of an engine that has a catalog and no Spark."""
    engine = Engine(Project(tmp_path), Spark(no_spark), QueriesInThread(no_spark, tmp_path))
    engine.start()
    try:
        with TestClient(HttpApi(engine, TOKEN, hosts=("Engine.internal", "10.0.0.7")).application(), URL) as client:
            yield client
    finally:
        engine.close()


def run(http: TestClient, sql: str, path: str = "/api/statements") -> list[Any]:
    answer = http.post(path, json={"sql": sql}, headers=AUTHORIZED)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [read_event(line) for line in answer.text.splitlines()]


# who is let in


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": ""}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {TOKEN}x"}],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/statements"),
        ("POST", "/api/plan"),
        ("POST", "/api/apply"),
    ],
)
def test_nothing_is_done_without_the_token(http: TestClient, method: str, path: str, headers: dict[str, str]) -> None:
    answer = http.request(method, path, json={"sql": "CREATE SCHEMA intruder"}, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "RUN-0403"
    assert TOKEN not in answer.text
    assert run(http, "SHOW SCHEMAS LIKE 'intruder'")[1] == Rows(())


def refused(answer: Any) -> tuple[int, str]:
    """Status and code of a refusal, which has the form of every diagnostic."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["message"]
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"null",
        b"NaN",
        b"\xff",
        b'{"sql": "SHOW VIEWS"} x',
        b'{"sql": "\xff"}',
        rb'{"sql": "SELECT \ud800"}',
        rb'{"sql": "\udc00"}',
        b'{"sql": ["SHOW VIEWS"]}',
        b'{"sql": null}',
        b'{"sql": 1, "session": "s"}',
        b'{"sql": "SHOW VIEWS", "session": 7}',
        b'{"sql": "SHOW VIEWS", "session": {}}',
        b"{}",
        b"[" * 100_000,
        b'{"sql":' * 100_000,
        b'{"sql": "", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
@pytest.mark.parametrize("path", ["/api/statements", "/api/plan", "/api/apply"])
def test_a_body_that_is_not_a_script_is_refused(http: TestClient, path: str, body: bytes) -> None:
    answer = http.post(path, content=body, headers=AUTHORIZED)
    assert refused(answer) == (400, "CLI-0107")


def test_the_refusal_of_a_body_says_why_and_shows_nothing_of_it(http: TestClient) -> None:
    def message(body: bytes) -> str:
        return str(http.post("/api/statements", content=body, headers=AUTHORIZED).json()["message"])

    assert message(b'{"sql": 1}') == 'cannot read the body of the request: "sql" is not a text'
    assert message(b'{"sql": "", "session": 1}').endswith('"session" is not a text')
    assert message(b"{}").endswith('it has no "sql"')
    assert "hunter2" not in message(b'{"sql": "hunter2')
    assert "hunter2" not in message(b"hunter2")


def test_a_body_beyond_the_bound_is_refused(http: TestClient) -> None:
    body = b'{"sql": "' + b" " * MAX_BODY + b'"}'
    assert refused(http.post("/api/statements", content=body, headers=AUTHORIZED)) == (413, "CLI-0109")
    assert refused(http.post("/api/statements", content=body)) == (401, "RUN-0403")


@given(
    body=st.binary()
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_other_body_is_refused_or_answered_in_events(http: TestClient, body: bytes) -> None:
    answer = http.post("/api/statements", content=body, headers=AUTHORIZED)
    assert refused(answer) == (400, "CLI-0107")


@given(sql=st.text(st.characters(categories=None)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_of_a_script_gets_an_answer(http: TestClient, sql: str) -> None:
    body = json.dumps({"sql": sql, "session": "any"})
    answer = http.post("/api/plan", content=body, headers=AUTHORIZED)
    if answer.status_code == 200:
        assert answer.text.strip() or not sql.strip() or "--" in sql or "/*" in sql
        for line in answer.text.split("\n")[:-1]:
            read_event(line)
    else:
        assert refused(answer) == (400, "CLI-0107")


@pytest.mark.parametrize("path", ["/", "/api", "/api/nothing", "/metrics/x", "//healthz", "/api/statements/"])
def test_an_unknown_path_is_a_diagnostic(http: TestClient, path: str) -> None:
    answer = http.get(f"{URL}{path}", follow_redirects=False)
    assert refused(answer) == (404, "CLI-0110")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/api/statements", "POST"), ("DELETE", "/api/apply", "POST"), ("POST", "/metrics", "GET, HEAD")],
)
def test_a_method_that_a_path_does_not_take_is_a_diagnostic(
    http: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = http.request(method, path, headers=AUTHORIZED)
    assert refused(answer) == (405, "CLI-0111")
    assert sorted(answer.headers["allow"].split(", ")) == allowed.split(", ")


PATHS = ("/healthz", "/metrics", "/api/statements", "/api/plan", "/api/apply", "/nothing")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:127.0.0.1",
        "127.0.0.1@evil.example",
        "evil.example#localhost",
        "localhost/evil.example",
        "localhost:80:80",
        "localhost:x",
        "[::1].evil.example",
        "[::2]",
        "0.0.0.0",
        "10.0.0.8",
        "192.168.0.1",
        "2130706433",
        "0x7f.1",
        "engine.internal.evil.example",
        "",
        ":80",
        "localh\xf6st",
    ],
)
def test_a_request_that_names_a_foreign_host_is_refused_on_every_path(http: TestClient, path: str, host: str) -> None:
    """A browser sends the foreign name also after that name was made to point to 127.0.0.1."""
    answer = http.request("POST", path, json={"sql": ""}, headers={**BYTES, b"host": host.encode("latin-1")})
    assert refused(answer) == (421, "CLI-0112")
    assert "project" not in answer.text
    assert "headgate_task" not in answer.text


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.1.2.3:80",
        "[::1]",
        "[::1]:8080",
        "engine.internal",
        "ENGINE.internal:443",
        "10.0.0.7:80",
    ],
)
def test_loopback_and_the_hosts_of_the_settings_are_let_in(http: TestClient, host: str) -> None:
    assert http.get("/healthz", headers={"host": host}).is_success
    assert http.get("/metrics", headers={"host": host}).is_success


def test_a_request_with_two_hosts_or_none_is_refused(http: TestClient) -> None:
    def status(*hosts: str) -> int:
        request = http.build_request("GET", "/healthz")
        del request.headers["host"]
        request.headers = type(request.headers)([*request.headers.multi_items(), *(("host", host) for host in hosts)])
        return http.send(request).status_code

    assert status("localhost") == 200
    assert status("localhost", "evil.example") == 421
    assert status("localhost", "localhost") == 421


def test_an_error_of_the_engine_itself_is_a_diagnostic_too(tmp_path: Path) -> None:
    engine = Engine(Project(tmp_path), Spark(no_spark), QueriesInThread(no_spark, tmp_path))
    engine.close()
    with TestClient(HttpApi(engine, TOKEN).application(), URL, raise_server_exceptions=False) as http:
        assert refused(http.get("/metrics")) == (500, "INT-0001")


# events


def test_a_script_answers_events_one_per_line_in_order(http: TestClient) -> None:
    events = run(http, "CREATE SCHEMA a; CREATE SCHEMA IF NOT EXISTS a; SHOW SCHEMAS")
    assert events[:3] == [
        Done("CREATE SCHEMA"),
        Notice('schema "a" exists already, skipped'),
        Done("CREATE SCHEMA"),
    ]
    columns, rows, done = events[3:]
    assert isinstance(columns, Columns)
    assert [c.name for c in columns.columns] == ["name", "schema", "comment"]
    assert rows == Rows((("a", "headgate", None), ("public", "headgate", None)))
    assert done == Done("SHOW")


def test_each_line_is_one_json_object(http: TestClient) -> None:
    answer = http.post(
        "/api/statements",
        json={"sql": "COMMENT ON SCHEMA public IS 'zwei\nZeilen'; SHOW SCHEMAS"},
        headers=AUTHORIZED,
    )
    lines = answer.text.split("\n")
    assert lines[-1] == ""
    assert [json.loads(line)["event"] for line in lines[:-1]] == ["done", "columns", "rows", "done"]


def test_an_error_is_the_last_event_and_points_at_its_place(http: TestClient) -> None:
    (failed,) = run(http, "SHOW VIEWS;\nDROP VIEW nosuch")
    assert isinstance(failed, Failed)
    events = failed.diagnostic
    assert (events.code, events.line, events.column) == ("CAT-0101", 2, 11)
    assert events.excerpt == "2 | DROP VIEW nosuch\n              ^^^^^^"


def test_a_failing_script_does_nothing(http: TestClient) -> None:
    run(http, "CREATE SCHEMA a; DROP VIEW nosuch")
    assert run(http, "SHOW SCHEMAS LIKE 'a'")[1] == Rows(())


def test_the_line_that_an_error_shows_has_no_secrets(http: TestClient) -> None:
    for script in (
        "CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL PASSWORD 'hunter2')",
        "CREATE SECRET s AS 'hunter2' nonsense",
        "CREATE SECRET nosuch.s AS 'hunter2'",
    ):
        (failed,) = run(http, script)
        assert isinstance(failed, Failed)
        assert failed.diagnostic.excerpt is not None
        assert "hunter2" not in failed.diagnostic.render()


def test_an_internal_error_is_reported_without_its_text(http: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    (failed,) = run(http, "SELECT 1 AS one")
    assert isinstance(failed, Failed)
    assert failed.diagnostic.code == "INT-0001"
    assert failed.diagnostic.message == "internal error: RuntimeError"
    assert "hunter2" not in failed.diagnostic.render()
    assert run(http, "SHOW VIEWS")[-1] == Done("SHOW")


def test_an_empty_script_answers_nothing(http: TestClient) -> None:
    assert run(http, "") == []


@pytest.mark.parametrize("path", ["/api/statements", "/api/plan", "/api/apply"])
def test_a_busy_engine_refuses_statements_and_still_answers_health_checks(tmp_path: Path, path: str) -> None:
    engine = Engine(Project(tmp_path), Spark(no_spark), QueriesInThread(no_spark, tmp_path))
    try:
        with TestClient(HttpApi(engine, TOKEN, StatementStreams(0)).application(), URL) as http:
            answer = http.post(path, json={"sql": "SHOW VIEWS"}, headers=AUTHORIZED)
            assert (answer.status_code, answer.json()["code"]) == (503, "CLI-0108")
            assert answer.json()["hint"].startswith("Try again")
            assert http.get("/healthz").is_success
    finally:
        engine.close()


# health and metrics


def test_health_needs_no_token(http: TestClient, tmp_path: Path) -> None:
    assert http.get("/healthz").json() == {"status": "ok", "project": str(tmp_path)}


def test_metrics_need_no_token_and_are_text(http: TestClient) -> None:
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith("# HELP headgate_task_up ")


TIMEOUT = 30


def test_events_come_in_the_order_in_which_they_were_put() -> None:
    events = [Notice(str(number)) for number in range(3 * MAX_UNSENT_EVENTS)]

    def work(emit: Emit, _: Cancellation) -> None:
        assert all(emit(event) for event in events)

    async def read() -> list[bytes]:
        stream = StatementStreams().start(work)
        assert stream is not None
        return [line async for line in stream.lines()]

    assert asyncio.run(read()) == [write_event(event) for event in events]


def test_no_more_are_opened_than_may_be_and_one_that_ends_makes_room() -> None:
    async def read() -> None:
        streams, go_on = StatementStreams(1), threading.Event()
        first = streams.start(lambda emit, _: _later(go_on, emit))
        assert first is not None
        assert streams.start(lambda emit, _: None) is None
        go_on.set()
        assert [line async for line in first.lines()] == [write_event(Done("DONE"))]
        assert streams.start(lambda emit, _: None) is not None

    asyncio.run(read())


def test_closing_a_stream_cancels_its_work() -> None:
    running, stopped, ended = threading.Event(), threading.Event(), threading.Event()

    def work(emit: Emit, cancellation: Cancellation) -> None:
        with cancellation.stops(stopped.set):
            running.set()
            stopped.wait(TIMEOUT)
        assert not emit(Done("SELECT 0"))
        ended.set()

    async def open_and_close() -> None:
        stream = StatementStreams().start(work)
        assert stream is not None
        assert running.wait(TIMEOUT)
        stream.close()
        assert ended.wait(TIMEOUT)

    asyncio.run(open_and_close())


def test_a_thread_that_waits_for_its_reader_ends_when_the_reader_goes_away() -> None:
    full, ended = threading.Event(), threading.Event()

    def work(emit: Emit, _: Cancellation) -> None:
        for number in range(10 * MAX_UNSENT_EVENTS):
            if number == MAX_UNSENT_EVENTS:
                full.set()
            if not emit(Notice(str(number))):
                assert number == MAX_UNSENT_EVENTS
                ended.set()
                return

    async def open_and_close() -> None:
        stream = StatementStreams().start(work)
        assert stream is not None
        assert full.wait(TIMEOUT)
        stream.close()
        assert ended.wait(TIMEOUT)

    asyncio.run(open_and_close())


def test_a_job_that_begins_after_the_cancellation_is_stopped_at_once() -> None:
    cancellation, stopped = Cancellation(), threading.Event()
    cancellation.cancel()
    with cancellation.stops(stopped.set):
        assert stopped.is_set()


def test_a_job_that_has_ended_is_not_stopped() -> None:
    cancellation, stopped = Cancellation(), threading.Event()
    with cancellation.stops(stopped.set):
        pass
    cancellation.cancel()
    assert not stopped.is_set()


def _later(go_on: threading.Event, emit: Emit) -> None:
    assert go_on.wait(TIMEOUT)
    emit(Done("DONE"))
