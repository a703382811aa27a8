"""JSON -> the tree of an Avro schema, by the rules of the Avro 1.12 specification.

A type may use the names of types that are defined before it, of itself, and of the schemas that it refers to. The
parser collects every fault with its path before the caller decides what to raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from headgate.errors import did_you_mean, similar_names
from headgate.schema.errors import SchemaTooDeep
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.defaults import default_problems
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.written import Json

# Members that Avro gives a meaning, by where they stand. All others are attributes of the user's.
SCHEMA_ATTRIBUTES = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
ENUM_ATTRIBUTES = SCHEMA_ATTRIBUTES | {"default"}
FIELD_ATTRIBUTES = frozenset(("default", "doc", "name", "order", "type", "aliases"))
ORDERS = ("ascending", "descending", "ignore")
MAX_LEVELS = 150  # types inside types; keeps recursive walks far from Python's limit of 1000 calls

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BROKEN = "null"  # takes the place of a type that could not be read, so that the other faults are found too


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where. ``unknown`` is the name of a type that is not defined; ``similar`` are names that
    are."""

    path: str
    reason: str
    unknown: str | None = None
    similar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree, all named types by full name (those that were known before included), and what is wrong with the schema.
    With faults the tree has stand-ins and must not be used."""

    type: tree.AvroType
    names: dict[str, tree.Named]
    faults: tuple[Fault, ...]


def parse(definition: Json, known: Mapping[str, tree.Named] | None = None) -> Parsed:
    """The schema by all rules of the specification, for a registry. Paths lead into its text: ``$.fields[2].type``."""
    return _Parser(known, strict=True).parsed(definition, ROOT)


def parse_leniently(
    definition: object, known: Mapping[str, tree.Named] | None = None, *, path: str = ROOT, max_levels: int = MAX_LEVELS
) -> Parsed:
    """The schema as far as reading records needs it. Paths lead to the values that it describes: ``$.orders[].id``.

    Names, aliases, orders and defaults are taken as they are written, because registries hold schemas from before these
    were checked. ``{"type": {"type": …}}`` is read too: it is not in the specification, but libraries write it. Raises
    SchemaTooDeep.
    """
    return _Parser(known, strict=False, max_levels=max_levels).parsed(cast(Json, definition), path)


class _Parser:
    """One pass over a schema: the names known so far and the faults found so far.

    A strict parser gives paths into the text of the schema, a lenient one paths to the values that it describes.
    """

    def __init__(self, known: Mapping[str, tree.Named] | None, *, strict: bool, max_levels: int = MAX_LEVELS) -> None:
        self._names: dict[str, tree.Named] = dict(known or {})
        self._faults: list[Fault] = []
        self._defaults: list[tuple[tree.Field, str]] = []
        self._strict = strict
        self._max_levels = max_levels

    def parsed(self, definition: Json, path: str) -> Parsed:
        """Parse the whole schema and check the defaults at the end."""
        node = self._type(definition, path, "", 0)
        # A default may be of a record that is not complete before the whole schema is known.
        for member, at in self._defaults:
            self._faults.extend(Fault(*problem) for problem in default_problems(member.default, member.type, at))
        return Parsed(node, self._names, tuple(self._faults))

    def _key(self, path: str, key: str) -> str:
        return f"{path}.{key}" if self._strict else path

    def _item(self, path: str, key: str, index: int) -> str:
        return f"{path}.{key}[{index}]" if self._strict else path

    def _field_path(self, path: str, index: int, name: object) -> str:
        if self._strict:
            return f"{path}.fields[{index}]"
        return field_path(path, name) if isinstance(name, str) and name else path

    def _inner_path(self, path: str, key: str) -> str:
        if self._strict:
            return f"{path}.{key}"
        return element_path(path) if key == "items" else value_path(path)

    def _fault(self, path: str, reason: str) -> tree.Primitive:
        """Record a fault and return a stand-in for the type."""
        self._faults.append(Fault(path, reason))
        return tree.Primitive(_BROKEN)

    def _type(self, definition: Json, path: str, space: str, level: int) -> tree.AvroType:
        """A type by its name, an object or a union."""
        if level > self._max_levels:
            raise SchemaTooDeep("avro schema", path)
        if isinstance(definition, str):
            return self._by_name(definition, path, space)
        if isinstance(definition, list):
            return self._union(definition, path, space, level)
        if not isinstance(definition, dict):
            return self._fault(path, "a type is a name, an object or an array of types")
        match definition.get("type"):
            case "record" | "error":
                return self._record(definition, path, space, level)
            case "enum":
                return self._enum(definition, path, space)
            case "fixed":
                return self._fixed(definition, path, space)
            case "array":
                return tree.Array(self._inside(definition, "items", path, space, level), _others(definition))
            case "map":
                return tree.Map(self._inside(definition, "values", path, space, level), _others(definition))
            case str(kind) if kind in tree.PRIMITIVES:
                return tree.Primitive(kind, _others(definition))
            case str(name):
                # {"type": "a.B"} is how some writers refer to a named type; Java read it until 1.11.
                return self._by_name(name, self._key(path, "type"), space)
            case dict(inner) if not self._strict:
                return self._type(inner, path, space, level + 1)
            case _:
                return self._fault(path, 'a type written as an object needs a text in "type"')

    def _inside(self, node: dict[str, Json], key: str, path: str, space: str, level: int) -> tree.AvroType:
        """The type of the elements of an array or of the values of a map."""
        if key not in node:
            return self._fault(path, f'{node["type"]} without "{key}"')
        return self._type(node[key], self._inner_path(path, key), space, level + 1)

    def _by_name(self, name: str, path: str, space: str) -> tree.AvroType:
        """A primitive, or a type that was defined before. ``space`` is the namespace at this position."""
        if name in tree.PRIMITIVES:
            return tree.Primitive(name)
        # A simple name that its namespace does not have may be one of the null namespace, as in Java.
        candidates = (name,) if "." in name or not space else (f"{space}.{name}", name)
        for full in candidates:
            if full in self._names:
                return self._names[full]
        similar = similar_names(name, (*self._names, *tree.PRIMITIVES))
        near = did_you_mean(similar)
        reason = f'type "{name}" is not defined before its use{"; " + near.lower() if near else ""}'
        self._faults.append(Fault(path, reason, name, similar))
        return tree.Primitive(_BROKEN)

    def _union(self, branches: list[Json], path: str, space: str, level: int) -> tree.Union:
        """A union. Two branches of the same type could not be told apart in the bytes of a record."""
        if not branches:
            self._fault(path, "a union needs at least one branch")
        nodes = []
        seen: set[str] = set()
        for index, branch in enumerate(branches):
            at = f"{path}[{index}]" if self._strict else path
            node = self._type(branch, at, space, level)
            key = tree.describe(node)
            if isinstance(node, tree.Union):
                self._fault(at, "a union cannot directly contain another union")
            elif key in seen:
                self._fault(at, f"the union has {key} twice")
            seen.add(key)
            nodes.append(node)
        return tree.Union(tuple(nodes))

    def _record(self, node: dict[str, Json], path: str, space: str, level: int) -> tree.Record:
        """A record. It is defined before its fields are read, because a field may refer to it."""
        name = self._name(node, path, space)
        aliases, doc = self._aliases(node, path, name.space), _text(node, "doc")
        record = tree.Record(name, (), aliases, doc, _others(node), node["type"] == "error")
        self._define(record, path)
        fields = node.get("fields")
        if not isinstance(fields, list):
            self._fault(path, f'record "{name.full}" needs an array of "fields"')
            return record
        members = []
        for index, member in enumerate(fields):
            members.append(self._field(member, path, index, name.space, level))
        record.fields = tuple(members)
        self._refuse_twins([member.name for member in members], path, "fields", "field")
        return record

    def _field(self, node: Json, around: str, index: int, space: str, level: int) -> tree.Field:
        """A field. A default is checked later, because its type may not be complete yet."""
        if not isinstance(node, dict):
            return tree.Field("", self._fault(self._field_path(around, index, None), "a field is an object"))
        path = self._field_path(around, index, node.get("name"))
        name = self._field_name(node.get("name"), path)
        if "type" not in node:
            self._fault(path, f'field "{name}" has no type')
        at = self._key(path, "type")
        member = tree.Field(name, self._type(node.get("type", _BROKEN), at, space, level + 1))
        member.aliases = self._texts(node, "aliases", path)
        member.doc = _text(node, "doc")
        member.attributes = _others(node, FIELD_ATTRIBUTES)
        member.order = self._order(node, path)
        if "default" in node:
            member.has_default, member.default = True, node["default"]
            if self._strict:
                self._defaults.append((member, self._key(path, "default")))
        return member

    def _field_name(self, name: Json, path: str) -> str:
        if isinstance(name, str) and (_NAME.fullmatch(name) if self._strict else name):
            return name
        reason = f'{_quoted(name)} is no name of a field: write letters, digits and "_"'
        self._fault(self._key(path, "name"), reason)
        return ""

    def _order(self, node: dict[str, Json], path: str) -> str:
        """The sort order of a field, which is part of the text of a schema."""
        order = node.get("order", "ascending")
        if isinstance(order, str) and order.lower() in ORDERS:
            return order.lower()
        if self._strict:
            reason = f"the order of a field is one of {', '.join(ORDERS)}"
            self._fault(self._key(path, "order"), reason)
        return "ascending"

    def _enum(self, node: dict[str, Json], path: str, space: str) -> tree.Enum:
        name = self._name(node, path, space)
        symbols = self._texts(node, "symbols", path, always=True)
        if "symbols" not in node:
            self._fault(path, f'enum "{name.full}" needs an array of "symbols"')
        for index, symbol in enumerate(symbols):
            if self._strict and not _NAME.fullmatch(symbol):
                at = self._item(path, "symbols", index)
                self._fault(at, f"{_quoted(symbol)} is no symbol of an enum")
        self._refuse_twins(list(symbols), path, "symbols", "symbol")
        default = self._enum_default(node, name, symbols, path)
        aliases, doc = self._aliases(node, path, name.space), _text(node, "doc")
        enum = tree.Enum(name, symbols, default, aliases, doc, _others(node, ENUM_ATTRIBUTES))
        self._define(enum, path)
        return enum

    def _enum_default(self, node: dict[str, Json], name: tree.Name, symbols: tuple[str, ...], path: str) -> str | None:
        default, at = node.get("default"), self._key(path, "default")
        if default is None or default in symbols:
            return default if isinstance(default, str) else None
        if isinstance(default, str):
            self._fault(at, f'"{default}" is no symbol of enum "{name.full}"')
        else:
            self._fault(at, "the default of an enum is one of its symbols")
        return None

    def _fixed(self, node: dict[str, Json], path: str, space: str) -> tree.Fixed:
        name, size = self._name(node, path, space), node.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            reason = f'fixed "{name.full}" needs a "size" that is a number of bytes'
            self._fault(self._key(path, "size"), reason)
            size = 0
        aliases, doc = self._aliases(node, path, name.space), _text(node, "doc")
        fixed = tree.Fixed(name, size, aliases, doc, _others(node))
        self._define(fixed, path)
        return fixed

    def _define(self, node: tree.Named, path: str) -> None:
        """Make a type known under its full name."""
        at = self._key(path, "name")
        if (node.name.simple if self._strict else node.name.full) in tree.PRIMITIVES:
            self._fault(at, f'"{node.name.simple}" is a primitive type and no name for another')
        elif node.name.full in self._names:
            self._fault(at, f'"{node.name.full}" is already defined')
        self._names[node.name.full] = node

    def _name(self, node: dict[str, Json], path: str, space: str) -> tree.Name:
        """The full name of a type. A dot in the name decides the namespace, otherwise `namespace` or the outer
        one does."""
        written, inside = node.get("name"), node.get("namespace")
        if not isinstance(written, str) or not (written or self._strict):
            self._fault(path, f'{node["type"]} without "name"')
            return tree.Name("", space)
        if inside is not None and not isinstance(inside, str):
            self._fault(self._key(path, "namespace"), "a namespace is a text")
            inside = None
        before, dot, simple = written.rpartition(".")
        name = tree.Name(simple, before if dot else space if inside is None else inside)
        if self._strict:
            self._check_name(name, written, path, "name" if dot else "namespace")
        return name

    def _check_name(self, name: tree.Name, written: str, path: str, space_key: str) -> None:
        """Check a name by the rules of the specification."""
        if not _NAME.fullmatch(name.simple):
            reason = f'{_quoted(written)} is no name: write letters, digits and "_"'
            self._fault(self._key(path, "name"), reason)
        if name.space and not all(_NAME.fullmatch(part) for part in name.space.split(".")):
            self._fault(self._key(path, space_key), f"{_quoted(name.space)} is no namespace")

    def _aliases(self, node: dict[str, Json], path: str, space: str) -> tuple[str, ...]:
        """Full names: an alias without a dot is in the namespace of the type that it is an alias for."""
        written = self._texts(node, "aliases", path)
        return tuple(alias if "." in alias or not space else f"{space}.{alias}" for alias in written)

    def _texts(self, node: dict[str, Json], key: str, path: str, *, always: bool = False) -> tuple[str, ...]:
        """The texts of an array. With ``always`` anything else is a fault for a lenient parser too."""
        value = node.get(key, [])
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(text for text in value if isinstance(text, str))
        if self._strict or always:
            self._fault(self._key(path, key), f'"{key}" is an array of texts')
        return ()

    def _refuse_twins(self, names: list[str], path: str, key: str, what: str) -> None:
        """Record a fault for each name that occurs a second time."""
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name and name in seen:
                self._fault(self._item(path, key, index), f'{what} "{name}" is there twice')
            seen.add(name)


def _others(node: dict[str, Json], reserved: frozenset[str] = SCHEMA_ATTRIBUTES) -> dict[str, Json]:
    """The members that Avro gives no meaning at this position."""
    return {key: value for key, value in node.items() if key not in reserved}


def _text(node: dict[str, Json], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _quoted(name: Json) -> str:
    return f'"{name}"' if isinstance(name, str) else "this value"
