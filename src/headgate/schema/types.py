"""The neutral types. Every format is mapped to and from these, and all other code uses only them.

Types are frozen values. Nullability belongs to the field, the array or the map that holds a value, not to the type.
Docs and foreign names are part of a type, because they must reach every target. The short printed form
(`print_type`), which DESCRIBE shows, leaves them out. The full one (`print_type(t, full=True)`), which the catalog
stores, keeps them, and `parse_type` reads it back exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from headgate.errors import Span

MAX_PRECISION = 38  # of Spark; the mappers refuse a wider decimal and never round
MAX_DEPTH = 100  # levels of arrays, maps and records; walks over a type recurse, and Python limits recursion


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""


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
    """`precision` digits, of which `scale` are after the point."""

    precision: int = 38
    scale: int = 18


@dataclass(frozen=True, slots=True)
class Text:
    """A text of any length."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes. With a length, exactly that many, like Avro's fixed."""

    length: int | None = None


@dataclass(frozen=True, slots=True)
class Date:
    """A day without a zone."""


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
    """A UUID."""


@dataclass(frozen=True, slots=True)
class Json:
    """Any JSON value, kept as the text in which it came."""


@dataclass(frozen=True, slots=True)
class Enum:
    """One of several texts."""

    symbols: tuple[str, ...]
    name: str | None = None  # full name in its original format
    default: str | None = None  # the symbol that stands for unknown ones
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """A list. `element_nullable` says whether it may contain nulls."""

    element: Type
    element_nullable: bool = True


@dataclass(frozen=True, slots=True)
class Map:
    """A map with text keys."""

    value: Type
    value_nullable: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record, or a column.

    ``default`` is the value that the field has in records that were written without it, as JSON text. None stands for
    no default and for null: the value is null then, and the field is nullable. It does not make another type.
    """

    name: str
    type: Type
    nullable: bool = True
    doc: str | None = None
    default: str | None = field(default=None, compare=False)


class DocumentedPart(StrEnum):
    """Which of two docs is meant: that of a field, or that of the record or enum in it. Both have the same path."""

    FIELD = "field"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Record:
    """Fields in order, with different names."""

    fields: tuple[Field, ...]
    name: str | None = None  # full name in its original format (Avro `namespace.name`, Protobuf message)
    doc: str | None = None

    def field(self, name: str) -> Field | None:
        """The field with exactly this name."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True, slots=True)
class CatalogRecord(Record):
    """The record that a type of the catalog stands for. A query sees its fields, and its result still has the type.

    ``path`` is the full name of the type. A record that a query changes is a plain record again.
    """

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogEnum(Enum):
    """The enum that a type of the catalog stands for, like `CatalogRecord`."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """A type of the catalog, by the parts of its full name, for example ("headgate", "public", "point").

    `quoted` says which parts were written in quotes and must match exactly. It is empty for a resolved name. `span` is
    where a statement has the name.
    """

    parts: tuple[str, ...]
    quoted: tuple[bool, ...] = field(default=(), compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


Scalar: TypeAlias = (
    Boolean | Integer | Bigint | Real | Double | Decimal | Text | Bytes | Date | Time | Timestamp | TimestampTz
    | Uuid | Json | Enum
)  # fmt: skip
Type: TypeAlias = Scalar | Array | Map | Record | Named


def map_inner(type_: Type, change: Callable[[Type], Type]) -> Type:
    """The type with `change` applied to the types directly inside it: of elements, of values, of fields."""
    match type_:
        case Record():
            return replace(type_, fields=tuple([replace(f, type=change(f.type)) for f in type_.fields]))
        case Array():
            return replace(type_, element=change(type_.element))
        case Map():
            return replace(type_, value=change(type_.value))
        case _:
            return type_


def plain(type_: Type) -> Type:
    """The type without docs and foreign names. Two relations have the same type if their plain types are equal."""
    match type_:
        case Record():
            return Record(tuple(Field(f.name, plain(f.type), f.nullable) for f in type_.fields))
        case Enum():
            return Enum(type_.symbols)
        case _:
            return map_inner(type_, plain)


def with_nulls(type_: Type) -> Type:
    """The type with every part nullable, at every depth."""
    match type_:
        case Record():
            type_ = replace(type_, fields=tuple(replace(field, nullable=True) for field in type_.fields))
        case Array():
            type_ = replace(type_, element_nullable=True)
        case Map():
            type_ = replace(type_, value_nullable=True)
    return map_inner(type_, with_nulls)


def inner_fields(type_: Type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The fields of the records in a type, with the names that lead to them, outer ones first. Arrays and maps add nothing
    to a path. Named types are not looked into: their fields are columns of the type."""
    match type_:
        case Record():
            for inner in type_.fields:
                yield (*path, inner.name), inner
                yield from inner_fields(inner.type, (*path, inner.name))
        case Array():
            yield from inner_fields(type_.element, path)
        case Map():
            yield from inner_fields(type_.value, path)
        case _:
            return


def without_defaults(type_: Type) -> Type:
    """The type as the catalog keeps it: the defaults of a source's fields are in its schemas."""
    if isinstance(type_, Record):
        type_ = replace(type_, fields=tuple(replace(f, default=None) for f in type_.fields))
    return map_inner(type_, without_defaults)


def map_named(type_: Type, change: Callable[[Named], Type]) -> Type:
    """The type with every named type replaced by what `change` returns for it."""
    return change(type_) if isinstance(type_, Named) else map_inner(type_, lambda inner: map_named(inner, change))


def holds_json(type_: Type) -> bool:
    """Whether a value of the type is, or contains, a value of type json."""
    match type_:
        case Json():
            return True
        case Array():
            return holds_json(type_.element)
        case Map():
            return holds_json(type_.value)
        case Record():
            return any(holds_json(f.type) for f in type_.fields)
        case _:
            return False


Place: TypeAlias = tuple[str | None, ...]
"""Where a part of a type is: names of fields, and None for the elements of a list or the values of a map."""


def with_json(type_: Type, places: Collection[Place], path: Place = ()) -> Type:
    """The type with json at these places."""
    if path in places:
        return Json()
    match type_:
        case Record():
            fields = (replace(f, type=with_json(f.type, places, (*path, f.name))) for f in type_.fields)
            return replace(type_, fields=tuple(fields))
        case Array():
            return replace(type_, element=with_json(type_.element, places, (*path, None)))
        case Map():
            return replace(type_, value=with_json(type_.value, places, (*path, None)))
        case _:
            return type_


def depth(type_: Type) -> int:
    """How deep arrays, maps and records are nested, 0 for a scalar. It does not recurse, so any depth is safe."""
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
