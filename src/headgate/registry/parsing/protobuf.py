"""Protobuf schemas: .proto text, or the base64 of a serialized descriptor."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from headgate.registry.errors import Fault, MalformedSchema
from headgate.schema.errors import SchemaError
from headgate.schema.formats.proto_text import parse_proto, resolve
from headgate.schema.formats.protobuf.errors import MalformedProto
from headgate.schema.formats.protobuf.print import print_proto


def read_protobuf(
    text: str, others: Iterable[tuple[str, FileDescriptorProto]]
) -> tuple[str, FileDescriptorProto]:
    """The file as text in one form, and as a descriptor with its names as written.

    ``others``: the files referred to, by the name under which they are imported. Raises MalformedSchema when the
    text is neither, when it breaks a rule of the language, and when it uses a type that none of the files has.
    """
    if not text.strip():
        raise MalformedSchema("PROTOBUF", (Fault("", "the text is empty"),))
    try:
        file = serialized_descriptor(text) or parse_proto(text)
        resolve(file, [_named(name, other) for name, other in others])
    except MalformedProto as wrong:
        found = f'"{wrong.found}"' if wrong.found else "the end of the text"
        fault = Fault("", f"expected {wrong.expected}, found {found}")
        raise MalformedSchema("PROTOBUF", (fault,), wrong.line, wrong.column) from wrong
    except SchemaError as wrong:
        raise MalformedSchema("PROTOBUF", (Fault("", wrong.message()),)) from wrong
    return print_proto(file), file


def serialized_descriptor(text: str) -> FileDescriptorProto | None:
    """The descriptor that ``text`` is the base64 of, as confluent_kafka's serialiser registers it; or None."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        file = FileDescriptorProto.FromString(data)
    except (binascii.Error, ValueError, DecodeError):
        return None
    return file if file.message_type or file.enum_type or file.service else None


def _named(name: str, file: FileDescriptorProto) -> FileDescriptorProto:
    named = FileDescriptorProto()
    named.CopyFrom(file)
    named.name = name
    return named
