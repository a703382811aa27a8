"""The files of a registered Protobuf schema: as descriptors, and as what Protobuf's library makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from headgate.errors import similar_names
from headgate.registry.parsing.protobuf import serialized_descriptor
from headgate.schema.formats.proto_text import parse_proto, resolve
from headgate.schema.formats.proto_text.errors import UnknownMessage
from headgate.schema.formats.proto_text.well_known import well_known

_OWN_NAME = "headgate/schema.proto"


def read_files(text: str, references: Iterable[tuple[str, str]] = ()) -> list[FileDescriptorProto]:
    """The file itself, and then those that it refers to, by the names that they are imported by."""
    return [_read(_OWN_NAME, text), *(_read(name, other) for name, other in references)]


def load_files(files: Sequence[FileDescriptorProto]) -> FileDescriptor:
    """The first of the files, linked. Raises what `resolve` raises."""
    by_name = {**well_known(), **{file.name: file for file in files}}
    pool, added = DescriptorPool(), set[str]()

    def add(name: str) -> None:
        if name in added or name not in by_name:
            return
        added.add(name)
        for imported in by_name[name].dependency:
            add(imported)
        linked = resolve(by_name[name], files)
        linked.ClearField("source_code_info")
        pool.Add(linked)

    add(files[0].name)
    return pool.FindFileByName(files[0].name)


def find_message(file: FileDescriptor, name: str | None) -> Descriptor:
    """By its full name or as it is called within the package; the first one unless it is named."""
    known = {one.full_name: one for one in _messages(file.message_types_by_name.values())}
    if name is None:
        if not known:
            raise UnknownMessage("")
        return next(iter(file.message_types_by_name.values()))
    package = f"{file.package}." if file.package else ""
    found = known.get(name.removeprefix(".")) or known.get(package + name)
    if found is None:
        raise UnknownMessage(name, similar_names(name, known))
    return found


def place_in_file(message: Descriptor) -> tuple[int, ...]:
    """The path of a message type in its file, as frames have it."""
    outer = message.containing_type
    if outer is None:
        return (list(message.file.message_types_by_name).index(message.name),)
    return (*place_in_file(outer), [one.name for one in outer.nested_types].index(message.name))


def _read(name: str, text: str) -> FileDescriptorProto:
    file = serialized_descriptor(text) or parse_proto(text)
    file.name = name
    return file


def _messages(messages: Iterable[Descriptor]) -> list[Descriptor]:
    found = list(messages)
    for one in found:
        found.extend(one.nested_types)
    return found
