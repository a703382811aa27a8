"""The engine's gRPC door on loopback: the rows of materializations ON DEMAND, with reflection.

The services are looked up with every call, so that they appear and vanish with CREATE and DROP. Every call needs the token of the
project, also that for reflection: the messages show what schemas the project has. Rows come from the query process as the bytes of
messages and are passed on as they are.

A refused call has the diagnostic as its status message, and as JSON in the trailer `headgate-diagnostic-bin`. An answer ends with the
trailers `headgate-position`, `headgate-skipped` and `headgate-left-out`.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from typing import Any, Protocol

import grpc
import orjson
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection, reflection_pb2

from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.control.on_demand import RowsCall, RowsEnd, Service
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError, InternalError
from headgate.plan.materialization_errors import NotOnDemand
from headgate.plan.on_demand import RowsRequest
from headgate.plan.on_demand_messages import (
    PACKAGE,
    SHARED_PACKAGE,
    SHARED_SERVICE,
    imported_files,
    service_file,
    shared_files,
)
from headgate.plan.target_definitions import RowForm
from headgate.runtime.errors import QueryCancelled
from headgate.serve.errors import TokenRequired

log = logging.getLogger(__name__)

MAX_CALLS = 32  # at once; each has a thread, and most of them wait for their turn in the query process
CANCEL_INTERVAL = 1.0  # seconds until a call that still runs after its cancellation is cancelled again
REFLECTION = f"/{reflection.SERVICE_NAME}/ServerReflectionInfo"
DIAGNOSTIC, POSITION, SKIPPED, LEFT_OUT = (
    "headgate-diagnostic-bin",
    "headgate-position",
    "headgate-skipped",
    "headgate-left-out",
)
_SHARED_FORMS: dict[str, RowForm] = {f"/{SHARED_SERVICE}/JsonRows": "json", f"/{SHARED_SERVICE}/FlatRows": "flat"}


class OnDemandCalls(Protocol):
    """What the door needs of an engine: see `control.on_demand.OnDemand`."""

    def services(self) -> tuple[Service, ...]: ...
    def find(self, name: str) -> int: ...
    def check(self, call: RowsCall) -> None: ...
    def rows(
        self, call: RowsCall, cancellation: Cancellation
    ) -> Generator[tuple[bytes, ...] | RowsEnd, None, None]: ...


class GrpcDoor:
    """The gRPC server of an engine. ``calls`` gives the calls of the engine that runs now."""

    def __init__(self, calls: Callable[[], OnDemandCalls], token: str) -> None:
        self._handler = _Handler(calls, token)
        self._server: grpc.Server | None = None

    def start(self, host: str, port: int) -> int:
        """Listen, and return the port. 0 means a free one. Raises OSError if the port is taken."""
        server = grpc.server(
            ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="grpc"),
            handlers=[self._handler],
            maximum_concurrent_rpcs=MAX_CALLS,
            options=[("grpc.so_reuseport", 0)],  # otherwise two engines could share a port
        )
        try:
            bound: int = server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise OSError(f"port {port} is taken") from error
        server.start()
        self._server = server
        return bound

    def close(self) -> None:
        """Cancel what runs, and stop."""
        if self._server is not None:
            self._server.stop(grace=0).wait()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no type hints
    """Finds the handler of a method, by the services that there are at this moment."""

    def __init__(self, calls: Callable[[], OnDemandCalls], token: str) -> None:
        self._calls = calls
        self._token = token
        self._guard = threading.Lock()
        self._pool: tuple[tuple[Service, ...], DescriptorPool] | None = None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        method = str(handler_call_details.method)
        given = dict(handler_call_details.invocation_metadata or ()).get("authorization", "")
        text = given.decode("latin-1") if isinstance(given, bytes) else given
        if not hmac.compare_digest(text.removeprefix("Bearer ").encode(), self._token.encode()):
            return _refusing(TokenRequired(), grpc.StatusCode.UNAUTHENTICATED, method == REFLECTION)
        if method == REFLECTION:
            return grpc.stream_stream_rpc_method_handler(
                self._reflect,
                request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
                response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
            )
        if (form := _SHARED_FORMS.get(method)) is not None:
            return self._rows_handler(
                "OnDemandRequest", lambda asked: (self._calls().find(asked.materialization), form)
            )
        for one in self._calls().services():
            if method == f"/{PACKAGE}.{one.name}/Rows":
                return self._rows_handler("RowsRequest", lambda _, one=one: (one.materialization, "message"))  # type: ignore[misc]
        return None

    def _reflect(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Answer with the files as they were made: those of a pool have no comments."""
        services, pool = self._descriptors()
        names = [SHARED_SERVICE, reflection.SERVICE_NAME, *(f"{PACKAGE}.{one.name}" for one in services)]
        written = {file.name: file for file in (*shared_files(), *(one.file for one in services))}
        for answer in reflection.ReflectionServicer(names, pool=pool).ServerReflectionInfo(requests, context):
            files = answer.file_descriptor_response.file_descriptor_proto
            for at, data in enumerate(files):
                if (own := written.get(pb.FileDescriptorProto.FromString(data).name)) is not None:
                    files[at] = own.SerializeToString()
            yield answer

    def _descriptors(self) -> tuple[tuple[Service, ...], DescriptorPool]:
        """The services and the pool of their messages. Made anew when the services are others."""
        services = self._calls().services()
        with self._guard:
            if self._pool is None or self._pool[0] is not services:
                self._pool = services, _pool(services)
            return self._pool

    def _rows_handler(self, message: str, named: Callable[[Any], tuple[int, RowForm]]) -> grpc.RpcMethodHandler:
        def answer(asked: Message | None, context: grpc.ServicerContext) -> Iterator[bytes]:
            return self._rows(asked, named, context)

        return grpc.unary_stream_rpc_method_handler(answer, request_deserializer=_reader(message))

    def _rows(
        self, asked: Any, named: Callable[[Any], tuple[int, RowForm]], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        calls, cancellation = self._calls(), _Cancelled(context)
        runs = False
        try:
            materialization, form = named(asked)
            call = RowsCall(materialization, _request(asked), form)
            calls.check(call)
            runs = True
            with closing(calls.rows(call, cancellation)) as parts:
                for part in parts:
                    if isinstance(part, RowsEnd):
                        context.set_trailing_metadata(_trailers(part))
                    else:
                        yield from part
        except HeadgateError as error:
            _refuse(context, error, _status(error, runs), getattr(asked, "filter", None) if not runs else None)
        except Exception as error:
            log.exception("unexpected error in a call")
            _refuse(context, InternalError(type(error).__name__), grpc.StatusCode.INTERNAL)
        finally:
            cancellation.end()


class _Cancelled(Cancellation):
    """Cancels a call when its client is gone."""

    def __init__(self, context: grpc.ServicerContext) -> None:
        super().__init__()
        self._ended = threading.Event()
        if not context.add_callback(self._on_end):
            self.cancel()

    def end(self) -> None:
        self._ended.set()

    def _on_end(self) -> None:
        """The call has ended for the client. Spark may have begun a new job, so that what still runs is cancelled again."""
        if not self._ended.is_set():
            threading.Thread(target=self._cancel_until_ended, name="cancel", daemon=True).start()

    def _cancel_until_ended(self) -> None:
        self.cancel()
        while not self._ended.wait(CANCEL_INTERVAL):
            self.cancel()


def _pool(services: tuple[Service, ...]) -> DescriptorPool:
    pool = DescriptorPool()
    own = [*shared_files(), *(one.file for one in services), *(service_file(one.name) for one in services)]
    for file in (reflection_file(), *imported_files(own), *own):
        plain = pb.FileDescriptorProto()
        plain.CopyFrom(file)
        plain.ClearField("source_code_info")
        pool.Add(plain)
    return pool


def reflection_file() -> pb.FileDescriptorProto:
    """The file of the reflection service itself."""
    made = pb.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(made)
    return made


@lru_cache(maxsize=2)
def _reader(message: str) -> Callable[[bytes], Message]:
    """Reads a request of `headgate.v1`."""
    made: type[Message] = GetMessageClass(_pool(()).FindMessageTypeByName(f"{SHARED_PACKAGE}.{message}"))

    def read(data: bytes) -> Message:
        try:
            return made.FromString(data)
        except DecodeError as error:
            raise ValueError("the request is no such message") from error

    return read


def _request(asked: Any) -> RowsRequest:
    return RowsRequest(
        asked.filter,
        tuple(asked.fields),
        asked.limit if asked.HasField("limit") else None,
        asked.key if asked.HasField("key") else None,
    )


def _trailers(end: RowsEnd) -> tuple[tuple[str, str], ...]:
    return (
        (POSITION, _ascii(end.position)),
        (SKIPPED, str(end.skipped)),
        (LEFT_OUT, _ascii(end.left_out or {})),
    )


def _ascii(value: object) -> str:
    """JSON with escapes: metadata is ASCII."""
    return json.dumps(value, separators=(", ", ": "))


def _status(error: HeadgateError, runs: bool) -> grpc.StatusCode:
    match error:
        case UnknownObject() | WrongKind() | NotOnDemand():
            return grpc.StatusCode.NOT_FOUND
        case InternalError():
            return grpc.StatusCode.INTERNAL
        case QueryCancelled():
            return grpc.StatusCode.CANCELLED
        case _ if error.retryable:
            return grpc.StatusCode.UNAVAILABLE
        case _:
            return grpc.StatusCode.FAILED_PRECONDITION if runs else grpc.StatusCode.INVALID_ARGUMENT


def _refuse(
    context: grpc.ServicerContext, error: HeadgateError, status: grpc.StatusCode, source: str | None = None
) -> None:
    diagnostic = error.diagnostic(source or None)
    context.set_trailing_metadata(((DIAGNOSTIC, orjson.dumps(diagnostic.as_json())),))
    context.set_code(status)
    context.set_details(diagnostic.render())


def _refusing(error: HeadgateError, status: grpc.StatusCode, streams: bool) -> grpc.RpcMethodHandler:
    """A handler that refuses every call."""

    def refuse(_: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        _refuse(context, error, status)
        return iter(())

    return grpc.stream_stream_rpc_method_handler(refuse) if streams else grpc.unary_stream_rpc_method_handler(refuse)
