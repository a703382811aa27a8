"""The gRPC door: services that come and go, the token, reflection, trailers, failures and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from headgate.catalog.errors import UnknownObject
from headgate.control.on_demand import RowsCall, RowsEnd, Service
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError
from headgate.plan.materialization_errors import NotOnDemand, UnknownRowField
from headgate.plan.on_demand import RowsRequest
from headgate.plan.on_demand_messages import row_file
from headgate.plan.target_definitions import OnDemandDefinition, TargetField, ValuePath
from headgate.runtime.errors import RowDoesNotFit
from headgate.schema import types as t
from headgate.serve.grpc_server import DIAGNOSTIC, POSITION, SKIPPED, GrpcDoor, _pool
from headgate.testing.actions.grpc_calls import Expected, _attempt, _comparable
from headgate.testing.errors import Mismatch, StepFailed

pytestmark = pytest.mark.unit

TOKEN = (("authorization", "Bearer secret"),)
ID = TargetField("id", ValuePath("id"), t.Bigint(), t.Bigint(), False, doc="from the till")
DEFINITION = OnDemandDefinition("orders", 1, (ID,), (("id", t.Bigint()),))


class Calls:
    """An engine with one materialization, whose rows are numbers."""

    def __init__(self) -> None:
        self.known: tuple[Service, ...] = (Service(7, "Orders", row_file(DEFINITION, "Orders", None)),)
        self.asked: list[RowsCall] = []
        self.wrong: HeadgateError | None = None
        self.fails: BaseException | None = None
        self.waits: threading.Event | None = None
        self.cancelled = threading.Event()

    def services(self) -> tuple[Service, ...]:
        return self.known

    def find(self, name: str) -> int:
        if name != "orders":
            raise UnknownObject("materialization", name, ("orders",))
        return 7

    def check(self, call: RowsCall) -> None:
        self.asked.append(call)
        if self.wrong is not None:
            raise self.wrong

    def rows(self, call: RowsCall, cancellation: Cancellation) -> Generator[tuple[bytes, ...] | RowsEnd, None, None]:
        message = GetMessageClass(_pool(self.known).FindMessageTypeByName("headgate.ondemand.rows.Orders"))
        try:
            yield tuple(message(id=number).SerializeToString() for number in (1, 2))
            if self.waits is not None:
                stopped = threading.Event()
                with cancellation.stops(stopped.set):
                    stopped.wait(60)
        finally:
            self.cancelled.set()
        if self.waits is not None:
            return
        if self.fails is not None:
            raise self.fails
        yield RowsEnd({"orders": {"topic": "t", "offsets": [2]}}, 3)


@contextmanager
def served() -> Iterator[tuple[Calls, grpc.Channel]]:
    calls = Calls()
    door = GrpcDoor(lambda: calls, "secret")
    port = door.start("127.0.0.1", 0)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)]) as channel:
            yield calls, channel
    finally:
        door.close()


def call(channel: grpc.Channel, method: str, data: bytes = b"", metadata: Any = TOKEN) -> Any:
    return channel.unary_stream(method)(data, metadata=metadata, timeout=60)


def failure(channel: grpc.Channel, method: str = "/headgate.ondemand.Orders/Rows", **more: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as raised:
        list(call(channel, method, **more))
    return raised.value


def request(**given: Any) -> bytes:
    made: Any = GetMessageClass(_pool(()).FindMessageTypeByName("headgate.v1.RowsRequest"))
    data: bytes = made(**given).SerializeToString()
    return data


def test_rows_and_what_comes_after_them() -> None:
    with served() as (calls, channel):
        running = call(
            channel, "/headgate.ondemand.Orders/Rows", request(filter="id > 0", fields=["id"], limit=0, key="")
        )
        assert len(list(running)) == 2
        trailers = dict(running.trailing_metadata())
        assert trailers[POSITION] == '{"orders": {"topic": "t", "offsets": [2]}}'
        assert trailers[SKIPPED] == "3"
        assert calls.asked == [RowsCall(7, RowsRequest("id > 0", ("id",), 0, ""), "message")]
        list(call(channel, "/headgate.ondemand.Orders/Rows"))
        assert calls.asked[-1].request == RowsRequest()


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer wrong"),)])
@pytest.mark.parametrize("method", ["/headgate.ondemand.Orders/Rows", "/headgate.v1.OnDemand/JsonRows"])
def test_every_call_needs_the_token(method: str, metadata: Any) -> None:
    with served() as (calls, channel):
        assert failure(channel, method, metadata=metadata).code() is grpc.StatusCode.UNAUTHENTICATED
        assert calls.asked == []
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        with pytest.raises(grpc.RpcError):
            list(stub.ServerReflectionInfo(iter(()), metadata=metadata, timeout=60))


def test_services_come_and_go_with_the_catalog() -> None:
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    with served() as (calls, channel):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)

        def names() -> set[str]:
            (answer,) = stub.ServerReflectionInfo(iter([asked]), metadata=TOKEN, timeout=60)
            return {one.name for one in answer.list_services_response.service}

        shared = {"headgate.v1.OnDemand", "grpc.reflection.v1alpha.ServerReflection"}
        assert names() == {"headgate.ondemand.Orders", *shared}
        calls.known = ()
        assert names() == shared
        assert failure(channel).code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection_shows_the_comments_of_fields() -> None:
    asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol="headgate.ondemand.Orders")
    with served() as (_, channel):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        (answer,) = stub.ServerReflectionInfo(iter([asked]), metadata=TOKEN, timeout=60)
    files = [pb.FileDescriptorProto.FromString(one) for one in answer.file_descriptor_response.file_descriptor_proto]
    comments = [at.leading_comments.strip() for file in files for at in file.source_code_info.location]
    assert "from the till" in comments
    assert "At most so many rows." in comments


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (UnknownRowField("orders", "x"), grpc.StatusCode.INVALID_ARGUMENT),
        (NotOnDemand("orders"), grpc.StatusCode.NOT_FOUND),
    ],
)
def test_a_call_that_is_wrong_is_refused_with_its_diagnostic(wrong: HeadgateError, status: grpc.StatusCode) -> None:
    with served() as (calls, channel):
        calls.wrong = wrong
        error = failure(channel)
        assert error.code() is status
        assert wrong.message() in error.details()
        assert wrong.code.encode() in dict(error.trailing_metadata())[DIAGNOSTIC]


@pytest.mark.parametrize(
    ("fails", "status"),
    [
        (RowDoesNotFit("orders", "$.id", "bigint", "it is missing or null"), grpc.StatusCode.FAILED_PRECONDITION),
        (ValueError("a bug"), grpc.StatusCode.INTERNAL),
    ],
)
def test_a_call_that_fails_on_the_way_ends_with_its_diagnostic(fails: BaseException, status: grpc.StatusCode) -> None:
    with served() as (calls, channel):
        calls.fails = fails
        assert failure(channel).code() is status


def test_a_client_that_goes_cancels_its_call() -> None:
    with served() as (calls, channel):
        calls.waits = threading.Event()
        running = call(channel, "/headgate.ondemand.Orders/Rows")
        assert [next(running), next(running)]
        assert not calls.cancelled.is_set()
        running.cancel()
        assert calls.cancelled.wait(60)


def test_a_port_that_is_taken_is_refused() -> None:
    first, second = GrpcDoor(Calls, "a"), GrpcDoor(Calls, "b")
    port = first.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="taken"):
        second.start("127.0.0.1", port)
    first.close()
    second.close()


# The action of specs


def expected(*messages: Any, trailers: Any = (), **failure: Any) -> Expected:
    return Expected(messages, failure, tuple(trailers))


ROWS = ("headgate.ondemand.Orders", "Rows")


def test_the_action_compares_messages_in_any_order() -> None:
    with served() as (_, channel):
        _attempt(channel, TOKEN, ROWS, {}, expected({"id": 2}, {"id": 1}, trailers=[("headgate-skipped", "3")]), 60)
        wrong = (
            expected({"id": 2}),
            expected({"id": 1}, {"id": 1}),
            expected({"id": 1}, {"id": 2}, trailers=[("headgate-skipped", "4")]),
            expected(status=("NOT_FOUND",)),
        )
        for one in wrong:
            with pytest.raises(Mismatch):
                _attempt(channel, TOKEN, ROWS, {}, one, 60)


def test_the_action_compares_numbers_by_value() -> None:
    assert _comparable({"a": 0.1, "b": [7.0, None], "c": None}) == {"a": Decimal("0.1"), "b": [7, None]}


def test_the_action_compares_failures() -> None:
    with served() as (calls, channel):
        named = ("headgate.v1.OnDemand", "JsonRows")
        asked: Any = {"materialization": "nope"}
        _attempt(
            channel, TOKEN, named, asked, expected(status=("NOT_FOUND",), code=("CAT-0101",), contains=("nope",)), 60
        )
        with pytest.raises(Mismatch):
            _attempt(channel, TOKEN, named, asked, expected(code=("CAT-0102",)), 60)
        with pytest.raises(StepFailed):
            _attempt(channel, TOKEN, named, asked, expected(), 60)
        calls.known = ()
        with pytest.raises(StepFailed):
            _attempt(channel, TOKEN, ROWS, {}, expected(), 60)
