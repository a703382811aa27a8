"""JSON Schemas as nodes, and the kinds of difference between two of them, in the words of Confluent's registry.

A node constrains values of one JSON type, or joins other nodes. Nodes are equal if they say the same; references are
equal if they are written the same in the same document. JSON values inside nodes (constants, defaults) are kept as
compact text, in which 1 and true differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Common:
    """What every schema may contain. `default` is JSON text, None if there is none."""

    identity: str | None = None
    title: str | None = None
    description: str | None = None
    default: str | None = None
    # Kafka Connect writes a decimal as text or as number and marks both as bytes.
    is_connect_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """The base of all nodes."""

    common: Common = field(default=Common(), kw_only=True)


class Anything(Constraint):
    """Every value: `true`, or a schema without constraints."""


class Nothing(Constraint):
    """No value: `false`."""


class Null(Constraint):
    """Only null."""


class Boolean(Constraint):
    """true and false."""


@dataclass(frozen=True, slots=True)
class String(Constraint):
    """Texts. `pattern` is a regular expression."""

    max_length: Decimal | None = None
    min_length: Decimal | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Number(Constraint):
    """Numbers, or only whole ones."""

    maximum: Decimal | None = None
    minimum: Decimal | None = None
    exclusive_maximum: Decimal | None = None
    exclusive_minimum: Decimal | None = None
    multiple_of: Decimal | None = None
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class Array(Constraint):
    """`every` constrains all items, `tuple_` the first ones by position, `additional` those after them."""

    every: Node | None = None
    tuple_: tuple[Node, ...] = ()
    permits_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None
    max_items: Decimal | None = None
    min_items: Decimal | None = None
    max_contains: Decimal | None = None
    min_contains: Decimal | None = None
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class Object(Constraint):
    """Objects. `additional` is the schema of properties that are not named."""

    properties: dict[str, Node] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    permits_additional: bool = True
    additional: Node | None = None
    unevaluated: Node | None = None
    patterns: dict[str, Node] = field(default_factory=dict)
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Node] = field(default_factory=dict)
    max_properties: Decimal | None = None
    min_properties: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Enum(Constraint):
    """Values are JSON text."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Const(Constraint):
    """One value, as JSON text."""

    value: str


@dataclass(frozen=True, slots=True)
class Not(Constraint):
    """All values but those of `inner`."""

    inner: Node


@dataclass(frozen=True, slots=True)
class Conditional(Constraint):
    """`if`, `then`, `else`. Confluent's registry compares none of the three."""

    text: str


@dataclass(frozen=True, slots=True)
class Combined(Constraint):
    """`criterion` is `allOf`, `anyOf` or `oneOf`."""

    criterion: str
    members: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Reference(Constraint):
    """`target` is a key of the loader. The node is not nested here, because a schema may contain itself."""

    target: int
    written: str


Node: TypeAlias = (
    Anything | Nothing | Null | Boolean | String | Number | Array | Object | Enum | Const | Not | Conditional | Combined
    | Reference
)  # fmt: skip


def describe(node: Node) -> str:
    """The name of a node in messages: `string`, `integer`, `oneOf`."""
    match node:
        case Number():
            return "integer" if node.is_integer else "number"
        case Combined():
            return node.criterion
        case _:
            return type(node).__name__.lower()


@dataclass(frozen=True, slots=True)
class Difference:
    """A change that makes the new schema refuse what the old one accepted.

    `path` is in the old schema, for an added property in the new one. `detail` describes the change."""

    path: tuple[str, ...]
    kind: str
    detail: str = ""

    @property
    def pointer(self) -> str:
        return "/" + "/".join(self.path)

    def below(self, *steps: str) -> Difference:
        """The same difference with the path from an outer node."""
        return Difference((*steps, *self.path), self.kind, self.detail)

    def message(self) -> str:
        """One line: `maximum decreased at /properties/price/maximum: 10 to 5`."""
        words = self.kind.lower().replace("_", " ")
        return f"{words} at {self.pointer}" + (f": {self.detail}" if self.detail else "")


def upper_snake(keyword: str) -> str:
    """`maxLength` -> `MAX_LENGTH`: the beginning of all kinds that are about a keyword."""
    return re.sub("(?=[A-Z])", "_", keyword).upper()


def changed(kind: str, *steps: str, detail: str = "") -> Difference:
    """A difference at the node itself, or below it with `steps`."""
    return Difference(steps, kind, detail)


# Stands for all incompatibilities of a pair, where only the result counts and where a pair occurs inside itself.
INCOMPATIBLE = Difference((), "INCOMPATIBLE")


class Pairs(Protocol):
    """Compares pairs of inner nodes. It follows references and remembers answers."""

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        """Differences with paths from the two nodes; empty if they are compatible. None stands for a missing schema."""
        ...
