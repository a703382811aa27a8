"""The canonical Python value of each type, and how it is written as JSON and as text.

boolean is bool; integer and bigint are int; real and double are float; decimal is decimal.Decimal with exactly its
scale; text and enum are str; json is str (the JSON text); bytes is bytes; date and time are datetime.date and
datetime.time; timestamp is datetime without zone; timestamptz is datetime in UTC; uuid is uuid.UUID; array is list;
map and record are dict. Null is None, where the type allows it.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import struct
import uuid
from typing import assert_never

from headgate.schema import types as t
from headgate.schema.errors import UnresolvedType, ValueDoesNotFit
from headgate.schema.names import ROOT, print_name

BITS: dict[type, int] = {t.Integer: 32, t.Bigint: 64}


def is_value(value: object, type_: t.Type) -> bool:
    """Whether this is a canonical value of the type, at any depth."""
    match type_:
        case t.Array(element, nullable):
            return isinstance(value, list) and all(_is_at(v, element, nullable) for v in value)
        case t.Map(inner, nullable):
            return isinstance(value, dict) and all(
                isinstance(k, str) and _is_at(v, inner, nullable) for k, v in value.items()
            )
        case t.Record(fields):
            return (
                isinstance(value, dict)
                and value.keys() == {field.name for field in fields}
                and all(_is_at(value[field.name], field.type, field.nullable) for field in fields)
            )
        case t.Named(parts):
            raise UnresolvedType(ROOT, print_name(parts))
        case _:
            return _is_scalar(value, type_)


def _is_at(value: object, type_: t.Type, nullable: bool) -> bool:
    return nullable if value is None else is_value(value, type_)


def _is_scalar(value: object, type_: t.Scalar) -> bool:
    match type_:
        case t.Boolean():
            return isinstance(value, bool)
        case t.Integer() | t.Bigint():
            return isinstance(value, int) and not isinstance(value, bool) and fits_bits(value, BITS[type(type_)])
        case t.Real():
            return isinstance(value, float) and (math.isnan(value) or single(value) == value)
        case t.Double():
            return isinstance(value, float)
        case t.Decimal(precision, scale):
            return isinstance(value, decimal.Decimal) and _has_digits(value, precision, scale)
        case t.Text():
            return isinstance(value, str)
        case t.Json():
            return isinstance(value, str) and _is_json(value)
        case t.Enum(symbols):
            return value in symbols
        case t.Bytes(length):
            return isinstance(value, bytes) and length in (None, len(value))
        case t.Date():
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case t.Time():
            return isinstance(value, dt.time) and value.tzinfo is None
        case t.Timestamp():
            return isinstance(value, dt.datetime) and value.tzinfo is None
        case t.TimestampTz():
            return isinstance(value, dt.datetime) and value.tzinfo is dt.UTC
        case t.Uuid():
            return isinstance(value, uuid.UUID)
        case _:
            assert_never(type_)


def fits_bits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def single(value: float) -> float:
    """The nearest number of 32 bits, or infinity if there is none."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _has_digits(value: decimal.Decimal, precision: int, scale: int) -> bool:
    parts = value.as_tuple()
    return parts.exponent == -scale and len(parts.digits) <= max(precision, 1)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def to_json(value: object, type_: t.Type) -> object:
    """A canonical value as a JSON value. Types that JSON does not have become strings; json is parsed."""
    if value is None:
        return None
    match type_:
        case t.Array(element):
            assert isinstance(value, list)
            return [to_json(v, element) for v in value]
        case t.Map(inner):
            assert isinstance(value, dict)
            return {key: to_json(v, inner) for key, v in value.items()}
        case t.Record(fields):
            assert isinstance(value, dict)
            return {field.name: to_json(value[field.name], field.type) for field in fields}
        case t.Json():
            return json.loads(str(value), parse_float=decimal.Decimal)
        case t.Boolean() | t.Integer() | t.Bigint() | t.Real() | t.Double():
            return value
        case _:
            return _string(value)


def to_text(value: object, type_: t.Type) -> str:
    """A canonical value as text. A string stays as it is; other values are the text of their JSON."""
    written = value if isinstance(type_, t.Json) else to_json(value, type_)
    return written if isinstance(written, str) else dumps(written)


def _string(value: object) -> str:
    match value:
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case decimal.Decimal():
            return format(value, "f")
        case dt.datetime() if value.tzinfo is not None:
            return value.isoformat().removesuffix("+00:00") + "Z"
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return str(value)


def dumps(value: object) -> str:
    """Compact JSON text with every digit of a number. Raises ValueDoesNotFit for infinity and NaN."""
    match value:
        case dict():
            return "{" + ",".join([f"{dumps(key)}:{dumps(inner)}" for key, inner in value.items()]) + "}"
        case list():
            return "[" + ",".join([dumps(inner) for inner in value]) + "]"
        case decimal.Decimal() if value.is_finite():
            return str(value)
        case float() if not math.isfinite(value):
            raise ValueDoesNotFit(ROOT, "json", "number", "it is not finite")
        case str() | int() | float() | None:
            return json.dumps(value, ensure_ascii=False)
        case _:
            raise ValueDoesNotFit(ROOT, "json", type(value).__name__, "it is not a json value")
