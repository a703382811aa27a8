"""Confluent's `(confluent.field_meta)`: docs and parameters of a field, however the descriptor holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FieldOptions
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate.schema.formats.proto_text.well_known import well_known

_NAMES = ("confluent.field_meta", ".confluent.field_meta")


@dataclass(frozen=True, slots=True)
class Meta:
    doc: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


def meta_of(options: FieldOptions) -> Meta:
    """What the option says; nothing if it is not there, or not of its form."""
    for option in options.uninterpreted_option:
        if len(option.name) == 1 and option.name[0].name_part in _NAMES:
            message = _new("confluent.Meta")
            try:
                text_format.Merge(option.aggregate_value, message)
            except text_format.ParseError:
                return Meta()
            return _meta(message)
    return _of_bytes(options)


def _of_bytes(options: FieldOptions) -> Meta:
    """From a compiled descriptor, where the option is a field that the library may not know."""
    data = options.SerializeToString()
    if not data:
        return Meta()
    known = _new("google.protobuf.FieldOptions")
    known.MergeFromString(data)
    found = [value for field, value in known.ListFields() if field.full_name == "confluent.field_meta"]
    return _meta(found[0]) if found else Meta()


def _meta(message: Message) -> Meta:
    return Meta(message.doc, dict(message.params))  # type: ignore[attr-defined]  # a class made at run time


def _new(name: str) -> Message:
    return GetMessageClass(_pool().FindMessageTypeByName(name))()


@cache
def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    for file in ("google/protobuf/descriptor.proto", "confluent/meta.proto"):
        pool.Add(well_known()[file])
    return pool
