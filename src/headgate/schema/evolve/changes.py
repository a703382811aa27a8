"""The changes between two schemas: a closed set, and `diff`, which finds them at any depth.

Each change has a path and can describe itself. Fields correspond if their names are equal, case included. The list of
changes is complete: applied to the old record it gives the new one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from headgate.schema import types as t
from headgate.schema.evolve.merge import widen
from headgate.schema.names import Path, Step, print_path
from headgate.schema.render import print_field, print_type


@dataclass(frozen=True, slots=True)
class _Change:
    """The base of all changes. ``text`` says what happened to the part of the schema at the path."""

    path: Path
    text: ClassVar[str] = ""

    def describe(self) -> str:
        """The change as a clause for people, such as `$.a removed`."""
        return f"{print_path(self.path)} {self.text}"


@dataclass(frozen=True, slots=True)
class FieldAdded(_Change):
    """`index` is its position in the new record. `last` says that no field of the old record follows it."""

    field: t.Field
    index: int
    last: bool

    def describe(self) -> str:
        return f"{print_path(self.path)} added as {print_field(self.field).removeprefix(self.field.name).strip()}"


@dataclass(frozen=True, slots=True)
class FieldRemoved(_Change):
    """A field is gone. What it held before stays in the records that were written with it."""

    field: t.Field
    text = "removed"


@dataclass(frozen=True, slots=True)
class FieldRenamed(_Change):
    """`path` is the old one. `diff` sees one field removed and another one added; `renames` finds out that they are one."""

    old: str
    new: str

    def describe(self) -> str:
        return f'{print_path(self.path)} renamed to "{self.new}"'


@dataclass(frozen=True, slots=True)
class FieldMoved(_Change):
    """`index` is the field's position in the new record."""

    index: int

    def describe(self) -> str:
        return f"{print_path(self.path)} moved to position {self.index + 1}"


@dataclass(frozen=True, slots=True)
class _Retyped(_Change):
    """A scalar, array or map has another type."""

    old: t.Type
    new: t.Type

    def describe(self) -> str:
        return f"{print_path(self.path)} {self.text} from {print_type(self.old)} to {print_type(self.new)}"


@dataclass(frozen=True, slots=True)
class TypeWidened(_Retyped):
    """Every value of the old type is a value of the new one."""

    text = "widened"


@dataclass(frozen=True, slots=True)
class TypeNarrowed(_Retyped):
    """Every value of the new type is a value of the old one, but not the other way round."""

    text = "narrowed"


@dataclass(frozen=True, slots=True)
class TypeChanged(_Retyped):
    """Each type has values that the other one does not have."""

    text = "changed"


@dataclass(frozen=True, slots=True)
class NullabilityRelaxed(_Change):
    """A field, element or value may be null from now on."""

    text = "became nullable"


@dataclass(frozen=True, slots=True)
class NullabilityTightened(_Change):
    """A field, element or value may no longer be null."""

    text = "became not null"


@dataclass(frozen=True, slots=True)
class EnumSymbolsAdded(_Change):
    """An enum has further symbols."""

    symbols: tuple[str, ...]

    def describe(self) -> str:
        return f"{print_path(self.path)} gained the symbols {', '.join(self.symbols)}"


@dataclass(frozen=True, slots=True)
class EnumSymbolsRemoved(_Change):
    """`default` is the symbol of the new enum that stands for unknown ones."""

    symbols: tuple[str, ...]
    default: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} lost the symbols {', '.join(self.symbols)}"


@dataclass(frozen=True, slots=True)
class EnumReordered(_Change):
    """`symbols` are all symbols in the new order."""

    symbols: tuple[str, ...]
    text = "lists its symbols in another order"


@dataclass(frozen=True, slots=True)
class EnumDefaultChanged(_Change):
    """The symbol that stands for unknown ones is another."""

    old: str | None
    new: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} reads unknown symbols as {self.new or 'an error'}"


@dataclass(frozen=True, slots=True)
class TypeRenamed(_Change):
    """A record or enum has another full name in its original format."""

    old: str | None
    new: str | None

    def describe(self) -> str:
        return f"{print_path(self.path)} is now of the type {self.new or 'without a name'}"


@dataclass(frozen=True, slots=True)
class DocChanged(_Change):
    """The doc of a field or of a type is new, gone or different."""

    of: t.DocumentedPart
    old: str | None
    new: str | None

    def describe(self) -> str:
        what = "documented" if self.old is None else "no longer documented" if self.new is None else "documented anew"
        return f"{self.of} {print_path(self.path)} is {what}"


Change = (
    FieldAdded | FieldRemoved | FieldRenamed | FieldMoved | TypeWidened | TypeNarrowed | TypeChanged
    | NullabilityRelaxed | NullabilityTightened | EnumSymbolsAdded | EnumSymbolsRemoved | EnumReordered
    | EnumDefaultChanged | TypeRenamed | DocChanged
)  # fmt: skip


def diff(old: t.Record, new: t.Record) -> tuple[Change, ...]:
    """All changes from `old` to `new`, in the order of the new record. Within a record, removals come first."""
    return tuple(_changes_of_record(old, new, ()))


def diff_values(old: t.Field, new: t.Field) -> tuple[Change, ...]:
    """All changes from one whole value to another, whatever the two are called. The path of the whole value is
    empty."""
    return tuple(_changes_of_field(old, new, ()))


def _changes_of_record(old: t.Record, new: t.Record, path: Path) -> Iterator[Change]:
    """The changes of one record: its names, the fields that went, then its fields in their new order."""
    yield from _naming(old, new, path)
    before = {field.name: field for field in old.fields}
    after = {field.name for field in new.fields}
    kept = [field.name for field in new.fields if field.name in before]
    for field in old.fields:
        if field.name not in after:
            yield FieldRemoved((*path, field.name), field)
    staying = _in_order(old, kept)
    last_kept = max((i for i, field in enumerate(new.fields) if field.name in before), default=-1)
    for index, field in enumerate(new.fields):
        inner = (*path, field.name)
        if field.name not in before:
            yield FieldAdded(inner, field, index, index > last_kept)
            continue
        if field.name not in staying:
            yield FieldMoved(inner, index)
        yield from _changes_of_field(before[field.name], field, inner)


def _in_order(old: t.Record, kept: list[str]) -> frozenset[str]:
    """The longest list of fields that keep their order, so that as few as possible count as moved."""
    position = {field.name: i for i, field in enumerate(old.fields)}
    ends: list[int] = []  # ends[n]: the smallest last position of all ascending lists of length n + 1
    previous: dict[int, int | None] = {}
    for name in kept:
        at = position[name]
        length = bisect_left(ends, at)
        previous[at] = ends[length - 1] if length else None
        ends[length : length + 1] = [at]
    staying, at_end = set(), ends[-1] if ends else None
    while at_end is not None:
        staying.add(old.fields[at_end].name)
        at_end = previous[at_end]
    return frozenset(staying)


def _changes_of_field(old: t.Field, new: t.Field, path: Path) -> Iterator[Change]:
    """The changes of a field that both records have."""
    yield from _nullability(old.nullable, new.nullable, path)
    if old.doc != new.doc:
        yield DocChanged(path, t.DocumentedPart.FIELD, old.doc, new.doc)
    yield from _changes_of_type(old.type, new.type, path)


def _changes_of_type(old: t.Type, new: t.Type, path: Path) -> Iterator[Change]:
    """The changes inside a type. Only types of the same kind are compared part by part."""
    if old == new:
        return
    match old, new:
        case t.Record(), t.Record():
            yield from _changes_of_record(old, new, path)
        case t.Array(), t.Array():
            inner = (*path, Step.ELEMENT)
            yield from _nullability(old.element_nullable, new.element_nullable, inner)
            yield from _changes_of_type(old.element, new.element, inner)
        case t.Map(), t.Map():
            inner = (*path, Step.VALUE)
            yield from _nullability(old.value_nullable, new.value_nullable, inner)
            yield from _changes_of_type(old.value, new.value, inner)
        case t.Enum(), t.Enum():
            yield from _enums(old, new, path)
        case _:
            yield _retyped(old, new, path)


def _retyped(old: t.Type, new: t.Type, path: Path) -> Change:
    """The change between two types of which at least one is a scalar, or that are of different kinds."""
    # Names and docs do not make a type wider: json loses them just as text does.
    bound = t.plain(widen(t.plain(old), t.plain(new)))
    if bound == t.plain(new):
        return TypeWidened(path, old, new)
    return TypeNarrowed(path, old, new) if bound == t.plain(old) else TypeChanged(path, old, new)


def _enums(old: t.Enum, new: t.Enum, path: Path) -> Iterator[Change]:
    """The changes of an enum: its names, its symbols, their order and its default."""
    yield from _naming(old, new, path)
    removed = tuple(symbol for symbol in old.symbols if symbol not in new.symbols)
    added = tuple(symbol for symbol in new.symbols if symbol not in old.symbols)
    if removed:
        yield EnumSymbolsRemoved(path, removed, new.default)
    if added:
        yield EnumSymbolsAdded(path, added)
    if tuple(symbol for symbol in old.symbols if symbol in new.symbols) + added != new.symbols:
        yield EnumReordered(path, new.symbols)
    if old.default != new.default:
        yield EnumDefaultChanged(path, old.default, new.default)


def _naming(old: t.Record | t.Enum, new: t.Record | t.Enum, path: Path) -> Iterator[Change]:
    """The changes of the full name and the doc of a record or enum."""
    if old.name != new.name:
        yield TypeRenamed(path, old.name, new.name)
    if old.doc != new.doc:
        yield DocChanged(path, t.DocumentedPart.TYPE, old.doc, new.doc)


def _nullability(old: bool, new: bool, path: Path) -> Iterator[Change]:
    if old != new:
        yield NullabilityRelaxed(path) if new else NullabilityTightened(path)
