"""`service` and `rpc`."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import MethodDescriptorProto, ServiceDescriptorProto

from headgate.schema.formats.proto_text.cursor import Cursor, Path
from headgate.schema.formats.proto_text.fields import SCALARS
from headgate.schema.formats.proto_text.options import parse_option_statement


def parse_service(cursor: Cursor, service: ServiceDescriptorProto, path: Path) -> None:
    """`service s { rpc ... }`."""
    with cursor.place(path) as place:
        cursor.expect("service")
        service.name = cursor.identifier("a service name")
        cursor.expect_end("{", place)
        while not cursor.accept_end("}", None):
            _parse_statement(cursor, service, path)


def _parse_statement(cursor: Cursor, service: ServiceDescriptorProto, path: Path) -> None:
    if cursor.accept_end(";", None):
        return
    if cursor.at("option"):
        parse_option_statement(cursor, service.options, (*path, ServiceDescriptorProto.OPTIONS_FIELD_NUMBER))
    else:
        method_path = (*path, ServiceDescriptorProto.METHOD_FIELD_NUMBER, len(service.method))
        _parse_method(cursor, service.method.add(), method_path)


def _parse_method(cursor: Cursor, method: MethodDescriptorProto, path: Path) -> None:
    with cursor.place(path) as place:
        cursor.expect("rpc")
        method.name = cursor.identifier("a method name")
        streaming, method.input_type = _parse_side(cursor)
        if streaming:
            method.client_streaming = True
        cursor.expect("returns")
        streaming, method.output_type = _parse_side(cursor)
        if streaming:
            method.server_streaming = True
        if cursor.accept_end(";", place):
            return
        method.options.SetInParent()  # braces alone leave empty options, as protoc has it
        cursor.expect_end("{", place)
        while not cursor.accept_end("}", None):
            if not cursor.accept_end(";", None):
                parse_option_statement(
                    cursor, method.options, (*path, MethodDescriptorProto.OPTIONS_FIELD_NUMBER)
                )


def _parse_side(cursor: Cursor) -> tuple[bool, str]:
    """`(stream m)`: whether a stream, and of what."""
    cursor.expect("(")
    streaming = cursor.accept("stream")
    if cursor.at(*SCALARS, "group"):
        cursor.fail("a message type")
    name = cursor.type_name()
    cursor.expect(")")
    return streaming, name
