"""Messages of generated files: made of canonical values through the real library, and shown by column for comparing."""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate.schema.formats.protobuf import read_files
from headgate.schema.formats.protobuf.names import columns_of
from headgate.schema.formats.protobuf.read import link
from headgate.schema.formats.protobuf.write import FILES
from headgate.schema.types import Array, Bytes, Enum, Map, Record, Type
from headgate.schema.values import to_json

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)
Shown = dict[str, object]


def class_of(file: FileDescriptorProto) -> type[Message]:
    """The class that the library makes of the first message."""
    _, *imported = read_files('syntax = "proto3";' + "".join(f'import "{name}";' for name in FILES.values()))
    return GetMessageClass(link([file, *imported]).message_types_by_name[file.message_type[0].name])


def without_comments(file: FileDescriptorProto) -> FileDescriptorProto:
    """The file without name, positions and comments."""
    made = FileDescriptorProto()
    made.CopyFrom(file)
    made.ClearField("source_code_info")
    made.ClearField("name")
    return made


def declared_comments(file: FileDescriptorProto) -> list[tuple[object, ...]]:
    """Every comment with the path of its declaration, whatever the order."""
    return sorted(
        (tuple(at.path), at.leading_comments, at.trailing_comments)
        for at in file.source_code_info.location
        if at.leading_comments or at.trailing_comments
    )


def descriptor_of(message: Message | type[Message]) -> Descriptor:
    return cast(Descriptor, message.DESCRIPTOR)  # or the same in C, which the stubs have as another class


def columns(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    return dict(zip(columns_of(proto), descriptor.fields, strict=True))


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def value_of_entry(field: FieldDescriptor) -> FieldDescriptor:
    assert field.message_type is not None
    return field.message_type.fields_by_name["value"]


# --- a value to a message


def fill(message: Message, record: Record, value: object) -> None:
    """Set the columns of a record. Null leaves a column unset, and is left out of lists and maps, which have none."""
    assert isinstance(value, dict)
    fields = columns(descriptor_of(message))
    for column in record.fields:
        if value[column.name] is not None:
            _fill_column(message, fields[column.name], column.type, value[column.name])


def _fill_column(message: Message, field: FieldDescriptor, type_: Type, value: Any) -> None:
    place = getattr(message, field.name)
    match type_:
        case Array(element):
            for one in value:
                if one is not None and field.message_type is not None:
                    _fill_message(place.add(), element, one)
                elif one is not None:
                    place.append(_scalar(field, element, one))
        case Map(inner):
            for key, one in value.items():
                if one is not None and value_of_entry(field).message_type is not None:
                    _fill_message(place[key], inner, one)
                elif one is not None:
                    place[key] = _scalar(value_of_entry(field), inner, one)
        case _ if field.message_type is not None:
            place.SetInParent()
            _fill_message(place, type_, value)
        case _:
            setattr(message, field.name, _scalar(field, type_, value))


def _fill_message(message: Any, type_: Type, value: Any) -> None:
    match message.DESCRIPTOR.full_name:
        case "google.type.Date":
            message.year, message.month, message.day = value.year, value.month, value.day
        case "google.type.TimeOfDay":
            message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
            message.nanos = value.microsecond * 1000
        case "google.protobuf.Timestamp":
            message.seconds = (value - _EPOCH) // _SECOND
            message.nanos = value.microsecond * 1000
        case "google.protobuf.Value":
            json_format.Parse(value, message)
        case _ if isinstance(type_, Record):
            fill(message, type_, value)
        case _:
            _fill_column(message, columns(descriptor_of(message))["items"], type_, value)


def _scalar(field: FieldDescriptor, type_: Type, value: object) -> object:
    if isinstance(type_, Enum) and field.enum_type is not None:
        return field.enum_type.values_by_name[str(value)].number
    return value if isinstance(type_, Bytes) else to_json(value, type_)


# --- a message to something that can be compared


def show(message: Message) -> Shown:
    """The value of every column: None if it is unset, a symbol of an enum by its name, or its number if unknown."""
    return {column: _show(message, field) for column, field in columns(descriptor_of(message)).items()}


def show_one(field: FieldDescriptor, value: Any) -> object:
    if field.message_type is not None:
        return show(value)
    if field.enum_type is None:
        return cast(object, value)
    known = field.enum_type.values_by_number.get(value)
    return int(value) if known is None else str(known.name)


def _show(message: Message, field: FieldDescriptor) -> object:
    value = getattr(message, field.name)
    if is_map(field):
        return {key: show_one(value_of_entry(field), value[key]) for key in value}
    if field.is_repeated:
        return [show_one(field, one) for one in value]
    return None if field.has_presence and not message.HasField(field.name) else show_one(field, value)
