"""Protobuf's scalars and enums in the notation of specs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from headgate.testing.codecs.avro_scalars import shortest_float
from headgate.testing.errors import UnfitRecord
from headgate.testing.json_values import Json

_SPECIAL = ("NaN", "Infinity", "-Infinity")
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}


def read(field: FieldDescriptor, value: Json, path: str) -> Any:
    """What the message's field takes. Raises UnfitRecord."""
    kind = field.cpp_type
    match value:
        case bool() if kind == FieldDescriptor.CPPTYPE_BOOL:
            return value
        case int() if kind in _RANGES and not isinstance(value, bool):
            low, high = _RANGES[kind]
            if low <= value < high:
                return value
        case int() | float() | Decimal() if kind in _FLOATS and not isinstance(value, bool):
            return float(value)
        case str() if kind in _FLOATS and value in _SPECIAL:
            return float(value)
        case str() if field.type == FieldDescriptor.TYPE_BYTES:
            return _bytes(value, path)
        case str() if field.type == FieldDescriptor.TYPE_STRING:
            return value
        case str() | int() if field.enum_type is not None and not isinstance(value, bool):
            return _symbol(field, value, path)
    raise UnfitRecord(path, "another kind of value is wanted")


def write(field: FieldDescriptor, value: Any) -> Json:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(value).hex()
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return int(value) if known is None else str(known.name)
    if field.type == FieldDescriptor.TYPE_FLOAT:
        return shortest_float(value)
    return value  # type: ignore[no-any-return]


def read_key(field: FieldDescriptor, name: str, path: str) -> Any:
    """A key of a map, which JSON has as text."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and name in ("true", "false"):
        return name == "true"
    if field.cpp_type in _RANGES:
        try:
            return read(field, int(name), path)
        except ValueError as wrong:
            raise UnfitRecord(path, "a number is wanted for a key") from wrong
    return read(field, name, path)


def write_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


_FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


def _bytes(value: str, path: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError as wrong:
        raise UnfitRecord(path, "bytes are written as hex digits") from wrong


def _symbol(field: FieldDescriptor, value: str | int, path: str) -> int:
    if isinstance(value, int):
        return value
    assert field.enum_type is not None
    known = field.enum_type.values_by_name.get(value)
    if known is None:
        raise UnfitRecord(path, f"a value of enum {field.enum_type.full_name} is wanted")
    return int(known.number)
