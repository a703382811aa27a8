"""The reader's schema after a change upstream, under ON SCHEMA CHANGE = FOLLOW.

New fields come at the end, nullable; numbers widen; nullability relaxes; a field that went away keeps its column,
nullable from then on. That is all: wherever another change would be needed, the column stays as it was, `follows`
is false, and the tasks that use the column halt until the change is accepted.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.evolve.widen import is_number, widen
from headgate.schema.types import Array, Enum, Field, Map, Record, Type


def follows(old: Record, new: Record) -> bool:
    """Whether a reader can take up every change by itself."""
    return all(verdict(change, Target.READER).level is not Level.BREAKING for change in diff(old, new))


def merge(old: Record, new: Record, *, accept: bool = False) -> Record:
    """The old schema with what FOLLOW takes up of the new one. Every old field keeps its name, place and doc.

    With ``accept`` also what FOLLOW does not take up by itself: the field becomes text, or json.
    """
    arriving = {field.name: field for field in new.fields}
    known = {field.name for field in old.fields}
    fields = [_field(field, arriving.get(field.name), accept) for field in old.fields]
    fields += [replace(field, nullable=True) for field in new.fields if field.name not in known]
    return replace(old, fields=tuple(fields))


def merge_fields(known: Field, arriving: Field, *, accept: bool = False) -> Field:
    """As `merge`, for one field. The known field keeps its name, whatever the arriving one is called."""
    return merge(Record((known,)), Record((replace(arriving, name=known.name),)), accept=accept).fields[0]


def _field(old: Field, new: Field | None, accept: bool) -> Field:
    if new is None:
        return replace(old, nullable=True)
    type_ = _type(old.type, new.type, accept)
    return replace(old, type=type_, nullable=old.nullable or new.nullable)


def _type(old: Type, new: Type, accept: bool) -> Type:
    match old, new:
        case Record(), Record():
            return merge(old, new, accept=accept)
        case Array(), Array():
            element = _type(old.element, new.element, accept)
            return Array(element, old.element_nullable or new.element_nullable)
        case Map(), Map():
            return Map(_type(old.value, new.value, accept), old.value_nullable or new.value_nullable)
        case _:
            bound = widen(old, new)
            return bound if accept or (is_number(old) and is_number(bound)) else old


def can_hold(want: Type, have: Type) -> bool:
    """Whether every value of one type can be read as a value of the other: what a merge has taken up can."""
    match want, have:
        case Record(), Record():
            wanted = {field.name: field for field in want.fields}
            return all(f.name in wanted and can_hold(wanted[f.name].type, f.type) for f in have.fields)
        case Array(), Array():
            return can_hold(want.element, have.element)
        case Map(), Map():
            return can_hold(want.value, have.value)
        case Enum(), Enum():
            return set(have.symbols) <= set(want.symbols)
        case _:
            return want == have or (is_number(want) and is_number(have) and widen(want, have) == want)
