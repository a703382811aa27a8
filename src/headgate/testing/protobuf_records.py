"""Protobuf's scalars and enums in the notation of specs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from headgate.errors import similar_names
from headgate.registry import wire
from headgate.registry.errors import RegistryError
from headgate.registry.schemas import ParsedSchema
from headgate.schema.formats.proto_text import resolve
from headgate.schema.formats.proto_text.well_known import well_known
from headgate.testing import notation
from headgate.testing.avro_records import shortest_float
from headgate.testing.errors import InvalidRecord
from headgate.testing.notation import Json, read_json, write_json

_SPECIAL = ("NaN", "Infinity", "-Infinity")
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}


def read_scalar(field: FieldDescriptor, value: Json, path: str) -> Any:
    """What the message's field takes. Raises InvalidRecord."""
    kind = field.cpp_type
    match value:
        case bool() if kind == FieldDescriptor.CPPTYPE_BOOL:
            return value
        case int() if kind in _RANGES and not isinstance(value, bool):
            low, high = _RANGES[kind]
            if low <= value < high:
                return value
        case int() | float() | Decimal() if kind in _FLOATS and not isinstance(value, bool):
            return float(value)
        case str() if kind in _FLOATS and value in _SPECIAL:
            return float(value)
        case str() if field.type == FieldDescriptor.TYPE_BYTES:
            return _bytes(value, path)
        case str() if field.type == FieldDescriptor.TYPE_STRING:
            return value
        case str() | int() if field.enum_type is not None and not isinstance(value, bool):
            return _symbol(field, value, path)
    raise InvalidRecord(path, "another kind of value is wanted")


def write_scalar(field: FieldDescriptor, value: Any) -> Json:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(value).hex()
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return int(value) if known is None else str(known.name)
    if field.type == FieldDescriptor.TYPE_FLOAT:
        return shortest_float(value)
    return value  # type: ignore[no-any-return]


def read_key(field: FieldDescriptor, name: str, path: str) -> Any:
    """A key of a map, which JSON has as text."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and name in ("true", "false"):
        return name == "true"
    if field.cpp_type in _RANGES:
        try:
            return read_scalar(field, int(name), path)
        except ValueError as error:
            raise InvalidRecord(path, "a number is wanted for a key") from error
    return read_scalar(field, name, path)


def write_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


def _bytes(value: str, path: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError as error:
        raise InvalidRecord(path, "bytes are written as hex digits") from error


def _symbol(field: FieldDescriptor, value: str | int, path: str) -> int:
    if isinstance(value, int):
        return value
    assert field.enum_type is not None
    known = field.enum_type.values_by_name.get(value)
    if known is None:
        raise InvalidRecord(path, f"a value of enum {field.enum_type.full_name} is wanted")
    return int(known.number)


_NANOS = 10**9

# Protobuf's own library knows their JSON, which is the notation of specs; 64-bit wrappers are numbers all the same.
_OF_THE_LIBRARY = ("Duration", "Struct", "Value", "ListValue", "FieldMask", "Any")
_WRAPPERS = (
    "DoubleValue",
    "FloatValue",
    "Int64Value",
    "UInt64Value",
    "Int32Value",
    "UInt32Value",
    "BoolValue",
    "StringValue",
)


def read_well_known(message: Message, value: Json, path: str) -> bool:
    """Set the message where it is one of these and the value has its notation; whether that was so."""
    if isinstance(value, dict) and not _is_of_the_library(message):
        return False
    found: Any = message
    try:
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp" if isinstance(value, str):
                found.seconds, found.nanos = divmod(notation.read_moment(value, _NANOS), _NANOS)
            case "google.type.Date" if isinstance(value, str):
                found.year, found.month, found.day = map(int, value.split("-"))
                notation.read_date(value)
            case "google.type.TimeOfDay" if isinstance(value, str):
                _set_time(found, notation.read_time(value, _NANOS))
            case "google.type.Decimal" if isinstance(value, str):
                found.value = value
            case name if _simple(name) in _WRAPPERS:
                found.value = (
                    bytes.fromhex(value) if name.endswith("BytesValue") and isinstance(value, str) else value
                )
                found.SetInParent()
            case "google.protobuf.BytesValue" if isinstance(value, str):
                found.value = bytes.fromhex(value)
            case _ if _is_of_the_library(message):
                json_format.ParseDict(
                    json.loads(write_json(value)), message, descriptor_pool=_pool_of(message)
                )
            case _:
                return False
    except (ValueError, TypeError, json_format.ParseError) as error:
        raise InvalidRecord(path, f"a value for {message.DESCRIPTOR.full_name} is wanted") from error
    return True


def write_well_known(message: Message) -> tuple[Json] | None:
    """The value in its notation; None for messages that have none of their own."""
    found: Any = message
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            return (notation.write_moment(found.seconds * _NANOS + found.nanos, _NANOS, "Z"),)
        case "google.type.Date" if found.year and found.month and found.day:
            return (f"{found.year:04}-{found.month:02}-{found.day:02}",)
        case "google.type.TimeOfDay":
            seconds = found.hours * 3600 + found.minutes * 60 + found.seconds
            return (notation.write_time(seconds * _NANOS + found.nanos, _NANOS),)
        case "google.type.Decimal":
            return (str(found.value),)
        case "google.protobuf.BytesValue":
            return (bytes(found.value).hex(),)
        case name if _simple(name) in _WRAPPERS:
            return (found.value,)
        case _ if _is_of_the_library(message):
            told = json_format.MessageToDict(message, descriptor_pool=_pool_of(message))
            return (read_json(json.dumps(told)),)
        case _:
            return None


def _simple(name: str) -> str:
    return name.removeprefix("google.protobuf.") if name.startswith("google.protobuf.") else ""


def _is_of_the_library(message: Message) -> bool:
    return _simple(message.DESCRIPTOR.full_name) in _OF_THE_LIBRARY


def _pool_of(message: Message) -> Any:
    """Where an Any finds its message. Annotated loosely: the library has two classes of pools."""
    return message.DESCRIPTOR.file.pool


def _set_time(message: Any, nanos: int) -> None:
    seconds, message.nanos = divmod(nanos, _NANOS)
    message.hours, message.minutes, message.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60


_OWN_NAME = "headgate/testing/schema.proto"


class ProtobufCodec:
    """One registered file. A record names its message by its place in the file."""

    def __init__(self, parsed: ParsedSchema) -> None:
        others = [_named(one.name, one) for one in parsed.dependencies]
        own = _named(_OWN_NAME, parsed)
        self._file = _pool([*others, own]).FindFileByName(_OWN_NAME)

    def encode(self, value: Json, message: str | None = None) -> bytes:
        """The message with its place before it; the first one of the file unless ``message`` names another, by its
        full name or as it is called within the package. Raises InvalidRecord."""
        descriptor = self._message(message)
        made = _read_message(descriptor, value, "$")
        return wire.encode_message_indexes(_place(descriptor)) + made.SerializeToString()

    def decode(self, data: bytes) -> Json:
        """Raises InvalidRecord."""
        try:
            indexes, rest = wire.decode_message_indexes(data)
            descriptor = self._at(indexes)
            return _write_message(GetMessageClass(descriptor).FromString(rest))
        except (DecodeError, IndexError, RegistryError) as error:
            raise InvalidRecord("$", f"the bytes are no such message ({error})") from error

    def _message(self, name: str | None) -> Descriptor:
        known = _messages(self._file)
        if name is None:
            return next(iter(known.values()))
        package = f"{self._file.package}." if self._file.package else ""
        found = known.get(name) or known.get(package + name)
        if found is None:
            similar = ", ".join(similar_names(name, known))
            raise InvalidRecord(
                "$", f'there is no message "{name}"' + (f", but {similar}" if similar else "")
            )
        return found

    def _at(self, indexes: tuple[int, ...]) -> Descriptor:
        found = list(self._file.message_types_by_name.values())[indexes[0]]
        for index in indexes[1:]:
            found = found.nested_types[index]
        return found


def _named(name: str, parsed: ParsedSchema) -> FileDescriptorProto:
    file = FileDescriptorProto()
    file.CopyFrom(cast(FileDescriptorProto, parsed.definition))
    file.name = name
    file.ClearField("source_code_info")
    return file


def _pool(files: list[FileDescriptorProto]) -> DescriptorPool:
    """``files`` come after what they import, but for the well-known ones."""
    pool, added = DescriptorPool(), set[str]()

    def add(file: FileDescriptorProto) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for name in file.dependency:
            if name in well_known():
                add(well_known()[name])
        pool.Add(resolve(file, files))

    for file in files:
        add(file)
    return pool


def _messages(file: FileDescriptor) -> Mapping[str, Descriptor]:
    """By full name, outer ones before those within them."""
    found: dict[str, Descriptor] = {}
    waiting = list(file.message_types_by_name.values())
    while waiting:
        one = waiting.pop(0)
        found[one.full_name] = one
        waiting.extend(one.nested_types)
    return found


def _place(descriptor: Descriptor) -> tuple[int, ...]:
    outer = descriptor.containing_type
    if outer is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    return (*_place(outer), [one.name for one in outer.nested_types].index(descriptor.name))


# --- JSON to a message


def _read_message(descriptor: Descriptor, value: Json, path: str) -> Message:
    message = GetMessageClass(descriptor)()
    if read_well_known(message, value, path):
        return message
    if not isinstance(value, dict):
        raise InvalidRecord(path, f"an object for message {descriptor.full_name} is wanted")
    for name, member in value.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            raise InvalidRecord(path, f'message {descriptor.full_name} has no field "{name}"')
        if member is not None:
            _set(message, field, member, f"{path}.{name}")
    return message


def _set(message: Message, field: FieldDescriptor, value: Json, path: str) -> None:
    if _is_map(field):
        _set_map(message, field, value, path)
    elif field.is_repeated:
        if not isinstance(value, list):
            raise InvalidRecord(path, "an array is wanted")
        items = [_read_one(field, item, f"{path}[{index}]") for index, item in enumerate(value)]
        getattr(message, field.name).extend(items)
    elif field.message_type is not None:
        child = getattr(message, field.name)
        child.CopyFrom(_read_message(field.message_type, value, path))
        child.SetInParent()
    else:
        setattr(message, field.name, read_scalar(field, value, path))


def _set_map(message: Message, field: FieldDescriptor, value: Json, path: str) -> None:
    if not isinstance(value, dict):
        raise InvalidRecord(path, "an object is wanted")
    key, inner = _entry(field)
    target = getattr(message, field.name)
    for name, member in value.items():
        read = _read_one(inner, member, f"{path}.{name}")
        if isinstance(read, Message):
            target[read_key(key, name, path)].CopyFrom(read)
        else:
            target[read_key(key, name, path)] = read


def _read_one(field: FieldDescriptor, value: Json, path: str) -> Any:
    if field.message_type is not None:
        return _read_message(field.message_type, value, path)
    return read_scalar(field, value, path)


# --- a message to JSON


def _write_message(message: Message) -> Json:
    known = write_well_known(message)
    if known is not None:
        return known[0]
    return {
        field.name: _write_field(message, cast(FieldDescriptor, field)) for field in message.DESCRIPTOR.fields
    }


def _write_field(message: Message, field: FieldDescriptor) -> Json:
    if _is_map(field):
        _, inner = _entry(field)
        found = getattr(message, field.name)
        return {write_key(key): _write_one(inner, found[key]) for key in found}
    if field.is_repeated:
        return [_write_one(field, item) for item in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _write_one(field, getattr(message, field.name))


def _write_one(field: FieldDescriptor, value: Any) -> Json:
    return _write_message(value) if field.message_type is not None else write_scalar(field, value)


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    assert field.message_type is not None
    return field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
