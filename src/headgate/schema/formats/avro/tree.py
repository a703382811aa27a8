"""Avro types as linked nodes: every name already leads to the type it means.

Nodes compare by identity, not by content, because a record may contain itself. ``attributes`` are those that
Avro gives no meaning of its own at that place (logical types among them: one that does not fit its type is to be
ignored, so none is interpreted here).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from headgate.schema.formats.document import Json, compact

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True, slots=True)
class Name:
    """A full name. ``space`` is empty for the null namespace."""

    simple: str
    space: str = ""

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple


@dataclass(eq=False, slots=True)
class Primitive:
    kind: str
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Array:
    items: AvroType
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Map:
    values: AvroType
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Union:
    branches: tuple[AvroType, ...]


@dataclass(eq=False, slots=True)
class Fixed:
    name: Name
    size: int
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Enum:
    """``default`` stands for symbols that the reader does not know; it is no default of a field."""

    name: Name
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Field:
    """``default`` is meaningful only with ``has_default``: the default may itself be null."""

    name: str
    type: AvroType
    has_default: bool = False
    default: Json = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    order: str = "ascending"
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Record:
    """Its fields are set after it is known by name, so that they may refer to it."""

    name: Name
    fields: tuple[Field, ...] = ()
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)
    is_error: bool = False


Named: TypeAlias = Fixed | Enum | Record
AvroType: TypeAlias = Primitive | Array | Map | Union | Named


def kind_of(node: AvroType) -> str:
    """The word that Avro uses for the type: ``"int"``, ``"record"``, ``"union"``."""
    return node.kind if isinstance(node, Primitive) else type(node).__name__.lower()


def describe(node: AvroType) -> str:
    """A type as a message names it: ``int``, ``record "a.B"``, ``union of null and int``."""
    if isinstance(node, Fixed | Enum | Record):
        return f'{kind_of(node)} "{node.name.full}"'
    if isinstance(node, Union):
        return f"union of {' and '.join(describe(branch) for branch in node.branches)}"
    return kind_of(node)


TYPE_WORDS = frozenset((*PRIMITIVES, "record", "enum", "array", "map", "union", "fixed"))


def print_avro(node: AvroType, defined_elsewhere: frozenset[str], *, normalize: bool = False) -> str:
    """``defined_elsewhere``: full names of types that come from references and are printed as names only."""
    printing = _Printing(set(defined_elsewhere), normalize)
    return compact(printing.type_(node, ""))


class _Printing:
    def __init__(self, known: set[str], normalize: bool) -> None:
        self.known = known
        self.normalize = normalize

    def type_(self, node: AvroType, space: str) -> Json:
        match node:
            case Primitive():
                others = self._sorted(node.attributes)
                return {"type": node.kind, **others} if others else node.kind
            case Union():
                return [self.type_(branch, space) for branch in node.branches]
            case Array():
                return {
                    "type": "array",
                    "items": self.type_(node.items, space),
                    **self._sorted(node.attributes),
                }
            case Map():
                return {
                    "type": "map",
                    "values": self.type_(node.values, space),
                    **self._sorted(node.attributes),
                }
            case Fixed() | Enum() | Record():
                return self._named(node, space)
            case _:
                assert_never(node)

    def _named(self, node: Named, space: str) -> Json:
        if node.name.full in self.known:
            return self._qualified(node.name, space)
        self.known.add(node.name.full)
        kind = "error" if isinstance(node, Record) and node.is_error else type(node).__name__.lower()
        printed: dict[str, Json] = {"type": kind, **self._heading(node.name, space)}
        if node.doc is not None and (node.doc or not self.normalize):
            printed["doc"] = node.doc
        printed.update(self._body(node))
        printed.update(self._sorted(node.attributes))
        if node.aliases:
            printed["aliases"] = [*sorted(node.aliases)] if self.normalize else [*self._relative(node)]
        return printed

    def _heading(self, name: Name, space: str) -> dict[str, Json]:
        if self.normalize:
            return {"name": name.full}
        return (
            {"name": name.simple} if name.space == space else {"name": name.simple, "namespace": name.space}
        )

    def _body(self, node: Named) -> dict[str, Json]:
        match node:
            case Record():
                return {"fields": [self._field(member, node.name.space) for member in node.fields]}
            case Enum():
                symbols: dict[str, Json] = {"symbols": [*node.symbols]}
                return symbols if node.default is None else {**symbols, "default": node.default}
            case Fixed():
                return {"size": node.size}
            case _:
                assert_never(node)

    def _field(self, member: Field, space: str) -> dict[str, Json]:
        printed: dict[str, Json] = {"name": member.name, "type": self.type_(member.type, space)}
        if member.doc is not None:
            printed["doc"] = member.doc
        if member.has_default:
            printed["default"] = in_order(member.default) if self.normalize else member.default
        if member.order != "ascending":
            printed["order"] = member.order
        if member.aliases:
            printed["aliases"] = [*(sorted(member.aliases) if self.normalize else member.aliases)]
        return {**printed, **self._sorted(member.attributes)}

    def _qualified(self, name: Name, space: str) -> str:
        short = not self.normalize and name.space == space and name.simple not in TYPE_WORDS
        return name.simple if short else name.full

    def _relative(self, node: Named) -> list[str]:
        prefix = f"{node.name.space}." if node.name.space else ""
        return [alias.removeprefix(prefix) if _is_inside(alias, prefix) else alias for alias in node.aliases]

    def _sorted(self, attributes: dict[str, Json]) -> dict[str, Json]:
        return (
            {key: in_order(attributes[key]) for key in sorted(attributes)} if self.normalize else attributes
        )


def in_order(value: Json) -> Json:
    """The same value with the keys of every object sorted."""
    match value:
        case dict():
            return {key: in_order(value[key]) for key in sorted(value)}
        case list():
            return [in_order(item) for item in value]
        case _:
            return value


def _is_inside(alias: str, prefix: str) -> bool:
    return bool(prefix) and alias.startswith(prefix) and "." not in alias.removeprefix(prefix)
