"""Avro schema JSON into linked nodes, by the rules of the Avro 1.12 specification.

Every fault is collected with its path (``$.fields[2].type``) before anything is raised. A type may use the names of
types defined before it, itself included, and those of the schemas it refers to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.errors import did_you_mean, similar_names
from headgate.registry.errors import Fault, MalformedSchema
from headgate.registry.parsing.avro_defaults import misfits
from headgate.registry.parsing.avro_nodes import (
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Named,
    Primitive,
    Record,
    Union,
    describe,
)
from headgate.registry.parsing.json_text import Json

SCHEMA_ATTRIBUTES = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
ENUM_ATTRIBUTES = SCHEMA_ATTRIBUTES | {"default"}
FIELD_ATTRIBUTES = frozenset(("default", "doc", "name", "order", "type", "aliases"))
ORDERS = ("ascending", "descending", "ignore")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BROKEN = (
    "null"  # stands for a type that could not be read, so that reading goes on and finds the other faults
)


def read_avro(
    definition: Json, known: Mapping[str, Named] | None = None
) -> tuple[AvroType, dict[str, Named]]:
    """The type that ``definition`` describes, and all named types by full name, the ``known`` ones included."""
    reading = _Reading(dict(known or {}))
    node = reading.type_at(definition, "$", "")
    reading.check_defaults()
    if reading.faults:
        raise MalformedSchema("AVRO", tuple(reading.faults))
    return node, reading.names


class _Reading:
    """One pass over a schema: the names known so far and the faults found so far."""

    def __init__(self, names: dict[str, Named]) -> None:
        self.names = names
        self.faults: list[Fault] = []
        self._defaults: list[tuple[Field, str]] = []

    def fault(self, path: str, reason: str) -> None:
        self.faults.append(Fault(path, reason))

    def type_at(self, definition: Json, path: str, space: str) -> AvroType:
        match definition:
            case str():
                return self._by_name(definition, path, space)
            case list():
                return self._union(definition, path, space)
            case dict():
                return self._object(definition, path, space)
            case _:
                self.fault(path, "a type is a name, an object or an array of types")
                return Primitive(_BROKEN)

    def check_defaults(self) -> None:
        """After the whole schema is known, because a default may be of a record that is not complete before."""
        for member, path in self._defaults:
            self.faults.extend(Fault(*misfit) for misfit in misfits(member.default, member.type, path))

    def _object(self, node: dict[str, Json], path: str, space: str) -> AvroType:
        kind = node.get("type")
        match kind:
            case "record" | "error":
                return self._record(node, path, space)
            case "enum":
                return self._enum(node, path, space)
            case "fixed":
                return self._fixed(node, path, space)
            case "array":
                return Array(self._child(node, "items", path, space), _others(node))
            case "map":
                return Map(self._child(node, "values", path, space), _others(node))
            case str() if kind in PRIMITIVES:
                return Primitive(kind, _others(node))
            case str():
                # {"type": "a.B"} is how some writers refer to a named type; Java read it until 1.11.
                return self._by_name(kind, f"{path}.type", space)
            case _:
                self.fault(path, 'a type written as an object needs a text in "type"')
                return Primitive(_BROKEN)

    def _child(self, node: dict[str, Json], key: str, path: str, space: str) -> AvroType:
        if key not in node:
            self.fault(path, f'{node["type"]} without "{key}"')
            return Primitive(_BROKEN)
        return self.type_at(node[key], f"{path}.{key}", space)

    def _by_name(self, name: str, path: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        # A simple name that its namespace does not have may be one of the null namespace, as in Java.
        candidates = (name,) if "." in name or not space else (f"{space}.{name}", name)
        for full in candidates:
            if full in self.names:
                return self.names[full]
        near = did_you_mean(similar_names(name, (*self.names, *PRIMITIVES)))
        self.fault(path, f'type "{name}" is not defined before its use{"; " + near.lower() if near else ""}')
        return Primitive(_BROKEN)

    def _union(self, branches: list[Json], path: str, space: str) -> Union:
        if not branches:
            self.fault(path, "a union needs at least one branch")
        nodes = tuple(self.type_at(branch, f"{path}[{i}]", space) for i, branch in enumerate(branches))
        seen: set[str] = set()
        for index, node in enumerate(nodes):
            key = describe(node)
            if isinstance(node, Union):
                self.fault(f"{path}[{index}]", "a union cannot directly contain another union")
            elif key in seen:
                self.fault(f"{path}[{index}]", f"the union has {key} twice")
            seen.add(key)
        return Union(nodes)

    def _record(self, node: dict[str, Json], path: str, space: str) -> Record:
        name = self._name(node, path, space)
        record = Record(
            name, (), self._aliases(node, path, name.space), self._text(node, "doc", path), _others(node)
        )
        record.is_error = node["type"] == "error"
        self._define(record, path)
        fields = node.get("fields")
        if not isinstance(fields, list):
            self.fault(path, f'record "{name.full}" needs an array of "fields"')
            return record
        record.fields = tuple(
            self._field(member, f"{path}.fields[{i}]", name.space) for i, member in enumerate(fields)
        )
        self._refuse_twins([member.name for member in record.fields], f"{path}.fields", "field")
        return record

    def _field(self, node: Json, path: str, space: str) -> Field:
        if not isinstance(node, dict):
            self.fault(path, "a field is an object")
            return Field("", Primitive(_BROKEN))
        name = node.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.fault(
                f"{path}.name", f'{_quoted(name)} is no name of a field: write letters, digits and "_"'
            )
            name = ""
        if "type" not in node:
            self.fault(path, f'field "{name}" has no type')
        member = Field(name, self.type_at(node.get("type", _BROKEN), f"{path}.type", space))
        member.aliases = self._texts(node, "aliases", path)
        member.doc = self._text(node, "doc", path)
        member.attributes = {key: value for key, value in node.items() if key not in FIELD_ATTRIBUTES}
        self._order(node, member, path)
        if "default" in node:
            member.has_default, member.default = True, node["default"]
            self._defaults.append((member, f"{path}.default"))
        return member

    def _order(self, node: dict[str, Json], member: Field, path: str) -> None:
        order = node.get("order", "ascending")
        if isinstance(order, str) and order.lower() in ORDERS:
            member.order = order.lower()
        else:
            self.fault(f"{path}.order", f"the order of a field is one of {', '.join(ORDERS)}")

    def _enum(self, node: dict[str, Json], path: str, space: str) -> Enum:
        name = self._name(node, path, space)
        symbols = self._texts(node, "symbols", path)
        if "symbols" not in node:
            self.fault(path, f'enum "{name.full}" needs an array of "symbols"')
        for index, symbol in enumerate(symbols):
            if not _NAME.fullmatch(symbol):
                self.fault(f"{path}.symbols[{index}]", f"{_quoted(symbol)} is no symbol of an enum")
        self._refuse_twins(list(symbols), f"{path}.symbols", "symbol")
        default = self._text(node, "default", path)
        if default is not None and default not in symbols:
            self.fault(f"{path}.default", f'"{default}" is no symbol of enum "{name.full}"')
        aliases, doc = self._aliases(node, path, name.space), self._text(node, "doc", path)
        enum = Enum(name, symbols, default, aliases, doc, _others(node, ENUM_ATTRIBUTES))
        self._define(enum, path)
        return enum

    def _fixed(self, node: dict[str, Json], path: str, space: str) -> Fixed:
        name, size = self._name(node, path, space), node.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            self.fault(f"{path}.size", f'fixed "{name.full}" needs a "size" that is a number of bytes')
            size = 0
        aliases, doc = self._aliases(node, path, name.space), self._text(node, "doc", path)
        fixed = Fixed(name, size, aliases, doc, _others(node))
        self._define(fixed, path)
        return fixed

    def _define(self, node: Named, path: str) -> None:
        if node.name.simple in PRIMITIVES:
            self.fault(f"{path}.name", f'"{node.name.simple}" is a primitive type and no name for another')
        elif node.name.full in self.names:
            self.fault(f"{path}.name", f'"{node.name.full}" is already defined')
        self.names[node.name.full] = node

    def _name(self, node: dict[str, Json], path: str, space: str) -> Name:
        written, inside = node.get("name"), node.get("namespace")
        if not isinstance(written, str):
            self.fault(path, f'{node["type"]} without "name"')
            return Name("", space)
        if inside is not None and not isinstance(inside, str):
            self.fault(f"{path}.namespace", "a namespace is a text")
            inside = None
        before, dot, simple = written.rpartition(".")
        name = Name(simple, before if dot else space if inside is None else inside)
        if not _NAME.fullmatch(simple):
            self.fault(f"{path}.name", f'{_quoted(written)} is no name: write letters, digits and "_"')
        if name.space and not all(_NAME.fullmatch(part) for part in name.space.split(".")):
            self.fault(f"{path}.{'name' if dot else 'namespace'}", f"{_quoted(name.space)} is no namespace")
        return name

    def _aliases(self, node: dict[str, Json], path: str, space: str) -> tuple[str, ...]:
        """Full names: one without a dot is relative to the namespace of what it is an alias for."""
        written = self._texts(node, "aliases", path)
        return tuple(alias if "." in alias or not space else f"{space}.{alias}" for alias in written)

    def _texts(self, node: dict[str, Json], key: str, path: str) -> tuple[str, ...]:
        value = node.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            self.fault(f"{path}.{key}", f'"{key}" is an array of texts')
            return ()
        return tuple(text for text in value if isinstance(text, str))

    def _text(self, node: dict[str, Json], key: str, path: str) -> str | None:
        value = node.get(key)
        if key == "default" and value is not None and not isinstance(value, str):
            self.fault(f"{path}.{key}", "the default of an enum is one of its symbols")
        return value if isinstance(value, str) else None

    def _refuse_twins(self, names: list[str], path: str, what: str) -> None:
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name and name in seen:
                self.fault(f"{path}[{index}]", f'{what} "{name}" is there twice')
            seen.add(name)


def _others(node: dict[str, Json], reserved: frozenset[str] = SCHEMA_ATTRIBUTES) -> dict[str, Json]:
    return {key: value for key, value in node.items() if key not in reserved}


def _quoted(name: Json) -> str:
    return f'"{name}"' if isinstance(name, str) else "this value"
