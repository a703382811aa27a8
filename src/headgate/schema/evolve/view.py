"""What a change of its input does to a view that uses the field."""

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


def view(change: Change) -> Verdict:
    match change:
        case FieldAdded():
            return in_place("a view with * gains the column; one that names its columns does not change")
        case FieldRemoved():
            return breaking("the query names a column that is no longer there")
        case FieldRenamed():
            return breaking("the query names the column as it was")
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return _type(change.old, change.new)
        case NullabilityRelaxed():
            return in_place("columns computed from it become nullable")
        case NullabilityTightened():
            return safe("columns computed from it stay nullable")
        case EnumSymbolsAdded() | EnumSymbolsRemoved() | EnumReordered() | EnumDefaultChanged():
            return safe("symbols are computed with as text")
        case FieldMoved():
            return safe("columns are found by name")
        case TypeRenamed():
            return safe("a type's name is not part of the column")
        case DocChanged():
            return safe("nothing is computed from a doc")
        case _:
            assert_never(change)


def _type(old: Type, new: Type) -> Verdict:
    if is_number(old) and is_number(new) and is_number(widen(old, new)):
        return in_place("columns computed from it get their types anew")
    return breaking(f"what the query computes on {print_type(old)} may not be defined on {print_type(new)}")
