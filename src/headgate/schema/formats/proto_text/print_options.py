"""Options as text: each as `name = value`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import UninterpretedOption
from google.protobuf.message import Message

from headgate.schema.formats.proto_text.cursor import Path
from headgate.schema.formats.proto_text.literals import escape, print_double, quote


def print_options(options: Message, uninterpreted: Iterable[UninterpretedOption]) -> list[tuple[Path, str]]:
    """Every option, with its path below the options message."""
    found = list(_print_fields(options, (), ""))
    for index, option in enumerate(uninterpreted):
        name = ".".join(
            f"({part.name_part})" if part.is_extension else part.name_part for part in option.name
        )
        found.append(((999, index), f"{name} = {_print_uninterpreted(option)}"))
    return found


def _print_fields(message: Message, path: Path, prefix: str) -> Iterator[tuple[Path, str]]:
    for field, value in message.ListFields():
        if field.name == "uninterpreted_option":
            continue
        here = (*path, field.number)
        name = prefix + (f"({field.full_name})" if field.is_extension else field.name)
        if field.is_repeated:
            for index, item in enumerate(value):
                yield (*here, index), f"{name} = {_print_value(field, item)}"
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not field.is_extension and value.ListFields():
            yield from _print_fields(value, here, f"{name}.")
        else:
            yield here, f"{name} = {_print_value(field, value)}"


def _print_value(field: FieldDescriptor, value: object) -> str:
    match value:
        case Message():
            text = text_format.MessageToString(value, as_one_line=True, as_utf8=True)
            return f"{{ {text} }}" if text else "{}"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case bytes():
            return f'"{escape(value)}"'
        case int() if field.enum_type is not None:
            symbol = field.enum_type.values_by_number.get(value)
            return symbol.name if symbol else str(value)
        case float():
            return print_double(value)
        case _:
            return str(value)


def _print_uninterpreted(option: UninterpretedOption) -> str:
    if option.HasField("identifier_value"):
        return option.identifier_value
    if option.HasField("positive_int_value"):
        return str(option.positive_int_value)
    if option.HasField("negative_int_value"):
        return str(option.negative_int_value) if option.negative_int_value else "-0"
    if option.HasField("double_value"):
        return _print_double(option.double_value)
    if option.HasField("string_value"):
        return f'"{escape(option.string_value)}"'
    return f"{{{option.aggregate_value}}}"


def _print_double(value: float) -> str:
    """A double that is not read back as an integer."""
    text = print_double(value)
    if value != value:
        return "-nan"
    return text if "e" in text or "." in text or "inf" in text else f"{text}.0"
