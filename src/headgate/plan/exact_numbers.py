"""Numbers of JSON documents that a materialization must have with every digit.

A source with a JSON Schema reads a `number` as a double, which keeps about 16 digits. For a field over such numbers in which every digit counts (a
whole number, a decimal, a text, json), this task alone reads them as json too, and casts them from their text. Records are still checked by the
schemas that they were written with.

A view that only renames, chooses and filters gives what its source has: the exact column travels through it beside the double, which the
view's conditions use. What a view computes from a double is a double.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.plan.definitions import SourceColumn, SourceDefinition
from headgate.plan.target_definitions import (
    Fields,
    IndexDefinition,
    TableDefinition,
    TargetField,
    WrittenMaterialization,
)
from headgate.schema import types as t
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.names import internal_name
from headgate.schema.written import SchemaFormat
from headgate.sql.query.tree_sql import View, carrying, plain_columns

_EXACT = (t.Integer, t.Bigint, t.Decimal, t.Text)


@dataclass(frozen=True, slots=True)
class ExactRead:
    """How the rows of a relation are read so that ``fields`` have every digit. ``views`` lie between the source and the relation, the
    lowest first."""

    source: SourceDefinition
    views: Sequence[View]
    fields: Fields


def with_exact_fields(target: WrittenMaterialization, fields: Fields) -> WrittenMaterialization:
    """The table or index with its fields as they are read; they are in the order of `read_fields`."""
    match target:
        case IndexDefinition():
            return replace(target, fields=fields)
        case TableDefinition():
            left = iter(fields)
            columns = tuple(replace(column, field=next(left)) for column in target.columns)
            staged = (replace(child.staged, field=next(left)) for child in target.children)
            children = tuple(replace(child, staged=one) for child, one in zip(target.children, staged, strict=True))
            return replace(target, columns=columns, children=children)


def read_fields(target: WrittenMaterialization) -> Fields:
    """The fields by which the task of a table or index reads rows."""
    match target:
        case IndexDefinition():
            return target.fields
        case TableDefinition():
            staged = [child.staged for child in target.children]
            return tuple(column.field for column in (*target.columns, *staged))


def exact_read(source: SourceDefinition, views: Sequence[View], fields: Sequence[TargetField]) -> ExactRead:
    """How a source and the views over it are read for the fields of the last view, or of the source if there is none."""
    value = source.layout.value
    if not isinstance(value, SchemaEncoding) or value.format is not SchemaFormat.JSON:
        return ExactRead(source, views, tuple(fields))
    columns = {
        c.name: c
        for c in source.layout.columns
        if c.origin.section == "value" and c.origin.name is not None and not c.key
    }
    plain = plain_columns([c.name for c in source.layout.columns], views)
    passed = {name: columns[of] for name, of in plain.items() if of in columns}
    exact = frozenset(
        (passed[leaf.path.column].name, *inside)
        for field in fields
        for _, leaf in field.leaves()
        if leaf.path is not None and leaf.path.column in passed and _needs_digits(leaf)
        for inside in _numbers_below(leaf)
    )
    if not exact:
        return ExactRead(source, views, tuple(fields))
    read = {name: t.with_json(c.type, exact, (c.name,)) for name, c in columns.items()}
    made = {name: replace(c, type=read[name]) for name, c in columns.items() if read[name] != c.type}
    shown = {name: c.name for name, c in passed.items() if c.name in made}
    renamed = frozenset((name, *place[1:]) for name, of in shown.items() for place in exact if place[0] == of)
    below = _read_exactly(source, made, exact, beside=bool(views))
    above = carrying(views, [_beside(name) for name in made], {name: _beside(of) for name, of in shown.items()})
    return ExactRead(below, above, tuple(_field(field, renamed) for field in fields))


def _read_exactly(
    source: SourceDefinition, made: Mapping[str, SourceColumn], exact: frozenset[t.Place], *, beside: bool
) -> SourceDefinition:
    """The source with exact columns, in the place of its own or ``beside`` them."""
    value, columns = source.layout.value, source.layout.columns
    assert isinstance(value, SchemaEncoding)
    places = sorted({(made[str(place[0])].origin.name, *place[1:]) for place in exact}, key=repr)
    if beside:
        columns = (*columns, *(replace(one, name=_beside(name), default=None) for name, one in made.items()))
    else:
        columns = tuple(made.get(column.name, column) for column in columns)
    return replace(source, layout=replace(source.layout, columns=columns, value=replace(value, as_json=tuple(places))))


def _beside(column: str) -> str:
    return internal_name(f"exact_{column}")


def _needs_digits(leaf: TargetField) -> bool:
    if leaf.source is None or leaf.path is None or leaf.key:
        return False
    return _counts_digits(_part(leaf.source, leaf.path.inside or ()), leaf.type)


def _numbers_below(leaf: TargetField) -> Iterator[t.Place]:
    """The places, in its column, of all numbers in the value that a field reads, which may be a part of it."""
    assert leaf.path is not None
    assert leaf.source is not None
    yield from _numbers(leaf.source, leaf.path.fields)


def _numbers(type_: t.Type, at: t.Place) -> Iterator[t.Place]:
    match type_:
        case t.Double():
            yield at
        case t.Record():
            for field in type_.fields:
                yield from _numbers(field.type, (*at, field.name))
        case t.Array():
            yield from _numbers(type_.element, (*at, None))
        case t.Map():
            yield from _numbers(type_.value, (*at, None))
        case _:
            pass


def _part(type_: t.Type, tokens: Sequence[str]) -> t.Type:
    """The type of a part of a list, map or record."""
    for token in tokens:
        match type_:
            case t.Array():
                type_ = type_.element
            case t.Map():
                type_ = type_.value
            case t.Record() if (field := type_.field(token)) is not None:
                type_ = field.type
            case _:
                return type_
    return type_


def _counts_digits(source: t.Type, type_: t.Type) -> bool:
    """Whether a number of the source, at any depth, becomes a value in which every digit counts."""
    match source, type_:
        case _, t.Json():
            return next(_numbers(source, ()), None) is not None
        case t.Double(), _:
            return isinstance(type_, _EXACT)
        case t.Array(), t.Array():
            return _counts_digits(source.element, type_.element)
        case t.Map(), t.Map():
            return _counts_digits(source.value, type_.value)
        case t.Record(), t.Record():
            pairs = ((source.field(field.name), field.type) for field in type_.fields)
            return any(_counts_digits(held.type, wanted) for held, wanted in pairs if held is not None)
        case _:
            return False


def _field(field: TargetField, exact: frozenset[t.Place]) -> TargetField:
    """The field over a source with json at these places. Json that becomes anything else is read again from its text."""
    inner = tuple(_field(each, exact) for each in field.fields)
    if field.path is None or field.source is None:
        return replace(field, fields=inner)
    path = field.path
    source = t.with_json(field.source, exact, (path.column, *path.fields))
    if source != field.source and not inner and not isinstance(field.type, t.Json):
        path = replace(path, inside=path.inside or ())
    return replace(field, fields=inner, source=source, path=path)
