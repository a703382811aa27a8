"""A whole file: the first line, package, imports, and what each further statement is."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto

from headgate.schema.formats.proto_text.cursor import Cursor
from headgate.schema.formats.proto_text.enums import parse_enum
from headgate.schema.formats.proto_text.fields import Home
from headgate.schema.formats.proto_text.messages import (
    parse_body,
    parse_extend,
    parse_message,
    parse_visibility,
)
from headgate.schema.formats.proto_text.options import parse_option_statement
from headgate.schema.formats.proto_text.services import parse_service

_FILE = FileDescriptorProto


def parse_proto(text: str) -> FileDescriptorProto:
    """The descriptor of a .proto text, without a name.

    As protoc's parser makes it: type names as written and, where a type is named, no type yet (`resolve` adds it);
    JSON names, map entries and synthetic oneofs filled in; options of descriptor.proto set, custom ones kept as
    `uninterpreted_option`; every declaration with its comments in `source_code_info`. A file without a first line
    is proto2. Raises `MalformedProto`, `UnknownProtoOption` or `ProtoTooDeep`.
    """
    cursor = Cursor(text)
    file = FileDescriptorProto()
    with cursor.place(()):
        if cursor.at("syntax", "edition"):
            _parse_syntax(cursor, file)
        while cursor.peek.text or cursor.peek.start < len(cursor.text):
            _parse_statement(cursor, file)
    file.source_code_info.CopyFrom(cursor.source_code_info())
    return file


def _parse_syntax(cursor: Cursor, file: FileDescriptorProto) -> None:
    with cursor.place((_FILE.SYNTAX_FIELD_NUMBER,)) as place:
        word = cursor.next().text
        cursor.expect("=")
        token = cursor.peek
        version = cursor.text_string("a string naming the syntax")
        cursor.expect_end(";", place)
    if word == "edition":
        if f"EDITION_{version}" not in Edition.keys() or not version.isdigit():  # noqa: SIM118 (no mapping)
            cursor.fail("an edition that is known, such as 2023", token)
        file.edition = Edition.Value(f"EDITION_{version}")
        cursor.syntax, cursor.edition = "editions", file.edition
    elif version in ("proto2", "proto3"):
        cursor.syntax = version
    else:
        cursor.fail('"proto2" or "proto3"', token)
    if cursor.syntax != "proto2":  # the unwritten default, and so protoc writes it
        file.syntax = cursor.syntax


def _parse_statement(cursor: Cursor, file: FileDescriptorProto) -> None:
    if cursor.accept_end(";", None):
        return
    visibility = parse_visibility(cursor)
    match cursor.peek.text:
        case "message":
            message = file.message_type.add(visibility=visibility)
            parse_message(cursor, message, (_FILE.MESSAGE_TYPE_FIELD_NUMBER, len(file.message_type) - 1))
        case "enum":
            enum = file.enum_type.add(visibility=visibility)
            parse_enum(cursor, enum, (_FILE.ENUM_TYPE_FIELD_NUMBER, len(file.enum_type) - 1))
        case "service":
            service = file.service.add()
            parse_service(cursor, service, (_FILE.SERVICE_FIELD_NUMBER, len(file.service) - 1))
        case "extend":
            home = Home(file.message_type, (_FILE.MESSAGE_TYPE_FIELD_NUMBER,), parse_body)
            parse_extend(cursor, file.extension, home, (_FILE.EXTENSION_FIELD_NUMBER,))
        case "import":
            _parse_import(cursor, file)
        case "package":
            _parse_package(cursor, file)
        case "option":
            parse_option_statement(cursor, file.options, (_FILE.OPTIONS_FIELD_NUMBER,))
        case _:
            cursor.fail('a statement such as "message"')


def _parse_package(cursor: Cursor, file: FileDescriptorProto) -> None:
    if file.HasField("package"):
        cursor.fail("one package only")
    with cursor.place((_FILE.PACKAGE_FIELD_NUMBER,)) as place:
        cursor.expect("package")
        name = cursor.identifier("a package name")
        while cursor.accept("."):
            name += "." + cursor.identifier("an identifier")
        file.package = name
        cursor.expect_end(";", place)


def _parse_import(cursor: Cursor, file: FileDescriptorProto) -> None:
    with cursor.place((_FILE.DEPENDENCY_FIELD_NUMBER, len(file.dependency))) as place:
        cursor.expect("import")
        if cursor.at("option") and cursor.edition > Edition.EDITION_2023:
            cursor.next()
            place.path = (_FILE.OPTION_DEPENDENCY_FIELD_NUMBER, len(file.option_dependency))
            file.option_dependency.append(cursor.text_string("the name of the file to import"))
        else:
            _parse_dependency(cursor, file)
        cursor.expect_end(";", place)


def _parse_dependency(cursor: Cursor, file: FileDescriptorProto) -> None:
    if cursor.accept("public"):
        file.public_dependency.append(len(file.dependency))
    elif cursor.accept("weak"):
        file.weak_dependency.append(len(file.dependency))
    file.dependency.append(cursor.text_string("the name of the file to import"))
