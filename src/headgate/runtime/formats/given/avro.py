"""Rows -> records of a given Avro schema. fastavro writes the bytes.

It gets the schema without logical types: values are turned into plain numbers, texts and bytes here, so that nothing is
rounded and every error has a path.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import fastavro

from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.values import Unwritable
from headgate.schema import types as t
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import CONNECT_MICROSECONDS, DAY, to_json
from headgate.schema.written import WrittenSchema

Node: TypeAlias = Any
"""A schema as fastavro has parsed it: a name, a list of branches, or an object with a type."""

Make: TypeAlias = Callable[[Any], Any]
"""From a value that may be null to what fastavro writes. Raises Unwritable."""

_HIDDEN = {"logicalType": "headgate.logicalType", "default": "headgate.default"}
_LOGICAL, _DEFAULT = _HIDDEN["logicalType"], _HIDDEN["default"]
_UNITS = {"millis": 1000, "micros": 1}
_NAMED = ("record", "error", "enum", "fixed")


class AvroWriter:
    """Writes values of one type with one schema. Of a whole value that is no record, ``type_`` is the type."""

    def __init__(self, schema: WrittenSchema, type_: t.Type) -> None:
        self._named: dict[str, Node] = {}
        for _, text in schema.references:
            fastavro.parse_schema(_hidden(json.loads(text)), named_schemas=self._named)
        self._schema = fastavro.parse_schema(_hidden(_document(schema.text)), named_schemas=self._named)
        self._make = self._top(self._schema, type_)

    def encode(self, value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, self._make(value))
        return out.getvalue()

    def _top(self, node: Node, type_: t.Type) -> Make:
        definition = self._definition(node)
        branches = _values_of(definition)
        if isinstance(definition, list) and len(branches) > 1 and isinstance(type_, t.Record):
            return self._union_of_records(branches, type_)
        return self._maker(node, type_, ROOT)

    # --- one node

    def _maker(self, node: Node, type_: t.Type, path: str) -> Make:
        """The values of a node. Null is refused unless the node is a union with null."""
        node = self._definition(node)
        if isinstance(node, list):
            (branch,) = _values_of(node)
            inner, name = self._maker(branch, type_, path), self._name(branch)
            if len(node) == 1:
                return lambda value: (name, inner(value))
            return lambda value: None if value is None else (name, inner(value))
        inner = self._not_null(node, type_, path)

        def make(value: Any) -> Any:
            if value is None:
                raise Unwritable(path, v.MISSING)
            return inner(value)

        return make

    def _not_null(self, node: Node, type_: t.Type, path: str) -> Make:
        match node["type"], type_:
            case (("record" | "error"), t.Record()):
                return self._record(node, type_, path)
            case "array", t.Array(element):
                each = self._maker(node["items"], element, element_path(path))
                return lambda items: [each(item) for item in items]
            case "map", t.Map(inner):
                one = self._maker(node["values"], inner, value_path(path))
                return lambda entries: {key: one(value) for key, value in entries.items()}
            case "enum", _:
                symbols = frozenset(node["symbols"])
                return lambda value: _symbol(value, symbols, path)
            case _:
                return _scalar(node, type_, path)

    def _record(self, node: Node, type_: t.Record, path: str) -> Make:
        parts = [
            (field["name"], self._field(field, type_, field_path(path, field["name"]))) for field in node["fields"]
        ]

        def make(row: Any) -> dict[str, Any]:
            return {name: part(row) for name, part in parts}

        return make

    def _field(self, field: Node, type_: t.Record, path: str) -> Make:
        """The value of a field, made from the row."""
        definition = self._definition(field["type"])
        branches = _values_of(definition)
        nullable = isinstance(definition, list) and len(branches) < len(definition)
        instead = self._instead(field, nullable)
        if len(branches) > 1:
            return self._branches(field["name"], branches, type_, path, instead)
        name, column = field["name"], type_.field(field["name"])
        if column is None:
            return lambda _: instead(path, v.NO_COLUMN)
        inner = self._maker(field["type"], column.type, path)
        if nullable:
            return lambda row: inner(row[name])
        return lambda row: instead(path, v.MISSING) if row[name] is None else inner(row[name])

    def _instead(self, field: Node, nullable: bool) -> Callable[[str, str], Any]:
        """What is written where there is no value: the default of the field, null, or nothing at all."""
        if _DEFAULT in field:
            default = self._default(field["type"], field[_DEFAULT])
            return lambda _path, _reason: default
        if nullable:
            return lambda _path, _reason: None
        return _refuse

    def _branches(
        self, name: str, branches: list[Node], type_: t.Record, path: str, instead: Callable[[str, str], Any]
    ) -> Make:
        """A union of several types. Each has a column of its own: the name of the field and a number."""
        makers: list[tuple[str, str, Make]] = []
        for number, branch in enumerate(branches, 1):
            column = type_.field(f"{name}{number}")
            if column is not None:
                makers.append((column.name, self._name(branch), self._maker(branch, column.type, path)))

        def make(row: Any) -> Any:
            given = [(tag, maker, row[at]) for at, tag, maker in makers if row[at] is not None]
            if len(given) > 1:
                raise Unwritable(path, v.TWO_BRANCHES)
            return (given[0][0], given[0][1](given[0][2])) if given else instead(path, v.MISSING)

        return make

    def _union_of_records(self, branches: list[Node], type_: t.Record) -> Make:
        makers: list[tuple[str, str, Make]] = []
        for branch in branches:
            simple = self._name(branch).rpartition(".")[2]
            column = type_.field(simple)
            if column is not None:
                makers.append((simple, self._name(branch), self._maker(branch, column.type, field_path(ROOT, simple))))

        def make(row: Any) -> Any:
            given = [(tag, maker, row[at]) for at, tag, maker in makers if row[at] is not None]
            if len(given) != 1:
                raise Unwritable(ROOT, v.TWO_BRANCHES if given else v.MISSING)
            return given[0][0], given[0][1](given[0][2])

        return make

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

    def _name(self, branch: Node) -> str:
        """What fastavro calls a branch of a union."""
        node = self._definition(branch)
        return str(node["name"] if node["type"] in _NAMED else node["type"])

    def _default(self, node: Node, default: Any) -> Any:
        """A default as schemas write it: bytes as text of code points up to 255, a union by its first branch."""
        node = self._definition(node)
        if isinstance(node, list):
            return None if default is None else (self._name(node[0]), self._default(node[0], default))
        match node["type"]:
            case "bytes" | "fixed":
                return str(default).encode("latin-1")
            case "array":
                return [self._default(node["items"], item) for item in default]
            case "map":
                return {key: self._default(node["values"], item) for key, item in default.items()}
            case "record" | "error":
                own = {field["name"]: field.get(_DEFAULT) for field in node["fields"]}
                members = {**own, **default}
                return {field["name"]: self._default(field["type"], members[field["name"]]) for field in node["fields"]}
            case _:
                return default


def _document(text: str) -> Any:
    """The schema as JSON. The name of a primitive may stand without quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _hidden(schema: Any) -> Any:
    """The schema with logical types and defaults under names that fastavro does not know."""
    if isinstance(schema, dict):
        return {_HIDDEN.get(key, key): _hidden(member) for key, member in schema.items()}
    return [_hidden(member) for member in schema] if isinstance(schema, list) else schema


def _values_of(node: Node) -> list[Node]:
    """The branches besides null; of a node that is no union, the node itself."""
    if not isinstance(node, list):
        return [node]
    return [branch for branch in node if branch != "null" and branch != {"type": "null"}]


def _refuse(path: str, reason: str) -> Any:
    raise Unwritable(path, reason)


def _symbol(value: Any, symbols: frozenset[str], path: str) -> Any:
    if value not in symbols:
        raise Unwritable(path, v.NO_SYMBOL)
    return value


def _scalar(node: Node, type_: t.Type, path: str) -> Make:
    """A primitive or fixed, with or without a logical type."""
    kind = node["type"]
    match type_:
        case t.Decimal(precision, scale):
            size = node.get("size") if kind == "fixed" else None
            return lambda value: _decimal_bytes(v.scaled(value, precision, scale, path), size)
        case t.Date() | t.Time() | t.Timestamp() | t.TimestampTz() if kind == "string":
            return lambda value: to_json(value, type_)
        case t.Date() | t.Time() | t.Timestamp() | t.TimestampTz():
            step = _step(node)
            return lambda value: v.in_steps(value, type_, step, path)
        case t.Uuid():
            if kind == "fixed":
                return lambda value: v.as_uuid(value, path).bytes
            return lambda value: str(v.as_uuid(value, path))
        case t.Bytes() if kind == "fixed":
            size = node["size"]
            return lambda value: _of_length(value, size, path)
        case t.Real() | t.Double():
            return float
        case _:
            return lambda value: value


def _step(node: Node) -> int:
    """The microseconds of one step of a date or time."""
    connect = CONNECT_MICROSECONDS.get(node.get("connect.name", ""))
    if connect is not None:
        return connect
    logical = str(node.get(_LOGICAL, ""))
    return DAY if logical == "date" else _UNITS[logical.rpartition("-")[2]]


def _decimal_bytes(number: int, size: int | None) -> bytes:
    return number.to_bytes(size or max(1, (number.bit_length() + 8) // 8), "big", signed=True)


def _of_length(value: bytes, length: int, path: str) -> bytes:
    if len(value) != length:
        raise Unwritable(path, v.OTHER_LENGTH)
    return value
