"""Numbers of JSON documents that a materialization must have with every digit.

A source with a JSON Schema reads a `number` as a double, which keeps about 16 digits. A field that is a whole number, a decimal or a text over
such a number reads the document's own text: for this task alone the value is json, and is cast from its text. Records are still checked by
the schemas that they were written with.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.definitions import SourceDefinition
from headgate.plan.target_definitions import TableDefinition, TargetField
from headgate.schema import types as t
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat

_EXACT = (t.Integer, t.Bigint, t.Decimal, t.Text)

Path = tuple[str, ...]


def with_exact_numbers(source: SourceDefinition, table: TableDefinition) -> tuple[SourceDefinition, TableDefinition]:
    """The source and the table as the task reads and writes them. Only for a table that reads the source itself: a view computes with
    numbers."""
    value = source.layout.value
    if table.relation != source.id or not isinstance(value, SchemaEncoding) or value.format is not SchemaFormat.JSON:
        return source, table
    columns = {c.name: c for c in source.layout.columns if c.origin.section == "value" and c.origin.name is not None}
    exact = {
        leaf.path.tokens
        for column in (*table.columns, *(child.staged for child in table.children))
        for _, leaf in column.field.leaves()
        if leaf.path is not None and leaf.path.column in columns and _needs_digits(leaf)
    }
    if not exact:
        return source, table
    places = tuple(sorted((str(columns[path[0]].origin.name), *path[1:]) for path in exact))
    read = tuple(replace(c, type=t.with_json(c.type, exact, (c.name,))) for c in source.layout.columns)
    layout = replace(source.layout, value=replace(value, as_json=places), columns=read)
    made = tuple(replace(column, field=_field(column.field, exact)) for column in table.columns)
    children = tuple(
        replace(child, staged=replace(child.staged, field=_field(child.staged.field, exact)))
        for child in table.children
    )
    return replace(source, layout=layout), replace(table, columns=made, children=children)


def _needs_digits(leaf: TargetField) -> bool:
    return isinstance(leaf.source, t.Double) and isinstance(leaf.type, _EXACT) and not leaf.key


def _field(field: TargetField, exact: set[Path]) -> TargetField:
    inner = tuple(_field(each, exact) for each in field.fields)
    if field.path is not None and field.path.tokens in exact and not inner:
        return replace(field, source=t.Json(), path=replace(field.path, inside=()))
    if field.path is None or field.source is None or field.path.inside is not None:
        return replace(field, fields=inner)
    return replace(field, fields=inner, source=t.with_json(field.source, exact, field.path.tokens))
