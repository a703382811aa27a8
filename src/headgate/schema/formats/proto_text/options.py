"""Options: `option a.(b).c = value;` and `[a = value]`.

An option that descriptor.proto defines is set on the options message at once, as protoc does in the end. A custom
one, in parentheses, needs the file that defines it and is kept as `uninterpreted_option`, which prints back the same.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    EnumOptions,
    EnumValueOptions,
    ExtensionRangeOptions,
    FieldOptions,
    FileOptions,
    MessageOptions,
    MethodOptions,
    OneofOptions,
    ServiceOptions,
    UninterpretedOption,
)
from google.protobuf.message import Message

from headgate.errors import similar_names
from headgate.schema.formats.proto_text.cursor import Cursor, Path
from headgate.schema.formats.proto_text.errors import UnknownProtoOption
from headgate.schema.formats.proto_text.lexer import Kind, Token, skip_blank
from headgate.schema.formats.proto_text.literals import MAX_UINT64, integer

Options: TypeAlias = (
    FileOptions | MessageOptions | FieldOptions | OneofOptions | EnumOptions | EnumValueOptions
    | ExtensionRangeOptions | ServiceOptions | MethodOptions
)  # fmt: skip

_UNINTERPRETED = FileOptions.UNINTERPRETED_OPTION_FIELD_NUMBER
_INTEGER_BITS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


def parse_option_statement(cursor: Cursor, options: Options, path: Path) -> None:
    """`option name = value;`; `path` is that of the options message."""
    with cursor.place(path) as place:
        cursor.expect("option")
        place.path = parse_option(cursor, options, path)
        cursor.expect_end(";", place)


def parse_option_list(cursor: Cursor, options: Options, path: Path) -> None:
    """`[name = value, ...]`."""
    cursor.expect("[")
    parse_option(cursor, options, path)
    while cursor.accept(","):
        parse_option(cursor, options, path)
    cursor.expect("]")


def parse_option(cursor: Cursor, options: Options, path: Path) -> Path:
    """`name = value`. Gives the path of what was set."""
    start = cursor.peek
    option = UninterpretedOption(name=_parse_name(cursor))
    cursor.expect("=")
    value = cursor.peek
    _parse_value(cursor, option)
    if any(part.is_extension for part in option.name):
        options.uninterpreted_option.append(option)
        return (*path, _UNINTERPRETED, len(options.uninterpreted_option) - 1)
    return _interpret(cursor, options, option, start, value, path)


def _parse_name(cursor: Cursor) -> list[UninterpretedOption.NamePart]:
    parts = [_parse_name_part(cursor)]
    while cursor.accept("."):
        parts.append(_parse_name_part(cursor))
    return parts


def _parse_name_part(cursor: Cursor) -> UninterpretedOption.NamePart:
    if not cursor.accept("("):
        return UninterpretedOption.NamePart(name_part=cursor.identifier("an option name"), is_extension=False)
    name = cursor.type_name()
    cursor.expect(")")
    return UninterpretedOption.NamePart(name_part=name, is_extension=True)


def _parse_value(cursor: Cursor, option: UninterpretedOption) -> None:
    negative = cursor.accept("-")
    token = cursor.peek
    match token.kind:
        case Kind.IDENTIFIER if not negative:
            option.identifier_value = cursor.next().text
        case Kind.IDENTIFIER if token.text in ("inf", "nan"):
            option.double_value = -float(cursor.next().text)
        case Kind.INTEGER if integer(token.text) <= (2**63 if negative else MAX_UINT64):
            _set_integer(option, integer(cursor.next().text), negative)
        case Kind.FLOAT | Kind.INTEGER:
            number = cursor.float_number("a number")
            option.double_value = -number if negative else number
        case Kind.STRING if not negative:
            option.string_value = cursor.string("a string")
        case Kind.SYMBOL if token.text == "{" and not negative:
            option.aggregate_value = _parse_block(cursor)
        case _:
            cursor.fail("an option value")


def _set_integer(option: UninterpretedOption, value: int, negative: bool) -> None:
    if negative:
        option.negative_int_value = -value
    else:
        option.positive_int_value = value


def _parse_block(cursor: Cursor) -> str:
    """The text between braces, comments blanked out: text format has another kind of comment."""
    token = cursor.next()
    depth, text = 1, ""
    while depth:
        text += _blank(cursor.text[token.end : cursor.peek.start])
        token = cursor.peek
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind is Kind.SYMBOL else 0
        if token.kind is Kind.END:
            cursor.fail('"}"')
        text += token.text if depth else ""
        cursor.next()
    return text


def _blank(gap: str) -> str:
    if "/" not in gap:
        return gap
    return "".join(character if character.isspace() else " " for character in gap[: skip_blank(gap, 0)])


def _interpret(
    cursor: Cursor, options: Options, option: UninterpretedOption, start: Token, value: Token, path: Path
) -> Path:
    """Set the field of descriptor.proto that the option names."""
    target: Message = options
    for index, part in enumerate(option.name):
        field = cast(FieldDescriptor | None, target.DESCRIPTOR.fields_by_name.get(part.name_part))
        if field is None or field.number == _UNINTERPRETED:
            raise _unknown(cursor, start, option, target)
        path = (*path, field.number)
        if index == len(option.name) - 1:
            return _assign(cursor, target, field, option, value, path)
        if field.type != FieldDescriptor.TYPE_MESSAGE or field.is_repeated:
            cursor.fail(f'"{part.name_part}" to be a message', start)
        target = getattr(target, field.name)
    return path


def _unknown(
    cursor: Cursor, start: Token, option: UninterpretedOption, target: Message
) -> UnknownProtoOption:
    line, column = cursor.lines.position(start.start)
    name = ".".join(part.name_part for part in option.name)
    similar = similar_names(option.name[-1].name_part, target.DESCRIPTOR.fields_by_name)
    return UnknownProtoOption(line + 1, column + 1, name, similar)


def _assign(
    cursor: Cursor,
    target: Message,
    field: FieldDescriptor,
    option: UninterpretedOption,
    token: Token,
    path: Path,
) -> Path:
    if not field.is_repeated and target.HasField(field.name):
        cursor.fail(f'option "{field.name}" to be set once', token)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        holder = getattr(target, field.name)
        _merge(cursor, holder.add() if field.is_repeated else holder, option, token)
    elif field.is_repeated:
        getattr(target, field.name).append(_value(cursor, field, option, token))
    else:
        setattr(target, field.name, _value(cursor, field, option, token))
    return (*path, len(getattr(target, field.name)) - 1) if field.is_repeated else path


def _merge(cursor: Cursor, target: Message, option: UninterpretedOption, token: Token) -> None:
    if not option.HasField("aggregate_value"):
        cursor.fail("a value in braces", token)
    target.SetInParent()
    try:
        text_format.Merge(option.aggregate_value, target)
    except text_format.ParseError:
        cursor.fail(f'a value of type "{target.DESCRIPTOR.name}" in braces', token)


def _value(cursor: Cursor, field: FieldDescriptor, option: UninterpretedOption, token: Token) -> object:
    word = option.identifier_value
    if field.type == FieldDescriptor.TYPE_BOOL:
        if word not in ("true", "false"):
            cursor.fail("true or false", token)
        return word == "true"
    if field.enum_type is not None:
        symbol = field.enum_type.values_by_name.get(word)
        return (
            symbol.number
            if symbol
            else cursor.fail(f"one of {', '.join(field.enum_type.values_by_name)}", token)
        )
    if field.type == FieldDescriptor.TYPE_STRING:
        return _text(cursor, option, token)
    least, most = _INTEGER_BITS[field.type]
    number = option.negative_int_value if option.HasField("negative_int_value") else option.positive_int_value
    whole = option.HasField("negative_int_value") or option.HasField("positive_int_value")
    return number if whole and least <= number <= most else cursor.fail("an integer", token)


def _text(cursor: Cursor, option: UninterpretedOption, token: Token) -> str:
    if not option.HasField("string_value"):
        cursor.fail("a string", token)
    try:
        return option.string_value.decode()
    except UnicodeDecodeError:
        cursor.fail("a string of valid UTF-8", token)
