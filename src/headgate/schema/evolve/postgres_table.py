"""What a change does to a table in PostgreSQL."""

from __future__ import annotations

import re
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
from headgate.schema.evolve.verdict import Verdict, breaking, in_place, rebuild, safe
from headgate.schema.evolve.widen import is_number, widen
from headgate.schema.formats.postgres import to_postgres
from headgate.schema.types import Named, Record, Type

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
# Below a map's value, or below an element of an array that is itself an array or a record.
_INSIDE_JSON = re.compile(r"\{\}|\[\][.\[]")


def postgres_table(change: Change) -> Verdict:
    if _INSIDE_JSON.search(_QUOTED.sub("", change.path)):
        return safe("the column is jsonb, which holds it")
    match change:
        case FieldAdded():
            return in_place("a nullable column is added")
        case FieldRemoved():
            kept = "the column stays, and is null from then on"
            return safe(kept) if change.field.nullable else in_place(kept)
        case FieldRenamed():
            return in_place("the column is renamed")
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return _type(change)
        case NullabilityRelaxed():
            return _nullable(change.path)
        case NullabilityTightened():
            return safe("the column stays nullable")
        case EnumSymbolsAdded() | EnumSymbolsRemoved() | EnumReordered() | EnumDefaultChanged():
            return safe("the column is text, which holds every symbol")
        case FieldMoved():
            return safe("columns are found by name")
        case TypeRenamed():
            return safe("the table does not have the name")
        case DocChanged():
            return in_place("the comment is set")
        case _:
            assert_never(change)


def _nullable(path: str) -> Verdict:
    if path.endswith("[]"):
        return safe("elements of an array may be null")
    return in_place("NOT NULL is dropped")


def _type(change: TypeWidened | TypeNarrowed | TypeChanged) -> Verdict:
    old, new = change.old, change.new
    if isinstance(old, Named) or isinstance(new, Named):
        return breaking("a type that is not resolved cannot be compared")
    if isinstance(old, Record) or isinstance(new, Record):
        return rebuild("a record has a column for each leaf: the table is filled anew")
    if to_postgres(old) == to_postgres(new):
        return safe(f"both are {to_postgres(new)}")
    if isinstance(change, TypeWidened):
        return in_place(f"the column becomes {to_postgres(new)}")
    if isinstance(change, TypeChanged) and _bound_is_number(old, new):
        return in_place(f"the column becomes {to_postgres(widen(old, new))}")
    return breaking(f"{to_postgres(old)} cannot become {to_postgres(new)} with every value kept")


def _bound_is_number(old: Type, new: Type) -> bool:
    return is_number(old) and is_number(widen(old, new))
