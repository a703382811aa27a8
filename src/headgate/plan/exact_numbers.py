"""Numbers of JSON documents that a materialization must have with every digit.

A source with a JSON Schema reads a `number` as a double, which keeps about 16 digits. A field that is a whole number, a decimal or a text over
such a number reads the document's own text: for this task alone the value is json, and is cast from its text. So does a list, a map or a list of
records with such numbers in it. Records are still checked by the schemas that they were written with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.plan.definitions import SourceDefinition
from headgate.plan.target_definitions import (
    IndexDefinition,
    TableDefinition,
    TargetField,
    ValuePath,
    WrittenMaterialization,
)
from headgate.schema import types as t
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat

_EXACT = (t.Integer, t.Bigint, t.Decimal, t.Text)

Path = tuple[str, ...]


def with_exact_numbers(
    source: SourceDefinition, target: WrittenMaterialization
) -> tuple[SourceDefinition, WrittenMaterialization]:
    """The source and the table or index as the task reads and writes them. Only for one that reads the source itself: a view computes
    with numbers."""
    if target.relation != source.id:
        return source, target
    match target:
        case IndexDefinition():
            read, exact = exact_fields(source, target.fields)
            return read, replace(target, fields=exact)
        case TableDefinition():
            return _exact_table(source, target)


def _exact_table(source: SourceDefinition, table: TableDefinition) -> tuple[SourceDefinition, TableDefinition]:
    staged = [child.staged for child in table.children]
    read, exact = exact_fields(source, [column.field for column in (*table.columns, *staged)])
    fields = iter(exact)
    columns = tuple(replace(column, field=next(fields)) for column in table.columns)
    children = tuple(replace(child, staged=replace(child.staged, field=next(fields))) for child in table.children)
    return read, replace(table, columns=columns, children=children)


def exact_fields(
    source: SourceDefinition, fields: Sequence[TargetField]
) -> tuple[SourceDefinition, tuple[TargetField, ...]]:
    """A source and fields of it, as they are read with every digit that the documents have."""
    value = source.layout.value
    if not isinstance(value, SchemaEncoding) or value.format is not SchemaFormat.JSON:
        return source, tuple(fields)
    columns = {c.name: c for c in source.layout.columns if c.origin.section == "value" and c.origin.name is not None}
    exact = {
        _root(leaf.path)
        for field in fields
        for _, leaf in field.leaves()
        if leaf.path is not None and leaf.path.column in columns and _needs_digits(leaf)
    }
    if not exact:
        return source, tuple(fields)
    places = tuple(sorted((str(columns[path[0]].origin.name), *path[1:]) for path in exact))
    read = tuple(replace(c, type=t.with_json(c.type, exact, (c.name,))) for c in source.layout.columns)
    layout = replace(source.layout, value=replace(value, as_json=places), columns=read)
    return replace(source, layout=layout), tuple(_field(field, exact) for field in fields)


def _root(path: ValuePath) -> Path:
    """Where the value is that a field reads, which may be a part of it."""
    return (path.column, *path.fields)


def _needs_digits(leaf: TargetField) -> bool:
    if leaf.source is None or leaf.path is None or leaf.key:
        return False
    return _counts_digits(_part(leaf.source, leaf.path.inside or ()), leaf.type)


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
        case t.Double(), _:
            return isinstance(type_, (*_EXACT, t.Json))
        case t.Array() | t.Map(), t.Json():  # a record that is kept as json has the fields that its schema knows
            return _counts_digits(source.element if isinstance(source, t.Array) else source.value, type_)
        case t.Array(), t.Array():
            return _counts_digits(source.element, type_.element)
        case t.Map(), t.Map():
            return _counts_digits(source.value, type_.value)
        case t.Record(), t.Record():
            pairs = ((source.field(field.name), field.type) for field in type_.fields)
            return any(_counts_digits(held.type, wanted) for held, wanted in pairs if held is not None)
        case _:
            return False


def _field(field: TargetField, exact: set[Path]) -> TargetField:
    inner = tuple(_field(each, exact) for each in field.fields)
    if field.path is not None and _root(field.path) in exact and not inner:
        return replace(field, source=t.Json(), path=replace(field.path, inside=field.path.inside or ()))
    if field.path is None or field.source is None or field.path.inside is not None:
        return replace(field, fields=inner)
    return replace(field, fields=inner, source=t.with_json(field.source, exact, field.path.tokens))
