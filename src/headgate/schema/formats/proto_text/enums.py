"""`enum`."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import EnumDescriptorProto, EnumValueDescriptorProto

from headgate.schema.formats.proto_text.cursor import Cursor, Path
from headgate.schema.formats.proto_text.options import parse_option_list, parse_option_statement
from headgate.schema.formats.proto_text.ranges import parse_enum_reserved


def parse_enum(cursor: Cursor, enum: EnumDescriptorProto, path: Path) -> None:
    """`enum e { A = 0; ... }`."""
    with cursor.place(path) as place:
        cursor.expect("enum")
        enum.name = cursor.identifier("an enum name")
        cursor.expect_end("{", place)
        while not cursor.accept_end("}", None):
            _parse_statement(cursor, enum, path)


def _parse_statement(cursor: Cursor, enum: EnumDescriptorProto, path: Path) -> None:
    if cursor.accept_end(";", None):
        return
    if cursor.at("option"):
        parse_option_statement(cursor, enum.options, (*path, EnumDescriptorProto.OPTIONS_FIELD_NUMBER))
    elif cursor.at("reserved"):
        parse_enum_reserved(cursor, enum, path)
    else:
        _parse_value(
            cursor, enum.value.add(), (*path, EnumDescriptorProto.VALUE_FIELD_NUMBER, len(enum.value) - 1)
        )


def _parse_value(cursor: Cursor, value: EnumValueDescriptorProto, path: Path) -> None:
    with cursor.place(path) as place:
        value.name = cursor.identifier("the name of an enum value")
        cursor.expect("=", "the value's number")
        value.number = cursor.signed_number("an integer")
        if cursor.at("["):
            parse_option_list(cursor, value.options, (*path, EnumValueDescriptorProto.OPTIONS_FIELD_NUMBER))
        cursor.expect_end(";", place)
