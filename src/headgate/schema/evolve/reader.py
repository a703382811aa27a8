"""What a change does to a source that follows its schema (ON SCHEMA CHANGE = FOLLOW)."""

from __future__ import annotations

from typing import assert_never

from headgate.schema.evolve.changes import (
    Change,
    DocChanged,
    EnumDefaultChanged,
    EnumReordered,
    EnumSymbolsAdded,
    EnumSymbolsRemoved,
    FieldAdded,
    FieldMoved,
    FieldRemoved,
    FieldRenamed,
    NullabilityRelaxed,
    NullabilityTightened,
    TypeChanged,
    TypeNarrowed,
    TypeRenamed,
    TypeWidened,
)
from headgate.schema.evolve.verdict import Verdict, breaking, in_place, safe
from headgate.schema.evolve.widen import is_number, widen
from headgate.schema.render import print_type
from headgate.schema.types import Type


def reader(change: Change) -> Verdict:
    match change:
        case FieldAdded():
            return in_place("the field appears at the end, nullable")
        case FieldRemoved():
            kept = "the column stays, and is null from then on"
            return safe(kept) if change.field.nullable else in_place(kept)
        case FieldRenamed():
            return in_place("the new name appears at the end; the old column stays, and is null from then on")
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return _type(change.old, change.new)
        case NullabilityRelaxed():
            return in_place("the column becomes nullable")
        case NullabilityTightened():
            return safe("the column stays nullable")
        case EnumSymbolsAdded():
            return breaking("the column's type does not have the new symbols")
        case EnumSymbolsRemoved() | EnumReordered() | EnumDefaultChanged():
            return safe("the column keeps its symbols")
        case FieldMoved():
            return safe("fields are found by name")
        case TypeRenamed():
            return safe("a type's name is not part of the column")
        case DocChanged():
            return safe("docs are taken when a column is added")
        case _:
            assert_never(change)


def _type(old: Type, new: Type) -> Verdict:
    bound = widen(old, new)
    if not (is_number(old) and is_number(bound)):
        return breaking(
            f"{print_type(old)} cannot become {print_type(new)}: only numbers widen by themselves"
        )
    if bound == old:
        return safe("every value fits the column")
    return in_place(f"the column becomes {print_type(bound)}")
