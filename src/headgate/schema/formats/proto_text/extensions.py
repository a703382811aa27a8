"""Custom options of a compiled file: bytes to the library, which need the extension that gives them a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate.schema.formats.proto_text.well_known import well_known

_ALWAYS = ("google/protobuf/descriptor.proto", "confluent/meta.proto")


class Extensions:
    """The extensions that a file can see: its own, those of the given files, and the well-known ones."""

    def __init__(self, file: FileDescriptorProto, dependencies: Sequence[FileDescriptorProto]) -> None:
        self._file = file
        self._files = {**well_known(), **{found.name: found for found in dependencies}}

    def name(self, options: Message) -> Message:
        """The same options, in which every extension that is known is a field."""
        if not len(UnknownFieldSet(options)):
            return options
        known = GetMessageClass(self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))()
        known.MergeFromString(options.SerializeToString())
        return known

    @cached_property
    def _pool(self) -> DescriptorPool:
        pool = DescriptorPool()
        own = FileDescriptorProto()
        own.CopyFrom(self._file)
        own.name = own.name or "file.proto"
        for file in (*self._in_order([*_ALWAYS, *own.dependency]), own):
            try:
                pool.Add(file)
            except TypeError:  # it needs what was not given: then its extensions are not known
                continue
        return pool

    def _in_order(self, names: Sequence[str]) -> Iterator[FileDescriptorProto]:
        """The files and all they import, each after what it needs."""
        done: set[str] = set()
        waiting = [(name, False) for name in reversed(names)]
        while waiting:
            name, ready = waiting.pop()
            if name in done or name not in self._files:
                continue
            if ready:
                done.add(name)
                yield self._files[name]
            else:
                waiting.append((name, True))
                waiting += [(needed, False) for needed in self._files[name].dependency if needed not in done]
