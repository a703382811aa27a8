"""Rows -> messages of a given Protobuf schema, by Protobuf's own library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass

from headgate.registry.wire import encode_message_indexes
from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.protobuf_files import linked
from headgate.runtime.formats.protobuf_writer import NOT_A_VALUE, is_no_value
from headgate.schema import types as t
from headgate.schema.formats.protobuf.names import columns_of
from headgate.schema.formats.protobuf.read import find_message, message_indexes
from headgate.schema.names import ROOT, element_path, field_path, value_path

Fill: TypeAlias = Callable[[Any, Any], None]
"""Sets a part of a message from a value that is not null."""

_F = FieldDescriptor
_JSON = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_BOOLEANS = {"true": True, "false": False}
_KEYS = {
    _F.CPPTYPE_INT32: range(-(2**31), 2**31), _F.CPPTYPE_INT64: range(-(2**63), 2**63),
    _F.CPPTYPE_UINT32: range(2**32), _F.CPPTYPE_UINT64: range(2**64),
}  # fmt: skip
_UNSIGNED = {_F.CPPTYPE_UINT32: 32, _F.CPPTYPE_UINT64: 64}


class ProtobufWriter:
    """Writes values of one type as a message of a compiled schema. ``message`` names it; None stands for the first one."""

    def __init__(self, descriptors: bytes, type_: t.Record, message: str | None) -> None:
        found = find_message(linked(descriptors), message)
        self._class: Any = GetMessageClass(found)
        self._indexes = encode_message_indexes(message_indexes(found))
        self._fill = _record(found, type_, ROOT)

    def encode(self, value: Any) -> bytes:
        made = self._class()
        self._fill(made, value)
        # Sorted, the entries of a map come in the same order when a batch is written again.
        return self._indexes + bytes(made.SerializeToString(deterministic=True))


def _record(message: Descriptor, type_: t.Record, path: str) -> Fill:
    proto = DescriptorProto()
    message.CopyToProto(proto)
    columns = dict(zip(columns_of(proto), message.fields, strict=True))
    parts: list[tuple[str, str, Fill]] = []
    refused = [field_path(path, name) for name, f in columns.items() if f.is_required and type_.field(name) is None]
    needed = [(f.name, field_path(path, f.name)) for f in type_.fields if columns[f.name].is_required]
    oneofs = [[name for name, f in columns.items() if f.containing_oneof is one and type_.field(name) is not None]
              for one in message.oneofs if len(one.fields) > 1]  # fmt: skip
    for field in type_.fields:
        here = field_path(path, field.name)
        parts.append((field.name, columns[field.name].name, _field(columns[field.name], field.type, here)))

    def fill(made: Any, row: Any) -> None:
        made.SetInParent()
        if refused:
            raise Unwritable(refused[0], v.NO_COLUMN)
        for column, here in needed:
            if row[column] is None:
                raise Unwritable(here, v.MISSING)
        for members in oneofs:
            if sum(row[name] is not None for name in members) > 1:
                raise Unwritable(path, v.TWO_BRANCHES)
        for column, _, set_field in parts:
            if row[column] is not None:
                set_field(made, row[column])

    return fill


def _field(field: FieldDescriptor, type_: t.Type, path: str) -> Fill:
    name = field.name
    match type_:
        case t.Map(value) if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return _map(field, value, path)
        case t.Array(element):
            return _list(field, element, path)
        case _:
            fill = _message(field, type_, path)
            if fill is not None:
                whole = fill
                return lambda made, value: whole(getattr(made, name), value)
            scalar = _scalar(field, type_, path)
            return lambda made, value: setattr(made, name, scalar(value))


def _list(field: FieldDescriptor, element: t.Type, path: str) -> Fill:
    name, at = field.name, element_path(path)
    fill = _message(field, element, at)
    scalar = None if fill is not None else _scalar(field, element, at)

    def extend(made: Any, values: Any) -> None:
        target = getattr(made, name)
        for value in values:
            if value is None:
                raise Unwritable(at, v.NULL_ELEMENT)
            if fill is not None:
                fill(target.add(), value)
            else:
                assert scalar is not None
                target.append(scalar(value))

    return extend


def _map(field: FieldDescriptor, type_: t.Type, path: str) -> Fill:
    name, at = field.name, value_path(path)
    assert field.message_type is not None
    key, value_field = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    to_key = _map_key(key, path)
    fill = _message(value_field, type_, at)
    scalar = None if fill is not None else _scalar(value_field, type_, at)

    def put(made: Any, entries: Any) -> None:
        target = getattr(made, name)
        for text, value in entries.items():
            if value is None:
                raise Unwritable(at, v.NULL_ELEMENT)
            if fill is not None:
                fill(target[to_key(text)], value)
            else:
                assert scalar is not None
                target[to_key(text)] = scalar(value)

    return put


def _map_key(field: FieldDescriptor, path: str) -> Callable[[str], Any]:
    """Keys are text in SQL. One that the type of the keys cannot hold refuses the row."""
    if field.cpp_type == _F.CPPTYPE_STRING:
        return lambda text: text
    known = _KEYS.get(field.cpp_type)

    def key(text: str) -> bool | int:
        try:
            found = _BOOLEANS[text] if known is None else int(text)
        except (KeyError, ValueError):
            raise Unwritable(path, v.OUT_OF_RANGE) from None
        if known is not None and (found not in known or str(found) != text):
            raise Unwritable(path, v.OUT_OF_RANGE)
        return found

    return key


def _message(field: FieldDescriptor, type_: t.Type, path: str) -> Fill | None:
    """Sets all of a message; None if the field is no message."""
    message = field.message_type
    if message is None:
        return None
    name = message.full_name
    if isinstance(type_, t.Record):
        return _record(message, type_, path)
    if name in _JSON:
        return lambda made, text: _json(made, text, path)
    if name in _WRAPPERS:
        scalar = _scalar(message.fields_by_name["value"], type_, path)
        return lambda made, value: _set(made, value=scalar(value))
    match type_:
        case t.TimestampTz():
            return lambda made, value: _timestamp(made, v.microseconds(value, type_))
        case t.Date():
            return lambda made, value: _set(made, year=value.year, month=value.month, day=value.day)
        case t.Time():
            return lambda made, value: _time(made, v.microseconds(value, type_))
        case t.Decimal(precision, scale):
            return lambda made, value: _confluent_decimal(
                made, v.scaled(value, precision, scale, path), precision, scale
            )
        case _:
            raise TypeError(f"no value of {name}")


def _set(made: Any, **parts: Any) -> None:
    made.SetInParent()
    for name, value in parts.items():
        setattr(made, name, value)


def _timestamp(made: Any, micros: int) -> None:
    seconds, rest = divmod(micros, 1_000_000)
    _set(made, seconds=seconds, nanos=rest * 1000)


def _time(made: Any, micros: int) -> None:
    seconds, rest = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    _set(made, hours=hours, minutes=minute, seconds=second, nanos=rest * 1000)


def _confluent_decimal(made: Any, number: int, precision: int, scale: int) -> None:
    data = number.to_bytes(max(1, (number.bit_length() + 8) // 8), "big", signed=True)
    _set(made, value=data, precision=precision, scale=scale)


def _json(made: Any, text: str, path: str) -> None:
    if is_no_value(text):
        raise Unwritable(path, NOT_A_VALUE)
    made.SetInParent()
    try:
        ParseDict(json.loads(text), made)
    except (ValueError, ParseError, RecursionError):
        raise Unwritable(path, v.NOT_JSON) from None


def _scalar(field: FieldDescriptor, type_: t.Type, path: str) -> Callable[[Any], Any]:
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}
        return lambda value: _symbol(value, numbers, path)
    bits = _UNSIGNED.get(field.cpp_type)
    if bits is not None:
        return lambda value: _unsigned(value, bits, path)
    match type_:
        case t.Uuid():
            return lambda value: str(v.as_uuid(value, path))
        case t.Real() | t.Double():
            return float
        case _:
            return lambda value: value


def _symbol(value: Any, numbers: dict[str, int], path: str) -> int:
    if value not in numbers:
        raise Unwritable(path, v.NO_SYMBOL)
    return numbers[value]


def _unsigned(value: Any, bits: int, path: str) -> int:
    number = int(value)
    if number != value or not 0 <= number < 1 << bits:
        raise Unwritable(path, v.OUT_OF_RANGE)
    return number
