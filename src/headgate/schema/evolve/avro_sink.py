"""What a change does to the subject of an Avro sink, under the compatibility level BACKWARD, a registry's usual one:
whoever has the new schema must be able to read what was written with the old one."""

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
from headgate.schema.render import print_type
from headgate.schema.types import Bigint, Decimal, Double, Integer, Json, Real, Text, Type, Uuid

# What a reader takes for what was written: Avro's promotions, and what is a string in Avro as text.
_PROMOTED: dict[type, tuple[type, ...]] = {
    Integer: (Bigint, Real, Double),
    Bigint: (Real, Double),
    Real: (Double,),
    Uuid: (Text,),
    Json: (Text,),
}


def avro_sink(change: Change) -> Verdict:
    match change:
        case FieldAdded():
            if change.field.nullable:
                return in_place("a new version has the field, with the default null")
            return breaking("a field that is not null has no default, so that old records cannot be read")
        case FieldRemoved():
            return in_place("a new version lacks the field")
        case FieldRenamed():
            return breaking("readers find a field by its name")
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return _type(change.old, change.new)
        case NullabilityRelaxed():
            return in_place("a new version has a union with null")
        case NullabilityTightened():
            return breaking("nulls in old records cannot be read")
        case EnumSymbolsRemoved(default=None):
            return breaking("symbols in old records cannot be read")
        case (
            EnumSymbolsRemoved() | EnumSymbolsAdded() | EnumReordered() | EnumDefaultChanged() | FieldMoved()
        ):  # fmt: skip
            return in_place("a new version is registered")
        case TypeRenamed():
            return safe("names are frozen when the sink is made")
        case DocChanged():
            return safe("docs are frozen until they are refreshed")
        case _:
            assert_never(change)


def _type(old: Type, new: Type) -> Verdict:
    if isinstance(new, _PROMOTED.get(type(old), ())):
        return in_place("a new version has the wider type, to which readers promote")
    if isinstance(old, Decimal) and isinstance(new, Decimal) and _same_scale_and_more_digits(old, new):
        return in_place("a new version has the greater precision")
    return breaking(f"{print_type(old)} in old records cannot be read as {print_type(new)}")


def _same_scale_and_more_digits(old: Decimal, new: Decimal) -> bool:
    """The scale tells what the bytes mean; only the precision may grow."""
    return old.scale == new.scale and old.precision < new.precision
