"""Avro in the notation of specs: bytes and fixed as hex digits, decimals as strings, dates and times in ISO form,
unions plain or as `{"branch": value}`.

fastavro reads the schema and the bytes. It is given the schema without logical types and defaults: Python's dates hold
neither nanoseconds nor the years that Avro can, and a default may be one that only other readers take.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import fastavro

from headgate.testing import notation
from headgate.testing.errors import InvalidRecord

# A schema as fastavro has parsed it: a name, a list of branches, or an object with a type.
Node: TypeAlias = Any

_SPECIAL = ("NaN", "Infinity", "-Infinity")
_UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_BITS = {"int": 31, "long": 63}
_NAMED = ("record", "error", "enum", "fixed")
_HIDDEN = {"logicalType": "headgate.logicalType", "default": "headgate.default"}
# What fastavro returns for the types that have no name.
_CLASSES: dict[str, type] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": float, "double": float, "bytes": bytes,
    "string": str, "array": list, "map": dict,
}  # fmt: skip


class AvroCodec:
    """One schema. ``references`` are the definitions that it uses, each behind those that it uses itself."""

    def __init__(self, definition: object, references: Sequence[object] = ()) -> None:
        self._named: dict[str, Node] = {}
        for reference in references:
            fastavro.parse_schema(_hidden(reference), named_schemas=self._named)
        self._schema = fastavro.parse_schema(_hidden(definition), named_schemas=self._named)

    def encode(self, value: notation.Json) -> bytes:
        """Raises InvalidRecord."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, self._datum(self._schema, value, "$"))
        return out.getvalue()

    def decode(self, data: bytes) -> notation.Json:
        """Raises InvalidRecord if the bytes are not exactly one record of the schema."""
        source = io.BytesIO(data)
        try:
            datum = fastavro.schemaless_reader(source, self._schema, None, return_named_type=True)
        except Exception as error:
            raise InvalidRecord("$", f"the bytes are no such record ({type(error).__name__})") from error
        if source.read(1):
            raise InvalidRecord("$", "there are more bytes than the schema has")
        return self._value(self._schema, datum)

    # --- from the notation to what fastavro writes

    def _datum(self, node: Node, value: notation.Json, path: str) -> object:
        """The value for a node, as fastavro takes it. Raises InvalidRecord with the path."""
        node = self._definition(node)
        if isinstance(value, notation.Branch):
            value = {value.names[0]: value.value}
        if isinstance(node, list):
            return self._union(node, value, path)
        match node["type"]:
            case "record" | "error":
                return self._record(node, value, path)
            case "enum":
                if value not in node["symbols"]:
                    raise InvalidRecord(path, f"a symbol of enum {node['name']} is wanted")
                return value
            case "array":
                if not isinstance(value, list):
                    raise InvalidRecord(path, "an array is wanted")
                return [self._datum(node["items"], item, f"{path}[{at}]") for at, item in enumerate(value)]
            case "map":
                if not isinstance(value, dict):
                    raise InvalidRecord(path, "an object is wanted")
                return {key: self._datum(node["values"], item, f"{path}.{key}") for key, item in value.items()}
            case _:
                return _read_scalar(node, value, path)

    def _record(self, node: Node, value: notation.Json, path: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise InvalidRecord(path, f"an object for record {node['name']} is wanted")
        unknown = value.keys() - {field["name"] for field in node["fields"]}
        if unknown:
            raise InvalidRecord(path, f'record {node["name"]} has no field "{sorted(unknown)[0]}"')
        return {field["name"]: self._field(field, value, path) for field in node["fields"]}

    def _field(self, field: Node, value: dict[str, notation.Json], path: str) -> object:
        name = field["name"]
        if name in value:
            return self._datum(field["type"], value[name], f"{path}.{name}")
        if _HIDDEN["default"] not in field:
            raise InvalidRecord(path, f'field "{name}" is missing and has no default')
        return self._default(field["type"], field[_HIDDEN["default"]])

    def _default(self, node: Node, default: Any) -> object:
        """A default as schemas write it: bytes as text of code points up to 255, a union by its first branch."""
        node = self._definition(node)
        if isinstance(node, list):
            return self._tagged(node[0], self._default(node[0], default))
        match node["type"]:
            case "bytes" | "fixed":
                return str(default).encode("latin-1")
            case "array":
                return [self._default(node["items"], item) for item in default]
            case "map":
                return {key: self._default(node["values"], item) for key, item in default.items()}
            case "record" | "error":
                own = {field["name"]: field.get(_HIDDEN["default"]) for field in node["fields"]}
                members = {**own, **default}
                return {field["name"]: self._default(field["type"], members[field["name"]]) for field in node["fields"]}
            case _:
                return default

    def _union(self, branches: list[Node], value: notation.Json, path: str) -> object:
        """The one branch that takes the value, or else the one that it names, or else the first that takes it."""
        fitting = [(branch, found[0]) for branch in branches if (found := self._fits(branch, value)) is not None]
        if len(fitting) != 1 and isinstance(value, dict) and len(value) == 1:
            [(name, inner)] = value.items()
            for branch in branches:
                if name in self._names(branch):
                    return self._tagged(branch, self._datum(branch, inner, f"{path}.{name}"))
        if not fitting:
            names = ", ".join(self._names(branch)[0] for branch in branches)
            raise InvalidRecord(path, f"no branch of the union ({names}) takes the value")
        return self._tagged(*fitting[0])

    def _fits(self, branch: Node, value: notation.Json) -> tuple[object] | None:
        try:
            return (self._datum(branch, value, "$"),)
        except InvalidRecord:
            return None

    def _tagged(self, branch: Node, datum: object) -> object:
        """fastavro's way to choose a branch."""
        return (self._names(branch)[0], datum)

    # --- from what fastavro reads to the notation

    def _value(self, node: Node, datum: Any) -> notation.Json:
        """The value for a node, in the notation."""
        node = self._definition(node)
        if isinstance(node, list):
            return self._branch(node, datum)
        match node["type"]:
            case "record" | "error":
                return {field["name"]: self._value(field["type"], datum[field["name"]]) for field in node["fields"]}
            case "array":
                return [self._value(node["items"], item) for item in datum]
            case "map":
                return {key: self._value(node["values"], item) for key, item in datum.items()}
            case _:
                return _write_scalar(node, datum)

    def _branch(self, branches: list[Node], datum: Any) -> notation.Json:
        """fastavro gives the name of a named type with its value. Other types are recognised by their class, which
        leaves only int and long, float and double alike."""
        if datum is None:
            return None
        if isinstance(datum, tuple):
            taken = [branch for branch in branches if self._names(branch)[0] == datum[0]]
            datum = datum[1]
        else:
            taken = [branch for branch in branches if _CLASSES.get(self._names(branch)[0]) is type(datum)]
        value = self._value(taken[0], datum)
        written = int(value) if isinstance(value, float) and value.is_integer() else value
        is_needed = sum(self._fits(branch, written) is not None for branch in branches) > 1
        return notation.Branch(tuple(name for branch in taken for name in self._names(branch)), value, is_needed)

    # --- schemas

    def _definition(self, node: Node) -> Node:
        """An object with a type that is a word, or a list of branches."""
        while isinstance(node, dict) and not isinstance(node["type"], str):
            node = node["type"]
        if isinstance(node, dict) and node["type"] in self._named:
            node = node["type"]
        if isinstance(node, str):
            return self._named.get(node, {"type": node})
        return node

    def _names(self, branch: Node) -> tuple[str, ...]:
        """What a branch may be called in `{"branch": value}`: its full name first, then its simple one."""
        node = self._definition(branch)
        if node["type"] in _NAMED:
            return tuple(dict.fromkeys((node["name"], node["name"].rpartition(".")[2])))
        return (node["type"],)


def _hidden(schema: Any) -> Any:
    """The schema with logical types and defaults under names that fastavro does not know."""
    if isinstance(schema, dict):
        return {_HIDDEN.get(key, key): _hidden(member) for key, member in schema.items()}
    return [_hidden(member) for member in schema] if isinstance(schema, list) else schema


# --- scalars


def _read_scalar(node: Node, value: notation.Json, path: str) -> object:
    """A value of the notation as fastavro writes it. Raises InvalidRecord."""
    kind, logical = node["type"], node.get(_HIDDEN["logicalType"])
    try:
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _read_decimal(node, value)
        if isinstance(value, str) and isinstance(logical, str) and kind in _BITS:
            return _read_moment(logical, value)
        return _read_plain(node, kind, value)
    except (ValueError, InvalidOperation, OverflowError, TypeError) as error:
        raise InvalidRecord(path, f"a value of type {logical or kind} is wanted ({error})") from error


def _write_scalar(node: Node, datum: Any) -> notation.Json:
    """A value as fastavro reads it, in the notation."""
    kind, logical = node["type"], node.get(_HIDDEN["logicalType"])
    if kind in ("bytes", "fixed"):
        return _write_decimal(node, datum) if logical == "decimal" else datum.hex()
    if kind in _BITS and isinstance(logical, str):
        try:
            return _write_moment(logical, datum)
        except (OverflowError, ValueError):  # no calendar has this day
            return int(datum)
    return notation.shortest_float(datum) if kind == "float" else datum


def _read_plain(node: Node, kind: str, value: notation.Json) -> object:
    """A value of a type without a logical type. Raises ValueError."""
    match kind, value:
        case ("null", None) | ("boolean", bool()) | ("string", str()):
            return value
        case (("int" | "long"), int()) if not isinstance(value, bool):
            if not -(2 ** _BITS[kind]) <= value < 2 ** _BITS[kind]:
                raise ValueError("it is out of range")
            return value
        case (("float" | "double"), int() | float() | Decimal()) if not isinstance(value, bool):
            return float(value)
        case (("float" | "double"), str()) if value in _SPECIAL:
            return float(value)
        case (("bytes" | "fixed"), str()):
            data = bytes.fromhex(value)
            if kind == "fixed" and len(data) != node["size"]:
                raise ValueError(f"{node['size']} bytes are wanted")
            return data
        case _:
            raise ValueError("another kind of value was given")


def _read_decimal(node: Node, value: notation.Json) -> bytes:
    """The bytes of a decimal. Digits that the scale does not hold are an error, never rounded."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("decimals are written as strings")
    scale = _scale(node)
    scaled = Decimal(value).scaleb(scale, notation.EXACT)
    if scaled != scaled.to_integral_value(context=notation.EXACT):
        raise ValueError(f"it has more than {scale} digits behind the point")
    unscaled = int(scaled)
    size = node["size"] if node["type"] == "fixed" else max(1, (unscaled.bit_length() + 8) // 8)
    return unscaled.to_bytes(size, "big", signed=True)


def _write_decimal(node: Node, data: bytes) -> str:
    unscaled = Decimal(int.from_bytes(data, "big", signed=True))
    return format(unscaled.scaleb(-_scale(node), notation.EXACT), "f")


def _scale(node: Node) -> int:
    scale = node.get("scale", 0)
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


def _write_moment(logical: str, number: int) -> notation.Json:
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
