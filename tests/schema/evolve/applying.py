"""Apply a list of changes to a record: the inverse of `diff`, for the law apply(old, diff(old, new)) = new."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from headgate.schema.evolve import changes as c
from headgate.schema.names import Path, Step
from headgate.schema.types import Array, DocumentedPart, Enum, Field, Map, Record, Type


class _Changes:
    """Changes by path. An added field is kept at the record that gains it."""

    def __init__(self, changes: Iterable[c.Change]) -> None:
        self.at: dict[Path, list[c.Change]] = {}
        self.added: dict[Path, list[c.FieldAdded]] = {}
        for change in changes:
            if isinstance(change, c.FieldAdded):
                parent = change.path[:-1]
                self.added.setdefault(parent, []).append(change)
            else:
                self.at.setdefault(change.path, []).append(change)


def apply(old: Record, changes: Iterable[c.Change]) -> Record:
    """The record after the changes. Changes at paths that it does not have do nothing."""
    done = _type(old, _Changes(changes), ())
    assert isinstance(done, Record)  # no change replaces the root
    return done


def _record(old: Record, changes: _Changes, path: Path) -> Record:
    staying: list[Field] = []
    placed = {change.index: change.field for change in changes.added.get(path, [])}
    for field in old.fields:
        here = changes.at.get((*path, field.name), [])
        if any(isinstance(change, c.FieldRemoved) for change in here):
            continue
        made = _field(field, changes, (*path, field.name))
        moved = next((change.index for change in here if isinstance(change, c.FieldMoved)), None)
        if moved is None:
            staying.append(made)
        else:
            placed[moved] = made
    for index in sorted(placed):
        staying.insert(index, placed[index])
    return replace(old, fields=tuple(staying))


def _field(field: Field, changes: _Changes, path: Path) -> Field:
    made = replace(field, type=_type(field.type, changes, path), nullable=_nullable(field.nullable, changes, path))
    for change in changes.at.get(path, []):
        match change:
            case c.FieldRenamed():
                made = replace(made, name=change.new)
            case c.DocChanged(of=DocumentedPart.FIELD):
                made = replace(made, doc=change.new)
            case _:
                pass
    return made


def _nullable(nullable: bool, changes: _Changes, path: Path) -> bool:
    for change in changes.at.get(path, []):
        if isinstance(change, c.NullabilityRelaxed | c.NullabilityTightened):
            return isinstance(change, c.NullabilityRelaxed)
    return nullable


def _type(type_: Type, changes: _Changes, path: Path) -> Type:
    for change in changes.at.get(path, []):
        type_ = _changed(type_, change)
    match type_:
        case Record():
            return _record(type_, changes, path)
        case Array():
            inner = (*path, Step.ELEMENT)
            return Array(_type(type_.element, changes, inner), _nullable(type_.element_nullable, changes, inner))
        case Map():
            inner = (*path, Step.VALUE)
            return Map(_type(type_.value, changes, inner), _nullable(type_.value_nullable, changes, inner))
        case _:
            return type_


def _changed(type_: Type, change: c.Change) -> Type:
    """The type after a change of the type itself. What is inside it has paths of its own."""
    match change:
        case c.TypeWidened() | c.TypeNarrowed() | c.TypeChanged():
            return change.new
        case c.TypeRenamed() if isinstance(type_, Record | Enum):
            return replace(type_, name=change.new)
        case c.DocChanged(of=DocumentedPart.TYPE) if isinstance(type_, Record | Enum):
            return replace(type_, doc=change.new)
        case (
            c.EnumSymbolsAdded() | c.EnumSymbolsRemoved() | c.EnumReordered() | c.EnumDefaultChanged()
        ) if isinstance(type_, Enum):  # fmt: skip
            return _enum(type_, change)
        case _:
            return type_


def _enum(
    type_: Enum, change: c.EnumSymbolsAdded | c.EnumSymbolsRemoved | c.EnumReordered | c.EnumDefaultChanged
) -> Enum:
    match change:
        case c.EnumSymbolsAdded():
            return replace(type_, symbols=type_.symbols + change.symbols)
        case c.EnumSymbolsRemoved():
            return replace(type_, symbols=tuple(s for s in type_.symbols if s not in change.symbols))
        case c.EnumReordered():
            return replace(type_, symbols=change.symbols)
        case c.EnumDefaultChanged():
            return replace(type_, default=change.new)
        case _:
            assert_never(change)
