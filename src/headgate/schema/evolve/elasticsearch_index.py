"""What a change does to an index of Elasticsearch, where a field, once there, cannot be altered."""

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
from headgate.schema.formats.elasticsearch import to_elasticsearch_field
from headgate.schema.types import Named, Type

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_INSIDE_OBJECT = re.compile(r"\{\}[.\[{]")  # below a map's value: a field that holds any object


def elasticsearch_index(change: Change) -> Verdict:
    if _INSIDE_OBJECT.search(_QUOTED.sub("", change.path)):
        return safe("the field holds any object")
    match change:
        case FieldAdded():
            return in_place("the field is put into the mapping")
        case FieldRemoved():
            return safe("the field stays in the mapping")
        case FieldRenamed():
            return rebuild("a field keeps its name: a new index is filled behind the alias")
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return _type(change)
        case NullabilityRelaxed() | NullabilityTightened():
            return safe("any field may be missing")
        case EnumSymbolsAdded() | EnumSymbolsRemoved() | EnumReordered() | EnumDefaultChanged():
            return safe("the field is a keyword, which holds every symbol")
        case FieldMoved():
            return safe("fields are found by name")
        case TypeRenamed():
            return safe("the index does not have the name")
        case DocChanged():
            return in_place("the mapping's _meta is put")
        case _:
            assert_never(change)


def _type(change: TypeWidened | TypeNarrowed | TypeChanged) -> Verdict:
    old, new = change.old, change.new
    if isinstance(old, Named) or isinstance(new, Named):
        return breaking("a type that is not resolved cannot be compared")
    if _kind(old) == _kind(new):
        return safe("the mapping is the same")
    if isinstance(change, TypeWidened) or (
        is_number(old) and is_number(widen(old, new)) and widen(old, new) != old
    ):
        return rebuild("a field keeps its type: a new index is filled behind the alias")
    return breaking("values in the index do not fit the new type")


def _kind(type_: Type) -> object:
    return to_elasticsearch_field(type_)
