"""Single values of Protobuf as Arrow arrays: scalars, enums, and messages that stand for one value, such as Timestamp."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.render import print_type
from headgate.schema.values import dumps, from_json, single

Make: TypeAlias = Callable[[list[Any]], pa.Array]

_F = FieldDescriptor
_WHOLE = (_F.CPPTYPE_INT32, _F.CPPTYPE_INT64, _F.CPPTYPE_UINT32, _F.CPPTYPE_UINT64)
_SECONDS = (-62_135_596_800, 253_402_300_799)  # the years 1 to 9999
_NANOS = 1_000_000_000
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


# scalars


def scalar_maker(field: FieldDescriptor, type_: t.Type, arrow: pa.DataType, path: str) -> Make:
    """A function from values of a scalar field to an array.

    Whole numbers go to pyarrow unchecked, because it refuses those that do not fit.
    """
    if field.enum_type is not None:
        return _enum_maker(field, type_, arrow, path)
    if _is_direct(field, type_):
        return lambda values: pa.array(values, arrow)
    number = field.cpp_type in (*_WHOLE, _F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE)
    if number and isinstance(type_, t.Integer | t.Bigint | t.Decimal):
        return _each(lambda value: from_json(value, type_, path), arrow)
    if number and isinstance(type_, t.Real):
        return _each(lambda value: _single(value, path), arrow)
    return _each(lambda _: conversion_error(type_, field.name, path), arrow)


def _is_direct(field: FieldDescriptor, type_: t.Type) -> bool:
    match type_:
        case t.Integer() | t.Bigint() | t.Decimal():
            return field.cpp_type in _WHOLE
        case t.Double():
            return field.cpp_type in (*_WHOLE, _F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE)
        case t.Real():
            return field.cpp_type in (*_WHOLE, _F.CPPTYPE_FLOAT)
        case t.Boolean():
            return field.cpp_type == _F.CPPTYPE_BOOL
        case t.Text():
            return field.type == _F.TYPE_STRING
        case t.Bytes():
            return field.type == _F.TYPE_BYTES
        case _:
            return False


def _enum_maker(field: FieldDescriptor, type_: t.Type, arrow: pa.DataType, path: str) -> Make:
    assert field.enum_type is not None
    if not isinstance(type_, t.Enum):
        return _each(lambda _: conversion_error(type_, "enum", path), arrow)
    symbols: dict[int | None, str | None] = {None: None}
    for value in field.enum_type.values:  # The first of several names for one number counts.
        if value.name in type_.symbols:
            symbols.setdefault(value.number, value.name)

    def make(values: list[Any]) -> pa.Array:
        try:
            return pa.array([symbols[value] for value in values], arrow)
        except KeyError:
            conversion_error(type_, "enum", path, "it is not one of the symbols")

    return make


def _single(value: float, path: str) -> float:
    nearest = single(value)
    if nearest != value and not math.isnan(value):
        conversion_error(t.Real(), "number", path, "it has more digits than fit")
    return nearest


# messages that stand for one value


def message_maker(message: Descriptor, type_: t.Type, arrow: pa.DataType, path: str) -> Make | None:
    """A function from messages that stand for one value to an array; None if the message is a record."""
    name = message.full_name
    match name, type_:
        case "google.protobuf.Timestamp", t.TimestampTz():
            return _each(lambda value: _microseconds(value, path), arrow)
        case "google.type.Date", t.Date():
            return _each(lambda value: _date(value, path), arrow)
        case "google.type.TimeOfDay", t.Time():
            return _each(lambda value: _time(value, path), arrow)
        case (("google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue"), t.Json()):
            return _each(lambda value: _json_text(value, path), arrow)
        case "confluent.type.Decimal", t.Decimal():
            return _each(lambda value: _decimal(value, type_, path), arrow)
        case _ if name in _WRAPPERS:
            make = scalar_maker(message.fields_by_name["value"], type_, arrow, path)
            return lambda values: make([None if value is None else value.value for value in values])
        case _:
            return None


def _microseconds(value: Any, path: str) -> int:
    seconds, nanos = value.seconds, value.nanos
    if not (_SECONDS[0] <= seconds <= _SECONDS[1] and 0 <= nanos < _NANOS):
        conversion_error(t.TimestampTz(), "google.protobuf.Timestamp", path, "there is no such moment")
    return int(seconds * 1_000_000 + nanos // 1000)


def _date(value: Any, path: str) -> dt.date:
    try:
        return dt.date(value.year, value.month, value.day)
    except ValueError:
        conversion_error(t.Date(), "google.type.Date", path, "there is no such day")


def _time(value: Any, path: str) -> dt.time:
    try:
        if not 0 <= value.nanos < _NANOS:
            raise ValueError
        return dt.time(value.hours, value.minutes, value.seconds, value.nanos // 1000)
    except ValueError:
        conversion_error(t.Time(), "google.type.TimeOfDay", path, "there is no such time")


def _decimal(value: Any, type_: t.Decimal, path: str) -> object:
    digits = str(abs(unscaled := int.from_bytes(value.value, "big", signed=True)))
    if abs(value.scale) > 1000 or len(digits) > 1000:
        conversion_error(type_, "confluent.type.Decimal", path, "it has too many digits")
    exact = decimal.Decimal((int(unscaled < 0), tuple(map(int, digits)), -value.scale))
    return from_json(exact, type_, path)


def _json_text(value: Any, path: str) -> str:
    try:
        return dumps(_json(value))
    except ValueDoesNotFit:
        conversion_error(t.Json(), "number", path, "it is not finite")
    except ValueError:
        conversion_error(t.Json(), value.DESCRIPTOR.full_name, path, "a value in it is not set")


def _json(value: Any) -> object:
    match value.DESCRIPTOR.name:
        case "Struct":
            return {key: _json(value.fields[key]) for key in sorted(value.fields)}
        case "ListValue":
            return [_json(one) for one in value.values]
    match value.WhichOneof("kind"):
        case "null_value":
            return None
        case "number_value":
            number = value.number_value
            whole = math.isfinite(number) and number == int(number) and abs(number) < 2**53
            return int(number) if whole and (number or math.copysign(1, number) > 0) else number
        case "string_value" | "bool_value" as kind:
            return getattr(value, kind)
        case "struct_value" | "list_value" as kind:
            return _json(getattr(value, kind))
        case _:
            raise ValueError


def _each(change: Callable[[Any], object], arrow: pa.DataType) -> Make:
    nanoseconds = pa.types.is_time64(arrow)

    def make(values: list[Any]) -> pa.Array:
        made = [None if value is None else change(value) for value in values]
        return pa.array(made, pa.time64("us")).cast(arrow) if nanoseconds else pa.array(made, arrow)

    return make


def conversion_error(type_: t.Type, found: str, path: str, reason: str = "") -> NoReturn:
    """Raise the error for a value of a kind that does not fit the type."""
    raise ValueDoesNotFit(path, print_type(type_), found, reason)
