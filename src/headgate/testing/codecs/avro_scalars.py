"""Avro's primitives and fixed, with their logical types, in the notation of specs."""

from __future__ import annotations

import struct
from decimal import Decimal, InvalidOperation
from typing import Any

from headgate.schema.formats.avro.tree import Fixed, Primitive
from headgate.testing.codecs import moments
from headgate.testing.errors import UnfitRecord
from headgate.testing.json_values import Json

_SPECIAL = ("NaN", "Infinity", "-Infinity")
_UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


def read(node: Primitive | Fixed, value: Json, path: str) -> object:
    """What fastavro writes for a value. Raises UnfitRecord."""
    kind, logical = _kind(node), node.attributes.get("logicalType")
    try:
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _read_decimal(node, value)
        if isinstance(value, str) and isinstance(logical, str) and kind in ("int", "long"):
            return _read_moment(logical, value)
        return _read_plain(node, kind, value)
    except (ValueError, InvalidOperation, OverflowError, TypeError) as wrong:
        raise UnfitRecord(path, f"a value of type {logical or kind} is wanted ({wrong})") from wrong


def write(node: Primitive | Fixed, datum: Any) -> Json:
    """The value that fastavro read."""
    kind, logical = _kind(node), node.attributes.get("logicalType")
    if kind in ("bytes", "fixed"):
        assert isinstance(datum, bytes)
        return _write_decimal(node, datum) if logical == "decimal" else datum.hex()
    if kind in ("int", "long") and isinstance(logical, str):
        try:
            return _write_moment(logical, datum)
        except (OverflowError, ValueError):  # a number that is no date in any calendar
            return int(datum)
    if kind == "float":
        return shortest_float(datum)
    return datum  # type: ignore[no-any-return]


def shortest_float(value: float) -> float:
    """The double with the fewest digits that is the same as a 32-bit float."""
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return value


def _kind(node: Primitive | Fixed) -> str:
    return node.kind if isinstance(node, Primitive) else "fixed"


def _read_plain(node: Primitive | Fixed, kind: str, value: Json) -> object:
    match kind, value:
        case "null", None:
            return None
        case "boolean", bool():
            return value
        case (("int" | "long"), int()) if not isinstance(value, bool):
            bits = 31 if kind == "int" else 63
            if not -(2**bits) <= value < 2**bits:
                raise ValueError("it is out of range")
            return value
        case (("float" | "double"), int() | float() | Decimal()) if not isinstance(value, bool):
            return float(value)
        case (("float" | "double"), str()) if value in _SPECIAL:
            return float(value)
        case "string", str():
            return value
        case (("bytes" | "fixed"), str()):
            data = bytes.fromhex(value)
            if isinstance(node, Fixed) and len(data) != node.size:
                raise ValueError(f"{node.size} bytes are wanted")
            return data
        case _:
            raise ValueError("another kind of value was given")


def _read_decimal(node: Primitive | Fixed, value: Json) -> bytes:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("decimals are written as strings")
    unscaled = _scaled(Decimal(value), _scale(node))
    size = node.size if isinstance(node, Fixed) else max(1, (unscaled.bit_length() + 8) // 8)
    return unscaled.to_bytes(size, "big", signed=True)


def _scaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("it is no finite number")
    shift = exponent + scale
    number = int("".join(map(str, digits)) or "0")
    if shift < 0 and number % 10**-shift:
        raise ValueError(f"it has more than {scale} digits behind the point")
    number = number * int(10**shift) if shift >= 0 else number // int(10**-shift)
    return -number if sign else number


def _write_decimal(node: Primitive | Fixed, data: bytes) -> str:
    number, scale = int.from_bytes(data, "big", signed=True), _scale(node)
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if number < 0 else text


def _scale(node: Primitive | Fixed) -> int:
    scale = node.attributes.get("scale", 0)
    return scale if isinstance(scale, int) else 0


def _read_moment(logical: str, text: str) -> int:
    family, _, unit = logical.rpartition("-")
    if logical == "date":
        return moments.read_date(text)
    if unit not in _UNITS:
        raise ValueError("a number is wanted")
    if family == "time":
        return moments.read_time(text, _UNITS[unit])
    if family == "timestamp" and not text.endswith("Z"):
        raise ValueError("a timestamp in UTC ends in Z")
    if family == "local-timestamp" and text.endswith("Z"):
        raise ValueError("a local timestamp has no zone")
    return moments.read_moment(text, _UNITS[unit])


def _write_moment(logical: str, number: int) -> Json:
    family, _, unit = logical.rpartition("-")
    if logical == "date":
        return moments.write_date(number)
    if unit not in _UNITS:
        return number
    if family == "time":
        return moments.write_time(number, _UNITS[unit])
    if family in ("timestamp", "local-timestamp"):
        return moments.write_moment(number, _UNITS[unit], "Z" if family == "timestamp" else "")
    return number
