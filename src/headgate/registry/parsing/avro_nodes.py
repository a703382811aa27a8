"""Avro types as linked nodes: every name already leads to the type it means.

Nodes compare by identity, not by content, because a record may contain itself. ``attributes`` are those that
Avro gives no meaning of its own at that place (logical types among them: one that does not fit its type is to be
ignored, so none is interpreted here).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.schema.formats.document import Json

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
