"""The changes between two records, at any depth.

Fields correspond if their names are equal, case included. The list is complete: applied to the old record it gives
the new one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace

from headgate.schema.docs import DocumentedPart
from headgate.schema.evolve import changes as c
from headgate.schema.evolve.widen import widen
from headgate.schema.paths import Path, Step
from headgate.schema.types import Array, Enum, Field, Map, Record, Type, plain

Aliases = Mapping[Path, str]


def diff(old: Record, new: Record, *, aliases: Aliases | None = None) -> tuple[c.Change, ...]:
    """All changes from `old` to `new`, in the order of the new record. Within a record, removals come first.

    `aliases` gives the old name of a field by its path in the new record. The paths in the changes are those of the
    old record, except for added fields.
    """
    return tuple(_records(old, new, (), (), aliases or {}))


def diff_values(old: Field, new: Field, *, aliases: Aliases | None = None) -> tuple[c.Change, ...]:
    """All changes from one whole value to another, whatever the two are called. The path of the whole value is empty."""
    return tuple(_fields(old, replace(new, name=old.name), (), (), aliases or {}))


def _records(old: Record, new: Record, path: Path, new_path: Path, aliases: Aliases) -> Iterator[c.Change]:
    yield from _naming(old, new, path)
    before = {field.name: field for field in old.fields}
    origin = {f.name: f.name if f.name in before else None for f in new.fields}
    for name in [name for name, was in origin.items() if was is None]:
        alias = aliases.get((*new_path, name))
        if alias in before and alias not in origin.values():
            origin[name] = alias
    kept = {name for name in origin.values() if name is not None}
    for field in old.fields:
        if field.name not in kept:
            yield c.FieldRemoved((*path, field.name), field)
    staying = _in_order(old, [name for name in origin.values() if name is not None])
    last_kept = max((i for i, field in enumerate(new.fields) if origin[field.name] is not None), default=-1)
    for index, field in enumerate(new.fields):
        was = origin[field.name]
        inner = (*new_path, field.name)
        if was is None:
            yield c.FieldAdded((*path, field.name), field, index, index > last_kept)
            continue
        if was not in staying:
            yield c.FieldMoved((*path, was), index)
        yield from _fields(before[was], field, (*path, was), inner, aliases)


def _in_order(old: Record, kept: list[str]) -> frozenset[str]:
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


def _fields(old: Field, new: Field, path: Path, new_path: Path, aliases: Aliases) -> Iterator[c.Change]:
    if old.name != new.name:
        yield c.FieldRenamed(path, old.name, new.name)
    yield from _nullability(old.nullable, new.nullable, path)
    if old.doc != new.doc:
        yield c.DocChanged(path, DocumentedPart.FIELD, old.doc, new.doc)
    yield from _types(old.type, new.type, path, new_path, aliases)


def _types(old: Type, new: Type, path: Path, new_path: Path, aliases: Aliases) -> Iterator[c.Change]:
    if old == new:
        return
    match old, new:
        case Record(), Record():
            yield from _records(old, new, path, new_path, aliases)
        case Array(), Array():
            inner = (*path, Step.ELEMENT)
            yield from _nullability(old.element_nullable, new.element_nullable, inner)
            yield from _types(old.element, new.element, inner, (*new_path, Step.ELEMENT), aliases)
        case Map(), Map():
            inner = (*path, Step.VALUE)
            yield from _nullability(old.value_nullable, new.value_nullable, inner)
            yield from _types(old.value, new.value, inner, (*new_path, Step.VALUE), aliases)
        case Enum(), Enum():
            yield from _enums(old, new, path)
        case _:
            yield _retyped(old, new, path)


def _retyped(old: Type, new: Type, path: Path) -> c.Change:
    # Names and docs do not make a type wider: json loses them just as text does.
    bound = plain(widen(plain(old), plain(new)))
    if bound == plain(new):
        return c.TypeWidened(path, old, new)
    return c.TypeNarrowed(path, old, new) if bound == plain(old) else c.TypeChanged(path, old, new)


def _enums(old: Enum, new: Enum, path: Path) -> Iterator[c.Change]:
    yield from _naming(old, new, path)
    removed = tuple(symbol for symbol in old.symbols if symbol not in new.symbols)
    added = tuple(symbol for symbol in new.symbols if symbol not in old.symbols)
    if removed:
        yield c.EnumSymbolsRemoved(path, removed, new.default)
    if added:
        yield c.EnumSymbolsAdded(path, added)
    if tuple(symbol for symbol in old.symbols if symbol in new.symbols) + added != new.symbols:
        yield c.EnumReordered(path, new.symbols)
    if old.default != new.default:
        yield c.EnumDefaultChanged(path, old.default, new.default)


def _naming(old: Record | Enum, new: Record | Enum, path: Path) -> Iterator[c.Change]:
    if old.name != new.name:
        yield c.TypeRenamed(path, old.name, new.name)
    if old.doc != new.doc:
        yield c.DocChanged(path, DocumentedPart.TYPE, old.doc, new.doc)


def _nullability(old: bool, new: bool, path: Path) -> Iterator[c.Change]:
    if old != new:
        yield c.NullabilityRelaxed(path) if new else c.NullabilityTightened(path)
