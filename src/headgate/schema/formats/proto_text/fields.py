"""One field: label, type, name, number, default and JSON name. Maps and groups also make a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from headgate.schema.formats.proto_text.cursor import Cursor, Path, Place
from headgate.schema.formats.proto_text.lexer import Kind
from headgate.schema.formats.proto_text.literals import (
    escape,
    json_name,
    map_entry_name,
    print_double,
    print_float,
)
from headgate.schema.formats.proto_text.options import parse_option

SCALARS = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "fixed32": FieldDescriptorProto.TYPE_FIXED32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed32": FieldDescriptorProto.TYPE_SFIXED32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
}
_LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
}
_MOST = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), 2**31 - 1),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), 2**63 - 1),
    **dict.fromkeys(("uint32", "fixed32"), 2**32 - 1),
    **dict.fromkeys(("uint64", "fixed64"), 2**64 - 1),
}
_NAMES = {number: name for name, number in SCALARS.items()}

Messages = RepeatedCompositeFieldContainer[DescriptorProto]


@dataclass(frozen=True, slots=True)
class Home:
    """Where a field is declared: the messages beside it, their path, and how to read the body of a group."""

    messages: Messages
    path: Path
    parse_body: Callable[[Cursor, DescriptorProto, Place], None]


def parse_labelled_field(cursor: Cursor, field: FieldDescriptorProto, home: Home, path: Path) -> None:
    """A field of a message or of an `extend` block."""
    with cursor.place(path) as place:
        if cursor.at(*_LABELS) and not (cursor.syntax == "editions" and not cursor.at("repeated")):
            field.proto3_optional = cursor.syntax == "proto3" and cursor.at("optional")
            if not field.proto3_optional:
                field.ClearField("proto3_optional")
            field.label = _LABELS[cursor.next().text]
        elif cursor.at("optional", "required"):
            cursor.fail("a field without label, as editions have it")
        parse_field(cursor, field, home, place)


def parse_field(cursor: Cursor, field: FieldDescriptorProto, home: Home, place: Place) -> None:
    """From the type on; the label is known."""
    entry = _parse_type(cursor, field)
    name = cursor.peek
    field.name = cursor.identifier("a field name")
    cursor.expect("=", "the field's number")
    field.number = cursor.number("a field number")
    if cursor.at("["):
        _parse_field_options(cursor, field, place.path)
    if field.type == FieldDescriptorProto.TYPE_GROUP and field.HasField("type"):
        if not name.text[0].isupper():
            cursor.fail("a group name that starts with a capital letter", name)
        _parse_group(cursor, field, home, place)
    else:
        cursor.expect_end(";", place)
    if not field.HasField("json_name"):
        field.json_name = json_name(field.name)
    if entry is not None:
        _finish_map(field, entry, home.messages)


def _parse_type(cursor: Cursor, field: FieldDescriptorProto) -> DescriptorProto | None:
    """Sets type or type name; gives the entry message of a map."""
    if cursor.at("map"):
        word = cursor.next()
        if cursor.at("<"):
            if field.HasField("label") or field.HasField("extendee"):
                cursor.fail("a map without label, outside of oneof and extend", word)
            return _parse_map(cursor, field)
        field.type_name = _rest_of_type_name(cursor, "map")
    if not field.HasField("label"):
        if cursor.syntax == "proto2":
            cursor.fail('"required", "optional" or "repeated"')
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if not field.type_name:
        _set_type(cursor, field, group=True)
    return None


def _rest_of_type_name(cursor: Cursor, name: str) -> str:
    while cursor.accept("."):
        name += "." + cursor.identifier("an identifier")
    return name


def _set_type(cursor: Cursor, field: FieldDescriptorProto, *, group: bool) -> None:
    if cursor.peek.text in SCALARS and cursor.peek.kind is Kind.IDENTIFIER:
        field.type = SCALARS[cursor.next().text]
    elif cursor.at("group"):
        if cursor.syntax == "editions" or not group:
            cursor.fail("a type that is no group")
        cursor.next()
        field.type = FieldDescriptorProto.TYPE_GROUP
    else:
        field.type_name = cursor.type_name()


def _parse_map(cursor: Cursor, field: FieldDescriptorProto) -> DescriptorProto:
    field.label = FieldDescriptorProto.LABEL_REPEATED
    entry = DescriptorProto()
    entry.options.map_entry = True
    for number, (name, before) in enumerate((("key", "<"), ("value", ",")), 1):
        cursor.expect(before)
        part = entry.field.add(
            name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL, json_name=name
        )
        _set_type(cursor, part, group=False)
    cursor.expect(">")
    return entry


def _finish_map(field: FieldDescriptorProto, entry: DescriptorProto, messages: Messages) -> None:
    entry.name = field.type_name = map_entry_name(field.name)
    if field.options.HasField("features"):  # protoc copies them, so that nobody must know of maps
        for part in entry.field:
            part.options.features.CopyFrom(field.options.features)
    messages.append(entry)


def _parse_group(cursor: Cursor, field: FieldDescriptorProto, home: Home, place: Place) -> None:
    group = home.messages.add(name=field.name)
    field.type_name = group.name
    field.name = field.name.lower()
    if not cursor.at("{"):
        cursor.fail("the body of the group")
    with cursor.place((*home.path, len(home.messages) - 1)) as group_place:
        group_place.start = place.start
        home.parse_body(cursor, group, group_place)


def _parse_field_options(cursor: Cursor, field: FieldDescriptorProto, path: Path) -> None:
    cursor.expect("[")
    while True:
        if cursor.at("default"):
            _parse_default(cursor, field)
        elif cursor.at("json_name"):
            _parse_json_name(cursor, field)
        else:
            parse_option(cursor, field.options, (*path, FieldDescriptorProto.OPTIONS_FIELD_NUMBER))
        if not cursor.accept(","):
            break
    cursor.expect("]")


def _parse_json_name(cursor: Cursor, field: FieldDescriptorProto) -> None:
    if field.HasField("json_name"):
        cursor.fail('option "json_name" to be set once')
    cursor.next()
    cursor.expect("=")
    field.json_name = cursor.text_string("a string for the JSON name")


def _parse_default(cursor: Cursor, field: FieldDescriptorProto) -> None:
    if field.HasField("default_value"):
        cursor.fail('option "default" to be set once')
    cursor.next()
    cursor.expect("=")
    field.default_value = _default(cursor, _NAMES.get(field.type, "") if field.HasField("type") else None)


def _default(cursor: Cursor, scalar: str | None) -> str:
    """The default in the one form that descriptors have; without a scalar type it names an enum's value."""
    match scalar:
        case None:
            return cursor.identifier("the name of an enum value")
        case "float" | "double":
            sign = "-" if cursor.accept("-") else ""
            number = cursor.float_number("a number")
            return sign + (print_float(number) if scalar == "float" else print_double(number))
        case "bool":
            return cursor.next().text if cursor.at("true", "false") else cursor.fail("true or false")
        case "string":
            return cursor.text_string("a string")
        case "bytes":
            return escape(cursor.string("a string"))
        case "":
            return cursor.fail("no default for a message")
        case _:
            return _default_integer(cursor, scalar)


def _default_integer(cursor: Cursor, scalar: str) -> str:
    most = _MOST[scalar]
    if cursor.at("-") and not scalar.startswith(("uint", "fixed")):
        cursor.next()
        return str(-cursor.number("an integer", most + 1))
    return str(cursor.number("an integer", most))
