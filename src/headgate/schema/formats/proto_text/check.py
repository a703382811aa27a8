"""The rules of the language that a text can break and still be read. All findings are raised at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headgate.errors import raise_all
from headgate.schema.formats.proto_text.errors import InvalidProto
from headgate.schema.formats.proto_text.literals import json_name
from headgate.schema.formats.proto_text.ranges import MAX_FIELD_NUMBER
from headgate.schema.formats.proto_text.symbols import Symbol, symbols_of

_F = FieldDescriptorProto
_MAP_KEYS = frozenset(range(1, 19)) - {
    _F.TYPE_DOUBLE, _F.TYPE_FLOAT, _F.TYPE_GROUP, _F.TYPE_MESSAGE, _F.TYPE_BYTES, _F.TYPE_ENUM,
}  # fmt: skip
_UNPACKABLE = frozenset((_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE, _F.TYPE_GROUP))


def check_file(file: FileDescriptorProto) -> None:
    """Check a resolved file. Raises `InvalidProto`, or several of it together."""
    raise_all(_problems(file))


def _problems(file: FileDescriptorProto) -> Iterator[InvalidProto]:
    counts = Counter(name for name, symbol in symbols_of(file) if symbol is not Symbol.PACKAGE)
    for name, count in counts.items():
        if count > 1:
            yield InvalidProto(name, "the name is defined twice")
    for name, count in Counter(file.dependency).items():
        if count > 1:
            yield InvalidProto(name, "the file is imported twice")
    scope = f"{file.package}." if file.package else ""
    for message in file.message_type:
        yield from _message(file, message, scope + message.name)
    for enum in file.enum_type:
        yield from _enum(file, enum, scope + enum.name)
    for extension in file.extension:
        yield from _field(file, extension, scope + extension.name)


def _message(file: FileDescriptorProto, message: DescriptorProto, path: str) -> Iterator[InvalidProto]:
    yield from _numbers(message, path)
    yield from _reserved_names(message, path)
    yield from _json_names(file, message, path)
    for field in (*message.field, *message.extension):
        yield from _field(file, field, f"{path}.{field.name}")
    used = {field.oneof_index for field in message.field if field.HasField("oneof_index")}
    for index, oneof in enumerate(message.oneof_decl):
        if index not in used:
            yield InvalidProto(f"{path}.{oneof.name}", "a oneof must have a field")
    if message.options.map_entry and message.field[0].type not in _MAP_KEYS:
        yield InvalidProto(path, "the key of a map is an integer, a bool or a string")
    for nested in message.nested_type:
        yield from _message(file, nested, f"{path}.{nested.name}")
    for enum in message.enum_type:
        yield from _enum(file, enum, f"{path}.{enum.name}")
    if file.syntax == "proto3" and message.extension_range:
        yield InvalidProto(path, "proto3 has no extension ranges")


def _numbers(message: DescriptorProto, path: str) -> Iterator[InvalidProto]:
    seen: dict[int, str] = {}
    for field in message.field:
        here = f"{path}.{field.name}"
        if field.number in seen:
            yield InvalidProto(here, f'number {field.number} is that of field "{seen[field.number]}"')
        seen.setdefault(field.number, field.name)
        if any(found.start <= field.number < found.end for found in message.reserved_range):
            yield InvalidProto(here, f"number {field.number} is reserved")
        if any(found.start <= field.number < found.end for found in message.extension_range):
            yield InvalidProto(here, f"number {field.number} is in a range of extensions")
    ranges = [(found.start, found.end) for found in message.reserved_range]
    ranges += [(found.start, found.end) for found in message.extension_range]
    ranges.sort()
    for start, end in ranges:
        if start < 1 or end <= start:
            yield InvalidProto(path, f"range {start} to {end - 1} is empty or not positive")
    for (_, end), (start, _) in pairwise(ranges):
        if start < end:
            yield InvalidProto(path, f"ranges overlap at {start}")


def _reserved_names(message: DescriptorProto, path: str) -> Iterator[InvalidProto]:
    for name in _twice(message.reserved_name):
        yield InvalidProto(path, f'name "{name}" is reserved twice')
    for field in message.field:
        if field.name in message.reserved_name:
            yield InvalidProto(f"{path}.{field.name}", "the name is reserved")


def _json_names(file: FileDescriptorProto, message: DescriptorProto, path: str) -> Iterator[InvalidProto]:
    """Two fields of one JSON name, given by hand or derived. Old syntax and an option let pass what is derived."""
    features = message.options.features.json_format or file.options.features.json_format
    lenient = (
        not file.syntax
        or message.options.deprecated_legacy_json_field_conflicts
        or features == FeatureSet.LEGACY_BEST_EFFORT
    )
    derived = [] if lenient else [(field.name, json_name(field.name)) for field in message.field]
    given = [
        (field.name, field.json_name)
        for field in message.field
        if not lenient or field.json_name != json_name(field.name)
    ]
    for names in (derived, given):
        seen: dict[str, str] = {}
        for name, spelt in names:
            if spelt in seen:
                yield InvalidProto(f"{path}.{name}", f'JSON name "{spelt}" is that of "{seen[spelt]}"')
            seen.setdefault(spelt, name)


def _field(file: FileDescriptorProto, field: FieldDescriptorProto, path: str) -> Iterator[InvalidProto]:
    if not 1 <= field.number <= MAX_FIELD_NUMBER:
        yield InvalidProto(path, f"a field number is from 1 to {MAX_FIELD_NUMBER}")
    if 19000 <= field.number <= 19999:
        yield InvalidProto(path, "numbers 19000 to 19999 are reserved for protobuf itself")
    if field.options.packed and (field.label != _F.LABEL_REPEATED or field.type in _UNPACKABLE):
        yield InvalidProto(path, "only repeated numbers, bools and enums can be packed")
    if field.HasField("default_value") and (
        field.label == _F.LABEL_REPEATED or field.type in (_F.TYPE_MESSAGE, _F.TYPE_GROUP)
    ):
        yield InvalidProto(path, "a repeated field or a message has no default")
    if file.syntax == "proto3":
        yield from _proto3_field(field, path)


def _proto3_field(field: FieldDescriptorProto, path: str) -> Iterator[InvalidProto]:
    if field.label == _F.LABEL_REQUIRED:
        yield InvalidProto(path, "proto3 has no required fields")
    if field.HasField("default_value"):
        yield InvalidProto(path, "proto3 has no defaults")
    if field.type == _F.TYPE_GROUP:
        yield InvalidProto(path, "proto3 has no groups")
    if field.extendee and not field.extendee.startswith(".google.protobuf."):
        yield InvalidProto(path, "proto3 has extensions only for options")


def _enum(file: FileDescriptorProto, enum: EnumDescriptorProto, path: str) -> Iterator[InvalidProto]:
    if not enum.value:
        yield InvalidProto(path, "an enum must have a value")
    elif _is_open(file, enum) and enum.value[0].number != 0:
        yield InvalidProto(path, "the first value of an enum is 0, unless it is closed")
    seen: dict[int, str] = {}
    for value in enum.value:
        here = f"{path}.{value.name}"
        if value.number in seen and not enum.options.allow_alias:
            yield InvalidProto(here, f'number {value.number} is that of "{seen[value.number]}"')
        seen.setdefault(value.number, value.name)
        if any(found.start <= value.number <= found.end for found in enum.reserved_range):
            yield InvalidProto(here, f"number {value.number} is reserved")
        if value.name in enum.reserved_name:
            yield InvalidProto(here, "the name is reserved")


def _is_open(file: FileDescriptorProto, enum: EnumDescriptorProto) -> bool:
    """Enums are closed in proto2, open in proto3, and in editions as a feature says."""
    stated = enum.options.features.enum_type or file.options.features.enum_type
    return bool(file.syntax) and stated != FeatureSet.CLOSED


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
