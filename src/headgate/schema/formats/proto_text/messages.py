"""`message`, `oneof` and `extend`."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, SymbolVisibility
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from headgate.schema.formats.proto_text.cursor import Cursor, Path, Place
from headgate.schema.formats.proto_text.enums import parse_enum
from headgate.schema.formats.proto_text.errors import ProtoTooDeep
from headgate.schema.formats.proto_text.fields import Home, parse_field, parse_labelled_field
from headgate.schema.formats.proto_text.options import parse_option_statement
from headgate.schema.formats.proto_text.ranges import close_ranges, parse_extensions, parse_reserved

MAX_DEPTH = 31  # protoc's own limit, which keeps its stack and ours small


def parse_message(cursor: Cursor, message: DescriptorProto, path: Path) -> None:
    """`message m { ... }`."""
    with cursor.place(path) as place:
        cursor.expect("message")
        message.name = cursor.identifier("a message name")
        parse_body(cursor, message, place)


def parse_extend(
    cursor: Cursor, extensions: RepeatedCompositeFieldContainer[FieldDescriptorProto], home: Home, path: Path
) -> None:
    """`extend m { ... }`; `path` is that of the list of extensions."""
    with cursor.place(path) as place:
        cursor.expect("extend")
        extendee = cursor.type_name()
        cursor.expect_end("{", place)
        while True:
            field = extensions.add(extendee=extendee)
            parse_labelled_field(cursor, field, home, (*path, len(extensions) - 1))
            if cursor.accept_end("}", None):
                return


def parse_visibility(cursor: Cursor) -> SymbolVisibility.ValueType | None:
    """`export` or `local` before a message or an enum, since edition 2024."""
    if cursor.edition <= 1000 or not cursor.at("export", "local"):
        return None
    exported = cursor.next().text == "export"
    if not cursor.at("message", "enum"):
        cursor.fail('"message" or "enum"')
    return SymbolVisibility.VISIBILITY_EXPORT if exported else SymbolVisibility.VISIBILITY_LOCAL


def parse_body(cursor: Cursor, message: DescriptorProto, place: Place) -> None:
    if cursor.depth >= MAX_DEPTH:
        line, column = cursor.lines.position(place.start)
        raise ProtoTooDeep(line + 1, column + 1, MAX_DEPTH)
    cursor.depth += 1
    cursor.expect_end("{", place)
    while not cursor.accept_end("}", None):
        _parse_statement(cursor, message, place.path)
    cursor.depth -= 1
    close_ranges(message)
    if cursor.syntax == "proto3":
        add_synthetic_oneofs(message)


def _parse_statement(cursor: Cursor, message: DescriptorProto, path: Path) -> None:
    if cursor.accept_end(";", None):
        return
    visibility = parse_visibility(cursor)
    home = Home(message.nested_type, (*path, DescriptorProto.NESTED_TYPE_FIELD_NUMBER), parse_body)
    match cursor.peek.text:
        case "message":
            nested = message.nested_type.add(visibility=visibility)
            parse_message(cursor, nested, (*home.path, len(message.nested_type) - 1))
        case "enum":
            enum = message.enum_type.add(visibility=visibility)
            enum_path = (*path, DescriptorProto.ENUM_TYPE_FIELD_NUMBER, len(message.enum_type) - 1)
            parse_enum(cursor, enum, enum_path)
        case "extensions":
            parse_extensions(cursor, message, path)
        case "reserved":
            parse_reserved(cursor, message, path)
        case "extend":
            parse_extend(cursor, message.extension, home, (*path, DescriptorProto.EXTENSION_FIELD_NUMBER))
        case "option":
            parse_option_statement(cursor, message.options, (*path, DescriptorProto.OPTIONS_FIELD_NUMBER))
            if message.options.map_entry:
                cursor.fail('"map<key, value>" instead of the option "map_entry"')
        case "oneof":
            _parse_oneof(cursor, message, home, path)
        case _:
            field_path = (*path, DescriptorProto.FIELD_FIELD_NUMBER, len(message.field))
            parse_labelled_field(cursor, message.field.add(), home, field_path)


def _parse_oneof(cursor: Cursor, message: DescriptorProto, home: Home, path: Path) -> None:
    index = len(message.oneof_decl)
    oneof = message.oneof_decl.add()
    with cursor.place((*path, DescriptorProto.ONEOF_DECL_FIELD_NUMBER, index)) as place:
        cursor.expect("oneof")
        oneof.name = cursor.identifier("a oneof name")
        cursor.expect_end("{", place)
        while not cursor.accept_end("}", None):
            if cursor.at("option"):
                parse_option_statement(cursor, oneof.options, (*place.path, 2))
            else:
                _parse_member(cursor, message, home, path, index)


def _parse_member(cursor: Cursor, message: DescriptorProto, home: Home, path: Path, oneof: int) -> None:
    if cursor.at("required", "optional", "repeated"):
        cursor.fail("a field without label, as a oneof has it")
    field = message.field.add(label=FieldDescriptorProto.LABEL_OPTIONAL, oneof_index=oneof)
    with cursor.place((*path, DescriptorProto.FIELD_FIELD_NUMBER, len(message.field) - 1)) as place:
        parse_field(cursor, field, home, place)


def add_synthetic_oneofs(message: DescriptorProto) -> None:
    """Presence of an optional proto3 field is a oneof of one, named so that it meets no other name."""
    names = {field.name for field in message.field} | {oneof.name for oneof in message.oneof_decl}
    for field in message.field:
        if field.proto3_optional:
            name = field.name if field.name.startswith("_") else f"_{field.name}"
            while name in names:
                name = "X" + name
            names.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)
