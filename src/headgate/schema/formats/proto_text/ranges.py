"""`reserved` and `extensions`: ranges of numbers, and names nobody may use again."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from headgate.schema.formats.proto_text.cursor import Cursor, Path
from headgate.schema.formats.proto_text.lexer import Kind
from headgate.schema.formats.proto_text.literals import MAX_INT32
from headgate.schema.formats.proto_text.options import parse_option_list

MAX_FIELD_NUMBER = 2**29 - 1
_OPEN = -1  # `to max`: what it stands for depends on an option that may come later


def parse_extensions(cursor: Cursor, message: DescriptorProto, path: Path) -> None:
    """`extensions 4, 100 to max [options];`. The options belong to every range of the statement."""
    with cursor.place((*path, DescriptorProto.EXTENSION_RANGE_FIELD_NUMBER)) as place:
        cursor.expect("extensions")
        first = len(message.extension_range)
        while True:
            with cursor.place((*place.path, len(message.extension_range))):
                start, end = _parse_range(cursor, "a range of field numbers")
            message.extension_range.add(start=start, end=end)
            if not cursor.accept(","):
                break
        if cursor.at("["):
            options = message.extension_range[first].options
            parse_option_list(
                cursor, options, (*place.path, first, DescriptorProto.ExtensionRange.OPTIONS_FIELD_NUMBER)
            )
            for other in message.extension_range[first + 1 :]:
                other.options.CopyFrom(options)
        cursor.expect_end(";", place)


def parse_reserved(cursor: Cursor, message: DescriptorProto, path: Path) -> None:
    """`reserved 2, 9 to 11;` or `reserved "a", "b";` in a message."""
    _parse_reserved(cursor, message, path, lambda: _parse_range(cursor, "a field name or a range of numbers"))


def parse_enum_reserved(cursor: Cursor, enum: EnumDescriptorProto, path: Path) -> None:
    """Likewise in an enum, where ranges may be negative and hold their end."""
    _parse_reserved(cursor, enum, path, lambda: _parse_enum_range(cursor))


def _parse_reserved(
    cursor: Cursor,
    owner: DescriptorProto | EnumDescriptorProto,
    path: Path,
    parse_range: Callable[[], tuple[int, int]],
) -> None:
    start = cursor.expect("reserved")
    if cursor.peek.kind in (Kind.STRING, Kind.IDENTIFIER):
        with cursor.place((*path, type(owner).RESERVED_NAME_FIELD_NUMBER), start) as place:
            _parse_names(cursor, owner.reserved_name, place.path)
            cursor.expect_end(";", place)
        return
    with cursor.place((*path, type(owner).RESERVED_RANGE_FIELD_NUMBER), start) as place:
        while True:
            with cursor.place((*place.path, len(owner.reserved_range))):
                first, end = parse_range()
            owner.reserved_range.add(start=first, end=end)
            if not cursor.accept(","):
                break
        cursor.expect_end(";", place)


def close_ranges(message: DescriptorProto) -> None:
    """Give `to max` its number, now that the message's options are known."""
    end = MAX_INT32 if message.options.message_set_wire_format else MAX_FIELD_NUMBER + 1
    for extensions in message.extension_range:
        extensions.end = end if extensions.end == _OPEN else extensions.end
    for reserved in message.reserved_range:
        reserved.end = end if reserved.end == _OPEN else reserved.end


def _parse_range(cursor: Cursor, expected: str) -> tuple[int, int]:
    """First number and the one after the last."""
    start = cursor.number(expected, MAX_INT32 - 1)
    if not cursor.accept("to"):
        return start, start + 1
    if cursor.accept("max"):
        return start, _OPEN
    return start, cursor.number("an integer", MAX_INT32 - 1) + 1


def _parse_enum_range(cursor: Cursor) -> tuple[int, int]:
    """First number and last."""
    first = last = cursor.signed_number("a value's name or a range of numbers")
    if cursor.accept("to"):
        last = MAX_INT32 if cursor.accept("max") else cursor.signed_number("an integer")
    return first, last


def _parse_names(cursor: Cursor, names: MutableSequence[str], path: Path) -> None:
    """Strings before editions, identifiers since."""
    while True:
        with cursor.place((*path, len(names))):
            if cursor.syntax == "editions":
                names.append(cursor.identifier("the name as an identifier"))
            else:
                names.append(cursor.text_string("the name as a string"))
        if not cursor.accept(","):
            return
