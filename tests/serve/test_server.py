"""The engine's door: who is let in, what the answer to a script looks like, and what is never events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

from headgate.control.cancellation import Cancellation
from headgate.control.engine import Engine, Project
from headgate.runtime.session import Spark
from headgate.serve.protocol import Columns, Done, Failed, Notice, Rows, read_event, write_event
from headgate.serve.server import MAX_UNSENT_EVENTS, Emit, HttpApi, StatementStreams

pytestmark = pytest.mark.unit

TOKEN = "s3cret-token"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}


def no_spark() -> SparkSession:
    raise RuntimeError("payload hunter2")


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    """The door of an engine that has a catalog and no Spark."""
    engine = Engine(Project(tmp_path), Spark(no_spark))
    engine.start()
    try:
        with TestClient(HttpApi(engine, TOKEN).application()) as client:
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
def test_nothing_is_done_without_the_token(
    http: TestClient, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = http.request(method, path, json={"sql": "CREATE SCHEMA intruder"}, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "RUN-0403"
    assert TOKEN not in answer.text
    assert run(http, "SHOW SCHEMAS LIKE 'intruder'")[1] == Rows(())


@pytest.mark.parametrize("body", [b"", b"[]", b"{"])
def test_a_body_that_is_not_a_json_object_is_refused(http: TestClient, body: bytes) -> None:
    answer = http.post("/api/statements", content=body, headers=AUTHORIZED)
    assert answer.status_code == 400
    assert answer.json()["code"] == "CLI-0107"


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


def test_an_internal_error_is_reported_without_its_text(
    http: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
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
    engine = Engine(Project(tmp_path), Spark(no_spark))
    try:
        with TestClient(HttpApi(engine, TOKEN, StatementStreams(0)).application()) as http:
            answer = http.post(path, json={"sql": "SHOW VIEWS"}, headers=AUTHORIZED)
            assert (answer.status_code, answer.json()["code"]) == (503, "CLI-0108")
            assert answer.json()["hint"].startswith("Try again")
            assert http.get("/healthz").is_success
    finally:
        engine.store.close()


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
