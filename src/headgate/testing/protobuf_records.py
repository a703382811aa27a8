"""Protobuf in the notation of specs: all fields under their own names, numbers as numbers, bytes as hex digits, enums by
name, dates and times in ISO form. A field that has presence and is not set is null, and null leaves it unset.

The library's own classes hold the values and check them. Its JSON is used for the messages that have one of their own;
for others it is not the notation, because it writes numbers of 64 bits as text and bytes in base64.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from headgate.errors import similar_names
from headgate.registry import wire
from headgate.registry.errors import RegistryError
from headgate.registry.schemas import ParsedSchema
from headgate.schema.formats.protobuf.read import link, message_indexes
from headgate.testing import notation
from headgate.testing.errors import InvalidRecord

_NANOS = 10**9
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_OF_THE_LIBRARY = frozenset(
    f"google.protobuf.{name}" for name in ("Duration", "Struct", "Value", "ListValue", "FieldMask", "Any")
)


class ProtobufCodec:
    """One registered file. A record names its message by its place in the file."""

    def __init__(self, parsed: ParsedSchema) -> None:
        self._file = link(cast(tuple[FileDescriptorProto, ...], parsed.definition))

    def encode(self, value: notation.Json, message: str | None = None) -> bytes:
        """The message with its place before it. ``message`` is its full name, or its name within the package; without
        one it is the first of the file. Raises InvalidRecord."""
        descriptor = self._message(message)
        made = _read_message(descriptor, value, "$")
        return wire.encode_message_indexes(message_indexes(descriptor)) + made.SerializeToString()

    def decode(self, data: bytes) -> notation.Json:
        """Raises InvalidRecord."""
        try:
            indexes, rest = wire.decode_message_indexes(data)
            return _write_message(GetMessageClass(self._at(indexes)).FromString(rest))
        except (DecodeError, IndexError, RegistryError) as error:
            raise InvalidRecord("$", f"the bytes are no such message ({error})") from error

    def _message(self, name: str | None) -> Descriptor:
        """The message of a name, with or without the package. Raises InvalidRecord with similar names."""
        known = _messages(self._file)
        if name is None:
            return next(iter(known.values()))
        package = f"{self._file.package}." if self._file.package else ""
        found = known.get(name) or known.get(package + name)
        if found is None:
            similar = ", ".join(similar_names(name, known))
            raise InvalidRecord("$", f'there is no message "{name}"' + (f", but {similar}" if similar else ""))
        return found

    def _at(self, indexes: tuple[int, ...]) -> Descriptor:
        found = list(self._file.message_types_by_name.values())[indexes[0]]
        for index in indexes[1:]:
            found = found.nested_types[index]
        return found


def _messages(file: FileDescriptor) -> Mapping[str, Descriptor]:
    """By full name, outer ones before those within them."""
    found: dict[str, Descriptor] = {}
    waiting = list(file.message_types_by_name.values())
    while waiting:
        one = waiting.pop(0)
        found[one.full_name] = one
        waiting.extend(one.nested_types)
    return found


# --- from the notation to a message


def message_from_json(descriptor: Descriptor, value: notation.Json) -> Message:
    """A message from its notation. Raises InvalidRecord with the path."""
    return _read_message(descriptor, value, "$")


def message_to_json(message: Message) -> notation.Json:
    """The notation of a message."""
    return _write_message(message)


def _read_message(descriptor: Descriptor, value: notation.Json, path: str) -> Message:
    """A message from its notation. Raises InvalidRecord with the path."""
    message = GetMessageClass(descriptor)()
    try:
        if _read_well_known(message, value):
            return message
    except (ValueError, TypeError, json_format.ParseError) as error:
        raise InvalidRecord(path, f"a value for {descriptor.full_name} is wanted") from error
    if not isinstance(value, dict):
        raise InvalidRecord(path, f"an object for message {descriptor.full_name} is wanted")
    for name, member in value.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            raise InvalidRecord(path, f'message {descriptor.full_name} has no field "{name}"')
        if member is not None:
            _set(message, field, member, f"{path}.{name}")
    return message


def _set(message: Message, field: FieldDescriptor, value: notation.Json, path: str) -> None:
    """Set one field. The library raises for a value of another kind or out of range."""
    try:
        if _is_map(field):
            _set_map(getattr(message, field.name), field, value, path)
        elif field.is_repeated:
            if not isinstance(value, list):
                raise InvalidRecord(path, "an array is wanted")
            items = [_read(field, item, f"{path}[{index}]") for index, item in enumerate(value)]
            getattr(message, field.name).extend(items)
        elif field.message_type is not None:
            child = getattr(message, field.name)
            child.CopyFrom(_read(field, value, path))
            child.SetInParent()
        else:
            setattr(message, field.name, _read(field, value, path))
    except (ValueError, TypeError) as error:
        raise InvalidRecord(path, "another kind of value is wanted") from error


def _set_map(target: Any, field: FieldDescriptor, value: notation.Json, path: str) -> None:
    if not isinstance(value, dict):
        raise InvalidRecord(path, "an object is wanted")
    key, inner = _entry(field)
    for name, member in value.items():
        read_key, read = _read_key(key, name), _read(inner, member, f"{path}.{name}")
        if isinstance(read, Message):
            target[read_key].CopyFrom(read)
        else:
            target[read_key] = read


def _read(field: FieldDescriptor, value: notation.Json, path: str) -> Any:
    """A message, or a scalar that the library still checks when it is set. Raises ValueError, too."""
    if field.message_type is not None:
        return _read_message(field.message_type, value, path)
    is_text = isinstance(value, str)
    match value:
        case bool() if field.cpp_type != FieldDescriptor.CPPTYPE_BOOL:
            raise ValueError("true and false are no numbers")
        case int() | float() if not isinstance(value, bool) and field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            raise ValueError("a number is neither true nor false")
        case Decimal() if field.cpp_type in _FLOATS:
            return float(value)
        case str() if field.cpp_type in _FLOATS and value in _SPECIAL:
            return float(value)
        case str() if field.type == FieldDescriptor.TYPE_BYTES:
            return bytes.fromhex(value)
        case _ if is_text and field.enum_type is not None and value not in field.enum_type.values_by_name:
            raise InvalidRecord(path, f"a value of enum {field.enum_type.full_name} is wanted")
        case _:
            return value


def _read_key(field: FieldDescriptor, name: str) -> Any:
    """The key of a map, which JSON has as text."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return name
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"true": True, "false": False}.get(name, name)
    return int(name)


def _read_well_known(message: Message, value: notation.Json) -> bool:
    """Set a message whose notation is a value of its own. False if the value is not in that notation."""
    name = message.DESCRIPTOR.full_name
    target: Any = message
    if name in _OF_THE_LIBRARY:
        json_format.ParseDict(json.loads(notation.write_json(value)), message, descriptor_pool=_pool(message))
        return True
    if isinstance(value, dict):
        return False
    match name, value:
        case "google.protobuf.Timestamp", str():
            target.seconds, target.nanos = divmod(notation.read_moment(value, _NANOS), _NANOS)
        case "google.type.Date", str():
            notation.read_date(value)
            target.year, target.month, target.day = map(int, value.split("-"))
        case "google.type.TimeOfDay", str():
            seconds, target.nanos = divmod(notation.read_time(value, _NANOS), _NANOS)
            target.hours, target.minutes, target.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
        case "google.type.Decimal", str():
            target.value = value
        case _ if name in _WRAPPERS:
            target.value = _read(_wrapped(message), value, "$")
        case _:
            return False
    return True


# --- from a message to the notation


def _write_message(message: Message) -> notation.Json:
    """The notation of a message. Well-known messages have one of their own."""
    source: Any = message
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            return notation.write_moment(source.seconds * _NANOS + source.nanos, _NANOS, "Z")
        case "google.type.Date" if source.year and source.month and source.day:
            return f"{source.year:04}-{source.month:02}-{source.day:02}"
        case "google.type.TimeOfDay":
            seconds = source.hours * 3600 + source.minutes * 60 + source.seconds
            return notation.write_time(seconds * _NANOS + source.nanos, _NANOS)
        case "google.type.Decimal":
            return str(source.value)
        case name if name in _WRAPPERS:
            return _write(_wrapped(message), source.value)
        case name if name in _OF_THE_LIBRARY:
            return notation.read_json(json.dumps(json_format.MessageToDict(message, descriptor_pool=_pool(message))))
        case _:
            fields = cast(list[FieldDescriptor], message.DESCRIPTOR.fields)
            return {field.name: _write_field(message, field) for field in fields}


def _write_field(message: Message, field: FieldDescriptor) -> notation.Json:
    """The notation of one field, None if it has presence and is not set."""
    value = getattr(message, field.name)
    if _is_map(field):
        _, inner = _entry(field)
        return {_write_key(key): _write(inner, value[key]) for key in value}
    if field.is_repeated:
        return [_write(field, item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _write(field, value)


def _write(field: FieldDescriptor, value: Any) -> notation.Json:
    if field.message_type is not None:
        return _write_message(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(value).hex()
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return int(value) if known is None else str(known.name)
    return notation.shortest_float(value) if field.type == FieldDescriptor.TYPE_FLOAT else cast(notation.Json, value)


def _write_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    assert field.message_type is not None
    return field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _wrapped(message: Message) -> FieldDescriptor:
    return cast(FieldDescriptor, message.DESCRIPTOR.fields_by_name["value"])


def _pool(message: Message) -> Any:
    """Where an Any finds its message. The library has two classes of pools, so the type is loose."""
    return message.DESCRIPTOR.file.pool
