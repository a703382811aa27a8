"""The reader's schema after a change upstream, under ON SCHEMA CHANGE = FOLLOW.

New fields come at the end, nullable; numbers widen; nullability relaxes; a field that went away keeps its column,
nullable from then on. That is all: wherever another change would be needed, the column stays as it was, `follows`
is false, and the tasks that use the column halt until the change is accepted.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.verdict import Level
from headgate.schema.evolve.verdicts import Target, verdict
from headgate.schema.evolve.widen import is_number, widen
from headgate.schema.types import Array, Field, Map, Record, Type


def follows(old: Record, new: Record) -> bool:
    """Whether a reader can take up every change by itself."""
    return all(verdict(change, Target.READER).level is not Level.BREAKING for change in diff(old, new))


def merge(old: Record, new: Record) -> Record:
    """The old schema with what FOLLOW takes up of the new one. Every old field keeps its name, place and doc."""
    arriving = {field.name: field for field in new.fields}
    known = {field.name for field in old.fields}
    fields = [_field(field, arriving.get(field.name)) for field in old.fields]
    fields += [replace(field, nullable=True) for field in new.fields if field.name not in known]
    return replace(old, fields=tuple(fields))


def _field(old: Field, new: Field | None) -> Field:
    if new is None:
        return replace(old, nullable=True)
    return replace(old, type=_type(old.type, new.type), nullable=old.nullable or new.nullable)


def _type(old: Type, new: Type) -> Type:
    match old, new:
        case Record(), Record():
            return merge(old, new)
        case Array(), Array():
            return Array(_type(old.element, new.element), old.element_nullable or new.element_nullable)
        case Map(), Map():
            return Map(_type(old.value, new.value), old.value_nullable or new.value_nullable)
        case _:
            bound = widen(old, new)
            return bound if is_number(old) and is_number(bound) else old
