"""Defaults of fields: whether a JSON value is a value of an Avro type, and the same value as a neutral one."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Iterator
from typing import assert_never, cast

from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.formats.avro import tree
from headgate.schema.values import CONNECT_MICROSECONDS, EPOCH, dumps, from_json, moment_of, to_json
from headgate.schema.written import Json

INT_RANGE = range(-(2**31), 2**31)
LONG_RANGE = range(-(2**63), 2**63)


def default_problems(value: Json, node: tree.AvroType, path: str) -> Iterator[tuple[str, str]]:
    """Path and reason of every part of a default that is not a value of its type.

    This is stricter than Java, which accepts any text for bytes, fixed and enum. A default that cannot be encoded fails
    every reader that needs it, long after the schema was registered.
    """
    match node:
        case tree.Union():
            # Since Avro 1.12 the value may be of any branch; up to 1.11 it had to be of the first.
            if not any(_is_value(value, branch) for branch in node.branches):
                yield path, f"{_shown(value)} fits no branch of {tree.describe(node)}"
        case tree.Record():
            yield from _record_problems(value, node, path)
        case tree.Array() if isinstance(value, list):
            for index, item in enumerate(value):
                yield from default_problems(item, node.items, f"{path}[{index}]")
        case tree.Map() if isinstance(value, dict):
            for key, item in value.items():
                yield from default_problems(item, node.values, f"{path}.{key}")
        case tree.Primitive() | tree.Fixed() | tree.Enum() | tree.Array() | tree.Map():
            if not _is_scalar(value, node):
                yield path, f"{_shown(value)} is no value of type {tree.describe(node)}"
        case _:
            assert_never(node)


def _is_value(value: Json, node: tree.AvroType) -> bool:
    return next(default_problems(value, node, ""), None) is None


def _shown(value: Json) -> str:
    """A default as an error names it. Of arrays and objects only the kind is named, because they may be large."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"number {value}"
        case str():
            return f'text "{value if len(value) <= 40 else value[:37] + "..."}"'
        case list():
            return "an array"
        case dict():
            return "an object"


def _record_problems(value: Json, node: tree.Record, path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a default of a record. A field that it leaves out must have a default of its own."""
    if not isinstance(value, dict):
        yield path, f"{_shown(value)} is no value of type {tree.describe(node)}"
        return
    for member in node.fields:
        if member.name in value:
            yield from default_problems(value[member.name], member.type, f"{path}.{member.name}")
        elif not member.has_default:
            yield path, f'field "{member.name}" of {tree.describe(node)} has neither a value nor a default'


def _is_scalar(value: Json, node: tree.Primitive | tree.Fixed | tree.Enum | tree.Array | tree.Map) -> bool:
    match node:
        case tree.Primitive():
            return _is_primitive(value, node.kind)
        case tree.Fixed():
            return isinstance(value, str) and _is_bytes(value) and len(value) == node.size
        case tree.Enum():
            return isinstance(value, str) and value in node.symbols
        case tree.Array() | tree.Map():
            return False
        case _:
            assert_never(node)


def _is_primitive(value: Json, kind: str) -> bool:
    """Whether a JSON value is a value of a primitive type. Bytes are texts with a character for each byte."""
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bounds = INT_RANGE if kind == "int" else LONG_RANGE
            return isinstance(value, int) and not isinstance(value, bool) and value in bounds
        case "float" | "double":
            # Java reads these texts too: JSON has no other way to write them.
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number or value in ("NaN", "Infinity", "-Infinity")
        case "bytes":
            return isinstance(value, str) and _is_bytes(value)
        case _:
            return isinstance(value, str)


def _is_bytes(text: str) -> bool:
    return all(ord(character) < 256 for character in text)


def neutral_default(member: tree.Field, type_: t.Type) -> str | None:
    """The default of a field as JSON text of the neutral type. None if it has none, or null."""
    if not member.has_default or member.default is None:
        return None
    try:
        return dumps(to_json(_canonical(member.default, _branch(member.default, member.type), type_), type_))
    except (ValueError, OverflowError, ArithmeticError, ValueDoesNotFit):  # such as a date after the year 9999
        return None


def _branch(value: Json, node: tree.AvroType) -> tree.AvroType:
    """The type that a default is a value of: since Avro 1.12 any branch of a union, before it the first."""
    return next(branch for branch in (*tree.branches_of(node), node) if _is_value(value, branch))


def _canonical(value: Json, node: tree.AvroType, type_: t.Type) -> object:
    """A default as a canonical value of the neutral type."""
    match node, type_:
        case tree.Record(), t.Record() if isinstance(value, dict):
            return {f.name: _member(value, f.name, node, f.type) for f in type_.fields}
        case tree.Array(), t.Array() if isinstance(value, list):
            return [_nullable(one, node.items, type_.element) for one in value]
        case tree.Map(), t.Map() if isinstance(value, dict):
            return {key: _nullable(one, node.values, type_.value) for key, one in value.items()}
        case ((tree.Primitive() | tree.Fixed()), _) if isinstance(value, str) and tree.kind_of(node) in (
            "bytes",
            "fixed",
        ):
            return _from_bytes(value.encode("latin-1"), type_)
        case tree.Primitive(), t.Date() | t.Time() | t.Timestamp() | t.TimestampTz() if isinstance(value, int):
            return moment_of(value * _unit(node), type_)
        case _, t.Real() | t.Double():
            return float(cast("float", value))
        case _:
            return from_json(value, type_)


def _nullable(value: Json, node: tree.AvroType, type_: t.Type) -> object:
    """The default of an element, a value or a field; null stays null."""
    return None if value is None else _canonical(value, _branch(value, node), type_)


def _member(record: dict[str, Json], name: str, node: tree.Record, type_: t.Type) -> object:
    """The default of one field of a record. Raises ValueError for a column that is no field."""
    member = next((one for one in node.fields if one.name == name), None)
    if member is None:  # a column of a union with several types
        raise ValueError(name)
    return _nullable(record.get(name, member.default), member.type, type_)


def _from_bytes(data: bytes, type_: t.Type) -> object:
    """The value of bytes: a decimal in two's complement, a uuid, or the bytes themselves."""
    match type_:
        case t.Decimal():
            unscaled = int.from_bytes(data, "big", signed=True)
            return decimal.Decimal(unscaled).scaleb(-type_.scale, decimal.Context(prec=t.MAX_PRECISION))
        case t.Uuid():
            return uuid.UUID(bytes=data)
        case _:
            return data


_MICROSECONDS = {"time-millis": 1000, "timestamp-millis": 1000, "local-timestamp-millis": 1000, "date": 86_400_000_000}


def _unit(node: tree.Primitive) -> int:
    """The microseconds of one step of a date or time that is counted in whole numbers."""
    connect = CONNECT_MICROSECONDS.get(str(node.attributes.get("connect.name")))
    return connect or _MICROSECONDS.get(str(node.attributes.get("logicalType")), 1)


def avro_default(default: str, node: tree.AvroType, type_: t.Type) -> Json:
    """The default of a neutral field, which is JSON text, as the default of an Avro field of this type. Raises
    ValueError if it is not a value of the type. ``node`` is no union, and ``type_`` is its neutral type."""
    try:
        return _encoded(from_json(json.loads(default, parse_float=decimal.Decimal), type_), node, type_)
    except ValueDoesNotFit as misfit:
        raise ValueError(misfit.message()) from misfit


def _encoded(value: object, node: tree.AvroType, type_: t.Type) -> Json:
    """A canonical value as the JSON of an Avro default."""
    match node, type_:
        case tree.Union(), _:
            return None if value is None else _encoded(value, tree.values_of(node)[0], type_)
        case tree.Record(), t.Record() if isinstance(value, dict):
            types = {member.name: member.type for member in node.fields}
            return {f.name: _encoded(value[f.name], types[f.name], f.type) for f in type_.fields}
        case tree.Array(), t.Array() if isinstance(value, list):
            return [_encoded(one, node.items, type_.element) for one in value]
        case tree.Map(), t.Map() if isinstance(value, dict):
            return {key: _encoded(one, node.values, type_.value) for key, one in value.items()}
        case ((tree.Primitive() | tree.Fixed()), _) if tree.kind_of(node) in ("bytes", "fixed"):
            return _to_bytes(value, node).decode("latin-1")
        case tree.Primitive(), t.Date() | t.Time() | t.Timestamp() | t.TimestampTz() if node.kind in ("int", "long"):
            return _microseconds(value) // _unit(node)
        case _:
            return cast("Json", to_json(value, type_))


def _to_bytes(value: object, node: tree.Primitive | tree.Fixed) -> bytes:
    """The bytes of a decimal, a uuid or bytes. A fixed has bytes in front that repeat the sign."""
    match value:
        case decimal.Decimal():
            unscaled = int(value.scaleb(-int(value.as_tuple().exponent), decimal.Context(prec=t.MAX_PRECISION)))
            size = node.size if isinstance(node, tree.Fixed) else unscaled.bit_length() // 8 + 1
            return unscaled.to_bytes(size, "big", signed=True)
        case uuid.UUID():
            return value.bytes
        case bytes():
            return value
        case _:
            raise ValueError(type(value).__name__)


def _microseconds(value: object) -> int:
    """The microseconds of a date or time since the epoch. A time of day counts from midnight."""
    match value:
        case dt.datetime():
            moment = value.replace(tzinfo=None)
        case dt.date():
            moment = dt.datetime(value.year, value.month, value.day)
        case dt.time():
            moment = dt.datetime.combine(EPOCH.date(), value)
        case _:
            raise ValueError(type(value).__name__)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)
