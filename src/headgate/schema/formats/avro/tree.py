"""An Avro schema as a tree of typed nodes. Every name already leads to the type that it means.

`parse` makes trees of JSON, `to_json` prints them. Everything that looks into an Avro schema walks these nodes: the
mapper, the registry's checks and the plan by which records are decoded.

Nodes compare by identity, because a record may contain itself. ``attributes`` are the members that Avro gives no
meaning of their own at that position. Logical types are among them: one that does not fit its type has to be ignored, so
the tree interprets none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TypeAlias, assert_never

from headgate.schema.written import Json, compact

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
TYPE_WORDS = frozenset((*PRIMITIVES, "record", "enum", "array", "map", "union", "fixed"))


@dataclass(frozen=True, slots=True)
class Name:
    """A full name. ``space`` is empty for the null namespace."""

    simple: str
    space: str = ""

    @staticmethod
    def of(full: str) -> Name:
        space, _, simple = full.rpartition(".")
        return Name(simple, space)

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple


@dataclass(eq=False, slots=True)
class Primitive:
    """A type without structure. ``attributes`` may give it a logical type."""

    kind: str
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Array:
    """An array."""

    items: AvroType
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Map:
    """A map, whose keys are strings."""

    values: AvroType
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Union:
    """A value is of one of the branches."""

    branches: tuple[AvroType, ...]


@dataclass(eq=False, slots=True)
class Fixed:
    """Bytes of a fixed length."""

    name: Name
    size: int
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Enum:
    """``default`` stands for symbols that the reader does not know. It is not the default of a field."""

    name: Name
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    attributes: dict[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Field:
    """``default`` has a meaning only with ``has_default``: the default itself may be null."""

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
    """Its fields are set after its name is known, so that they may refer to it."""

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


def is_null(node: AvroType) -> bool:
    return isinstance(node, Primitive) and node.kind == "null"


def branches_of(node: AvroType) -> tuple[AvroType, ...]:
    """The types that a value may have here: the branches of a union, or the type itself."""
    return node.branches if isinstance(node, Union) else (node,)


def values_of(node: AvroType) -> tuple[AvroType, ...]:
    """The same without null."""
    return tuple(branch for branch in branches_of(node) if not is_null(branch))


def describe(node: AvroType) -> str:
    """A type as a message names it: ``int``, ``record "a.B"``, ``union of null and int``."""
    if isinstance(node, Fixed | Enum | Record):
        return f'{kind_of(node)} "{node.name.full}"'
    if isinstance(node, Union):
        return f"union of {' and '.join(describe(branch) for branch in node.branches)}"
    return kind_of(node)


# walking


def children(node: AvroType) -> Iterator[AvroType]:
    """The types directly inside a type."""
    match node:
        case Array():
            yield node.items
        case Map():
            yield node.values
        case Union():
            yield from node.branches
        case Record():
            yield from (member.type for member in node.fields)
        case Primitive() | Fixed() | Enum():
            return
        case _:
            assert_never(node)


def walk(node: AvroType) -> Iterator[AvroType]:
    """The node and all nodes inside it, each once."""
    waiting, seen = [node], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting.extend(children(one))


def rebuild(node: AvroType, change: Callable[[AvroType], AvroType]) -> AvroType:
    """The tree in which every node is what ``change`` makes of it, the outer ones first.

    Parts in which nothing changes are shared with the old tree. A record that is used several times is copied once, so
    that a record may still contain itself.
    """
    return _Rebuild(change).node(node)


class _Rebuild:
    """One call of `rebuild`, with the records that it has copied."""

    def __init__(self, change: Callable[[AvroType], AvroType]) -> None:
        self._change = change
        self._records: dict[int, tuple[AvroType, Record]] = {}  # with the old ones, so that no id is used again

    def node(self, old: AvroType) -> AvroType:
        if id(old) in self._records:
            return self._records[id(old)][1]
        match new := self._change(old):
            case Record():
                return self._record(old, new)
            case Array():
                items = self.node(new.items)
                return new if items is new.items else replace(new, items=items)
            case Map():
                values = self.node(new.values)
                return new if values is new.values else replace(new, values=values)
            case Union():
                branches = tuple([self.node(branch) for branch in new.branches])
                same = all(map(is_, branches, new.branches))
                return new if same else Union(branches)
            case Primitive() | Fixed() | Enum():
                return new
            case _:
                assert_never(new)

    def _record(self, old: AvroType, new: Record) -> Record:
        """The copy of a record is known before its fields are visited, so that they can refer to it."""
        made = replace(new, fields=())
        self._records[id(old)] = old, made
        made.fields = tuple([self._field(member) for member in new.fields])
        if all(map(is_, made.fields, new.fields)):  # then nothing inside refers to the copy
            self._records[id(old)] = old, new
            return new
        return made

    def _field(self, member: Field) -> Field:
        type_ = self.node(member.type)
        return member if type_ is member.type else replace(member, type=type_)


def without_docs(node: AvroType) -> AvroType:
    """The same type without any doc. Docs do not show in the bytes of a record."""
    return rebuild(node, _without_docs)


def _without_docs(node: AvroType) -> AvroType:
    match node:
        case Record():
            fields = tuple([f if f.doc is None else replace(f, doc=None) for f in node.fields])
            return replace(node, doc=None, fields=fields)
        case Enum() | Fixed():
            return replace(node, doc=None)
        case _:
            return node


# printing


def canonical_text(node: AvroType, defined_elsewhere: frozenset[str] = frozenset(), *, normalize: bool = False) -> str:
    """The text by which a registry decides that two texts are the same schema.

    It is what Java's ``Schema.toString`` writes, with docs, defaults, aliases and custom attributes. ``normalize``
    writes full names everywhere, sorts custom attributes and aliases and leaves out empty docs. ``defined_elsewhere``
    are the full names of types that come from references: they are printed as names only.
    """
    return compact(_Printer(set(defined_elsewhere), normalize).type(node, ""))


def to_json(node: AvroType) -> Json:
    """The schema as JSON. A named type is written where it is first used and is a name everywhere else.

    A default stands before the doc of its field. That order is part of the text that a sink registers.
    """
    return _Printer(set(), normalize=False, default_first=True).type(node, "")


class _Printer:
    """Prints one schema. ``known`` are the types that are written already."""

    def __init__(self, known: set[str], normalize: bool, default_first: bool = False) -> None:
        self._known = known
        self._normalize = normalize
        self._default_first = default_first

    def type(self, node: AvroType, space: str) -> Json:
        """The JSON of a type. ``space`` is the namespace around it."""
        match node:
            case Primitive():
                others = self._sorted(node.attributes)
                return {"type": node.kind, **others} if others else node.kind
            case Union():
                return [self.type(branch, space) for branch in node.branches]
            case Array():
                return {"type": "array", "items": self.type(node.items, space), **self._sorted(node.attributes)}
            case Map():
                return {"type": "map", "values": self.type(node.values, space), **self._sorted(node.attributes)}
            case Fixed() | Enum() | Record():
                return self._named(node, space)
            case _:
                assert_never(node)

    def _named(self, node: Named, space: str) -> Json:
        """A named type: in full where it is used first, later by its name."""
        if node.name.full in self._known:
            return self._qualified(node.name, space)
        self._known.add(node.name.full)
        kind = "error" if isinstance(node, Record) and node.is_error else kind_of(node)
        printed: dict[str, Json] = {"type": kind, **self._heading(node.name, space)}
        if node.doc is not None and (node.doc or not self._normalize):
            printed["doc"] = node.doc
        printed.update(self._body(node))
        printed.update(self._sorted(node.attributes))
        if node.aliases:
            printed["aliases"] = [*sorted(node.aliases)] if self._normalize else [*_relative(node)]
        return printed

    def _heading(self, name: Name, space: str) -> dict[str, Json]:
        """The name and, if it differs from the namespace around it, the namespace."""
        if self._normalize:
            return {"name": name.full}
        return {"name": name.simple} if name.space == space else {"name": name.simple, "namespace": name.space}

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
        """One field. The order of its attributes is part of the text."""
        printed: dict[str, Json] = {"name": member.name, "type": self.type(member.type, space)}
        doc: dict[str, Json] = {} if member.doc is None else {"doc": member.doc}
        default: dict[str, Json] = {}
        if member.has_default:
            default = {"default": _in_order(member.default) if self._normalize else member.default}
        printed |= {**default, **doc} if self._default_first else {**doc, **default}
        if member.order != "ascending":
            printed["order"] = member.order
        if member.aliases:
            printed["aliases"] = [*(sorted(member.aliases) if self._normalize else member.aliases)]
        return {**printed, **self._sorted(member.attributes)}

    def _qualified(self, name: Name, space: str) -> str:
        """A reference to a type, as short as it can be without being misread."""
        short = not self._normalize and name.space == space and name.simple not in TYPE_WORDS
        return name.simple if short else name.full

    def _sorted(self, attributes: dict[str, Json]) -> dict[str, Json]:
        """Attributes in a fixed order if the text is normalised."""
        if not self._normalize:
            return attributes
        return {key: _in_order(attributes[key]) for key in sorted(attributes)}


def _in_order(value: Json) -> Json:
    """The same value with the keys of every object sorted."""
    match value:
        case dict():
            return {key: _in_order(value[key]) for key in sorted(value)}
        case list():
            return [_in_order(item) for item in value]
        case _:
            return value


def _relative(node: Named) -> list[str]:
    """The aliases as they are written inside the namespace of their type."""
    prefix = f"{node.name.space}." if node.name.space else ""
    return [alias.removeprefix(prefix) if _is_inside(alias, prefix) else alias for alias in node.aliases]


def _is_inside(alias: str, prefix: str) -> bool:
    return bool(prefix) and alias.startswith(prefix) and "." not in alias.removeprefix(prefix)
