"""Avro's primitives and fixed, with their logical types, in the notation of specs."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, assert_never

import fastavro

from headgate.schema.formats.avro.tree import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    kind_of,
)
from headgate.schema.formats.documents import Json as PlainJson
from headgate.testing import notation
from headgate.testing.errors import InvalidRecord
from headgate.testing.notation import Branch, Json

_SPECIAL = ("NaN", "Infinity", "-Infinity")
_UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


def read(node: Primitive | Fixed, value: Json, path: str) -> object:
    """What fastavro writes for a value. Raises InvalidRecord."""
    kind, logical = _kind(node), node.attributes.get("logicalType")
    try:
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _read_decimal(node, value)
        if isinstance(value, str) and isinstance(logical, str) and kind in ("int", "long"):
            return _read_moment(logical, value)
        return _read_plain(node, kind, value)
    except (ValueError, InvalidOperation, OverflowError, TypeError) as error:
        raise InvalidRecord(path, f"a value of type {logical or kind} is wanted ({error})") from error


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
        return notation.read_date(text)
    if unit not in _UNITS:
        raise ValueError("a number is wanted")
    if family == "time":
        return notation.read_time(text, _UNITS[unit])
    if family == "timestamp" and not text.endswith("Z"):
        raise ValueError("a timestamp in UTC ends in Z")
    if family == "local-timestamp" and text.endswith("Z"):
        raise ValueError("a local timestamp has no zone")
    return notation.read_moment(text, _UNITS[unit])


def _write_moment(logical: str, number: int) -> Json:
    family, _, unit = logical.rpartition("-")
    if logical == "date":
        return notation.write_date(number)
    if unit not in _UNITS:
        return number
    if family == "time":
        return notation.write_time(number, _UNITS[unit])
    if family in ("timestamp", "local-timestamp"):
        return notation.write_moment(number, _UNITS[unit], "Z" if family == "timestamp" else "")
    return number


_ROOT = "headgate_testing_root"


class AvroCodec:
    """One schema, given as linked nodes."""

    def __init__(self, node: AvroType) -> None:
        self._node = node
        known: dict[str, Any] = {}
        for leaf in _leaves(node):
            fastavro.parse_schema(_definition(leaf), named_schemas=known)
        # A record of one field has the bytes of the field, and only a record's names can be given to fastavro.
        root = {
            "type": "record",
            "name": _ROOT,
            "fields": [{"name": "it", "type": _schema(node, set(known))}],
        }
        self._schema = fastavro.parse_schema(root, named_schemas=known)

    def encode(self, value: Json) -> bytes:
        """Raises InvalidRecord."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, {"it": _datum(self._node, value, "$")})
        return out.getvalue()

    def decode(self, data: bytes) -> Json:
        """Raises InvalidRecord where the bytes are not a record of the schema, also when there are more than it has."""
        source = io.BytesIO(data)
        try:
            found = fastavro.schemaless_reader(source, self._schema, None, return_named_type=True)
        except Exception as error:
            raise InvalidRecord("$", f"the bytes are no such record ({type(error).__name__})") from error
        if source.read(1):
            raise InvalidRecord("$", "there are more bytes than the schema has")
        assert isinstance(found, dict)
        return _shown(self._node, found["it"])


# --- the schema for fastavro


def _leaves(node: AvroType) -> Iterable[Enum | Fixed]:
    """Every enum and fixed, each once."""
    found: dict[str, Enum | Fixed] = {}
    waiting, seen = [node], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Enum | Fixed):
            found[one.name.full] = one
        waiting.extend(_children(one))
    return found.values()


def _children(node: AvroType) -> list[AvroType]:
    match node:
        case Array(items=inner) | Map(values=inner):
            return [inner]
        case Union():
            return list(node.branches)
        case Record():
            return [field.type for field in node.fields]
        case Primitive() | Enum() | Fixed():
            return []
        case _:
            assert_never(node)


def _definition(leaf: Enum | Fixed) -> dict[str, object]:
    if isinstance(leaf, Enum):
        return {"type": "enum", "name": leaf.name.full, "symbols": list(leaf.symbols)}
    return {"type": "fixed", "name": leaf.name.full, "size": leaf.size}


def _schema(node: AvroType, defined: set[str]) -> object:
    match node:
        case Primitive():
            return node.kind
        case Array():
            return {"type": "array", "items": _schema(node.items, defined)}
        case Map():
            return {"type": "map", "values": _schema(node.values, defined)}
        case Union():
            return [_schema(branch, defined) for branch in node.branches]
        case Enum() | Fixed() | Record():
            full = node.name.full
            if full in defined or not isinstance(node, Record):
                return full
            defined.add(full)
            fields = [{"name": field.name, "type": _schema(field.type, defined)} for field in node.fields]
            return {"type": "record", "name": full, "fields": fields}
        case _:
            assert_never(node)


# --- a value of a spec to what fastavro writes


def _datum(node: AvroType, value: Json, path: str) -> object:
    if isinstance(value, Branch):
        value = {value.names[0]: value.value}
    match node:
        case Primitive() | Fixed():
            return read(node, value, path)
        case Enum():
            if value not in node.symbols:
                raise InvalidRecord(path, f"a symbol of enum {node.name.full} is wanted")
            return value
        case Array():
            if not isinstance(value, list):
                raise InvalidRecord(path, "an array is wanted")
            return [_datum(node.items, item, f"{path}[{index}]") for index, item in enumerate(value)]
        case Map():
            if not isinstance(value, dict):
                raise InvalidRecord(path, "an object is wanted")
            return {key: _datum(node.values, item, f"{path}.{key}") for key, item in value.items()}
        case Record():
            return _record(node, value, path)
        case Union():
            branch, chosen = _choose(node, value, path)
            return _tagged(branch, chosen)
        case _:
            assert_never(node)


def _record(node: Record, value: Json, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidRecord(path, f"an object for record {node.name.full} is wanted")
    unknown = value.keys() - {field.name for field in node.fields}
    if unknown:
        raise InvalidRecord(path, f'record {node.name.full} has no field "{sorted(unknown)[0]}"')
    return {field.name: _field(field, value, path) for field in node.fields}


def _field(field: Field, value: dict[str, Json], path: str) -> object:
    if field.name in value:
        return _datum(field.type, value[field.name], f"{path}.{field.name}")
    if not field.has_default:
        raise InvalidRecord(path, f'field "{field.name}" is missing and has no default')
    return _default(field.type, field.default)


def _default(node: AvroType, default: PlainJson) -> object:
    """A default as the schema writes it: bytes as text of code points up to 255, unions by their first branch."""
    match node:
        case Primitive(kind="bytes") | Fixed():
            return str(default).encode("latin-1")
        case Union():
            return _tagged(node.branches[0], _default(node.branches[0], default))
        case Array() if isinstance(default, list):
            return [_default(node.items, item) for item in default]
        case Map() if isinstance(default, dict):
            return {key: _default(node.values, item) for key, item in default.items()}
        case Record() if isinstance(default, dict):
            return {
                field.name: _default(field.type, default.get(field.name, field.default))
                for field in node.fields
            }
        case _:
            return default


def _choose(union: Union, value: Json, path: str) -> tuple[AvroType, object]:
    """The branch for a value, and the value as that branch has it."""
    fitting = [(branch, found[0]) for branch in union.branches if (found := _fits(branch, value)) is not None]
    if len(fitting) != 1 and isinstance(value, dict) and len(value) == 1:
        [(name, inner)] = value.items()
        for branch in union.branches:
            if name in branch_names(branch):
                return branch, _datum(branch, inner, f"{path}.{name}")
    if not fitting:
        names = ", ".join(branch_names(branch)[0] for branch in union.branches)
        raise InvalidRecord(path, f"no branch of the union ({names}) takes the value")
    return fitting[0]


def _fits(branch: AvroType, value: Json) -> tuple[object] | None:
    try:
        return (_datum(branch, value, "$"),)
    except InvalidRecord:
        return None


def branch_names(branch: AvroType) -> tuple[str, ...]:
    if isinstance(branch, Record | Enum | Fixed):
        return tuple(dict.fromkeys((branch.name.full, branch.name.simple)))
    return (kind_of(branch),)


def _tagged(branch: AvroType, datum: object) -> object:
    """fastavro's way to name a branch. Of arrays and maps a union has one each, which it finds by itself."""
    if datum is None or isinstance(branch, Array | Map):
        return datum
    return (branch_names(branch)[0], datum)


# --- what fastavro read, in the notation of specs


def _shown(node: AvroType, datum: Any) -> Json:
    match node:
        case Primitive() | Fixed():
            return write(node, datum)
        case Enum():
            return str(datum)
        case Array():
            return [_shown(node.items, item) for item in datum]
        case Map():
            return {key: _shown(node.values, item) for key, item in datum.items()}
        case Record():
            return {field.name: _shown(field.type, datum[field.name]) for field in node.fields}
        case Union():
            return _shown_branch(node, datum)
        case _:
            assert_never(node)


def _shown_branch(union: Union, datum: Any) -> Json:
    taken = [branch for branch in union.branches if _is_of(branch, datum)]
    if not taken:
        raise InvalidRecord("$", "a branch of a union is not known")
    branch = taken[0]
    value = _shown(branch, datum[1] if isinstance(datum, tuple) else datum)
    if value is None:
        return None
    written = int(value) if isinstance(value, float) and value.is_integer() else value
    is_needed = sum(_fits(other, written) is not None for other in union.branches) > 1
    return Branch(tuple(name for one in taken for name in branch_names(one)), value, is_needed)


def _is_of(branch: AvroType, datum: object) -> bool:
    """Named types come with their name; of primitives, only int and long, float and double look alike."""
    if isinstance(datum, tuple):
        return bool(branch_names(branch)[0] == datum[0])
    match branch:
        case Primitive(kind="null"):
            return datum is None
        case Primitive(kind="boolean"):
            return isinstance(datum, bool)
        case Primitive(kind="int" | "long"):
            return isinstance(datum, int) and not isinstance(datum, bool)
        case Primitive(kind="float" | "double"):
            return isinstance(datum, float)
        case Primitive(kind="bytes"):
            return isinstance(datum, bytes)
        case Primitive(kind="string"):
            return isinstance(datum, str)
        case Array():
            return isinstance(datum, list)
        case Map():
            return isinstance(datum, dict)
        case _:
            return False
