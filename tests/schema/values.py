"""What the laws of values need: whether a value is one of its type, and a value as one of a wider type."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import uuid
from typing import assert_never

from headgate.schema import types as t
from headgate.schema.errors import UnresolvedType
from headgate.schema.names import ROOT, field_path, print_name, value_path
from headgate.schema.values import BITS, dumps, fits_bits, from_json, single, to_json


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


def _has_digits(value: decimal.Decimal, precision: int, scale: int) -> bool:
    parts = value.as_tuple()
    return parts.exponent == -scale and len(parts.digits) <= max(precision, 1)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def to_text(value: object, type_: t.Type) -> str:
    """A canonical value as text. A string stays as it is; other values are the text of their JSON."""
    written = value if isinstance(type_, t.Json) else to_json(value, type_)
    return written if isinstance(written, str) else dumps(written)


def widen_value(value: object, old: t.Type, new: t.Type, path: str = ROOT) -> object:
    """A canonical value of a type as a value of a wider type (see `evolve.merge.widen`). A missing field is null."""
    if value is None or old == new:
        return value
    match old, new:
        case _, t.Json():
            return dumps(to_json(value, old))
        case _, t.Text():
            return to_text(value, old)
        case t.Array(), t.Array():
            assert isinstance(value, list)
            return [widen_value(v, old.element, new.element, f"{path}[{i}]") for i, v in enumerate(value)]
        case t.Map(), t.Map():
            assert isinstance(value, dict)
            return {k: widen_value(v, old.value, new.value, value_path(path)) for k, v in value.items()}
        case t.Record(), t.Record():
            assert isinstance(value, dict)
            types = {field.name: field.type for field in old.fields}
            return {
                f.name: widen_value(value.get(f.name), types.get(f.name, f.type), f.type, field_path(path, f.name))
                for f in new.fields
            }
        case _:
            return from_json(to_json(value, old), new, path)
