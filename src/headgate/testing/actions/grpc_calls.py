"""The action `grpc`: a call of the engine's gRPC door, whose messages are known by reflection."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import grpc
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from headgate.testing.context import Action, Deadline, GiveUp, Invocation, SpecContext
from headgate.testing.errors import Mismatch, StepFailed
from headgate.testing.notation import Json, read_json, write_json
from headgate.testing.protobuf_records import message_from_json, message_to_json

DIAGNOSTIC = "headgate-diagnostic-bin"
_CHECK = re.compile(r"(status|code|contains|trailer [\w-]+): ?(.*)")


@dataclass(frozen=True, slots=True)
class Expected:
    """The messages that must come, or how the call must fail; and what trailers must contain."""

    messages: tuple[Json, ...]
    failure: Mapping[str, tuple[str, ...]]
    trailers: tuple[tuple[str, str], ...]


def grpc_call(call: Invocation, context: SpecContext) -> None:
    """`grpc`: call a method, and compare the messages that it returns, in any order."""
    service, _, method = call.positional[0].rpartition("/")
    if not service:
        raise call.wrong("takes package.Service/Method")
    sent = read_json(call.optional("json") or "{}")
    expected = _expected(call, context.fill(call.body))

    def attempt(deadline: Deadline) -> None:
        client = context.engine.client
        metadata = (
            ("authorization", f"Bearer {client.token if (given := call.optional('token')) is None else given}"),
        )
        with grpc.insecure_channel(client.grpc, options=[("grpc.enable_http_proxy", 0)]) as channel:
            _attempt(channel, metadata, (service, method), sent, expected, max(1.0, deadline.left))

    context.eventually(attempt)


def _expected(call: Invocation, lines: tuple[str, ...]) -> Expected:
    failure: dict[str, tuple[str, ...]] = {}
    messages, trailers = list[Json](), list[tuple[str, str]]()
    for line in lines:
        found = _CHECK.fullmatch(line.rstrip())
        if found is None:
            messages.append(_comparable(read_json(line)))
        elif found[1].startswith("trailer "):
            trailers.append((found[1].removeprefix("trailer "), found[2]))
        else:
            failure[found[1]] = (*failure.get(found[1], ()), found[2])
    if failure and messages:
        raise call.wrong("takes messages or what the failure contains, not both")
    return Expected(tuple(messages), failure, tuple(trailers))


def _attempt(
    channel: grpc.Channel, metadata: Any, named: tuple[str, str], sent: Json, expected: Expected, timeout: float
) -> None:
    try:
        method = _method(channel, metadata, *named, timeout)
        running = channel.unary_stream(
            f"/{named[0]}/{named[1]}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )(message_from_json(method.input_type, sent), metadata=metadata, timeout=timeout)
        messages = [_comparable(message_to_json(message)) for message in running]
    except grpc.RpcError as error:
        _check_failure(error, expected)
        return
    if expected.failure:
        raise Mismatch("the call did not fail", _lines(expected), tuple(map(write_json, messages)))
    left = list(messages)
    for one in expected.messages:
        if one in left:
            left.remove(one)
    if left or len(messages) != len(expected.messages):
        raise Mismatch("the messages are not the expected ones", _lines(expected), tuple(map(write_json, messages)))
    trailers = {key: str(value) for key, value in running.trailing_metadata() or ()}
    for name, text in expected.trailers:
        if text not in trailers.get(name, ""):
            raise Mismatch(f'the trailer "{name}" is not the expected one', (text,), (trailers.get(name, "none"),))


def _check_failure(error: Any, expected: Expected) -> None:
    details = str(error.details())
    trailers = dict(error.trailing_metadata() or ())
    told = read_json(trailers[DIAGNOSTIC].decode()) if DIAGNOSTIC in trailers else None
    code = told.get("code") if isinstance(told, dict) else None
    actual = (f"status: {error.code().name}", f"code: {code}", *details.splitlines())
    found = {"status": [error.code().name], "code": [str(code)]}
    for part, texts in expected.failure.items():
        for text in texts:
            if not (text in details if part == "contains" else text in found[part]):
                raise Mismatch("the call failed in another way", _lines(expected), actual)
    if not expected.failure:
        raise StepFailed("the call failed", "\n".join(actual))


def _lines(expected: Expected) -> tuple[str, ...]:
    checks = tuple(f"{part}: {text}" for part, texts in expected.failure.items() for text in texts)
    return (*map(write_json, expected.messages), *checks)


def _method(channel: grpc.Channel, metadata: Any, service: str, method: str, timeout: float) -> MethodDescriptor:
    """A method as reflection describes it."""
    asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=service)
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    (answer,) = stub.ServerReflectionInfo(iter([asked]), metadata=metadata, timeout=timeout)
    if answer.HasField("error_response"):
        raise StepFailed(f'the engine has no service "{service}"', answer.error_response.error_message)
    pool = DescriptorPool()
    for file in _in_order([pb.FileDescriptorProto.FromString(one) for one in answer.file_descriptor_response.file_descriptor_proto]):  # fmt: skip
        pool.Add(file)
    found = pool.FindServiceByName(service).methods_by_name.get(method)
    if found is None:
        raise GiveUp(StepFailed(f'service "{service}" has no method "{method}"'))
    return found


def _in_order(files: list[pb.FileDescriptorProto]) -> Iterator[pb.FileDescriptorProto]:
    """Each file after those that it imports."""
    by_name = {file.name: file for file in files}
    done: set[str] = set()

    def add(name: str) -> Iterator[pb.FileDescriptorProto]:
        if name in done or name not in by_name:
            return
        done.add(name)
        for dependency in by_name[name].dependency:
            yield from add(dependency)
        yield by_name[name]

    for file in files:
        yield from add(file.name)


def _comparable(value: Json) -> Json:
    """A member that is null equals one that is absent, and a number is the one that its shortest text says."""
    match value:
        case dict():
            return {name: _comparable(member) for name, member in value.items() if member is not None}
        case list():
            return [_comparable(one) for one in value]
        case float() if math.isfinite(value):
            return Decimal(repr(value))
        case _:
            return value


ACTIONS = (Action("grpc", grpc_call, options=("json", "token"), positional=1, body="optional"),)
