"""Rows on demand over HTTP: the form of an answer, its failures, and a client that goes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from headgate.catalog.errors import UnknownObject
from headgate.control.on_demand import RowsCall, RowsEnd
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError
from headgate.plan.materialization_errors import UnknownRowField
from headgate.plan.on_demand import RowsRequest
from headgate.runtime.errors import QueryProcessEnded, RowDoesNotFit
from headgate.serve.server import HttpApi

pytestmark = pytest.mark.unit

TOKEN = {"authorization": "Bearer t"}
PATH = "/api/materializations/m/rows"
MISFIT = RowDoesNotFit("m", "$.id", "bigint", "it is missing or null")


class Calls:
    """One materialization, `m`. ``parts`` are its rows, ``fails`` is what comes after them."""

    def __init__(
        self, *parts: tuple[bytes, ...], fails: BaseException | None = None, wrong: HeadgateError | None = None
    ):
        self.parts, self.fails, self.wrong = parts, fails, wrong
        self.asked: list[RowsCall] = []
        self.stopped = threading.Event()
        self.waits = False

    def find(self, name: str) -> int:
        if name != "m":
            raise UnknownObject("materialization", name)
        return 7

    def check(self, call: RowsCall) -> None:
        self.asked.append(call)
        if self.wrong is not None:
            raise self.wrong

    def rows(self, call: RowsCall, cancellation: Cancellation) -> Generator[tuple[bytes, ...] | RowsEnd, None, None]:
        yield from self.parts
        if self.waits:
            with cancellation.stops(self.stopped.set):
                self.stopped.wait(60)
            return
        if self.fails is not None:
            raise self.fails
        yield RowsEnd({"orders": {"offsets": [2]}}, 1, {"orders": 4})


def application(calls: Calls) -> Any:
    engine: Any = SimpleNamespace(on_demand=calls)
    return HttpApi(engine, "t").application()


def get(calls: Calls, path: str = PATH, headers: dict[str, str] = TOKEN) -> Any:
    with TestClient(application(calls), "http://localhost") as http:
        return http.get(path, headers=headers)


@pytest.mark.parametrize(
    ("parts", "rows"),
    [([], []), ([(b'{"a":1}', b'{"a":2}'), (b'{"a":3}',)], [{"a": 1}, {"a": 2}, {"a": 3}])],
)
def test_rows_are_one_json_object(parts: list[tuple[bytes, ...]], rows: list[Any]) -> None:
    answer = get(Calls(*parts))
    assert answer.status_code == 200
    end = {"position": {"orders": {"offsets": [2]}}, "skipped": 1, "left_out": {"orders": 4}}
    assert answer.json() == {"rows": rows, **end}


def test_what_the_address_asks_for() -> None:
    calls = Calls()
    get(calls, PATH + "?filter=a%20%3E%201&fields=a,%20b&fields=c&limit=5&key=%5B1%5D")
    get(calls, PATH + "?key=")
    assert [call.request for call in calls.asked] == [
        RowsRequest("a > 1", ("a", "b", "c"), 5, "[1]"),
        RowsRequest("", (), None, ""),
    ]


@pytest.mark.parametrize(
    ("calls", "status", "code"),
    [
        (Calls(wrong=UnknownRowField("m", "x")), 400, "PLN-0675"),
        (Calls(fails=MISFIT), 422, "RUN-0551"),
        (Calls(fails=QueryProcessEnded("It ended")), 503, QueryProcessEnded.code),
        (Calls(fails=ValueError("a bug")), 500, "INT-0001"),
    ],
)
def test_a_call_that_fails_before_its_first_row_has_the_status_of_its_error(
    calls: Calls, status: int, code: str
) -> None:
    answer = get(calls)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_call_that_fails_later_says_so_at_the_end() -> None:
    answer = get(Calls((b"1",), fails=MISFIT))
    assert answer.status_code == 200
    assert answer.json()["rows"] == [1]
    assert answer.json()["error"]["code"] == "RUN-0551"
    assert "position" not in answer.json()


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        (PATH, {}, 401, "RUN-0403"),
        ("/api/materializations/other/rows", TOKEN, 404, "CAT-0101"),
        (PATH + "?limit=few", TOKEN, 400, "PLN-0678"),
        (PATH + "?limt=1", TOKEN, 400, "CLI-0113"),
    ],
)
def test_a_request_that_is_wrong_is_refused(path: str, headers: dict[str, str], status: int, code: str) -> None:
    answer = get(Calls(), path, headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_client_that_goes_before_the_first_row_cancels_its_call() -> None:
    calls = Calls()
    calls.waits = True
    sent: list[Any] = []
    messages: Iterator[Any] = iter([{"type": "http.request", "body": b""}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer t")]
    scope = {"type": "http", "method": "GET", "path": PATH, "query_string": b"", "headers": headers}
    asyncio.run(application(calls)(scope, receive, send))
    assert calls.stopped.wait(60)
