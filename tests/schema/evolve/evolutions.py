"""Hypothesis strategies for schemas that change: a record, and another made of it by a few edits at any depth."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headgate.schema.evolve.changes import diff
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.types import Array, Enum, Field, Map, Record, Type
from tests.schema import strategies as s

# Made once: to make a strategy costs more than to draw from it.
_RECORDS = s.records(s.types(max_leaves=4), max_fields=4)
_TYPES = s.types(max_leaves=2)
_NEW_FIELDS = st.lists(s.fields(_TYPES), max_size=2, unique_by=lambda f: f.name)
_DOCS = s.docs()
_NAMES = s.full_names()
_BOOLEANS = st.booleans()
_SELDOM = st.integers(0, 3)


def follows(old: Record, new: Record) -> bool:
    """Whether a reader can follow every change without being asked."""
    return all(verdict(change, Target.READER).level is not Level.BREAKING for change in diff(old, new))


@st.composite
def changed_records(draw: st.DrawFn) -> tuple[Record, Record]:
    old = draw(_RECORDS)
    return old, draw(edited_record(old))


@st.composite
def edited_record(draw: st.DrawFn, record: Record) -> Record:
    fields = [draw(_edited_field(field)) for field in record.fields if draw(_SELDOM) or draw(_BOOLEANS)]
    taken = {field.name for field in record.fields}
    added = draw(_NEW_FIELDS)
    for field in added:
        if field.name not in taken:
            fields.insert(draw(st.integers(0, len(fields))), field)
    if not draw(_SELDOM):
        fields = draw(st.permutations(fields))
    return Record(
        tuple(fields),
        record.name if draw(_SELDOM) else draw(_NAMES),
        record.doc if draw(_SELDOM) else draw(_DOCS),
    )


@st.composite
def _edited_field(draw: st.DrawFn, field: Field) -> Field:
    if draw(_BOOLEANS):
        return field
    nullable, doc = draw(_BOOLEANS), field.doc if draw(_SELDOM) else draw(_DOCS)
    return Field(field.name, draw(edited_type(field.type)), nullable, doc)


@st.composite
def edited_type(draw: st.DrawFn, type_: Type) -> Type:
    if not draw(_SELDOM):
        return draw(_TYPES)
    match type_:
        case Record():
            return draw(edited_record(type_))
        case Array():
            return Array(draw(edited_type(type_.element)), draw(_BOOLEANS))
        case Map():
            return Map(draw(edited_type(type_.value)), draw(_BOOLEANS))
        case Enum():
            more = draw(st.lists(st.sampled_from("XYZ"), unique=True))
            symbols = dict.fromkeys([*type_.symbols, *more])
            return replace(type_, symbols=tuple(draw(st.permutations(list(symbols)))))
        case _:
            return type_
