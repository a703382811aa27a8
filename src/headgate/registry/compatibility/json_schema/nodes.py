"""JSON Schema as nodes: each constrains values of one JSON type, or joins other nodes.

Nodes are equal when they say the same; references are equal when they are written the same in the same document.
JSON values inside them (constants, defaults) are kept as compact text, which tells 1 from true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Common:
    """What any schema may say about itself. ``default`` is JSON text, None without one."""

    identity: str | None = None
    title: str | None = None
    description: str | None = None
    default: str | None = None
    # Kafka Connect writes a decimal as text or as number and marks both as bytes.
    is_connect_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Anything:
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Nothing:
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Null:
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Boolean:
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class String:
    max_length: Decimal | None = None
    min_length: Decimal | None = None
    pattern: str | None = None
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Number:
    maximum: Decimal | None = None
    minimum: Decimal | None = None
    exclusive_maximum: Decimal | None = None
    exclusive_minimum: Decimal | None = None
    multiple_of: Decimal | None = None
    is_integer: bool = False
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Array:
    """``every`` constrains all items, ``tuple_`` the first ones by position, ``additional`` those after them."""

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
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Object:
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
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Enum:
    """Values as JSON text."""

    values: frozenset[str]
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Const:
    value: str
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Not:
    inner: Node
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if``, ``then``, ``else``. Confluent compares none of the three."""

    text: str
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Combined:
    """``criterion`` is ``allOf``, ``anyOf`` or ``oneOf``."""

    criterion: str
    members: tuple[Node, ...]
    common: Common = Common()


@dataclass(frozen=True, slots=True)
class Reference:
    """Where it leads is known to the loader: a schema may contain itself, a node cannot."""

    target: int
    written: str
    common: Common = Common()


Node: TypeAlias = (
    Anything
    | Nothing
    | Null
    | Boolean
    | String
    | Number
    | Array
    | Object
    | Enum
    | Const
    | Not
    | Conditional
    | Combined
    | Reference
)


def describe(node: Node) -> str:
    """A node as a message names it: ``string``, ``integer``, ``oneOf``."""
    match node:
        case Number():
            return "integer" if node.is_integer else "number"
        case Combined():
            return node.criterion
        case _:
            return type(node).__name__.lower()
