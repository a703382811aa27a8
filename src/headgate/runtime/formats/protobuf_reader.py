"""Protobuf: messages by Protobuf's own library, with the writer's schema, and columns made field by field.

The driver says which field of the writer is which column: a field that was renamed keeps its column. If the writer's schema
has no such field, the column is NULL; a column that cannot be NULL gets Protobuf's default value. Fields of
a message that the writer's schema does not have are skipped, as Protobuf does.

The driver compiles the schemas and sends descriptors, so that workers never run protoc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate.registry import wire
from headgate.registry.errors import MalformedMessageIndexes
from headgate.runtime.formats import arrow_reader
from headgate.runtime.formats.protobuf_values import Make, conversion_error, message_maker, scalar_maker
from headgate.schema.errors import SchemaError, UnknownMessage, ValueDoesNotFit
from headgate.schema.evolve.renames import KnownFields
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.read import find_message, link, message_indexes
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.types import Array, Field, Map, Record, Type
from headgate.schema.written import WrittenSchema


@dataclass(frozen=True, slots=True)
class ProtobufDecoders:
    """Makes decoders on the workers from schemas that the driver compiled.

    It is compared and hashed by its schemas, because a worker keeps the decoders that it made and finds them by it.
    """

    schemas: tuple[tuple[WrittenSchema, bytes | str], ...]  # a descriptor set, or why there is none

    @classmethod
    def of(cls, schemas: Iterable[WrittenSchema]) -> ProtobufDecoders:
        return cls(tuple((schema, _compiled(schema)) for schema in dict.fromkeys(schemas)))

    def __call__(self, decoding: arrow_reader.Decoding, writer: WrittenSchema) -> ProtobufDecoder:
        return ProtobufDecoder(decoding, writer, dict(self.schemas))


@lru_cache(maxsize=512)
def _compiled(schema: WrittenSchema) -> bytes | str:
    try:
        files = read_files(schema.text, schema.references)
    except SchemaError as wrong:
        return wrong.message()
    for file in files:
        file.ClearField("source_code_info")
    return FileDescriptorSet(file=files).SerializeToString()


class ProtobufDecoder:
    """Reads bodies that were written with one schema."""

    def __init__(
        self, decoding: arrow_reader.Decoding, writer: WrittenSchema, compiled: Mapping[WrittenSchema, bytes | str]
    ) -> None:
        assert isinstance(decoding.target.type, Record)
        self._framed = decoding.framed
        self._unusable = ""
        try:
            message = _message(decoding, writer, compiled)
        except (SchemaError, _NotCompiled) as wrong:
            reason = wrong.message() if isinstance(wrong, SchemaError) else str(wrong)
            self._unusable = f"the schema that it names cannot be used: {reason}"
            return
        names = decoding.names[decoding.writers.index(writer)]
        self._indexes = message_indexes(message)
        self._class: Any = GetMessageClass(message)
        self._has_required = _has_required(message, set())
        self._column = record_column(
            message, decoding.target.type, arrow_reader.arrow_type(decoding.target), ROOT, names
        )

    def parse(self, bodies: list[bytes]) -> arrow_reader.Parsed:
        return arrow_reader.one_by_one(self._parsed, bodies)

    def _parsed(self, body: bytes) -> Any:
        if self._unusable:
            raise arrow_reader.InvalidBody(self._unusable)
        if self._framed:
            body = self._message_of(body)
        try:
            message = self._class.FromString(body)
        except DecodeError as wrong:
            utf8 = "UTF-8" in str(wrong)
            raise arrow_reader.InvalidBody(
                "a text in it is not valid UTF-8" if utf8 else "the bytes are not a message of their schema"
            ) from None
        if self._has_required and not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise arrow_reader.InvalidBody(f"required fields are missing: {missing}")
        return message

    def columns(self, parsed: list[Any]) -> pa.Array:
        return self._column(parsed)

    def exact(self, body: bytes) -> pa.Array:
        message = self._parsed(body)
        try:
            return self._column([message])
        except ValueDoesNotFit as misfit:
            raise arrow_reader.InvalidBody(misfit.message()) from None
        except (arrow_reader.NeedsExactRead, pa.ArrowException, TypeError, ValueError, OverflowError):
            raise arrow_reader.InvalidBody("it does not fit the type of the source") from None

    def _message_of(self, body: bytes) -> bytes:
        """The bytes after the message indexes, which must be those of the planned message."""
        if body[:1] == b"\x00" and self._indexes == (0,):
            return body[1:]
        try:
            indexes, rest = wire.decode_message_indexes(body)
        except MalformedMessageIndexes:
            raise arrow_reader.InvalidBody("the place of its message type is malformed") from None
        if indexes != self._indexes:
            raise arrow_reader.InvalidBody("it is a message of another type than the source has")
        return rest


class _NotCompiled(Exception):
    """The driver could not compile a schema; the text says why."""


def _message(
    decoding: arrow_reader.Decoding, writer: WrittenSchema, compiled: Mapping[WrittenSchema, bytes | str]
) -> Descriptor:
    """The message of the writer. It has the name that it has in the schema which was frozen at creation, or is the first."""
    first = decoding.schemas[0]
    frozen = find_message(_linked(compiled[first]), decoding.message)
    if writer == first:
        return frozen
    file = _linked(compiled[writer])
    try:
        return find_message(file, frozen.full_name)
    except UnknownMessage:
        if decoding.message is not None:
            raise
        return find_message(file, None)


def _linked(compiled: bytes | str) -> FileDescriptor:
    if isinstance(compiled, str):
        raise _NotCompiled(compiled)
    return link(FileDescriptorSet.FromString(compiled).file)


def _has_required(message: Descriptor, seen: set[str]) -> bool:
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(
        field.is_required or (field.message_type is not None and _has_required(field.message_type, seen))
        for field in message.fields
    )


Build: TypeAlias = Callable[[list[Any]], pa.Array]


def record_column(message: Descriptor, type_: Record, arrow: pa.StructType, path: str, names: KnownFields) -> Build:
    """A function from messages to an array of structs. A message that is None becomes NULL.

    `names` are the fields of the message with their names in the type.
    """
    columns = _columns(message, type_, arrow, path, names)
    known = frozenset(field.number for field in message.fields)
    empty = GetMessageClass(message)()

    def build(messages: list[Any]) -> pa.Array:
        missing = None
        if None in messages:
            missing = pa.array([one is None for one in messages], pa.bool_())
            messages = [empty if one is None else one for one in messages]
        _check_no_undecoded_fields(messages, known, path)
        if not columns:
            made = pa.array([{}] * len(messages), arrow)
            return made if missing is None else pa.StructArray.from_arrays([], fields=[], mask=missing)
        return pa.StructArray.from_arrays([one(messages) for one in columns], fields=list(arrow), mask=missing)

    return build


def _columns(message: Descriptor, type_: Record, arrow: pa.StructType, path: str, names: KnownFields) -> list[Build]:
    known = {one.name: one for one in names}
    made = []
    for number, wanted in enumerate(type_.fields):
        here, type_here = field_path(path, wanted.name), arrow.field(number).type
        one = known.get(wanted.name)
        found = message.fields_by_number.get(one.member.number or 0) if one is not None else None
        if one is None or found is None:
            made.append(_absent(wanted, type_here, here))
        else:
            made.append(_present(found, wanted, type_here, here, one.inner))
    return made


def _check_no_undecoded_fields(messages: list[Any], known: frozenset[int], path: str) -> None:
    """Raise if a field of the schema was not decoded: its wire type is another one, or its symbol is unknown."""
    for message in messages:
        unknown: Any = UnknownFieldSet(message)
        if len(unknown) and not known.isdisjoint([one.field_number for one in unknown]):
            raise ValueDoesNotFit(path, "message", "message", "a field is not as its schema says")


def _absent(wanted: Field, arrow: pa.DataType, path: str) -> Build:
    if wanted.default is not None:
        value = arrow_reader.default_value(wanted)
        return lambda messages: pa.array([value] * len(messages), arrow)
    if wanted.nullable:
        return lambda messages: pa.nulls(len(messages), arrow)
    return lambda _: conversion_error(wanted.type, "nothing", path)


def _present(field: FieldDescriptor, wanted: Field, arrow: pa.DataType, path: str, names: KnownFields) -> Build:
    if _is_map(field):
        if not isinstance(wanted.type, Map):
            return lambda _: conversion_error(wanted.type, "map", path)
        return _map(field, wanted.type, arrow, value_path(path), names)
    if field.is_repeated:
        if not isinstance(wanted.type, Array):
            return lambda _: conversion_error(wanted.type, "array", path)
        return _list(field, wanted.type, arrow, element_path(path), names)
    make = _values(field, wanted.type, arrow, path, names)
    get, name = attrgetter(field.name), field.name
    if not field.has_presence or (not wanted.nullable and field.message_type is None):
        return lambda messages: make(list(map(get, messages)))
    if not wanted.nullable:
        return lambda messages: make([_required_value(m, name, wanted.type, path) for m in messages])
    return lambda messages: make([get(m) if m.HasField(name) else None for m in messages])


def _required_value(message: Any, name: str, type_: Type, path: str) -> Any:
    return getattr(message, name) if message.HasField(name) else conversion_error(type_, "nothing", path)


def _list(field: FieldDescriptor, type_: Array, arrow: pa.ListType, path: str, names: KnownFields) -> Build:
    make = _values(field, type_.element, arrow.value_type, path, names)
    get = attrgetter(field.name)

    def build(messages: list[Any]) -> pa.Array:
        lists = list(map(get, messages))
        elements = make(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_offsets(lists), elements, type=arrow)

    return build


def _map(field: FieldDescriptor, type_: Map, arrow: pa.MapType, path: str, names: KnownFields) -> Build:
    assert field.message_type is not None
    key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    make = _values(value, type_.value, arrow.item_type, path, names)
    get, is_text = attrgetter(field.name), key.type == FieldDescriptor.TYPE_STRING

    def build(messages: list[Any]) -> pa.Array:
        maps = list(map(get, messages))
        keys = list(chain.from_iterable(maps))
        items = make([one[k] for one in maps for k in one])
        texts = pa.array(keys if is_text else list(map(_key, keys)), pa.string())
        return pa.MapArray.from_arrays(_offsets(maps), texts, items, type=arrow)

    return build


def _values(field: FieldDescriptor, type_: Type, arrow: pa.DataType, path: str, names: KnownFields) -> Make:
    """A function from single values of a field, which may be None, to an array."""
    if field.message_type is None:
        return scalar_maker(field, type_, arrow, path)
    known = message_maker(field.message_type, type_, arrow, path)
    if known is not None:
        return known
    if not isinstance(type_, Record):
        return lambda values: (
            conversion_error(type_, "message", path)
            if any(v is not None for v in values)
            else pa.nulls(len(values), arrow)
        )
    return record_column(field.message_type, type_, arrow, path, names)


def _offsets(containers: list[Any]) -> pa.Array:
    return pa.array(list(accumulate(map(len, containers), initial=0)), pa.int32())


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.is_repeated and _is_entry(field.message_type)


def _is_entry(message: Descriptor) -> bool:
    return message.GetOptions().map_entry
