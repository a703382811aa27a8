"""Protobuf in the notation of specs: all fields under their own names, numbers as numbers, bytes as hex digits, enums by
name, dates and times in ISO form. A field that has presence and is not set is null, and null leaves it unset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

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
from headgate.testing.codecs import protobuf_scalars, protobuf_well_known
from headgate.testing.errors import UnfitRecord
from headgate.testing.json_values import Json

_OWN_NAME = "headgate/testing/schema.proto"


class ProtobufCodec:
    """One registered file. A record names its message by its place in the file."""

    def __init__(self, parsed: ParsedSchema) -> None:
        others = [_named(one.name, one) for one in parsed.dependencies]
        own = _named(_OWN_NAME, parsed)
        self._file = _pool([*others, own]).FindFileByName(_OWN_NAME)

    def encode(self, value: Json, message: str | None = None) -> bytes:
        """The message with its place before it; the first one of the file unless ``message`` names another, by its
        full name or as it is called within the package. Raises UnfitRecord."""
        descriptor = self._message(message)
        made = _read_message(descriptor, value, "$")
        return wire.encode_message_indexes(_place(descriptor)) + made.SerializeToString()

    def decode(self, data: bytes) -> Json:
        """Raises UnfitRecord."""
        try:
            indexes, rest = wire.decode_message_indexes(data)
            descriptor = self._at(indexes)
            return _write_message(GetMessageClass(descriptor).FromString(rest))
        except (DecodeError, IndexError, RegistryError) as wrong:
            raise UnfitRecord("$", f"the bytes are no such message ({wrong})") from wrong

    def _message(self, name: str | None) -> Descriptor:
        known = _messages(self._file)
        if name is None:
            return next(iter(known.values()))
        package = f"{self._file.package}." if self._file.package else ""
        found = known.get(name) or known.get(package + name)
        if found is None:
            similar = ", ".join(similar_names(name, known))
            raise UnfitRecord("$", f'there is no message "{name}"' + (f", but {similar}" if similar else ""))
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
    if protobuf_well_known.read(message, value, path):
        return message
    if not isinstance(value, dict):
        raise UnfitRecord(path, f"an object for message {descriptor.full_name} is wanted")
    for name, member in value.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            raise UnfitRecord(path, f'message {descriptor.full_name} has no field "{name}"')
        if member is not None:
            _set(message, field, member, f"{path}.{name}")
    return message


def _set(message: Message, field: FieldDescriptor, value: Json, path: str) -> None:
    if _is_map(field):
        _set_map(message, field, value, path)
    elif field.is_repeated:
        if not isinstance(value, list):
            raise UnfitRecord(path, "an array is wanted")
        items = [_read_one(field, item, f"{path}[{index}]") for index, item in enumerate(value)]
        getattr(message, field.name).extend(items)
    elif field.message_type is not None:
        child = getattr(message, field.name)
        child.CopyFrom(_read_message(field.message_type, value, path))
        child.SetInParent()
    else:
        setattr(message, field.name, protobuf_scalars.read(field, value, path))


def _set_map(message: Message, field: FieldDescriptor, value: Json, path: str) -> None:
    if not isinstance(value, dict):
        raise UnfitRecord(path, "an object is wanted")
    key, inner = _entry(field)
    target = getattr(message, field.name)
    for name, member in value.items():
        read = _read_one(inner, member, f"{path}.{name}")
        if isinstance(read, Message):
            target[protobuf_scalars.read_key(key, name, path)].CopyFrom(read)
        else:
            target[protobuf_scalars.read_key(key, name, path)] = read


def _read_one(field: FieldDescriptor, value: Json, path: str) -> Any:
    if field.message_type is not None:
        return _read_message(field.message_type, value, path)
    return protobuf_scalars.read(field, value, path)


# --- a message to JSON


def _write_message(message: Message) -> Json:
    known = protobuf_well_known.write(message)
    if known is not None:
        return known[0]
    return {
        field.name: _write_field(message, cast(FieldDescriptor, field)) for field in message.DESCRIPTOR.fields
    }


def _write_field(message: Message, field: FieldDescriptor) -> Json:
    if _is_map(field):
        _, inner = _entry(field)
        found = getattr(message, field.name)
        return {protobuf_scalars.write_key(key): _write_one(inner, found[key]) for key in found}
    if field.is_repeated:
        return [_write_one(field, item) for item in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _write_one(field, getattr(message, field.name))


def _write_one(field: FieldDescriptor, value: Any) -> Json:
    return _write_message(value) if field.message_type is not None else protobuf_scalars.write(field, value)


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    assert field.message_type is not None
    return field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
