"""The schema of a reader after a change of its source, under ON SCHEMA CHANGE = FOLLOW.

New fields are added at the end, nullable. Numbers widen. Columns become nullable. A removed field keeps its column,
which becomes nullable. Every other change leaves the column as it was: then `follows` is false, and tasks that use
the column halt until the change is accepted.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.evolve.widen import is_number, widen
from headgate.schema.types import Array, Enum, Field, Map, Record, Type


def follows(old: Record, new: Record) -> bool:
    """Whether a reader can follow every change without being asked."""
    return all(verdict(change, Target.READER).level is not Level.BREAKING for change in diff(old, new))


def merge(old: Record, new: Record, *, accept: bool = False) -> Record:
    """The old schema with those changes that FOLLOW adopts. Every old field keeps its name, position and doc.

    With `accept`, all changes are adopted: a field whose type FOLLOW would not change becomes text or json.
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
    """Whether every value of the type `have` can be read as a value of `want`. After a merge this holds for the
    merged type."""
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
