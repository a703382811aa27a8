"""Compiled Protobuf schemas as the driver sends them to workers: descriptors, so that no worker runs protoc."""

from __future__ import annotations

from functools import lru_cache

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headgate.schema.errors import SchemaError
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.read import link
from headgate.schema.written import WrittenSchema


class NotCompiled(Exception):
    """The driver could not compile a schema; the text says why."""


@lru_cache(maxsize=512)
def compiled(schema: WrittenSchema) -> bytes:
    """A serialized descriptor set whose first file is the schema. Raises SchemaError if protoc refuses it."""
    files = read_files(schema.text, schema.references)
    for file in files:
        file.ClearField("source_code_info")
    return FileDescriptorSet(file=files).SerializeToString()


def compiled_or_reason(schema: WrittenSchema) -> bytes | str:
    """The same, or why the schema cannot be compiled: the records of other schemas can be read all the same."""
    try:
        return compiled(schema)
    except SchemaError as wrong:
        return wrong.message()


def linked(descriptors: bytes | str) -> FileDescriptor:
    """The file of a descriptor set as Protobuf's library links it. Raises NotCompiled if there is none."""
    if isinstance(descriptors, str):
        raise NotCompiled(descriptors)
    return link(FileDescriptorSet.FromString(descriptors).file)
