"""The neutral types. Every format maps to and from these; everything past a boundary speaks only them.

Types are frozen values. Nullability belongs to the place that holds a value (a field, an array's element, a map's
value), not to the type. Docs and foreign names are part of the value, because they must reach every target; they
are left out of the short printed form (`print_type`), which is what `DESCRIBE` shows, and kept in the full one
(`print_type(t, full=True)`), which is what the catalog stores and which `parse_type` reads back exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

MAX_PRECISION = 38  # Spark's; a decimal beyond it is refused by the mappers, never rounded
MAX_DEPTH = (
    100  # levels of arrays, maps and records; every walk over a type is a recursion, and Python's is finite
)


@dataclass(frozen=True, slots=True)
class Boolean:
    pass


@dataclass(frozen=True, slots=True)
class Integer:
    """A signed integer of 32 bits."""


@dataclass(frozen=True, slots=True)
class Bigint:
    """A signed integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class Real:
    """An IEEE number of 32 bits."""


@dataclass(frozen=True, slots=True)
class Double:
    """An IEEE number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int = 38
    scale: int = 18


@dataclass(frozen=True, slots=True)
class Text:
    pass


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes; with a length, exactly so many (Avro's fixed)."""

    length: int | None = None


@dataclass(frozen=True, slots=True)
class Date:
    pass


@dataclass(frozen=True, slots=True)
class Time:
    """Time of day without zone, in microseconds."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Date and time without zone, in microseconds."""


@dataclass(frozen=True, slots=True)
class TimestampTz:
    """An instant, in microseconds."""


@dataclass(frozen=True, slots=True)
class Uuid:
    pass


@dataclass(frozen=True, slots=True)
class Json:
    """Any JSON value, kept as the text it came in."""


@dataclass(frozen=True, slots=True)
class Enum:
    symbols: tuple[str, ...]
    name: str | None = None  # full name in the format it came from
    default: str | None = None  # what an unknown symbol is read as
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    element: Type
    element_nullable: bool = True


@dataclass(frozen=True, slots=True)
class Map:
    """A map with text keys."""

    value: Type
    value_nullable: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    nullable: bool = True
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    fields: tuple[Field, ...]
    name: str | None = None  # full name in the format it came from (Avro `namespace.name`, Protobuf message)
    doc: str | None = None

    def field(self, name: str) -> Field | None:
        """The field of exactly this name."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True, slots=True)
class Named:
    """A type of the catalog, by its full name parts, e.g. ("headgate", "public", "point").

    ``quoted`` says which parts were written in quotes, and so must match exactly; empty for a name that is exact.
    """

    parts: tuple[str, ...]
    quoted: tuple[bool, ...] = field(default=(), compare=False)


Scalar: TypeAlias = (
    Boolean | Integer | Bigint | Real | Double | Decimal | Text | Bytes | Date | Time | Timestamp | TimestampTz
    | Uuid | Json | Enum
)  # fmt: skip
Type: TypeAlias = Scalar | Array | Map | Record | Named


def plain(type_: Type) -> Type:
    """The type without docs and foreign names: what two relations must share to be of one type."""
    match type_:
        case Record():
            return Record(tuple(Field(f.name, plain(f.type), f.nullable) for f in type_.fields))
        case Enum():
            return Enum(type_.symbols)
        case Array():
            return replace(type_, element=plain(type_.element))
        case Map():
            return replace(type_, value=plain(type_.value))
        case _:
            return type_


def map_named(type_: Type, change: Callable[[Named], Type]) -> Type:
    """The type with another in place of every name of a type of the catalog."""
    match type_:
        case Named():
            return change(type_)
        case Array():
            return replace(type_, element=map_named(type_.element, change))
        case Map():
            return replace(type_, value=map_named(type_.value, change))
        case Record():
            fields = tuple(replace(f, type=map_named(f.type, change)) for f in type_.fields)
            return replace(type_, fields=fields)
        case _:
            return type_


def depth(type_: Type) -> int:
    """How many arrays, maps and records are inside each other; a scalar has depth 0. Safe for any depth."""
    deepest, waiting = 0, [(type_, 0)]
    while waiting:
        current, level = waiting.pop()
        deepest = max(deepest, level)
        match current:
            case Record():
                deepest = max(deepest, level + 1)
                waiting.extend((field.type, level + 1) for field in current.fields)
            case Array():
                waiting.append((current.element, level + 1))
            case Map():
                waiting.append((current.value, level + 1))
            case _:
                pass
    return deepest
